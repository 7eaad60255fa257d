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
    let mut dropped = log.take();
    dropped.sort_unstable();
    assert_eq!(dropped, ["detached", "queued", "waiting"]);
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

/// Small and large tasks, among those that are over: memory of some was freed here or elsewhere, and is
/// used again; some is still referred to.
#[test]
fn the_end_finds_the_tasks_that_are_not_over() {
    const COUNT: usize = 400;

    fn spawn<const BYTES: usize>(
        executor: &Executor,
        gate: &Gate,
        guard: OnDrop<impl FnMut() + 'static>,
    ) {
        let (gate, bytes) = (gate.clone(), [1_u8; BYTES]);
        drop(executor.spawn(async move {
            let _guard = guard;
            gate.await;
            std::hint::black_box(&bytes);
        }));
    }

    let executor = Executor::new();
    let meter = executor.meter();
    let dropped = Rc::new(RefCell::new(Vec::new()));
    let (mut late_wakers, mut left) = (Vec::new(), Vec::new());
    for round in 0..3 {
        let gates: Vec<_> = (0..COUNT).map(|_| Gate::default()).collect();
        for (index, gate) in gates.iter().enumerate() {
            let (dropped, number) = (dropped.clone(), round * COUNT + index);
            let guard = OnDrop(move || dropped.borrow_mut().push(number));
            match index / 4 % 4 {
                0 => spawn::<1>(&executor, gate, guard),
                1 => spawn::<100>(&executor, gate, guard),
                2 => spawn::<300>(&executor, gate, guard),
                _ => spawn::<2000>(&executor, gate, guard),
            }
        }
        executor.run();
        for (index, gate) in gates.iter().enumerate() {
            let waker = gate.take_waker();
            if index % 4 == 0 {
                left.push(round * COUNT + index);
                late_wakers.push(waker);
                continue;
            }
            gate.open();
            waker.wake_by_ref();
            executor.run();
            match index % 4 {
                1 => executor.enter(|| drop(waker)),
                2 => late_wakers.push(waker),
                _ => elsewhere(move || drop(waker)),
            }
        }
        assert_eq!(executor.registered(), left.len());
        assert_eq!(dropped.borrow().len(), (round + 1) * COUNT - left.len());
    }
    dropped.take();
    drop(executor);
    let mut dropped = dropped.take();
    dropped.sort_unstable();
    assert_eq!(dropped, left);
    assert_eq!(meter.allocated(), late_wakers.len());
    drop(late_wakers);
    assert_eq!(meter.allocated(), 0);
}

/// What the destructors of one pass spawn is dropped in the next.
#[test]
fn the_end_comes_for_what_destructors_spawn() {
    fn spawn_chain(executor: &Rc<Executor>, left: usize, log: &Log) {
        let (next, log) = (Rc::downgrade(executor), log.clone());
        let guard = OnDrop(move || {
            log.note("dropped");
            if let Some(executor) = next.upgrade().filter(|_| left > 0) {
                spawn_chain(&executor, left - 1, &log);
            }
        });
        drop(executor.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        }));
    }

    let (executor, log) = (Rc::new(Executor::new()), Log::default());
    let meter = executor.meter();
    spawn_chain(&executor, 5, &log);
    executor.shut_down();
    assert_eq!(log.take(), ["dropped"; 6]);
    assert_eq!(executor.registered(), 0);
    drop(executor);
    assert_eq!(meter.allocated(), 0);
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
