//! Wakers of a task that waits.

use std::future::{pending, poll_fn};
use std::task::Poll;

use super::executor::{Executor, Gate, Log, poll_once};

/// Waking queues the task, once, however often.
#[test]
fn wakes_coalesce() {
    let executor = Executor::new();
    let gate = Gate::default();
    let _handle = executor.spawn(gate.clone());
    assert_eq!(executor.run(), 1);
    let waker = gate.take_waker();
    executor.enter(|| {
        waker.wake_by_ref();
        waker.wake_by_ref();
        waker.wake();
    });
    assert_eq!(executor.queued(), 1);
    assert_eq!(executor.run(), 1);
    assert_eq!(gate.polls(), 2);
    assert_eq!(executor.meter().sent(), 0, "none was sent");
}

/// Woken while it is being polled, a task goes to the back of the queue after the poll.
#[test]
fn waking_itself_goes_to_the_back() {
    let executor = Executor::new();
    let log = Log::default();
    for name in ["first", "second"] {
        let (log, mut polls) = (log.clone(), 0);
        drop(executor.spawn(poll_fn(move |cx| {
            log.note(name);
            polls += 1;
            if polls == 3 {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            let clone = cx.waker().clone();
            clone.wake();
            Poll::Pending
        })));
    }
    assert_eq!(executor.run(), 6);
    assert_eq!(
        log.take(),
        ["first", "second", "first", "second", "first", "second"]
    );
    assert_eq!(executor.meter().allocated(), 0);
}

/// All wakers of one task are the same, those of two tasks are not.
#[test]
fn will_wake_is_exact() {
    let executor = Executor::new();
    let (gate, other) = (Gate::default(), Gate::default());
    let _handles = (executor.spawn(gate.clone()), executor.spawn(other.clone()));
    executor.run();
    let first = gate.take_waker();
    let clone = first.clone();
    executor.enter(|| first.wake_by_ref());
    executor.run();
    let second = gate.take_waker();
    assert!(first.will_wake(&second) && clone.will_wake(&second));
    assert!(!first.will_wake(&other.take_waker()));
}

/// The last waker of a detached task is dropped: nobody can ever wake it, so it goes too, unpolled.
#[test]
fn last_waker_disposes_of_a_detached_task() {
    let executor = Executor::new();
    let log = Log::default();
    let gate = Gate::default();
    let (waits, in_future) = (gate.clone(), log.on_drop("future"));
    drop(executor.spawn(async move {
        let _in_future = in_future;
        waits.await;
    }));
    executor.run();
    let waker = gate.take_waker();
    executor.enter(|| drop(waker.clone()));
    assert_eq!(executor.queued(), 0, "a waker is left");
    executor.enter(|| drop(waker));
    assert!(log.take().is_empty(), "not inside the drop");
    assert_eq!(executor.run(), 1);
    assert_eq!(log.take(), ["future"]);
    assert_eq!(gate.polls(), 1);
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// The same if the handle goes last, or if the poll leaves no waker behind.
#[test]
fn handle_or_poll_may_be_the_last() {
    let executor = Executor::new();
    let gate = Gate::default();
    let handle = executor.spawn(gate.clone());
    executor.run();
    executor.enter(|| drop(gate.take_waker()));
    assert_eq!(executor.run(), 0, "the handle can cancel it");
    executor.enter(|| drop(handle));
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.registered(), 0);

    let mut handle = executor.spawn(pending::<()>());
    assert_eq!(executor.run(), 1);
    assert!(poll_once(&mut handle).is_pending());
    assert_eq!(executor.registered(), 1);
    drop(handle);
    assert_eq!(
        executor.meter().sent(),
        1,
        "outside the executor, as a remote wake"
    );
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.registered(), 0);

    drop(executor.spawn(pending::<()>()));
    assert_eq!(executor.run(), 1, "closed at the end of its only poll");
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A waker used up by its wake leaves the task scheduled, not abandoned.
#[test]
fn waking_with_the_last_waker_polls() {
    let executor = Executor::new();
    let gate = Gate::default();
    drop(executor.spawn(gate.clone()));
    executor.run();
    gate.open();
    executor.enter(|| gate.take_waker().wake());
    assert_eq!(executor.run(), 1);
    assert_eq!(gate.polls(), 2);
    assert_eq!(executor.registered(), 0);
}

/// 0.9 counted references in 16 bits.
#[test]
fn more_than_65535_wakers() {
    let executor = Executor::new();
    let gate = Gate::default();
    drop(executor.spawn(gate.clone()));
    executor.run();
    let waker = gate.take_waker();
    let clones: Vec<_> = (0..70_000).map(|_| waker.clone()).collect();
    executor.enter(|| drop(clones));
    assert_eq!(executor.queued(), 0);
    executor.enter(|| drop(waker));
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.meter().allocated(), 0);
}
