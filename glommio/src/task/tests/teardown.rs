//! The end of an executor, and what survives it.

use std::cell::RefCell;
use std::future::{Future, pending};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::executor::{Executor, Gate, Log, OnDrop, counting_waker, elsewhere, poll_once};

/// Every unfinished future is dropped once, wherever its task was; handles find `None`.
#[test]
fn every_future_is_dropped_once() {
    let executor = Executor::new();
    let meter = executor.meter();
    let log = Log::default();
    let gate = Gate::default();

    let (waits, in_future) = (gate.clone(), log.on_drop("waiting"));
    let mut waiting = executor.spawn(async move {
        let _in_future = in_future;
        waits.await;
    });
    executor.run();
    let in_future = log.on_drop("queued");
    let mut queued = executor.spawn(async move { drop(in_future) });
    let in_future = log.on_drop("detached");
    drop(executor.spawn(async move {
        let _in_future = in_future;
    }));
    let (waker, count) = counting_waker();
    let awaits = Pin::new(&mut waiting).poll(&mut Context::from_waker(&waker));
    assert!(awaits.is_pending());

    drop(executor);
    assert_eq!(log.take(), ["waiting", "queued", "detached"]);
    assert_eq!(count.wakes(), 1);
    assert_eq!(poll_once(&mut waiting), Poll::Ready(None));
    assert_eq!(poll_once(&mut queued), Poll::Ready(None));
    waiting.cancel();
    queued.cancel_now();
    drop((waiting, queued));
    assert_eq!(meter.allocated(), 1, "the gate's waker");
    drop(gate.take_waker());
    assert_eq!(meter.allocated(), 0);
    assert!(log.take().is_empty());
}

/// An output that was there before the end outlives it.
#[test]
fn finished_output_outlives_the_executor() {
    let executor = Executor::new();
    let mut handle = executor.spawn(async { "output" });
    executor.run();
    drop(executor);
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some("output")));
}

/// An executor that still holds a task which has completed drops its output.
#[test]
fn shutdown_drops_an_output() {
    let executor = Executor::new();
    let log = Log::default();
    let output = log.on_drop("output");
    let (runnable, mut handle, task) = executor.spawn_unregistered(async move { output });
    assert!(runnable.run());
    assert!(handle.is_finished());
    task.shutdown();
    assert_eq!(log.take(), ["output"]);
    assert!(matches!(poll_once(&mut handle), Poll::Ready(None)));
    drop((handle, task));
    assert_eq!(executor.meter().allocated(), 0);
}

/// Wakers that outlive the executor are bare memory: on any thread, any number, any use.
#[test]
fn late_wakers_only_free_memory() {
    let executor = Executor::new();
    let meter = executor.meter();
    let gate = Gate::default();
    let handle = executor.spawn(gate.clone());
    executor.run();
    drop(executor);

    let waker = gate.take_waker();
    waker.wake_by_ref();
    let (clone, sent) = (waker.clone(), meter.sent());
    assert_eq!(sent, 1, "it came back");
    elsewhere(move || {
        clone.wake_by_ref();
        let other = clone.clone();
        other.wake();
        drop(clone);
        // The last one, while the handle still holds the task on the owner's side.
        waker.wake();
    });
    assert_eq!(meter.sent(), sent, "after one that came back none is sent");
    assert_eq!(meter.allocated(), 1);
    drop(handle);
    assert_eq!(meter.allocated(), 0);
}

/// The last waker dropped elsewhere after the executor's end, none having been woken before.
#[test]
fn last_waker_elsewhere_after_the_end() {
    for keeps_handle in [false, true] {
        let executor = Executor::new();
        let meter = executor.meter();
        let gate = Gate::default();
        let handle = executor.spawn(gate.clone());
        executor.run();
        let handle = keeps_handle.then_some(handle);
        drop(executor);
        let waker = gate.take_waker();
        elsewhere(move || drop(waker));
        assert_eq!(meter.allocated(), usize::from(keeps_handle));
        drop(handle);
        assert_eq!(meter.allocated(), 0);
    }
}

/// A remote wake that was under way when the executor died.
#[test]
fn remote_wake_under_way_at_the_end() {
    let executor = Executor::new();
    let meter = executor.meter();
    let log = Log::default();
    let gate = Gate::default();
    let (waits, in_future) = (gate.clone(), log.on_drop("future"));
    drop(executor.spawn(async move {
        let _in_future = in_future;
        waits.await;
    }));
    executor.run();
    let waker = gate.take_waker();
    elsewhere(move || waker.wake());
    assert_eq!(meter.sent(), 1);
    drop(executor);
    assert_eq!(log.take(), ["future"]);
    assert_eq!(meter.allocated(), 0);
}

/// Destructors at the end may wake other tasks, cancel them, and drop their handles.
#[test]
fn destructors_may_use_other_tasks() {
    for victim_is_first in [false, true] {
        let executor = Executor::new();
        let meter = executor.meter();
        let log = Log::default();
        let gate = Gate::default();
        let slot = Rc::new(RefCell::new(None));

        let spawn_victim = || {
            let (waits, in_future) = (gate.clone(), log.on_drop("victim"));
            *slot.borrow_mut() = Some(executor.spawn(async move {
                let _in_future = in_future;
                waits.await;
            }));
        };
        let spawn_other = || {
            let (slot, gate) = (slot.clone(), gate.clone());
            let in_future = OnDrop(move || {
                gate.take_waker().wake();
                let handle = slot.take().expect("the handle was put in");
                handle.cancel();
                drop(handle);
            });
            executor.spawn(async move {
                let _in_future = in_future;
                pending::<()>().await;
            })
        };
        let other = if victim_is_first {
            spawn_victim();
            spawn_other()
        } else {
            let other = spawn_other();
            spawn_victim();
            other
        };
        executor.run();
        drop(executor);
        assert_eq!(log.take(), ["victim"]);
        drop(other);
        assert_eq!(meter.allocated(), 0);
    }
}

/// A `Runnable` dropped instead of run closes its task.
#[test]
fn runnable_dropped_unrun() {
    let executor = Executor::new();
    let log = Log::default();
    let in_future = log.on_drop("future");
    let mut handle = executor.spawn(async move { drop(in_future) });
    let (waker, count) = counting_waker();
    let awaits = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
    assert!(awaits.is_pending());
    executor.discard_queue();
    assert_eq!(log.take(), ["future"]);
    assert_eq!(count.wakes(), 1);
    assert_eq!(poll_once(&mut handle), Poll::Ready(None));
}
