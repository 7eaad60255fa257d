//! The cell's foreign side under every interleaving: wakes, clones and drops on other threads
//! against running, detaching and shutting down on the owner's.
//!
//! Each model ends with the same laws: the future was dropped once, by the owner; no memory is
//! left; every plain access was ordered (loom reports the others). Remote wakes travel through a
//! queue that loom does not see and which therefore orders nothing: the word must do it all. In the
//! last models it is the queue of an executor, whose links are in the tasks: each is used again for
//! the next remote wake.

use std::sync::atomic::Ordering::SeqCst;

use loom::sync::atomic::Ordering;
use loom::thread;

use super::loom_world::{Lends, Owner, Sent, bounded, join, queue};

/// Two foreign wakes, each of which publishes half of what the task waits for.
#[run_test(bounded)]
fn loom_wakes_publish() {
    let mut owner = Owner::new();
    let wakers = owner.start::<2>(2);
    let threads = wakers.map(|waker| {
        let signals = owner.signals.clone();
        thread::spawn(move || {
            signals.fetch_add(1, Ordering::Relaxed);
            waker.wake();
        })
    });
    owner.turn();
    join(threads);
    owner.turn();
    assert_eq!(owner.output(), Some(Some(2)), "no wake was lost");
    owner.end();
}

/// The same through borrowed wakers of one waker's clones, on a detached task.
#[run_test(bounded)]
fn loom_detached_task_completes() {
    let mut owner = Owner::new();
    let [waker] = owner.start::<1>(2);
    owner.handle = None;
    let signals = owner.signals.clone();
    let thread = thread::spawn(move || {
        for _ in 0..2 {
            let clone = waker.clone();
            signals.fetch_add(1, Ordering::Relaxed);
            clone.wake_by_ref();
        }
    });
    owner.turn();
    join([thread]);
    owner.turn();
    assert_eq!(owner.world.completed.load(SeqCst), 1);
    owner.end();
}

/// One thread wakes with its waker while another drops the last other one: a wake is no disposal.
#[run_test(bounded)]
fn loom_wake_against_last_drop() {
    let mut owner = Owner::new();
    let [wakes, drops] = owner.start::<2>(1);
    owner.handle = None;
    let signals = owner.signals.clone();
    let threads = [
        thread::spawn(move || {
            signals.fetch_add(1, Ordering::Relaxed);
            wakes.wake();
        }),
        thread::spawn(move || drop(drops)),
    ];
    owner.turn();
    join(threads);
    owner.turn();
    assert_eq!(
        owner.world.completed.load(SeqCst),
        1,
        "polled after the wake"
    );
    owner.end();
}

/// A poll lends its waker, which is not counted, to a thread that clones it while the owner drops
/// the only waker that is.
#[run_test(bounded)]
fn loom_lent_waker_against_last_drop() {
    let mut owner = Owner::new();
    owner.spawn(Lends {
        world: owner.world.clone(),
        own: None,
    });
    owner.turn();
    assert_eq!(owner.output(), Some(Some(0)));
    owner.end();
}

/// Two threads drop the two last wakers of a task, and the owner its handle: somebody sees that it
/// is abandoned, and it is never polled again.
#[run_test(bounded)]
fn loom_abandoned_by_three() {
    let mut owner = Owner::new();
    let wakers = owner.start::<2>(1);
    let threads = wakers.map(|waker| thread::spawn(move || drop(waker)));
    owner.turn();
    owner.handle = None;
    join(threads);
    owner.turn();
    assert!(owner.task.is_none(), "disposed of");
    assert_eq!(owner.world.polls.load(SeqCst), 1);
    owner.end();
}

/// The executor dies while one thread wakes and another clones and drops.
#[run_test(bounded)]
fn loom_shutdown_against_wake_and_clone() {
    let mut owner = Owner::new();
    let [wakes, clones] = owner.start::<2>(1);
    let threads = [
        thread::spawn(move || {
            wakes.wake_by_ref();
            wakes.wake();
        }),
        thread::spawn(move || drop(clones.clone())),
    ];
    owner.shutdown();
    assert_eq!(owner.output(), Some(None));
    owner.handle = None;
    join(threads);
    owner.end();
}

/// The executor dies, and the handle goes later, while a thread drops the last waker.
#[run_test(bounded)]
fn loom_shutdown_against_last_drop() {
    let mut owner = Owner::new();
    let [waker] = owner.start::<1>(1);
    let thread = thread::spawn(move || drop(waker));
    owner.turn();
    owner.shutdown();
    owner.handle = None;
    join([thread]);
    owner.end();
}

/// A remote wake that the dying owner did not see is dropped by another thread, perhaps as the last
/// reference of all.
#[run_test(bounded)]
fn loom_letter_dropped_elsewhere() {
    let mut owner = Owner::new();
    let [waker] = owner.start::<1>(1);
    join([thread::spawn(move || waker.wake())]);
    let sent = owner.close();
    let thread = thread::spawn(move || drop(sent));
    owner.shutdown();
    owner.handle = None;
    join([thread]);
    owner.end();
}

/// The task completes and the owner gives up its side while wakers come and go elsewhere.
#[run_test(bounded)]
fn loom_completion_against_wake() {
    let mut owner = Owner::new();
    let [foreign, local] = owner.start::<2>(0);
    let thread = thread::spawn(move || {
        let clone = foreign.clone();
        foreign.wake();
        clone.wake_by_ref();
    });
    local.wake();
    owner.turn();
    assert_eq!(owner.output(), Some(Some(0)));
    owner.handle = None;
    join([thread]);
    owner.turn();
    owner.end();
}

/// The task is cancelled while another thread wakes it.
#[run_test(bounded)]
fn loom_cancel_against_wake() {
    let mut owner = Owner::new();
    let [waker] = owner.start::<1>(1);
    let thread = thread::spawn(move || waker.wake());
    owner.handle.as_ref().expect("it is not detached").cancel();
    owner.turn();
    assert_eq!(owner.output(), Some(None));
    assert_eq!(owner.world.polls.load(SeqCst), 1);
    owner.handle = None;
    join([thread]);
    owner.turn();
    owner.end();
}

/// One thread wakes again and again, so that remote wakes follow each other closely.
#[run_test(bounded)]
fn loom_links_are_used_again() {
    let mut owner = Owner::with(Sent::Queued(queue()));
    let [waker] = owner.start::<1>(2);
    let signals = owner.signals.clone();
    let thread = thread::spawn(move || {
        for _ in 0..2 {
            signals.fetch_add(1, Ordering::Relaxed);
            waker.wake_by_ref();
        }
    });
    owner.turn();
    join([thread]);
    owner.turn();
    assert_eq!(owner.output(), Some(Some(2)), "no wake was lost");
    owner.end();
}

/// The executor dies and closes its queue while two threads wake.
#[run_test(bounded)]
fn loom_queue_closed_against_wakes() {
    let mut owner = Owner::with(Sent::Queued(queue()));
    let wakers = owner.start::<2>(1);
    let threads = wakers.map(|waker| thread::spawn(move || waker.wake()));
    owner.shutdown();
    owner.handle = None;
    join(threads);
    owner.end();
}
