//! What a queue asks of the allocator, and what a peak leaves behind: survivors on many pages, timers that are cancelled
//! when they are nearly due, and memory.

use std::hint::black_box;
use std::task::Waker;
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::Figures;
use super::burst::BUDGET;
use crate::clock::{Cycles, between, cycles, ns};
use crate::counting::Allocations;
use crate::queues::{Queue, TimerQueue};
use crate::workload::{Churn, Deadlines, deadlines, fill, wakers};

/// Bytes to a timer at 100,000, bytes of an empty queue, and allocator calls to a cancel and insert
/// after warming up.
pub fn of_queue<Q: Queue>() -> Figures {
    const TIMERS: usize = 100_000;
    let epoch = Q::epoch();
    let deadlines = deadlines(epoch, TIMERS);
    let mut wakers = wakers(TIMERS);
    let mut handles = Vec::with_capacity(TIMERS);
    let before = Allocations::of_this_thread();
    let mut queue = Q::new(epoch);
    let empty = size_of::<Q>() + Allocations::of_this_thread().since(before).bytes;
    fill(&mut queue, &deadlines, &mut wakers, &mut handles);
    let full = size_of::<Q>() + Allocations::of_this_thread().since(before).bytes;
    drop(queue);

    let mut churn = Churn::<Q>::new(TIMERS, Deadlines::Mixed);
    let mut calls = 0;
    for _ in 0..2 {
        churn.queue.lay_in(TIMERS);
        let before = Allocations::of_this_thread();
        for _ in 0..TIMERS {
            churn.random();
        }
        calls = Allocations::of_this_thread().since(before).calls;
    }
    [
        full as f64 / TIMERS as f64,
        empty as f64,
        calls as f64 / TIMERS as f64,
    ]
    .into()
}

/// 200 of 200,000 timers survive, and are armed anew time and again: cycles of a poll with nothing due, p50 of batches.
pub fn survivors<Q: TimerQueue>() -> Figures {
    const PEAK: usize = 200_000;
    const EACH: usize = 1000;
    const BATCH: u64 = 32;
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let far = |now: Instant, survivor: usize| now + Duration::from_secs(60 + survivor as u64);
    let deadlines: Vec<_> = (0..PEAK).map(|n| far(epoch, n / EACH)).collect();
    let mut handles = Vec::with_capacity(PEAK);
    fill(&mut queue, &deadlines, &mut wakers(PEAK), &mut handles);
    queue.lay_in(PEAK);
    let mut survivors = Vec::new();
    for (n, handle) in handles.into_iter().enumerate() {
        if n % EACH == 0 {
            survivors.push(handle);
        } else {
            drop(queue.cancel(handle));
        }
    }
    let mut expired = Vec::new();
    let mut polls = Cycles::new();
    // For a minute: all windows in which memory is given back are over then.
    for second in 1..=60 {
        let now = epoch + Duration::from_secs(second);
        queue.advance(now);
        queue.expire(now, BUDGET, &mut expired);
        let rearmed = (survivors.into_iter().enumerate())
            .map(|(survivor, handle)| queue.rearm(handle, far(now, survivor)));
        survivors = rearmed.collect();
        for step in 1..=20 {
            let now = now + Duration::from_millis(step);
            queue.advance(now);
            queue.expire(now, BUDGET, &mut expired);
            let begin = cycles();
            for _ in 0..BATCH {
                black_box(&mut queue).expire(black_box(now), BUDGET, &mut expired);
            }
            if second > 40 {
                polls.record(begin, cycles());
            }
        }
    }
    [polls.quantile(0.5) as f64 / BATCH as f64].into()
}

/// A million timers due within a millisecond, of which all but the last are cancelled shortly
/// before, as when a server closes its connections: microseconds of the longest poll after that.
pub fn closed<Q: TimerQueue>() -> Figures {
    let (mut queue, epoch, handles) = crowd::<Q>();
    let mut expired = Vec::with_capacity(CROWD);
    // Time to gather them, for a queue that does so.
    for ms in 1..=998 {
        let now = epoch + Duration::from_millis(ms);
        queue.advance(now);
        queue.expire(now, BUDGET, &mut expired);
    }
    let last = CROWD - 1;
    for (n, handle) in handles.into_iter().enumerate() {
        if n < last {
            drop(queue.cancel(handle));
        }
    }
    let mut longest = 0;
    for ms in 998..=1100 {
        let now = epoch + Duration::from_millis(ms);
        queue.advance(now);
        let mut has_more = true;
        while has_more {
            let begin = cycles();
            has_more = queue.expire(now, BUDGET, &mut expired);
            longest = longest.max(between(begin, cycles()));
        }
        black_box(queue.next_expiry());
    }
    [ns(longest) / 1e3].into()
}

/// Bytes to each of a million timers that the queue holds an hour after all of them were cancelled. Polls once a second,
/// as few as an idle executor may make.
pub fn held<Q: TimerQueue>() -> Figures {
    let before = Allocations::of_this_thread();
    let (mut queue, epoch, handles) = crowd::<Q>();
    for handle in handles {
        drop(queue.cancel(handle));
    }
    let mut expired: Vec<Waker> = Vec::new();
    for second in 1..=3600 {
        let now = epoch + Duration::from_secs(second);
        queue.advance(now);
        queue.expire(now, BUDGET, &mut expired);
    }
    drop(expired);
    let held = size_of::<Q>() + Allocations::of_this_thread().since(before).bytes;
    [held as f64 / CROWD as f64].into()
}

const CROWD: usize = 1_000_000;

fn crowd<Q: TimerQueue>() -> (Q, Instant, Vec<Q::Handle>) {
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(6);
    let due = Duration::from_secs(1);
    let deadlines: Vec<_> = (0..CROWD)
        .map(|_| epoch + random.uniform(due, due + Duration::from_millis(1)))
        .collect();
    let mut handles = Vec::with_capacity(CROWD);
    fill(&mut queue, &deadlines, &mut wakers(CROWD), &mut handles);
    queue.lay_in(CROWD);
    (queue, epoch, handles)
}
