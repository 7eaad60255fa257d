//! Shared channels, polled by hand on one thread; between threads they are in `shared_threads`.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use futures_lite::future::{poll_fn, zip};
use futures_lite::{Stream, StreamExt};
use glommio::channels::shared_channel::{
    ConnectedReceiver, ConnectedSender, ForeignSender, SharedReceiver, SharedSender, new_bounded,
};
use glommio::{GlommioError, LocalExecutor, ResourceType, spawn_local};

use crate::common::polled::{Polled, at_once};
use crate::common::{Kept, assert_not, panic_of, run};
use crate::payload::{Alive, dropping};

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

#[test]
fn either_end_waits_for_the_other_to_connect() {
    run(async {
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
    });
}

#[test]
fn an_end_that_never_connects_reads_as_gone() {
    run(async {
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
    });
}

#[test]
fn giving_up_a_connect_drops_the_end() {
    run(async {
        for is_polled in [false, true] {
            let (sender, receiver) = new_bounded::<u8>(1);
            let mut given_up = Polled::new(sender.connect());
            assert!(!is_polled || given_up.poll().is_pending());
            drop(given_up);
            let receiver = at_once(receiver.connect());
            assert_eq!(at_once(receiver.recv()), None);

            let (sender, receiver) = new_bounded::<u8>(1);
            let mut given_up = Polled::new(receiver.connect());
            assert!(!is_polled || given_up.poll().is_pending());
            drop(given_up);
            let sender = at_once(sender.connect());
            assert!(is_closed_with(sender.try_send(1), 1));
        }
    });
}

#[test]
fn a_blocked_send_goes_on_when_there_is_room() {
    let (sender, receiver) = connected(1);
    sender.try_send(1).unwrap();
    let mut blocked = Polled::new(sender.send(2));
    assert!(blocked.poll().is_pending());
    assert_eq!(at_once(receiver.recv()), Some(1));
    blocked.finish().unwrap();
    assert_eq!(at_once(receiver.recv()), Some(2));
}

