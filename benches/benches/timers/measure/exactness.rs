//! When a queue fires what: how early, how late, in which order, and what it says about the next expiry. Ours are held
//! to the nanosecond by the tests of staged-wheel; of the others this is what ratios have to be read with.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::{Figures, expire_all};
use crate::queues::TimerQueue;
use crate::workload::waker;

/// Arms 20,000 timers over 15 s, due 0.2 ms to 5 s later, and polls every 100 to 200 µs.
///
/// Timers that had not fired a minute after the last deadline; microseconds that one fired before its deadline, at most,
/// and after a poll that could have fired it; timers that fired after one that was due later, or at the same time and
/// armed later; microseconds that the next expiry was said to be before and after the earliest deadline, at most.
pub fn observe<Q: TimerQueue>() -> Figures {
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let mut random = Rng::with_seed(8);
    let (low, high) = (Duration::from_micros(200), Duration::from_secs(5));
    let mut armings: Vec<(Instant, Duration)> = (0..20_000)
        .map(|_| {
            let at = epoch + random.uniform(Duration::ZERO, Duration::from_secs(15));
            (at, random.uniform(low, high))
        })
        .collect();
    armings.sort_unstable();
    let mut armings = armings.into_iter().peekable();
    // A timer is its deadline and the number of those that were armed before; known by the address of its waker.
    let (mut handles, mut timers) = (Vec::new(), HashMap::new());
    let (mut armed, mut last_fired) = (BTreeSet::new(), None);
    let (mut now, mut polls, mut expired) = (epoch, vec![epoch], Vec::new());
    let (mut early, mut missed, mut inversions) = (0.0_f64, 0.0_f64, 0);
    let (mut next_early, mut next_late) = (0.0_f64, 0.0_f64);
    // 5 s for the last timer, a minute of grace.
    while now < epoch + Duration::from_secs(80) {
        now += random.uniform(Duration::from_micros(100), Duration::from_micros(200));
        while let Some((at, timeout)) = armings.next_if(|(at, _)| *at <= now) {
            let (timer, waker) = ((at + timeout, handles.len()), waker());
            timers.insert(waker.data(), timer);
            armed.insert(timer);
            handles.push(queue.insert(timer.0, waker));
        }
        polls.push(now);
        queue.advance(now);
        expire_all(&mut queue, now, &mut expired);
        for waker in expired.drain(..) {
            let timer = timers.remove(&waker.data()).expect("fires once");
            assert!(armed.remove(&timer));
            early = early.max(us(now, timer.0));
            let could = polls.partition_point(|&poll| poll < timer.0);
            missed = missed.max(polls.get(could).map_or(0.0, |&poll| us(poll, now)));
            inversions += usize::from(last_fired.is_some_and(|last| timer < last));
            last_fired = last_fired.max(Some(timer));
        }
        if let Some((deadline, _)) = armed.first()
            && Q::TELLS_NEXT
        {
            let next = queue.next_expiry().expect("timers are armed");
            next_early = next_early.max(us(next, *deadline));
            next_late = next_late.max(us(*deadline, next));
        }
    }
    let mut values = vec![armed.len() as f64, early, missed, inversions as f64];
    if Q::TELLS_NEXT {
        values.extend([next_early, next_late]);
    }
    Figures {
        values,
        is_astray: false,
    }
}

/// Microseconds from `begin` to `end`; none if the end comes first.
fn us(begin: Instant, end: Instant) -> f64 {
    end.saturating_duration_since(begin).as_nanos() as f64 / 1e3
}
