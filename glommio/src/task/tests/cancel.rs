//! Cancelling: from outside, from inside, too late, twice, at once.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::executor::{Executor, Gate, Log, OnDrop, counting_waker, poll_once};
use crate::task::JoinHandle;

/// The future is dropped when the scheduler reaches the task, and the awaiter hears of it after
/// that.
#[test]
fn future_is_dropped_by_the_scheduler() {
    let executor = Executor::new();
    let log = Log::default();
    let in_future = log.on_drop("future");
    let gate = Gate::default();
    let in_gate = gate.clone();
    let mut handle = executor.spawn(async move {
        let _in_future = in_future;
        in_gate.await;
    });
    executor.run();

    executor.enter(|| handle.cancel());
    assert!(log.take().is_empty(), "not inside the call");
    assert_eq!(executor.queued(), 1);
    assert!(poll_once(&mut handle).is_pending());

    executor.enter(|| handle.cancel());
    assert_eq!(executor.queued(), 1, "the second call adds nothing");
    gate.open();
    let late = gate.take_waker();
    executor.enter(|| late.wake_by_ref());
    assert_eq!(executor.queued(), 1, "nor does a wake");

    assert_eq!(executor.run(), 1);
    assert_eq!(gate.polls(), 1, "a cancelled future is not polled again");
    assert_eq!(log.take(), ["future"]);
    assert_eq!(executor.registered(), 0);
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
    executor.enter(|| late.wake());
    assert_eq!(executor.queued(), 0, "a task is over once");
    drop(handle);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A task that was never polled is dropped unpolled, in its turn.
#[test]
fn before_the_first_poll() {
    let executor = Executor::new();
    let gate = Gate::default();
    let mut handle = executor.spawn(gate.clone());
    handle.cancel();
    assert_eq!(executor.queued(), 1);
    assert_eq!(executor.run(), 1);
    assert_eq!(gate.polls(), 0);
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
}

/// Whoever joins a cancelled task can rely on its destructors having run.
#[test]
fn destructor_is_observed_before_the_join() {
    let executor = Executor::new();
    let log = Log::default();
    let in_future = log.on_drop("destructor");
    let handle = executor.spawn(async move {
        let _in_future = in_future;
        pending::<()>().await;
    });
    let (joined, at_join) = (log.clone(), log.clone());
    executor.run();
    let joiner = executor.spawn(async move {
        handle.cancel();
        let output = handle.await;
        joined.note("joined");
        output
    });
    executor.run();
    assert_eq!(at_join.take(), ["destructor", "joined"]);
    let mut joiner = joiner;
    assert_eq!(poll_once(&mut joiner), Poll::Ready(Some(None)));
}

/// Outside the executor the request travels as a remote wake.
#[test]
fn while_the_owner_is_not_current() {
    let executor = Executor::new();
    let log = Log::default();
    let in_future = log.on_drop("future");
    let mut handle = executor.spawn(async move {
        let _in_future = in_future;
        pending::<()>().await;
    });
    executor.run();
    handle.cancel();
    assert_eq!((executor.queued(), executor.meter().sent()), (0, 1));
    assert_eq!(executor.run(), 1);
    assert_eq!(log.take(), ["future"]);
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
}

/// Too late: the output stands.
#[test]
fn after_completion_the_output_stands() {
    let executor = Executor::new();
    let mut handle = executor.spawn(async { 7 });
    executor.run();
    executor.enter(|| handle.cancel());
    assert_eq!(executor.queued(), 0);
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(7)));
}

/// A task that cancels itself finishes that poll; its future goes right after it, its output is
/// lost.
#[test]
fn by_the_task_itself() {
    for is_ready in [false, true] {
        let executor = Executor::new();
        let log = Log::default();
        let slot: Rc<RefCell<Option<JoinHandle<&str>>>> = Rc::default();
        let (own, in_task) = (slot.clone(), log.clone());
        let (in_future, output) = (log.on_drop("future"), log.on_drop("output"));
        let handle = executor.spawn(async move {
            let _in_future = in_future;
            own.borrow()
                .as_ref()
                .expect("the handle was put in")
                .cancel();
            in_task.note("poll goes on");
            if !is_ready {
                pending::<()>().await;
            }
            drop(output);
            "output"
        });
        *slot.borrow_mut() = Some(handle);
        let (waker, count) = counting_waker();
        let poll = || {
            let mut handle = slot.borrow_mut();
            let handle = handle.as_mut().expect("it is still there");
            Pin::new(handle).poll(&mut Context::from_waker(&waker))
        };
        assert!(poll().is_pending());
        assert_eq!(executor.run(), 1, "no further run is needed");
        let expected: &[_] = if is_ready {
            &["poll goes on", "output", "future"]
        } else {
            &["poll goes on", "future", "output"]
        };
        assert_eq!(log.take(), expected);
        assert_eq!(count.wakes(), 1);
        assert_eq!(executor.registered(), 0);
        assert_eq!(poll(), Poll::Ready(None));
    }
}

