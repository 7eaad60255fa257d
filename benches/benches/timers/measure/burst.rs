//! Many timers due at once: in one millisecond, and after an hour without a poll.

use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::{BUDGET, expire_all, is_astray};
use crate::clock::{between, cycles, ns_per_cycle};
use crate::figures::{Figure, Figures, Order};
use crate::queues::TimerQueue;
use crate::workload::{fill, wakers};

/// 100,000 timers due in one millisecond, armed a second before, with polls every millisecond:
/// nanoseconds to a timer in all polls, microseconds of the longest poll, and nanoseconds to a
/// timer without a budget.
pub fn burst<Q: TimerQueue>(order: Order) -> Figures {
    const TIMERS: usize = 100_000;
    let polled = |budget| poll_burst::<Q>(order, TIMERS, budget);
    let Polls {
        total_ns,
        longest_ns,
        fired,
    } = polled(BUDGET);
    let is_astray = is_astray::<Q>(fired, TIMERS);
    let per_timer = |ns| ns / TIMERS as f64;
    let without_budget = Q::IS_EXACT.then(|| per_timer(polled(usize::MAX).total_ns));
    let measured = [per_timer(total_ns), longest_ns / 1e3];
    let mut figures = measured
        .map(|value| Some(Figure { value, is_astray }))
        .to_vec();
    figures.push(without_budget.map(Figure::from));
    figures
}

/// 100,000 timers due in one millisecond, armed in no order, and no poll until all are due:
/// microseconds until the first fires, in how many polls, and milliseconds until all have fired.
pub fn silence<Q: TimerQueue>(silence: Duration) -> Figures {
    const TIMERS: usize = 100_000;
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(8);
    let now = epoch + silence + Duration::from_millis(1);
    let deadlines: Vec<Instant> = (0..TIMERS)
        .map(|_| now - random.uniform(Duration::ZERO, Duration::from_millis(1)))
        .collect();
    let mut handles = Vec::with_capacity(TIMERS);
    fill(&mut queue, &deadlines, &mut wakers(TIMERS), &mut handles);
    let mut expired = Vec::with_capacity(TIMERS);
    queue.advance(now);
    let (mut polls, mut polls_to_first) = (0, 0);
    let begin = cycles();
    let mut first = begin;
    let mut has_more = true;
    while has_more {
        has_more = queue.expire(now, BUDGET, &mut expired);
        polls += 1;
        if polls_to_first == 0 && !expired.is_empty() {
            (first, polls_to_first) = (cycles(), polls);
        }
    }
    let ns = |end| between(begin, end) as f64 * ns_per_cycle();
    let is_astray = is_astray::<Q>(expired.len(), TIMERS);
    [
        ns(first) / 1e3,
        f64::from(polls_to_first),
        ns(cycles()) / 1e6,
    ]
    .map(|value| Some(Figure { value, is_astray }))
    .to_vec()
}

/// A poll an hour after the one before, 1,000 timers having become due and 10,000 others not:
/// microseconds.
pub fn stall<Q: TimerQueue>() -> Figures {
    const DUE: usize = 1_000;
    let hour = Duration::from_secs(3600);
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(4);
    let mut deadlines: Vec<Instant> = (0..11 * DUE)
        .map(|timer| {
            let low = if timer < DUE {
                Duration::ZERO
            } else {
                2 * hour
            };
            epoch + random.uniform(low, low + hour)
        })
        .collect();
    random.shuffle(&mut deadlines);
    let mut handles = Vec::with_capacity(deadlines.len());
    fill(
        &mut queue,
        &deadlines,
        &mut wakers(deadlines.len()),
        &mut handles,
    );
    let mut expired = Vec::with_capacity(deadlines.len());
    let now = epoch + hour;
    queue.advance(now);
    let begin = cycles();
    expire_all(&mut queue, now, &mut expired);
    let elapsed = between(begin, cycles());
    vec![Some(Figure {
        value: elapsed as f64 * ns_per_cycle() / 1e3,
        is_astray: is_astray::<Q>(expired.len(), DUE),
    })]
}

struct Polls {
    total_ns: f64,
    longest_ns: f64,
    fired: usize,
}

fn poll_burst<Q: TimerQueue>(order: Order, timers: usize, budget: usize) -> Polls {
    let millisecond = Duration::from_millis(1);
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(5);
    let mut deadlines: Vec<Instant> = (0..timers)
        .map(|_| epoch + random.uniform(1000 * millisecond, 1001 * millisecond))
        .collect();
    if order == Order::Sorted {
        deadlines.sort_unstable();
    }
    let mut handles = Vec::with_capacity(timers);
    fill(&mut queue, &deadlines, &mut wakers(timers), &mut handles);
    let mut expired = Vec::with_capacity(timers);
    let (mut total, mut longest) = (0, 0);
    // Queues that are late need some milliseconds more.
    for ms in 1..1100 {
        let now = epoch + ms * millisecond;
        queue.advance(now);
        let mut has_more = true;
        while has_more {
            let begin = cycles();
            has_more = queue.expire(now, budget, &mut expired);
            let elapsed = between(begin, cycles());
            total += elapsed;
            longest = longest.max(elapsed);
        }
        if expired.len() == timers {
            break;
        }
    }
    Polls {
        total_ns: total as f64 * ns_per_cycle(),
        longest_ns: longest as f64 * ns_per_cycle(),
        fired: expired.len(),
    }
}
