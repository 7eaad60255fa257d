//! Ends whose checks are put off to the end of a round: a task that waits at the other end is
//! woken.

use std::pin::pin;
use std::sync::atomic::AtomicUsize as Count;
use std::task::{Context, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;

use super::waits::Look;
use super::{ConnectedReceiver, ConnectedSender, ends};
use crate::channels::tests::{block_on, bounded};

#[run_test(bounded(3))]
fn loom_shared_channel_a_round_ends_with_room_for_a_sender() {
    let (sending, receiving) = ends::make(1);
    sending.store(0).expect("there is room");
    let receiver = ConnectedReceiver::new(receiving);
    receiver.endpoint.begin_round(receiver.end.lines());
    let thread = thread::spawn(move || {
        let sender = ConnectedSender::new(sending);
        block_on(sender.send(1)).is_ok()
    });
    assert_eq!(block_on(receiver.recv()), Some(0));
    receiver.endpoint.end_round();
    // In vain while the sender sleeps.
    assert!(thread.join().expect("it ends well"));
    assert_eq!(block_on(receiver.recv()), Some(1));
}

#[run_test(bounded(3))]
fn loom_shared_channel_a_round_ends_with_items_for_a_receiver() {
    let (sending, receiving) = ends::make(2);
    let sender = ConnectedSender::new(sending);
    sender.endpoint.begin_round(sender.end.lines());
    let thread = thread::spawn(move || {
        let receiver = ConnectedReceiver::new(receiving);
        [block_on(receiver.recv()), block_on(receiver.recv())]
    });
    sender.try_send(0).expect("there is room");
    sender.try_send(1).expect("there is room");
    sender.endpoint.end_round();
    assert_eq!(thread.join().expect("it ends well"), [Some(0), Some(1)]);
}

/// Two tasks wait, and each change is pending to one of them.
#[run_test(bounded(2))]
fn loom_shared_channel_a_round_ends_with_items_for_two_tasks() {
    let (sending, receiving) = ends::make(2);
    let sender = ConnectedSender::new(sending);
    sender.endpoint.begin_round(sender.end.lines());
    let thread = thread::spawn(move || {
        let receiver = ConnectedReceiver::new(receiving);
        let both = futures_lite::future::zip(receiver.recv(), receiver.recv());
        block_on(both)
    });
    sender.try_send(0).expect("there is room");
    sender.try_send(1).expect("there is room");
    sender.endpoint.end_round();
    let received = thread.join().expect("it ends well");
    assert!(matches!(received, (Some(0), Some(1)) | (Some(1), Some(0))));
}

#[run_test(bounded(3))]
fn loom_shared_channel_an_end_that_goes_owes_nothing() {
    let (sending, receiving) = ends::make(1);
    sending.store(0).expect("there is room");
    let receiver = ConnectedReceiver::new(receiving);
    receiver.endpoint.begin_round(receiver.end.lines());
    let thread = thread::spawn(move || {
        let sender = ConnectedSender::new(sending);
        drop(block_on(sender.send(1)));
    });
    assert_eq!(block_on(receiver.recv()), Some(0));
    drop(receiver);
    thread.join().expect("it ends well");
}

/// As the first send of a round: the reactor lists it.
fn send_first<T: Send>(sender: &ConnectedSender<T>, item: T) {
    sender.end.store(item).expect("there is room");
    sender.endpoint.begin_round(sender.end.lines());
    sender.stored();
}

/// The thread of the sender blocks in the middle of a round. The receiver has no timers, and is
/// polled while checks are put off.
#[run_test(bounded(3))]
fn loom_shared_channel_a_sender_that_blocks_for_an_answer_gets_it() {
    let (sending, receiving) = ends::make(4);
    let sender = ConnectedSender::new(sending);
    let answer = Arc::new(Notify::new());
    let answering = Arc::clone(&answer);
    let thread = thread::spawn(move || {
        let receiver = ConnectedReceiver::new(receiving);
        for number in 0..2 {
            assert_eq!(block_on(receiver.recv()), Some(number));
        }
        answering.notify();
    });
    send_first(&sender, 0);
    sender.try_send(1).expect("there is room");
    answer.wait();
    sender.endpoint.end_round();
    thread.join().expect("it ends well");
}

/// Time, of which it is assumed that what a thread has stored is seen by others when some has passed.
/// A send that began before is over then, and can be seen; one that begins later sees what was
/// stored before.
#[derive(Default)]
struct Clock {
    begun: AtomicUsize,
    seen: AtomicUsize,
}

impl Clock {
    fn send(&self, send: impl FnOnce()) {
        self.begun.fetch_add(1, Ordering::AcqRel);
        send();
        self.seen.fetch_add(1, Ordering::AcqRel);
    }

    fn pass(&self) {
        let begun = self.begun.fetch_add(0, Ordering::AcqRel);
        while self.seen.load(Ordering::Acquire) < begun {
            thread::yield_now();
        }
    }
}

/// The same with timers: the receiver looks twice more, and then sleeps until it is notified.
#[run_test(bounded(3))]
fn loom_shared_channel_a_receiver_that_has_looked_twice_more_is_notified() {
    let (sending, receiving) = ends::make(4);
    let sender = ConnectedSender::new(sending);
    let clock = Arc::new(Clock::default());
    let answer = Arc::new(Notify::new());
    let (passing, answering) = (Arc::clone(&clock), Arc::clone(&answer));
    let thread = thread::spawn(move || {
        let receiver = ConnectedReceiver::new(receiving);
        let waits = receiver.end.receivers();
        let look = Look {
            lines: Arc::clone(receiver.end.lines()),
        };
        let mut receiving = pin!(receiver.recv());
        let polled = receiving
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_pending() {
            if waits.is_put_off() {
                waits.will_look_again();
                passing.pass();
                look.look();
                passing.pass();
                look.look();
            }
            while waits.tasks.may_wait() {
                thread::yield_now();
            }
        }
        answering.notify();
    });
    sender.endpoint.begin_round(sender.end.lines());
    clock.send(|| sender.try_send(0).expect("there is room"));
    answer.wait();
    sender.endpoint.end_round();
    thread.join().expect("it ends well");
}

struct Value(std::sync::Arc<Count>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// An item that is sent while the receiver goes is not kept until the sender goes, too.
#[test]
fn loom_shared_channel_what_comes_too_late_is_dropped() {
    for is_first in [true, false] {
        bounded(3, move || {
            let drops = std::sync::Arc::new(Count::new(0));
            let value = Value(std::sync::Arc::clone(&drops));
            let (sending, receiving) = ends::make(2);
            let sender = ConnectedSender::new(sending);
            let receiver = ConnectedReceiver::new(receiving);
            if !is_first {
                sender.endpoint.begin_round(sender.end.lines());
            }
            let thread = thread::spawn(move || drop(receiver));
            if is_first {
                if sender.end.store(value).is_ok() {
                    sender.endpoint.begin_round(sender.end.lines());
                    sender.stored();
                    sender.endpoint.end_round();
                }
            } else {
                drop(sender.try_send(value));
                sender.endpoint.end_round();
            }
            thread.join().expect("it ends well");
            assert_eq!(drops.load(Ordering::Relaxed), 1);
            drop(sender);
        });
    }
}

/// The same of a thread without an executor.
#[run_test(bounded(3))]
fn loom_shared_channel_what_a_foreign_sender_sends_too_late_is_dropped() {
    let drops = std::sync::Arc::new(Count::new(0));
    let value = Value(std::sync::Arc::clone(&drops));
    let (sending, receiving) = ends::make(2);
    let sender = ConnectedSender::new(sending).into_foreign();
    let receiver = ConnectedReceiver::new(receiving);
    let thread = thread::spawn(move || drop(receiver));
    drop(sender.try_send(value));
    thread.join().expect("it ends well");
    assert_eq!(drops.load(Ordering::Relaxed), 1);
    drop(sender);
}
