//! Locks, and what one task tells others, within an executor.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use crate::channels::{Locks, Notices};
use crate::report;
use crate::samples::{Batches, Samples, microseconds, nanoseconds};

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
    let ns = among_100::<R>(async move || {
        R::with_unit(&semaphore, R::yield_now()).await;
        R::yield_now().await;
    });
    report("semaphore-100", ns);
}

/// `lock-100`, ns per acquisition: the same with a lock for writing.
pub fn lock_of_100<R: Locks>() {
    let lock = Rc::new(R::lock());
    let ns = among_100::<R>(async move || {
        R::write(&lock, R::yield_now()).await;
        R::yield_now().await;
    });
    report("lock-100", ns);
}

/// Has 100 tasks do the same over and over. One reads the clock every so often and divides by what all of them have done.
fn among_100<R: Locks>(step: impl AsyncFn() + 'static) -> f64 {
    const SAMPLES: usize = 150;
    const STEPS_PER_SAMPLE: usize = 10;
    R::run(async {
        let step = Rc::new(step);
        let done = Rc::new(Cell::new(0_u64));
        let is_over = Rc::new(Cell::new(false));
        let others: Vec<_> = (1..100)
            .map(|_| {
                let (step, done, is_over) = (step.clone(), done.clone(), is_over.clone());
                R::spawn(async move {
                    while !is_over.get() {
                        step().await;
                        done.set(done.get() + 1);
                    }
                })
            })
            .collect();
        let timekeeper = R::spawn(async move {
            let mut samples = Samples::with_capacity(SAMPLES);
            for _ in 0..SAMPLES {
                let (begin, before) = (Instant::now(), done.get());
                for _ in 0..STEPS_PER_SAMPLE {
                    step().await;
                    done.set(done.get() + 1);
                }
                samples.push(nanoseconds(begin.elapsed()) / (done.get() - before) as f64);
            }
            is_over.set(true);
            samples.forget_first(SAMPLES / 5);
            samples.median()
        });
        let ns = timekeeper.await;
        for task in others {
            task.await;
        }
        ns
    })
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

/// `broadcast-1`, ns per value: one task announces a number, a listening task hears it; both go on.
pub fn broadcast_to_1<R: Notices>() {
    report("broadcast-1", broadcast::<R>(1, 200));
}

/// `broadcast-10`, ns per value: the same with ten listening tasks.
pub fn broadcast_to_10<R: Notices>() {
    report("broadcast-10", broadcast::<R>(10, 50));
}

/// `broadcast-100`, ns per value: the same with a hundred.
pub fn broadcast_to_100<R: Notices>() {
    report("broadcast-100", broadcast::<R>(100, 10));
}

fn broadcast<R: Notices>(listeners: usize, values_per_batch: usize) -> f64 {
    const BATCHES: usize = 500;
    const END: u64 = u64::MAX;
    R::run(async move {
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
    })
}

/// `cancel-tree`, µs: cancel the root of a tree of 10,000 tokens, a hundred below the root and 99 below each of these, of
/// which one waits; until its task has run.
pub fn cancel_tree<R: Notices>() {
    const TREES: usize = 20;
    let us = R::run(async {
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
            samples.push(microseconds(begin.elapsed()));
        }
        samples.forget_first(TREES / 5);
        samples.median()
    });
    report("cancel-tree", us);
}
