//! Wakers of strangers that panic.

#![allow(unsafe_code)]

use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

use super::executor::{Executor, Gate, OnDrop, poll_once};
use crate::panic::tests::Chain;

/// A waker that calls `on_wake`. Stays on its thread, whatever `Waker` promises: no test sends one.
pub(super) fn waker_of<F: Fn() + 'static>(on_wake: F) -> Waker {
    /// The vtable of wakers whose data is an `Rc<F>`.
    struct Vtable<F>(F);
    impl<F: Fn() + 'static> Vtable<F> {
        const OF: RawWakerVTable = RawWakerVTable::new(
            |data| {
                // SAFETY: the data is an `Rc<F>`, and the waker being cloned holds a count of it.
                unsafe { Rc::increment_strong_count(data.cast::<F>()) };
                RawWaker::new(data, &Self::OF)
            },
            // SAFETY: the waker being used up held this count.
            |data| unsafe { Rc::from_raw(data.cast::<F>())() },
            // SAFETY: the waker holds a count.
            |data| unsafe { (*data.cast::<F>())() },
            // SAFETY: the waker being dropped held this count.
            |data| drop(unsafe { Rc::from_raw(data.cast::<F>()) }),
        );
    }
    let data = Rc::into_raw(Rc::new(on_wake)).cast();
    // SAFETY: the vtable keeps count of the `Rc`, and the waker does not leave the thread.
    unsafe { Waker::new(data, &Vtable::<F>::OF) }
}

fn await_with<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// An awaiter that panics when it is woken takes nothing down.
#[test]
fn in_the_wake_of_an_awaiter() {
    let executor = Executor::new();
    let waker = waker_of(|| panic_any(Chain(3)));
    let mut completed = executor.spawn(async { 1 });
    let mut cancelled = executor.spawn(pending::<()>());
    assert!(await_with(&mut completed, &waker).is_pending());
    assert!(await_with(&mut cancelled, &waker).is_pending());
    cancelled.cancel();
    assert_eq!(executor.run(), 2);
    assert_eq!(poll_once(&mut completed), Poll::Ready(Some(1)));
    assert_eq!(poll_once(&mut cancelled), Poll::Ready(None));
}

/// Nor does it turn the panic of a task into an abort, whatever it panics with.
#[test]
fn in_the_wake_of_an_awaiter_during_unwinding() {
    let executor = Executor::new();
    let waker = waker_of(|| panic_any(Chain(3)));
    let mut handle = executor.spawn(async { panic_any("poll") });
    let awaits: Poll<Option<()>> = await_with(&mut handle, &waker);
    assert!(awaits.is_pending());
    let payload = catch_unwind(AssertUnwindSafe(|| executor.run())).expect_err("the task panics");
    assert_eq!(payload.downcast_ref(), Some(&"poll"));
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
}

/// A waker whose destructor panics when the handle forgets it: the handle is dropped all the same.
#[test]
fn in_the_destructor_of_an_awaiter() {
    let executor = Executor::new();
    let bomb = OnDrop(|| panic_any("waker dropped"));
    let waker = waker_of(move || {
        let _held = &bomb;
    });
    let gate = Gate::default();
    let mut handle = executor.spawn(gate.clone());
    executor.run();
    assert!(await_with(&mut handle, &waker).is_pending());
    drop(waker);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(handle)));
    assert!(dropped.is_err());
    gate.open();
    executor.enter(|| gate.take_waker().wake());
    executor.run();
    assert_eq!(executor.meter().allocated(), 0);
}
