//! Arm, and arm and cancel, by the batch.

use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::timers::{Churn, Deadlines, Queue, deadlines, fill, wakers};

use crate::figures::{Figures, Start, figures};

/// Nanoseconds to insert one timer.
pub fn insert<Q: Queue>(timers: usize, start: Start) -> Figures {
    let repeats = (50_000 / timers).max(1);
    let epoch = Q::epoch();
    let deadlines = deadlines(epoch, timers);
    let mut wakers = wakers(timers);
    let mut handles = Vec::with_capacity(timers);
    let mut queue = None;
    let mut elapsed = Duration::ZERO;
    // The first time is not counted: the vectors above are as cold as the queue.
    for repeat in 0..=repeats {
        if start == Start::Cold {
            queue = None;
        }
        let begin = Instant::now();
        let queue = queue.get_or_insert_with(|| Q::new(epoch));
        fill(queue, &deadlines, &mut wakers, &mut handles);
        let end = Instant::now();
        if repeat > 0 {
            elapsed += end - begin;
        }
        queue.lay_in(timers);
        wakers.extend(
            handles
                .drain(..)
                .map(|handle| queue.cancel(handle).expect("armed")),
        );
    }
    figures([per(elapsed, timers * repeats)])
}

/// Nanoseconds to cancel a timer and insert another: the one just armed, and any.
pub fn churn<Q: Queue>(timers: usize, deadlines: Deadlines) -> Figures {
    let operations = 100_000.max(timers / 4);
    let warm_up = operations / 10;
    let mut churn = Churn::<Q>::new(timers, deadlines);
    let mut time = |operation: fn(&mut Churn<Q>)| {
        churn.queue.lay_in(warm_up + operations);
        for _ in 0..warm_up {
            operation(&mut churn);
        }
        let begin = Instant::now();
        for _ in 0..operations {
            operation(&mut churn);
        }
        per(begin.elapsed(), operations)
    };
    let recent = time(Churn::recent);
    let random = time(Churn::random);
    black_box(&churn.queue);
    figures([recent, random])
}

/// Nanoseconds to an operation.
pub fn per(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}