/// Cancelling and waking oneself in one poll: the task is closed after it and not queued again.
#[test]
fn by_the_task_itself_after_waking_itself() {
    let executor = Executor::new();
    let slot: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let own = slot.clone();
    let handle = executor.spawn(poll_fn(move |cx| {
        cx.waker().wake_by_ref();
        own.borrow()
            .as_ref()
            .expect("the handle was put in")
            .cancel();
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    *slot.borrow_mut() = Some(handle);
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.registered(), 0);
    slot.take();
    assert_eq!(executor.meter().allocated(), 0);
}

/// `cancel_now` drops the future before it returns; the executor hears of it in a later run.
#[test]
fn at_once() {
    let executor = Executor::new();
    let log = Log::default();
    let data = String::from("borrowed");
    {
        let (in_future, data) = (log.on_drop("future"), &data);
        // SAFETY: the future is dropped before `data`, by `cancel_now`.
        let handle = unsafe {
            executor.spawn_scoped(async move {
                let _in_future = in_future;
                pending::<()>().await;
                data.len()
            })
        };
        executor.run();
        executor.enter(|| handle.cancel_now());
        assert_eq!(log.take(), ["future"]);
        assert!(handle.is_finished());
        executor.enter(|| handle.cancel_now());
    }
    drop(data);
    assert_eq!(executor.registered(), 1);
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// The same for a task that is in the queue, one that was never polled, and without executor
/// current.
#[test]
fn at_once_wherever_the_task_is() {
    let executor = Executor::new();
    let log = Log::default();
    let in_future = log.on_drop("unpolled");
    let unpolled = executor.spawn(async move { drop(in_future) });
    executor.enter(|| unpolled.cancel_now());
    assert_eq!(log.take(), ["unpolled"]);
    assert_eq!(executor.queued(), 1);

    let in_future = log.on_drop("outside");
    let outside = executor.spawn(async move {
        let _in_future = in_future;
        pending::<()>().await;
    });
    executor.run();
    assert_eq!(executor.registered(), 1, "the first is gone");
    outside.cancel_now();
    assert_eq!(log.take(), ["outside"]);
    drop((unpolled, outside));
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// `cancel_now` from inside the task's own poll waits for the end of that poll.
#[test]
fn at_once_by_the_task_itself() {
    let executor = Executor::new();
    let log = Log::default();
    let slot: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let (own, in_task, in_future) = (slot.clone(), log.clone(), log.on_drop("future"));
    let handle = executor.spawn(async move {
        let _in_future = in_future;
        own.borrow()
            .as_ref()
            .expect("the handle was put in")
            .cancel_now();
        in_task.note("poll goes on");
        pending::<()>().await;
    });
    *slot.borrow_mut() = Some(handle);
    executor.run();
    assert_eq!(log.take(), ["poll goes on", "future"]);
    assert_eq!(executor.registered(), 0);
}

/// What a destructor does to its own task finds the task over.
#[test]
fn destructor_may_wake_cancel_and_drop_its_own_handle() {
    let executor = Executor::new();
    let log = Log::default();
    let slot: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let gate = Gate::default();
    let (own, wakes, note) = (slot.clone(), gate.clone(), log.clone());
    let in_future = OnDrop(move || {
        wakes.take_waker().wake();
        let handle = own.take().expect("the handle was put in");
        handle.cancel();
        handle.cancel_now();
        drop(handle);
        note.note("destroyed");
    });
    let waits = gate.clone();
    let handle = executor.spawn(async move {
        let _in_future = in_future;
        waits.await;
    });
    executor.run();
    executor.enter(|| handle.cancel());
    *slot.borrow_mut() = Some(handle);
    assert_eq!(executor.run(), 1);
    assert_eq!(log.take(), ["destroyed"]);
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A discarded output may borrow, as its future does: it is gone before the awaiter, which may free
/// what is borrowed, is told that the task is over.
#[test]
fn discarded_output_is_dropped_before_the_awaiter_is_woken() {
    let executor = Executor::new();
    let slot: Rc<RefCell<Option<JoinHandle<_>>>> = Rc::default();
    let (waker, awaiter) = counting_waker();
    let (own, seen) = (slot.clone(), Rc::new(Cell::new(None)));
    let (at_drop, seen_by) = (awaiter.clone(), seen.clone());
    let output = OnDrop(move || seen_by.set(Some(at_drop.wakes())));
    let handle = executor.spawn(async move {
        own.borrow()
            .as_ref()
            .expect("the handle was put in")
            .cancel();
        output
    });
    *slot.borrow_mut() = Some(handle);
    let mut cx = Context::from_waker(&waker);
    let mut awaited = poll_fn(|_| {
        let mut slot = slot.borrow_mut();
        Pin::new(slot.as_mut().expect("it was just put in")).poll(&mut cx)
    });
    assert!(poll_once(&mut awaited).is_pending());
    executor.run();
    assert_eq!((seen.get(), awaiter.wakes()), (Some(0), 1));
}
