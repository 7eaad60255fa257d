//! Spawning tasks and switching between them.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use crate::samples::{Batches, Samples, nanoseconds};
use crate::{Cooperative, Runtime, report};

/// `spawn-one`, ns: spawn a task that returns at once and await it, before the next is spawned.
pub fn one_by_one<R: Runtime>() {
    let ns = R::run(Batches::new(1500, 500).run(async |operations| {
        for number in 0..operations {
            assert_eq!(R::spawn(async move { number }).await, number);
        }
        R::yield_now().await;
    }));
    report("spawn-one", ns);
}

/// `spawn-batch`, ns per task: spawn 1000 tasks that return at once, then await them in order.
pub fn in_batches<R: Runtime>() {
    let ns = R::run(async {
        let mut tasks = Vec::with_capacity(1000);
        Batches::new(800, 1000)
            .run(async |operations| {
                tasks.extend((0..operations).map(|number| R::spawn(async move { number })));
                for task in tasks.drain(..) {
                    std::hint::black_box(task.await);
                }
            })
            .await
    });
    report("spawn-batch", ns);
}

/// `yield-now`, ns per switch: eight tasks, each goes to the back of the line over and over.
pub fn yield_in_turn<R: Cooperative>() {
    let ns = R::run(eight_in_turn::<R>(async || R::yield_now().await));
    report("yield-now", ns);
}

/// `yield-queue`, ns per switch: the same with the yield that ends the turn of the task queue.
pub fn yield_queue_in_turn<R: Cooperative>() {
    let ns = R::run(eight_in_turn::<R>(async || R::yield_queue().await));
    report("yield-queue", ns);
}

/// Runs eight tasks that loop on `suspend`; one of them reads the clock every 100 rounds and divides by the
/// switches all of them made meanwhile, whatever the order.
async fn eight_in_turn<R: Runtime>(suspend: impl AsyncFn() + Clone + 'static) -> f64 {
    const SAMPLES: usize = 1500;
    const ROUNDS_PER_SAMPLE: usize = 100;
    let switches = Rc::new(Cell::new(0_u64));
    let is_done = Rc::new(Cell::new(false));

    let others: Vec<_> = (1..8)
        .map(|_| {
            let (suspend, switches, is_done) = (suspend.clone(), switches.clone(), is_done.clone());
            R::spawn(async move {
                while !is_done.get() {
                    suspend().await;
                    switches.set(switches.get() + 1);
                }
            })
        })
        .collect();
    let timekeeper = R::spawn(async move {
        let mut samples = Samples::with_capacity(SAMPLES);
        for _ in 0..SAMPLES {
            let (begin, switches_before) = (Instant::now(), switches.get());
            for _ in 0..ROUNDS_PER_SAMPLE {
                suspend().await;
                switches.set(switches.get() + 1);
            }
            let made = (switches.get() - switches_before) as f64;
            samples.push(nanoseconds(begin.elapsed()) / made);
        }
        is_done.set(true);
        samples.forget_first(SAMPLES / 5);
        samples.median()
    });

    let ns_per_switch = timekeeper.await;
    for task in others {
        task.await;
    }
    ns_per_switch
}
