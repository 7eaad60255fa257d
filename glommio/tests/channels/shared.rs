//! Shared channels, polled by hand on one thread; between threads they are in `shared_threads`.

use futures_lite::Stream;
use futures_lite::future::poll_fn;
use glommio::channels::shared_channel::{
    ConnectedReceiver, ConnectedSender, ForeignSender, SharedReceiver, SharedSender, new_bounded,
};

use crate::common::assert_not;
use crate::common::prelude::*;

/// Connected ends, which outlive their executor.
pub fn connected<T: Send + 'static>(size: usize) -> (ConnectedSender<T>, ConnectedReceiver<T>) {
    let (sender, receiver) = new_bounded(size);
    LocalExecutor::default().run(async { zip(sender.connect(), receiver.connect()).await })
}

fn is_closed_with<T: PartialEq>(sent: Result<(), GlommioError<T>>, expected: T) -> bool {
    matches!(sent, Err(GlommioError::Closed(ResourceType::Channel(item))) if item == expected)
}

fn is_full_with<T: PartialEq>(sent: Result<(), GlommioError<T>>, expected: T) -> bool {
    matches!(sent, Err(GlommioError::WouldBlock(ResourceType::Channel(item))) if item == expected)
}

#[test]
fn sizes_are_rounded_up_to_powers_of_two() {
    for (size, capacity) in [(0, 1), (1, 1), (3, 4), (4, 4), (5, 8)] {
        let (sender, _receiver) = connected(size);
        for number in 0..capacity {
            sender.try_send(number).unwrap();
        }
        assert!(is_full_with(sender.try_send(capacity), capacity));
    }
}

#[test]
fn connecting_needs_an_executor() {
    let (sender, receiver) = new_bounded::<u8>(1);
    let message = panic_of(|| at_once(sender.connect()));
    assert!(message.contains("no LocalExecutor"), "{message}");
    let message = panic_of(|| at_once(receiver.connect()));
    assert!(message.contains("no LocalExecutor"), "{message}");
}

#[run_test]
async fn either_end_waits_for_the_other_to_connect() {
    let (sender, receiver) = new_bounded::<u8>(1);
    let mut connecting = Polled::new(sender.connect());
    assert!(connecting.poll().is_pending());
    let receiver = at_once(receiver.connect());
    let sender = connecting.finish();
    sender.try_send(1).unwrap();
    assert_eq!(at_once(receiver.recv()), Some(1));

    let (sender, receiver) = new_bounded::<u8>(1);
    let mut connecting = Polled::new(receiver.connect());
    assert!(connecting.poll().is_pending());
    let sender = at_once(sender.connect());
    let receiver = connecting.finish();
    sender.try_send(2).unwrap();
    assert_eq!(at_once(receiver.recv()), Some(2));
}

#[run_test]
async fn an_end_that_never_connects_reads_as_gone() {
    // Before the other end connects, and while it does.
    let (sender, receiver) = new_bounded(1);
    drop(receiver);
    let sender = at_once(sender.connect());
    assert!(is_closed_with(sender.try_send(1), 1));
    assert!(is_closed_with(at_once(sender.send(2)), 2));

    let (sender, receiver) = new_bounded(1);
    let mut connecting = Polled::new(sender.connect());
    assert!(connecting.poll().is_pending());
    drop(receiver);
    assert!(is_closed_with(connecting.finish().try_send(1), 1));

    let (sender, receiver) = new_bounded::<u8>(1);
    drop(sender);
    let receiver = at_once(receiver.connect());
    assert_eq!(at_once(receiver.recv()), None);

    let (sender, receiver) = new_bounded::<u8>(1);
    let mut connecting = Polled::new(receiver.connect());
    assert!(connecting.poll().is_pending());
    drop(sender);
    let receiver = connecting.finish();
    assert_eq!(at_once(receiver.recv()), None);
}

