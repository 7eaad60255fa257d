//! What a peak leaves behind: survivors on many pages, timers that are cancelled when they are
//! nearly due, and memory.

use std::hint::black_box;
use std::task::Waker;
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::BUDGET;
use crate::clock::{Cycles, between, cycles, ns_per_cycle};
use crate::counting::Allocations;
use crate::figures::{Figure, Figures};
use crate::queues::TimerQueue;
use crate::workload::{fill, wakers};

/// Cycles of a poll with nothing due (p50, of batches), microseconds of the longest poll after a
/// mass cancellation, and bytes to each timer that the queue holds an hour after all of them were
/// cancelled.
pub fn run<Q: TimerQueue>() -> Figures {
    let closed = Q::CANCELS_FIRED.then(closed::<Q>);
    [Some(survivors::<Q>()), closed, Some(held::<Q>())]
        .map(|value| value.map(Figure::from))
        .into()
}

/// 200 of 200,000 timers survive, and are armed anew time and again.
fn survivors<Q: TimerQueue>() -> f64 {
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
    polls.quantile(0.5) / BATCH as f64
}

/// A million timers due within a millisecond, of which all but the last are cancelled shortly
/// before, as when a server closes its connections.
fn closed<Q: TimerQueue>() -> f64 {
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
    longest as f64 * ns_per_cycle() / 1e3
}

/// Polls once a second for an hour, as few as an idle executor may make.
fn held<Q: TimerQueue>() -> f64 {
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
    held as f64 / CROWD as f64
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