#[test]
fn a_blocked_send_gets_its_item_back_when_the_receiver_goes() {
    let (sender, receiver) = connected(1);
    sender.try_send(1).unwrap();
    let mut blocked = [2, 3].map(|number| (number, Polled::new(sender.send(number))));
    for (_, send) in &mut blocked {
        assert!(send.poll().is_pending());
    }
    drop(receiver);
    for (number, send) in &mut blocked {
        assert!(is_closed_with(send.finish(), *number));
    }
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

#[test]
fn a_waiting_receiver_learns_of_the_end() {
    let (sender, receiver) = connected::<u8>(1);
    let mut waiting = [(); 3].map(|()| Polled::new(receiver.recv()));
    for receive in &mut waiting {
        assert!(receive.poll().is_pending());
    }
    drop(sender);
    for receive in &mut waiting {
        assert_eq!(receive.finish(), None);
    }
}

#[test]
fn tasks_are_woken_in_the_order_in_which_they_came() {
    let (sender, receiver) = connected(2);
    let mut waiting: Vec<_> = (0..3).map(|_| Polled::new(receiver.recv())).collect();
    for receive in &mut waiting {
        assert!(receive.poll().is_pending());
    }
    for number in 0..3 {
        sender.try_send(number).unwrap();
        let woken: Vec<_> = waiting.iter().map(Polled::is_woken).collect();
        assert_eq!(woken.iter().filter(|it| **it).count(), 1);
        assert_eq!(waiting.remove(0).finish(), Some(number));
    }
    let mut blocked: Vec<_> = (0..4)
        .map(|it| (it, Polled::new(sender.send(it))))
        .collect();
    for (number, send) in &mut blocked {
        assert_eq!(send.poll().is_ready(), *number < 2);
    }
    blocked.drain(..2);
    for (expected, (_, mut send)) in blocked.into_iter().enumerate() {
        assert!(!send.is_woken());
        assert_eq!(at_once(receiver.recv()), Some(expected));
        send.finish().unwrap();
    }
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
fn a_receiver_that_was_woken_and_is_dropped_passes_it_on() {
    let (sender, receiver) = connected(2);
    let mut first = Polled::new(receiver.recv());
    let mut second = Polled::new(receiver.recv());
    assert!(first.poll().is_pending() && second.poll().is_pending());
    sender.try_send(1).unwrap();
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    assert_eq!(second.finish(), Some(1));
}

#[test]
fn a_sender_that_was_woken_and_is_dropped_passes_it_on() {
    let (sender, receiver) = connected(1);
    sender.try_send(0).unwrap();
    let mut first = Polled::new(sender.send(1));
    let mut second = Polled::new(sender.send(2));
    assert!(first.poll().is_pending() && second.poll().is_pending());
    assert_eq!(at_once(receiver.recv()), Some(0));
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    second.finish().unwrap();
    assert_eq!(at_once(receiver.recv()), Some(2));
}

#[test]
fn a_receive_that_was_polled_and_abandoned_keeps_nothing() {
    let (sender, receiver) = connected(1);
    let mut abandoned = Polled::new(receiver.recv());
    assert!(abandoned.poll().is_pending());
    drop(abandoned);
    let mut waiting = Polled::new(receiver.recv());
    assert!(waiting.poll().is_pending());
    sender.try_send(1).unwrap();
    assert_eq!(waiting.finish(), Some(1));
}

/// The task that has polled the stream is not the one that receives afterwards.
#[test]
fn a_stream_that_was_polled_and_abandoned_keeps_nothing() {
    let (sender, mut receiver) = connected(2);
    for number in 0..3 {
        assert!(Polled::new(receiver.next()).poll().is_pending());
        let mut waiting = Polled::new(receiver.recv());
        assert!(waiting.poll().is_pending());
        sender.try_send(number).unwrap();
        assert_eq!(waiting.finish(), Some(number));
    }
    // Nor if it was told and did not look.
    assert!(Polled::new(receiver.next()).poll().is_pending());
    sender.try_send(3).unwrap();
    let mut waiting = [(); 2].map(|()| Polled::new(receiver.recv()));
    assert_eq!(waiting[0].poll(), Poll::Ready(Some(3)));
    assert!(waiting[1].poll().is_pending());
    sender.try_send(4).unwrap();
    assert_eq!(waiting[1].finish(), Some(4));
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

#[test]
fn polling_again_and_again_keeps_one_waker() {
    let (sender, receiver) = connected::<u8>(1);
    let kept = std::sync::Arc::new(Kept);
    let mut receive = Box::pin(receiver.recv());
    for _ in 0..100 {
        // A new one each time, as some combinators make.
        let waker = std::task::Waker::from(std::sync::Arc::clone(&kept));
        let polled = receive
            .as_mut()
            .poll(&mut std::task::Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert_eq!(std::sync::Arc::strong_count(&kept), 2);
    drop(receive);
    assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    drop(sender);
}

#[test]
fn items_that_were_not_received_are_dropped_with_the_receiver() {
    let alive = Alive::default();
    let (sender, receiver) = connected(8);
    for number in 1..=7 {
        assert!(sender.try_send(alive.payload(number)).is_ok());
    }
    assert!(dropping(|| drop(receiver)).is_none(), "number 5 panics");
    assert_eq!(alive.count(), 0);
    assert!(sender.try_send(alive.payload(1)).is_err());
}

#[test]
fn each_item_is_dropped_once_in_either_order() {
    let alive = Alive::default();
    for sender_first in [true, false] {
        let (sender, receiver) = new_bounded(4);
        run(async {
            let (sender, receiver) = zip(sender.connect(), receiver.connect()).await;
            for number in 1..=4 {
                assert!(sender.send(alive.payload(number)).await.is_ok());
            }
            drop(receiver.recv().await);
            if sender_first {
                drop(sender);
                drop(receiver);
            } else {
                drop(receiver);
                drop(sender);
            }
        });
        assert_eq!(alive.count(), 0);
        // Unconnected ends have nothing to drop; what waits in a send that is dropped is dropped
        // with it.
        let (sender, receiver) = connected(1);
        sender
            .try_send(alive.payload(1))
            .unwrap_or_else(|_| panic!("there is room"));
        let mut blocked = Polled::new(sender.send(alive.payload(2)));
        assert!(blocked.poll().is_pending());
        drop(blocked);
        assert_eq!(alive.count(), 1);
        drop((sender, receiver));
        assert_eq!(alive.count(), 0);
    }
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
fn functions_and_boxes_are_sent_too() {
    let (sender, receiver) = connected::<(fn(u8) -> u8, Box<str>)>(1);
    sender.try_send((|it| it + 1, "text".into())).unwrap();
    let (function, text) = at_once(receiver.recv()).unwrap();
    assert_eq!((function(1), &*text), (2, "text"));
}

#[test]
fn many_tasks_of_one_executor_use_one_half() {
    run(async {
        let (sender, receiver) = new_bounded(2);
        let (sender, receiver) = zip(sender.connect(), receiver.connect()).await;
        let (sender, receiver) = (Rc::new(sender), Rc::new(receiver));
        let sends: Vec<_> = (0..20_u64)
            .map(|number| {
                let sender = Rc::clone(&sender);
                spawn_local(async move { sender.send(number).await.unwrap() })
            })
            .collect();
        let receives: Vec<_> = (0..10)
            .map(|_| {
                let receiver = Rc::clone(&receiver);
                spawn_local(async move {
                    let first = receiver.recv().await.unwrap();
                    first + receiver.recv().await.unwrap()
                })
            })
            .collect();
        for send in sends {
            send.await;
        }
        let mut sum = 0;
        for receive in receives {
            sum += receive.await;
        }
        assert_eq!(sum, 190);
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
