use futures_lite::Stream;
use glommio::channels::local_channel::{LocalReceiver, LocalSender};

use crate::common::prelude::*;
use crate::payload::{Bomb, dropping};

fn is_closed<T: PartialEq>(result: Result<(), GlommioError<T>>, item: T) -> bool {
    matches!(result, Err(GlommioError::Closed(ResourceType::Channel(it))) if it == item)
}

#[test]
fn an_absurd_capacity_takes_no_memory() {
    let (sender, _receiver) = local_channel::new_bounded(usize::MAX);
    sender.try_send([0u8; 4096]).unwrap();
    assert!(!sender.is_full());
}

#[test]
fn destructors_of_values_may_use_the_channel() {
    type Ends = (Rc<LocalSender<Box<dyn std::any::Any>>>, Rc<Cell<usize>>);
    fn value((sender, seen): &Ends) -> Box<dyn std::any::Any> {
        let (sender, seen) = (Rc::downgrade(sender), Rc::clone(seen));
        Box::new(on_drop(move || {
            let sender = sender.upgrade().expect("it is there");
            assert!(sender.is_empty() && !sender.is_full());
            assert!(sender.try_send(Box::new(())).is_err());
            seen.set(seen.get() + 1);
        }))
    }
    let (sender, receiver) = local_channel::new_bounded(2);
    let ends = (Rc::new(sender), Rc::default());
    ends.0.try_send(value(&ends)).unwrap();
    ends.0.try_send(value(&ends)).unwrap();
    let blocked = Polled::waiting(ends.0.send(value(&ends)));
    drop(receiver);
    assert!(blocked.is_woken());
    drop(blocked);
    assert_eq!(ends.1.get(), 3);
}

#[test]
fn wakers_may_use_the_channel_and_panic() {
    let (sender, receiver) = local_channel::new_bounded(1);
    let (sender, receiver) = (Rc::new(sender), Rc::new(receiver));
    let inner = Rc::clone(&receiver);
    let outer = (Rc::clone(&sender), Rc::clone(&receiver));
    let mut first = Polled::hooked(async move { inner.recv().await }, move || {
        assert_eq!(at_once(outer.1.recv()), Some(1));
        outer.0.try_send(2).unwrap();
        quiet_panic();
    });
    assert!(first.poll().is_pending());
    let mut second = Polled::waiting(receiver.recv());
    sender.try_send(1).unwrap();
    assert!(first.is_woken());
    assert_eq!(second.finish(), Some(2));
    assert!(first.poll().is_pending());
}

#[run_test]
async fn streams_compete_and_end() {
    let (sender, receiver) = local_channel::new_unbounded();
    let (mut first, mut second) = (receiver.stream(), receiver.stream());
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(first.next().await, Some(1));
    assert_eq!(second.next().await, Some(2));
    let mut next = Polled::new(first.next());
    assert!(next.poll().is_pending());
    drop(sender);
    assert_eq!(next.finish(), None);
    drop(next);
    assert_eq!((second.next().await, first.next().await), (None, None));
}

#[test]
fn an_owned_stream_closes_the_channel() {
    fn as_static<T>(receiver: LocalReceiver<T>) -> impl Stream<Item = T> + Unpin + use<T> {
        receiver.into_stream()
    }
    let (sender, receiver) = local_channel::new_bounded(1);
    let mut stream = as_static(receiver);
    assert!(Polled::new(stream.next()).poll().is_pending());
    sender.try_send(1).unwrap();
    assert_eq!(at_once(stream.next()), Some(1));
    sender.try_send(2).unwrap();
    let mut blocked = Polled::waiting(sender.send(3));
    drop(stream);
    assert!(is_closed(blocked.finish(), 3));
}

#[test]
fn it_prints_no_values() {
    let (sender, receiver) = local_channel::new_bounded(1);
    sender.try_send("a secret").unwrap();
    let text = format!("{sender:?} {receiver:?}");
    assert!(
        text.contains("len: 1") && text.contains("is_full: true"),
        "{text}"
    );
    let text = format!("{:?}", receiver.into_stream());
    assert!(
        text.contains("OwnedChannelStream") && !text.contains("secret"),
        "{text}"
    );
}

/// Two of them in a row would abort the process.
#[test]
fn values_whose_destructors_panic_are_all_dropped_with_the_receiver() {
    let dropped = Rc::new(Cell::new(0));
    let (sender, receiver) = local_channel::new_unbounded();
    for _ in 0..3 {
        assert!(sender.try_send(Bomb(Rc::clone(&dropped))).is_ok());
    }
    assert!(
        dropping(|| drop(receiver)).is_none(),
        "the first panic goes on"
    );
    assert_eq!(dropped.get(), 3);
}

/// A waker whose destructor panics.
struct Sticky;

impl std::task::Wake for Sticky {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Sticky {
    fn drop(&mut self) {
        quiet_panic();
    }
}

/// The second of two tasks takes the value before the first, which was woken for it, has run: it
/// leaves its waker.
#[test]
fn a_waker_whose_destructor_panics_costs_no_value() {
    let (sender, receiver) = local_channel::new_unbounded();
    let mut first = Polled::waiting(receiver.recv());
    let mut second = Box::pin(receiver.recv());
    let waker = Waker::from(Arc::new(Sticky));
    let polled = second.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    assert!(
        dropping(|| drop(waker)).is_some(),
        "the channel has another"
    );
    sender.try_send(7).unwrap();
    let polled = second
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, std::task::Poll::Ready(Some(7)));
    assert!(first.poll().is_pending());
}