#[test]
fn a_blocked_send_gets_its_item_back_when_the_sender_is_closed() {
    let (sender, receiver) = connected(1);
    sender.try_send(1).unwrap();
    let mut blocked = [2, 3].map(|number| (number, Polled::new(sender.send(number))));
    for (_, send) in &mut blocked {
        assert!(send.poll().is_pending());
    }
    sender.close();
    for (number, send) in &mut blocked {
        assert!(is_closed_with(send.finish(), *number));
    }
    sender.close();
    assert!(is_closed_with(sender.try_send(4), 4));
    assert!(is_closed_with(at_once(sender.send(5)), 5));
    drop(blocked);
    assert_eq!(at_once(receiver.recv()), Some(1), "sent before");
    assert_eq!(at_once(receiver.recv()), None);
    drop(sender);
    assert_eq!(at_once(receiver.recv()), None, "every time");
}

/// A second item finds the receiver woken already: that is what makes sending to one that is awake
/// cheap.
#[test]
fn a_receiver_is_woken_once_for_all_that_comes_before_it_looks() {
    let (sender, receiver) = connected(8);
    let wakes = Rc::new(Cell::new(0));
    let count = Rc::clone(&wakes);
    let mut waiting = Polled::hooked(receiver.recv(), move || count.set(count.get() + 1));
    assert!(waiting.poll().is_pending());
    for number in 0..8 {
        sender.try_send(number).unwrap();
    }
    assert_eq!(wakes.get(), 1);
    assert_eq!(waiting.finish(), Some(0));
    for number in 1..8 {
        assert_eq!(at_once(receiver.recv()), Some(number));
    }
}

#[test]
fn a_stream_gives_the_items_and_ends() {
    let (sender, mut receiver) = connected(4);
    let mut next = Polled::new(poll_fn(|cx| Pin::new(&mut receiver).poll_next(cx)));
    assert!(next.poll().is_pending());
    sender.try_send(1).unwrap();
    assert_eq!(next.finish(), Some(1));
    drop(next);
    sender.try_send(2).unwrap();
    sender.try_send(3).unwrap();
    drop(sender);
    assert_eq!(at_once(receiver.collect::<Vec<_>>()), [2, 3]);
}

/// Requests that carry the sender of their reply: dropping the receiver of requests must end the
/// wait for it.
#[test]
fn a_reply_is_given_up_with_the_receiver_of_requests() {
    let (sender, receiver) = connected(4);
    run(async {
        let (reply, answer) = glommio::channels::oneshot::shared::<u8>();
        sender.try_send(reply).unwrap();
        let waiting = spawn_local(answer);
        drop(receiver);
        assert!(waiting.await.is_err());
    });
}

#[test]
fn a_foreign_sender_is_the_same_end() {
    assert_not!(Clone: ForeignSender<u8>, ConnectedSender<u8>, SharedSender<u8>);
    let (sender, receiver) = connected(4);
    sender.try_send(1).unwrap();
    let foreign = sender.into_foreign();
    assert_eq!(foreign.free_space(), 3);
    for number in 2..=4 {
        foreign.try_send(number).unwrap();
    }
    assert!(is_full_with(foreign.try_send(5), 5));
    assert_eq!(at_once(receiver.recv()), Some(1));
    assert_eq!(foreign.free_space(), 1);
    drop(receiver);
    assert!(is_closed_with(foreign.try_send(6), 6));
}

#[test]
fn all_ends_can_be_printed_whatever_they_carry() {
    struct Plain;
    let (sender, receiver): (SharedSender<Plain>, SharedReceiver<Plain>) = new_bounded(2);
    assert!(format!("{sender:?} {receiver:?}").contains("is_closed: false"));
    let (sender, receiver) = connected::<Plain>(2);
    assert!(format!("{sender:?}").contains("free_space: 2"));
    drop(receiver);
    assert!(format!("{:?}", sender.into_foreign()).contains("is_closed: true"));
}
