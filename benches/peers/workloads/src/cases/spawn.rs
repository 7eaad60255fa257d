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
    let ns = R::run(in_turn::<R>(8, 1500, 100, async || R::yield_now().await));
    report("yield-now", ns);
}

/// `yield-queue`, ns per switch: the same with the yield that ends the turn of the task queue.
pub fn yield_queue_in_turn<R: Cooperative>() {
    let ns = R::run(in_turn::<R>(8, 1500, 100, async || R::yield_queue().await));
    report("yield-queue", ns);
}

/// Runs `tasks` tasks that loop on `step`; one of them reads the clock every `steps_per_sample` of its own and divides
/// by the steps that all of them made meanwhile, whatever the order. In ns.
pub async fn in_turn<R: Runtime>(
    tasks: usize,
    sample_count: usize,
    steps_per_sample: usize,
    step: impl AsyncFn() + 'static,
) -> f64 {
    let step = Rc::new(step);
    let steps = Rc::new(Cell::new(0_u64));
    let is_done = Rc::new(Cell::new(false));

    let others: Vec<_> = (1..tasks)
        .map(|_| {
            let (step, steps, is_done) = (step.clone(), steps.clone(), is_done.clone());
            R::spawn(async move {
                while !is_done.get() {
                    step().await;
                    steps.set(steps.get() + 1);
                }
            })
        })
        .collect();
    let timekeeper = R::spawn(async move {
        let mut samples = Samples::with_capacity(sample_count);
        for _ in 0..sample_count {
            let (begin, steps_before) = (Instant::now(), steps.get());
            for _ in 0..steps_per_sample {
                step().await;
                steps.set(steps.get() + 1);
            }
            let made = (steps.get() - steps_before) as f64;
            samples.push(nanoseconds(begin.elapsed()) / made);
        }
        is_done.set(true);
        samples.forget_first(sample_count / 5);
        samples.median()
    });

    let ns = timekeeper.await;
    for task in others {
        task.await;
    }
    ns
}
