//! How late a sleeping task runs, in an idle executor and next to a busy neighbour.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::samples::{Samples, microseconds};
use crate::{Cooperative, Runtime, report};

const MILLISECOND: Duration = Duration::from_millis(1);

/// `overshoot-100us`, `overshoot-1ms`, `overshoot-10ms`, µs: the only task sleeps over and over; from the end of
/// the sleep it asked for to the moment it runs, the middle of 400, 150 and 50 sleeps.
pub fn overshoot<R: Runtime>() {
    R::run(async {
        for (row, sleep, count) in [
            ("overshoot-100us", MILLISECOND / 10, 400),
            ("overshoot-1ms", MILLISECOND, 150),
            ("overshoot-10ms", MILLISECOND * 10, 50),
        ] {
            let mut samples = sleeps::<R>(sleep, count + count / 10, Duration::from_secs(1)).await;
            samples.forget_first(count / 10);
            report(row, samples.median());
        }
    });
}

/// `late-yield-now`, µs: a task sleeps 1 ms over and over beside one that yields without end; the middle of
/// 200 sleeps, or of as many as a second has room for.
pub fn beside_self_waking_task<R: Cooperative>() {
    let late = R::run(beside_neighbour::<R>(async || R::yield_now().await));
    report("late-yield-now", late);
}

/// `late-yield-if-needed`, µs: the same beside a task that computes and offers to yield every microsecond or so.
pub fn beside_cooperative_task<R: Cooperative>() {
    let late = R::run(beside_neighbour::<R>(async || {
        compute_for_a_moment();
        R::yield_if_needed().await;
    }));
    report("late-yield-if-needed", late);
}

/// About a microsecond of arithmetic.
pub fn compute_for_a_moment() {
    let mut sum = 0_u64;
    for number in 0..1000 {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(number));
    }
}

/// Measures sleeps of 1 ms beside a task that loops on `suspend`.
async fn beside_neighbour<R: Runtime>(suspend: impl AsyncFn() + 'static) -> f64 {
    /// A runtime may never fire a timer while a task is runnable: then the neighbour gives up at last.
    const PATIENCE: Duration = Duration::from_secs(3);
    let is_done = Rc::new(Cell::new(false));
    let neighbour = {
        let is_done = is_done.clone();
        let begin = Instant::now();
        R::spawn(async move {
            while !is_done.get() && begin.elapsed() < PATIENCE {
                suspend().await;
            }
        })
    };
    let mut samples = sleeps::<R>(MILLISECOND, 200, Duration::from_secs(1)).await;
    is_done.set(true);
    neighbour.await;
    samples.median()
}

/// Sleeps `count` times, or until `limit` is over, and gives the lateness of each sleep in µs.
async fn sleeps<R: Runtime>(sleep: Duration, count: usize, limit: Duration) -> Samples {
    let begin = Instant::now();
    let mut samples = Samples::with_capacity(count);
    while samples.len() < count && (samples.is_empty() || begin.elapsed() < limit) {
        let asleep_since = Instant::now();
        R::timer(sleep).await;
        samples.push(microseconds(asleep_since.elapsed().saturating_sub(sleep)));
    }
    samples
}
