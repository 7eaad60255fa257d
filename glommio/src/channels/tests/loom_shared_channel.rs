use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_lite::future::zip;
use loom::thread;

use super::{block_on, bounded, poll_once};
use crate::channels::shared_channel::{ConnectedReceiver, ConnectedSender, new_bounded};

/// Ends that are past the handshake.
fn connected<T: Send + 'static>(size: usize) -> (ConnectedSender<T>, ConnectedReceiver<T>) {
    let (sender, receiver) = new_bounded(size);
    block_on(zip(sender.handshake(), receiver.handshake()))
}

#[run_test(bounded(3))]
fn loom_shared_channel_ends_meet() {
    let (sender, receiver) = new_bounded(1);
    let is_ready = Arc::new(loom::sync::atomic::AtomicBool::new(false));
    let ready = Arc::clone(&is_ready);
    let thread = thread::spawn(move || {
        ready.store(true, Ordering::Relaxed);
        let sender = block_on(sender.handshake());
        sender.try_send(7).is_ok()
    });
    let receiver = block_on(receiver.handshake());
    assert!(is_ready.load(Ordering::Relaxed), "it came before they met");
    assert_eq!(block_on(receiver.recv()), Some(7));
    assert_eq!(block_on(receiver.recv()), None);
    assert!(thread.join().expect("it ends well"));
}

/// The other end goes on its way to its executor.
#[test]
fn loom_shared_channel_an_end_that_never_comes() {
    bounded(3, || {
        let (sender, receiver) = new_bounded::<u8>(1);
        let thread = thread::spawn(move || drop(sender));
        let receiver = block_on(receiver.handshake());
        assert_eq!(block_on(receiver.recv()), None);
        thread.join().expect("it ends well");
    });
    bounded(3, || {
        let (sender, receiver) = new_bounded(1);
        let thread = thread::spawn(move || drop(poll_once(receiver.handshake())));
        let sender = block_on(sender.handshake());
        drop(block_on(sender.send(1)));
        assert!(block_on(sender.send(2)).is_err());
        thread.join().expect("it ends well");
    });
}

/// Both sides wait for each other in turn: the ring has one slot.
#[run_test(bounded(2))]
fn loom_shared_channel_delivers() {
    let (sender, receiver) = new_bounded(1);
    let thread = thread::spawn(move || {
        let sender = block_on(sender.handshake());
        for number in 0..2 {
            block_on(sender.send(number)).expect("the receiver is there");
        }
    });
    let receiver = block_on(receiver.handshake());
    for number in 0..2 {
        assert_eq!(block_on(receiver.recv()), Some(number));
    }
    assert_eq!(block_on(receiver.recv()), None);
    thread.join().expect("it ends well");
}

/// A sender that waits for space gets its item back when the receiver goes.
#[run_test(bounded(3))]
fn loom_shared_channel_ends_with_the_receiver() {
    let (sender, receiver) = new_bounded(1);
    let thread = thread::spawn(move || {
        let sender = block_on(sender.handshake());
        drop(sender.try_send(1));
        block_on(sender.send(2)).is_err()
    });
    drop(block_on(receiver.handshake()));
    assert!(thread.join().expect("it ends well"));
}

/// The first of two tasks gives up while it is being told: the other gets the item.
#[run_test(bounded(3))]
fn loom_shared_channel_passes_notifications_on() {
    let (sender, receiver) = connected(2);
    let sender = sender.into_foreign();
    {
        let mut first = Box::pin(receiver.recv());
        let given_up = poll_once(first.as_mut());
        assert_eq!(given_up, None);
        let thread = thread::spawn(move || {
            sender.try_send(7).expect("there is room");
            sender
        });
        let mut second = pin!(receiver.recv());
        let taken = poll_once(second.as_mut());
        drop(first);
        let taken = taken.unwrap_or_else(|| block_on(second));
        assert_eq!(taken, Some(7));
        drop(thread.join().expect("it ends well"));
    }
    assert_eq!(block_on(receiver.recv()), None);
}

struct Value(Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[run_test(bounded(3))]
fn loom_shared_channel_drops_each_item_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = connected(2);
    let sender = sender.into_foreign();
    let values = [(); 2].map(|()| Value(Arc::clone(&drops)));
    let thread = thread::spawn(move || {
        for value in values {
            drop(sender.try_send(value));
        }
    });
    drop(poll_once(receiver.recv()));
    drop(receiver);
    thread.join().expect("it ends well");
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}
