//! How late things were, less the time in which no timer could have been on time.
//!
//! While the whole process is stopped, or an executor is hogged on purpose, every timer is late by
//! as much as is left of the stop. Such spans are noted, by the thread that causes them and only
//! once they are over, so a large lag is kept aside for a moment and judged when the spans around
//! it are known.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use support::quantiles::{Durations, Histogram, histogram};

use crate::measure::lock;

/// Lags of one kind, recorded by one thread and taken away by another.
#[derive(Debug, Default)]
pub(crate) struct Lags(Mutex<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    /// Made when it is needed: a quarter of a megabyte that most recorders never need.
    judged: Option<Histogram<u64>>,
    /// When each was due and when it was seen.
    large: Vec<(Instant, Instant)>,
}

impl Lags {
    /// Something was due at `due` and came at `seen`.
    pub(crate) fn record(&self, due: Instant, seen: Instant) {
        let lag = seen.saturating_duration_since(due);
        // The lock is contended once a second, when the numbers are taken away.
        let mut recorded = lock(&self.0);
        if lag < LARGE || recorded.large.len() == LARGE_MAX {
            recorded.judged.get_or_insert_with(histogram).enter(lag);
        } else {
            recorded.large.push((due, seen));
        }
    }

    /// Takes what came before `until` and was not taken yet, if anything, without the parts that
    /// lie in a span of `excused`.
    pub(crate) fn take(&self, excused: &[&Spans], until: Instant) -> Option<Histogram<u64>> {
        let mut recorded = lock(&self.0);
        let mut taken = recorded.judged.take();
        let (judged, large): (Vec<_>, _) = std::mem::take(&mut recorded.large)
            .into_iter()
            .partition(|&(_, seen)| seen <= until);
        recorded.large = large;
        drop(recorded);
        for (due, seen) in judged {
            let lag = seen.saturating_duration_since(due);
            let rest = lag.saturating_sub(covered(due, seen, excused));
            taken.get_or_insert_with(histogram).enter(rest);
        }
        taken
    }
}

/// The latest spans of time in which something stood still on purpose.
#[derive(Debug, Default)]
pub(crate) struct Spans(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    latest: VecDeque<(Instant, Instant)>,
    count: u64,
}

impl Spans {
    /// A span that has ended.
    pub(crate) fn note(&self, from: Instant, to: Instant) {
        let mut noted = lock(&self.0);
        if noted.latest.len() == SPANS_MAX {
            noted.latest.pop_front();
        }
        noted.latest.push_back((from, to));
        noted.count += 1;
    }

    /// How many there have been.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.0).count
    }

    /// For how long something stood still between `from` and `to`.
    pub(crate) fn lasted(&self, from: Instant, to: Instant) -> Duration {
        covered(from, to, &[self])
    }

    fn within(&self, from: Instant, to: Instant) -> Vec<(Instant, Instant)> {
        let noted = lock(&self.0);
        noted
            .latest
            .iter()
            .map(|&(began, ended)| (began.max(from), ended.min(to)))
            .filter(|(began, ended)| began < ended)
            .collect()
    }
}

/// For how long between `from` and `to` any of the spans lasted.
fn covered(from: Instant, to: Instant, spans: &[&Spans]) -> Duration {
    let mut parts: Vec<_> = spans
        .iter()
        .flat_map(|spans| spans.within(from, to))
        .collect();
    parts.sort_unstable();
    let mut covered = Duration::ZERO;
    let mut reached = from;
    for (began, ended) in parts {
        covered += ended.saturating_duration_since(began.max(reached));
        reached = reached.max(ended);
    }
    covered
}

/// From here on a lag is looked at twice.
const LARGE: Duration = Duration::from_millis(5);

/// More in a second than one executor has timers: beyond it lags are judged as they stand.
const LARGE_MAX: usize = 1 << 20;

/// Lags are judged within a second or two; no span older than that is asked for.
const SPANS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn what_lies_in_a_span_is_excused_and_no_more() {
        let (base, lags) = (Instant::now(), Lags::default());
        let [stalls, hogs] = [Spans::default(), Spans::default()];
        stalls.note(base + ms(10), base + ms(50));
        hogs.note(base + ms(40), base + ms(60));
        hogs.note(base + ms(500), base + ms(600));
        lags.record(base, base + ms(100));
        let taken = lags.take(&[&stalls, &hogs], base + ms(100));
        let taken = taken.expect("it has come by then");
        // A hundred milliseconds less the fifty that one or the other lasted.
        assert!(
            (49_900_000..50_100_000).contains(&taken.max()),
            "{}",
            taken.max()
        );
    }
}
