//! Arm, arm and cancel, re-arm and ask, by the batch.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::figures::{Figures, Start, figures};
use crate::queues::{Queue, TimerQueue};
use crate::workload::{Churn, Deadlines, deadlines, fill, wakers};

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
    let mut churn = Churn::<Q>::new(timers, deadlines);
    figures([
        time(&mut churn, Churn::recent),
        time(&mut churn, Churn::random),
    ])
}

/// Nanoseconds to give any timer another deadline: pushed back behind all others, as an idle timeout
/// is, and any.
pub fn rearm<Q: TimerQueue>(timers: usize) -> Figures {
    let mut churn = Churn::<Q>::new(timers, Deadlines::Mixed);
    let mut last = churn.next_deadline() + Duration::from_secs(30);
    let later = time(&mut churn, |churn| {
        churn.next_deadline();
        last += Duration::from_micros(1);
        churn.rearm(last);
    });
    let any = time(&mut churn, |churn| {
        let deadline = churn.next_deadline();
        churn.rearm(deadline);
    });
    figures([later, any])
}

/// Nanoseconds to cancel any timer, insert another and ask for the next expiry, and to ask again.
pub fn next_expiry<Q: TimerQueue>(timers: usize) -> Figures {
    if !Q::TELLS_NEXT {
        return vec![None; 2];
    }
    let mut churn = Churn::<Q>::new(timers, Deadlines::Mixed);
    let ask = |churn: &mut Churn<Q>| {
        black_box(black_box(&mut churn.queue).next_expiry());
    };
    let changed = time(&mut churn, |churn| {
        churn.random();
        ask(churn);
    });
    figures([changed, time(&mut churn, ask)])
}

/// Nanoseconds to an `operation`, after some that warm up.
fn time<Q: Queue>(churn: &mut Churn<Q>, mut operation: impl FnMut(&mut Churn<Q>)) -> f64 {
    let operations = 100_000.max(churn.handles.len() / 4);
    let warm_up = operations / 10;
    churn.queue.lay_in(warm_up + operations);
    for _ in 0..warm_up {
        operation(churn);
    }
    let begin = Instant::now();
    for _ in 0..operations {
        operation(churn);
    }
    let elapsed = begin.elapsed();
    black_box(&churn.queue);
    per(elapsed, operations)
}

/// Nanoseconds to an operation.
pub fn per(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}
