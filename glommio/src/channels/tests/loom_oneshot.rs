use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use super::{block_on, poll_once};
use crate::channels::oneshot::shared;

#[run_test(loom::model)]
fn loom_oneshot_delivers() {
    let (sender, receiver) = shared();
    let sender = thread::spawn(move || sender.send(7).is_ok());
    assert_eq!(block_on(receiver).ok(), Some(7));
    assert!(sender.join().expect("it ends well"));
}

#[run_test(loom::model)]
fn loom_oneshot_ends_with_the_sender() {
    let (sender, receiver) = shared::<u8>();
    let sender = thread::spawn(move || drop(sender));
    assert!(block_on(receiver).is_err());
    sender.join().expect("it ends well");
}

/// The receiver is polled by two tasks in turn: the latter is woken.
#[run_test(loom::model)]
fn loom_oneshot_wakes_the_latest_task() {
    let (sender, mut receiver) = shared();
    let sender = thread::spawn(move || sender.send(7).is_ok());
    let first = poll_once(&mut receiver);
    let value = first.unwrap_or_else(|| block_on(receiver));
    assert_eq!(value.ok(), Some(7));
    assert!(sender.join().expect("it ends well"));
}

/// Counts its drops.
struct Value(Arc<AtomicUsize>);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[run_test(loom::model)]
fn loom_oneshot_sending_against_dropping_the_receiver() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = shared();
    let value = Value(Arc::clone(&drops));
    let sender = thread::spawn(move || {
        let was_closed = sender.is_closed();
        let refused = sender.send(value).err().and_then(|it| it.into_inner());
        assert!(refused.is_some() || !was_closed);
        refused
    });
    let polled = poll_once(receiver);
    let refused = sender.join().expect("it ends well");
    let received = polled.and_then(Result::ok);
    assert!(refused.is_none() || received.is_none());
    let kept = usize::from(refused.is_some()) + usize::from(received.is_some());
    assert_eq!(drops.load(Ordering::Relaxed) + kept, 1);
}
