//! Single operations, in cycles of the time stamp counter.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::Figures;
use super::burst::BUDGET;
use crate::clock::{Cycles, cycles};
use crate::queues::{Queue, TimerQueue};
use crate::workload::{Churn, Deadlines, fill, wakers};

const OPERATIONS: usize = 50_000;
const WARM_UP: usize = 5_000;

/// Quantiles of insert, of the cancel of any timer, and of both in a row.
pub fn operations<Q: Queue>(timers: usize, quantiles: &[f64]) -> Figures {
    let mut churn = Churn::<Q>::new(timers, Deadlines::Mixed);
    churn.queue.lay_in(2 * (WARM_UP + OPERATIONS));
    let (mut insert, mut cancel, mut pair) = (Cycles::new(), Cycles::new(), Cycles::new());
    for operation in 0..WARM_UP + OPERATIONS {
        let deadline = churn.next_deadline();
        let victim = churn.victim();
        let begin = cycles();
        let waker = churn.cancel(victim);
        let cancelled = cycles();
        churn.insert(victim, deadline, waker);
        let inserted = cycles();
        if operation >= WARM_UP {
            cancel.record(begin, cancelled);
            insert.record(cancelled, inserted);
        }
    }
    for operation in 0..WARM_UP + OPERATIONS {
        let begin = cycles();
        churn.random();
        let end = cycles();
        if operation >= WARM_UP {
            pair.record(begin, end);
        }
    }
    at(quantiles, &[insert, cancel, pair])
}

/// Quantiles of the question for the next expiry after a cancel and an insert.
pub fn next_expiry<Q: TimerQueue>(timers: usize, quantiles: &[f64]) -> Figures {
    let mut churn = Churn::<Q>::new(timers, Deadlines::Mixed);
    churn.queue.lay_in(WARM_UP + OPERATIONS);
    let mut next = Cycles::new();
    for operation in 0..WARM_UP + OPERATIONS {
        churn.random();
        let begin = cycles();
        black_box(churn.queue.next_expiry()).expect("timers are armed");
        let end = cycles();
        if operation >= WARM_UP {
            next.record(begin, end);
        }
    }
    at(quantiles, &[next])
}

/// p50 of a poll with nothing due, two microseconds after the one before: a share of a batch at one
/// moment, as the counter of some machines moves in steps that are longer than a poll.
pub fn empty_poll<Q: TimerQueue>(timers: usize) -> Figures {
    const POLLS: u64 = 20_000;
    const BATCH: u64 = 32;
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(2);
    // Some queues fire seconds early: what is armed here is due after twice the time that they may
    // be off.
    let (low, high) = (Duration::from_secs(10), Duration::from_secs(30));
    let deadlines: Vec<Instant> = (0..timers)
        .map(|_| epoch + random.uniform(low, high))
        .collect();
    let mut handles = Vec::with_capacity(timers);
    fill(&mut queue, &deadlines, &mut wakers(timers), &mut handles);
    let mut expired = Vec::new();
    let mut batches = Cycles::new();
    for poll in 1..=POLLS {
        let now = epoch + Duration::from_micros(2 * poll);
        queue.advance(now);
        queue.expire(black_box(now), BUDGET, &mut expired);
        let begin = cycles();
        for _ in 0..BATCH {
            black_box(&mut queue).expire(black_box(now), BUDGET, &mut expired);
        }
        batches.record(begin, cycles());
    }
    assert!(expired.is_empty(), "{} fired what was not due", Q::NAME);
    [batches.quantile(0.5) as f64 / BATCH as f64].into()
}

fn at(quantiles: &[f64], operations: &[Cycles]) -> Figures {
    let of = |cycles: &Cycles| {
        quantiles
            .iter()
            .map(|&part| cycles.quantile(part) as f64)
            .collect()
    };
    let values: Vec<Vec<f64>> = operations.iter().map(of).collect();
    Figures {
        values: values.concat(),
        is_astray: false,
    }
}
