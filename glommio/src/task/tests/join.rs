//! Awaiting a task from another one.

use std::cell::Cell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::executor::{Executor, Gate, Log, OnDrop, counting_waker, poll_once};
use super::waker_panic::waker_of;
use crate::task::JoinHandle;

/// Completion wakes the awaiter, once, after the future is gone.
#[test]
fn completion_wakes_the_awaiter() {
    let executor = Executor::new();
    let log = Log::default();
    let gate = Gate::default();
    let (waits, in_future, joined) = (gate.clone(), log.on_drop("future"), log.clone());
    let handle = executor.spawn(async move {
        let _in_future = in_future;
        waits.await;
        "output"
    });
    let mut joiner = executor.spawn(async move {
        let output = handle.await;
        joined.note("joined");
        output
    });
    executor.run();
    gate.open();
    executor.enter(|| gate.take_waker().wake());
    assert_eq!(
        executor.run(),
        2,
        "the task once more, then the joiner once more"
    );
    assert_eq!(log.take(), ["future", "joined"]);
    assert_eq!(poll_once(&mut joiner), Poll::Ready(Some(Some("output"))));
}

/// The slot holds one waker, the last.
#[test]
fn only_the_last_waker_is_woken() {
    let executor = Executor::new();
    let gate = Gate::default();
    let mut handle = executor.spawn(gate.clone());
    executor.run();
    let (first, first_count) = counting_waker();
    let (last, last_count) = counting_waker();
    for waker in [&first, &last, &last] {
        assert!(
            Pin::new(&mut handle)
                .poll(&mut Context::from_waker(waker))
                .is_pending()
        );
    }
    gate.open();
    executor.enter(|| gate.take_waker().wake());
    executor.run();
    assert_eq!((first_count.wakes(), last_count.wakes()), (0, 1));
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(())));
}

/// A handle that is dropped forgets its awaiter at once.
#[test]
fn dropping_the_handle_drops_the_awaiter() {
    let executor = Executor::new();
    let mut handle = executor.spawn(pending::<()>());
    let (waker, count) = counting_waker();
    assert!(
        Pin::new(&mut handle)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(Arc::strong_count(&count), 3);
    drop(handle);
    assert_eq!(Arc::strong_count(&count), 2);
}

/// A waker that polls the handle inside `wake` finds the task over: the wake is not lost on it.
#[test]
fn awaiter_may_poll_the_handle_at_once() {
    for is_cancelled in [false, true] {
        let executor = Executor::new();
        let mut handle = executor.spawn(async { 5 });
        let slot: Rc<Cell<Option<JoinHandle<u32>>>> = Rc::default();
        let seen = Rc::new(Cell::new(Poll::Pending));
        let (own, note) = (slot.clone(), seen.clone());
        let waker = waker_of(move || {
            let mut handle = own.take().expect("the handle was put in");
            note.set(poll_once(&mut handle));
        });
        let awaits = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
        assert!(awaits.is_pending());
        if is_cancelled {
            handle.cancel();
        }
        slot.set(Some(handle));
        executor.run();
        let expected = if is_cancelled { None } else { Some(5) };
        assert_eq!(seen.get(), Poll::Ready(expected));
        assert_eq!(executor.meter().allocated(), 0);
    }
}

/// While the future's destructor runs, the task is not over.
#[test]
fn handle_is_pending_inside_the_destructor() {
    let executor = Executor::new();
    let slot: Rc<Cell<Option<JoinHandle<()>>>> = Rc::default();
    let was_pending = Rc::new(Cell::new(false));
    let (own, note) = (slot.clone(), was_pending.clone());
    let in_future = OnDrop(move || {
        let mut handle = own.take().expect("the handle was put in");
        note.set(poll_once(&mut handle).is_pending() && !handle.is_finished());
        own.set(Some(handle));
    });
    let handle = executor.spawn(async move {
        let _in_future = in_future;
    });
    slot.set(Some(handle));
    executor.run();
    assert!(was_pending.get());
    let mut handle = slot.take().expect("put back by the destructor");
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(())));
}

/// A handle owned by its own task is a circle that the executor breaks.
#[test]
fn task_that_owns_its_own_handle() {
    let executor = Executor::new();
    let slot: Rc<Cell<Option<JoinHandle<()>>>> = Rc::default();
    let own = slot.clone();
    let handle = executor.spawn(async move {
        let own = own.take().expect("the handle was put in");
        own.await;
    });
    slot.set(Some(handle));
    let meter = executor.meter();
    executor.run();
    assert_eq!(meter.allocated(), 1);
    drop(executor);
    assert_eq!(meter.allocated(), 0);
}
