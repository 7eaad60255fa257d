//! Wakers on other threads.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread::{self, ThreadId};

use super::executor::{Executor, Gate, OnDrop, elsewhere, poll_once};

/// A wake from elsewhere is delivered as a remote wake, one for any number of wakes.
#[test]
fn wakes_coalesce_into_one_letter() {
    let executor = Executor::new();
    let gate = Gate::default();
    let mut handle = executor.spawn(gate.clone());
    executor.run();
    let waker = gate.take_waker();
    let elsewhere_waker = waker.clone();
    elsewhere(move || {
        elsewhere_waker.wake_by_ref();
        elsewhere_waker.wake_by_ref();
        elsewhere_waker.wake();
    });
    assert_eq!(executor.queued(), 0, "only the owner schedules");
    assert_eq!(executor.meter().sent(), 1);
    gate.open();
    assert_eq!(executor.run(), 1);
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(())));
}

/// After delivery the way is open for the next remote wake.
#[test]
fn next_wake_mails_again() {
    let executor = Executor::new();
    let gate = Gate::default();
    let _handle = executor.spawn(gate.clone());
    executor.run();
    for sent in 1..=3 {
        let waker = gate.take_waker();
        let keep = waker.clone();
        elsewhere(move || waker.wake());
        assert_eq!(executor.meter().sent(), sent);
        assert_eq!(executor.run(), 1);
        executor.enter(|| drop(keep));
    }
}

/// The owner's thread outside its executor is elsewhere, too.
#[test]
fn wake_while_the_owner_is_not_current() {
    let executor = Executor::new();
    let gate = Gate::default();
    let _handle = executor.spawn(gate.clone());
    executor.run();
    gate.take_waker().wake();
    assert_eq!(executor.queued(), 0);
    assert_eq!(executor.run(), 1);
}

