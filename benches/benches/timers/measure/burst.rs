//! Many timers due at once: in one millisecond, and after an hour without a poll.

use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::{Figures, expire_all};
use crate::clock::{between, cycles, ns};
use crate::queues::TimerQueue;
use crate::workload::{fill, wakers};

/// What the reactor allows a poll to fire.
pub const BUDGET: usize = 256;

const TIMERS: usize = 100_000;

/// 100,000 timers due in one millisecond, armed a second before, with polls every millisecond: nanoseconds to a timer in
/// all polls, and microseconds of the longest poll.
pub fn of_100k<Q: TimerQueue>(is_sorted: bool, budget: usize) -> Figures {
    let millisecond = Duration::from_millis(1);
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(5);
    let mut deadlines: Vec<Instant> = (0..TIMERS)
        .map(|_| epoch + random.uniform(1000 * millisecond, 1001 * millisecond))
        .collect();
    if is_sorted {
        deadlines.sort_unstable();
    }
    let mut handles = Vec::with_capacity(TIMERS);
    fill(&mut queue, &deadlines, &mut wakers(TIMERS), &mut handles);
    let mut expired = Vec::with_capacity(TIMERS);
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
        if expired.len() == TIMERS {
            break;
        }
    }
    let figures = [ns(total) / TIMERS as f64, ns(longest) / 1e3];
    Figures::of_polls::<Q>(&figures, expired.len(), TIMERS)
}

/// 100,000 timers due in one millisecond, armed in no order, and no poll until all are due:
/// microseconds until the first fires, in how many polls, and milliseconds until all have fired.
pub fn after_silence<Q: TimerQueue>(silence: Duration) -> Figures {
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
    let since = |end| ns(between(begin, end));
    let figures = [
        since(first) / 1e3,
        f64::from(polls_to_first),
        since(cycles()) / 1e6,
    ];
    Figures::of_polls::<Q>(&figures, expired.len(), TIMERS)
}

/// A poll an hour after the one before, 1,000 timers having become due and 10,000 others not:
/// microseconds.
pub fn after_an_hour<Q: TimerQueue>() -> Figures {
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
    Figures::of_polls::<Q>(&[ns(elapsed) / 1e3], expired.len(), DUE)
}
