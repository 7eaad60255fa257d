//! Wakers of a task that is over.

use std::future::poll_fn;
use std::task::Poll;

use super::executor::{Executor, Gate, poll_once};

/// They do nothing, and keep nothing but memory.
#[test]
fn wake_after_completion_is_ignored() {
    let executor = Executor::new();
    let gate = Gate::default();
    let handle = executor.spawn(gate.clone());
    executor.run();
    let waker = gate.take_waker();
    let clone = waker.clone();
    gate.open();
    executor.enter(|| waker.wake_by_ref());
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.registered(), 0);

    executor.enter(|| waker.wake_by_ref());
    waker.wake();
    assert_eq!(executor.run(), 0);
    assert_eq!(gate.polls(), 2);
    drop(handle);
    assert_eq!(executor.meter().allocated(), 1);
    drop(clone);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A wake from inside the poll that completes the task is ignored, too.
#[test]
fn wake_during_the_last_poll_is_ignored() {
    let executor = Executor::new();
    let mut handle = executor.spawn(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::Ready(cx.waker().clone())
    }));
    assert_eq!(executor.run(), 1);
    let Poll::Ready(Some(waker)) = poll_once(&mut handle) else {
        panic!("the task has completed");
    };
    executor.enter(|| waker.wake());
    assert_eq!(executor.run(), 0);
    drop(handle);
    assert_eq!(executor.meter().allocated(), 0);
}

/// An output that holds its own task's waker is dropped with the handle, and the memory with it.
#[test]
fn output_may_hold_its_own_waker() {
    let executor = Executor::new();
    let handle = executor.spawn(poll_fn(|cx| Poll::Ready(cx.waker().clone())));
    executor.run();
    executor.enter(|| drop(handle));
    assert_eq!(executor.meter().allocated(), 0);
    assert_eq!(executor.meter().sent(), 0);
}
