//! Locks, and what one task tells others, within an executor.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use super::spawn::in_turn;
use crate::channels::{Locks, Notices};
use crate::report;
use crate::samples::{Batches, Samples, nanoseconds};

/// `semaphore-alone`, ns: acquire a unit that is there, and give it back.
pub fn semaphore_alone<R: Locks>() {
    let ns = R::run(async {
        let semaphore = R::semaphore(1);
        let batches = Batches::new(1000, 1000);
        batches
            .run(async |times| {
                for _ in 0..times {
                    R::with_unit(&semaphore, async {}).await;
                }
            })
            .await
    });
    report("semaphore-alone", ns);
}

/// `lock-read-alone` and `lock-write-alone`, ns: take a lock that is free, and give it back.
pub fn lock_alone<R: Locks>() {
    let (read, write) = R::run(async {
        let lock = R::lock();
        let read = Batches::new(1000, 1000).run(async |times| {
            for _ in 0..times {
                std::hint::black_box(R::read(&lock).await);
            }
        });
        let read = read.await;
        let write = Batches::new(1000, 1000).run(async |times| {
            for _ in 0..times {
                R::write(&lock, async {}).await;
            }
        });
        (read, write.await)
    });
    report("lock-read-alone", read);
    report("lock-write-alone", write);
}

/// `semaphore-100`, ns per acquisition: 100 tasks take the one unit over and over, and let others run while they hold it
/// and when they have given it back (without that, one task may have it all the time).
pub fn semaphore_of_100<R: Locks>() {
    let semaphore = Rc::new(R::semaphore(1));
    let ns = R::run(in_turn::<R>(100, 150, 10, async move || {
        R::with_unit(&semaphore, R::yield_now()).await;
        R::yield_now().await;
    }));
    report("semaphore-100", ns);
}

/// `lock-100`, ns per acquisition: the same with a lock for writing.
pub fn lock_of_100<R: Locks>() {
    let lock = Rc::new(R::lock());
    let ns = R::run(in_turn::<R>(100, 150, 10, async move || {
        R::write(&lock, R::yield_now()).await;
        R::yield_now().await;
    }));
    report("lock-100", ns);
}

/// `oneshot`, ns: make a channel for one number, have a task that waits for requests answer, and take the answer.
pub fn oneshot<R: Notices>() {
    let ns = R::run(Batches::new(1000, 200).run(async |times| {
        for number in 0..times as u64 {
            let (reply, answer) = R::oneshot();
            let task = R::spawn(async move { R::reply(reply, number) });
            assert_eq!(answer.await, number);
            task.await;
        }
    }));
    report("oneshot", ns);
}

/// `broadcast-<listeners>`, ns per value: one task announces a number, the listening tasks hear it; all go on.
pub fn broadcast<R: Notices>(listeners: usize, values_per_batch: usize) {
    const BATCHES: usize = 500;
    const END: u64 = u64::MAX;
    let ns = R::run(async move {
        let (announcer, first) = R::broadcast(16);
        drop(first);
        let heard = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (0..listeners)
            .map(|_| {
                let (mut listener, heard) = (R::listen(&announcer), heard.clone());
                R::spawn(async move {
                    while R::hear(&mut listener).await != END {
                        heard.set(heard.get() + 1);
                    }
                })
            })
            .collect();
        R::yield_now().await;
        let ns = Batches::new(BATCHES, values_per_batch)
            .run(async |values| {
                for number in 0..values as u64 {
                    heard.set(0);
                    R::announce(&announcer, number);
                    while heard.get() < listeners {
                        R::yield_now().await;
                    }
                }
            })
            .await;
        R::announce(&announcer, END);
        for task in tasks {
            task.await;
        }
        ns
    });
    report(&format!("broadcast-{listeners}"), ns);
}

/// `cancel-tree`, µs: cancel the root of a tree of 10,000 tokens, a hundred below the root and 99 below each of these, of
/// which one waits; until its task has run.
pub fn cancel_tree<R: Notices>() {
    const TREES: usize = 20;
    let ns = R::run(async {
        let mut samples = Samples::with_capacity(TREES);
        for _ in 0..TREES {
            let root = R::token();
            let inner: Vec<_> = (0..100).map(|_| R::child(&root)).collect();
            let mut leaves: Vec<_> = inner
                .iter()
                .flat_map(|it| (0..99).map(|_| R::child(it)))
                .collect();
            let last = leaves.pop().expect("there are many");
            let waiting = R::spawn(async move { R::cancelled(&last).await });
            R::yield_now().await;
            let begin = Instant::now();
            R::cancel(&root);
            waiting.await;
            samples.push(nanoseconds(begin.elapsed()));
        }
        samples.forget_first(TREES / 5);
        samples.median()
    });
    report("cancel-tree", ns / 1e3);
}