/// The last waker dropped elsewhere: the owner disposes of the task, on its own thread, unpolled.
#[test]
fn last_waker_dropped_elsewhere_disposes_on_the_owner() {
    let executor = Executor::new();
    let gate = Gate::default();
    let dropped_on: Arc<Mutex<Option<ThreadId>>> = Arc::default();
    let note = dropped_on.clone();
    let in_future = OnDrop(move || {
        let before = note
            .lock()
            .expect("no panic")
            .replace(thread::current().id());
        assert_eq!(before, None, "dropped once");
    });
    let waits = gate.clone();
    drop(executor.spawn(async move {
        let _in_future = in_future;
        waits.await;
    }));
    executor.run();
    let first = gate.take_waker();
    let clone = first.clone();
    elsewhere(move || drop(first));
    assert_eq!(executor.meter().sent(), 0, "another waker is left");
    elsewhere(move || drop(clone));
    assert_eq!(*dropped_on.lock().expect("no panic"), None);
    assert_eq!(executor.run(), 1);
    assert_eq!(
        *dropped_on.lock().expect("no panic"),
        Some(thread::current().id())
    );
    assert_eq!(gate.polls(), 1);
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// With the handle alive the remote wake changes nothing; the handle's end then disposes.
#[test]
fn last_waker_dropped_elsewhere_while_the_handle_lives() {
    let executor = Executor::new();
    let gate = Gate::default();
    let mut handle = executor.spawn(gate.clone());
    executor.run();
    let waker = gate.take_waker();
    elsewhere(move || drop(waker));
    assert_eq!(executor.run(), 0);
    assert!(poll_once(&mut handle).is_pending());
    executor.enter(|| drop(handle));
    assert_eq!(executor.run(), 1);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A wake that finds the remote wake of a dropped waker under way turns it into one that asks for a
/// poll.
#[test]
fn wake_after_a_disposal_letter_polls() {
    let executor = Executor::new();
    let polls = Rc::new(Cell::new(0));
    let count = polls.clone();
    drop(executor.spawn(poll_fn(move |cx| {
        count.set(count.get() + 1);
        if count.get() == 2 {
            return Poll::Ready(());
        }
        for is_wake in [false, true] {
            let waker = cx.waker().clone();
            elsewhere(move || if is_wake { waker.wake() } else { drop(waker) });
        }
        Poll::Pending
    })));
    assert!(executor.run_one());
    assert_eq!(executor.meter().sent(), 1);
    assert_eq!(executor.run(), 1);
    assert_eq!(polls.get(), 2);
    assert_eq!(executor.meter().allocated(), 0);
}

/// A last waker dropped elsewhere while the task is being polled: its remote wake disposes after
/// the poll.
#[test]
fn last_waker_dropped_elsewhere_during_the_poll() {
    let executor = Executor::new();
    let mut is_first = true;
    drop(executor.spawn(poll_fn(move |cx| -> Poll<()> {
        assert!(is_first, "nobody woke the task");
        is_first = false;
        let waker = cx.waker().clone();
        elsewhere(move || drop(waker));
        Poll::Pending
    })));
    assert_eq!(executor.run(), 2, "a poll, and the disposal");
    assert_eq!(executor.meter().sent(), 1);
    assert_eq!(executor.registered(), 0);
    assert_eq!(executor.meter().allocated(), 0);
}

/// Clones made and dropped by many threads at once: all is counted, one poll or more follows.
#[test]
fn many_threads_clone_wake_and_drop() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 2_000;
    let executor = Executor::new();
    let meter = executor.meter();
    let wakes = Arc::new(AtomicUsize::new(0));
    let gate = Gate::default();
    let mut handle = executor.spawn(gate.clone());
    executor.run();
    let waker = gate.take_waker();
    let is_done = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (waker, wakes) = (waker.clone(), wakes.clone());
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let clone = waker.clone();
                        wakes.fetch_add(1, Ordering::Relaxed);
                        match round % 3 {
                            0 => clone.wake(),
                            1 => clone.wake_by_ref(),
                            _ => drop(clone),
                        }
                    }
                })
            })
            .collect();
        let done = is_done.clone();
        scope.spawn(move || {
            for thread in threads {
                thread.join().expect("the thread ends well");
            }
            done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) {
            executor.run();
        }
    });
    executor.run();
    assert_eq!(wakes.load(Ordering::Relaxed), THREADS * ROUNDS);
    assert!(meter.sent() <= THREADS * ROUNDS);
    gate.open();
    elsewhere(move || waker.wake());
    executor.run();
    assert_eq!(poll_once(&mut handle), Poll::Ready(Some(())));
    drop(handle);
    drop(gate);
    assert_eq!(meter.allocated(), 0);
}

/// Executors die while other threads wake their tasks: nothing leaks, nothing is dropped elsewhere.
#[test]
fn executors_die_under_foreign_wakes() {
    for round in 0..200 {
        let executor = Executor::new();
        let meter = executor.meter();
        let gates: Vec<Gate> = (0..8).map(|_| Gate::default()).collect();
        let handles: Vec<_> = gates
            .iter()
            .map(|gate| {
                let (gate, owner) = (gate.clone(), thread::current().id());
                let in_future = OnDrop(move || assert_eq!(thread::current().id(), owner));
                executor.spawn(async move {
                    let _in_future = in_future;
                    gate.await;
                })
            })
            .collect();
        executor.run();
        let wakers: Vec<Waker> = gates.iter().map(Gate::take_waker).collect();
        let clones = wakers.clone();
        let first = thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
        let second = thread::spawn(move || drop(clones));
        if round % 2 == 0 {
            drop(handles);
            executor.run();
            drop(executor);
        } else {
            executor.run();
            drop(executor);
            drop(handles);
        }
        first.join().expect("the thread ends well");
        second.join().expect("the thread ends well");
        drop(gates);
        assert_eq!(meter.allocated(), 0);
    }
}
