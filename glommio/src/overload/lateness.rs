//! What is known of the executor's lateness, and when it is overload. Pure: the clock is the
//! caller's.
//!
//! ```text
//!             late for `interval`, without `target` of sleep
//!   normal ─────────────────────────────────────────────────▶ overloaded
//!      ▲                                                         │ refuses while late
//!      └─────────────────────────────────────────────────────────┘
//!              never late for `interval`, or `target` of sleep
//! ```
//!
//! *Late* is a delay above `target`. As in CoDel (RFC 8289), a burst is no overload: what counts is
//! the least delay of an `interval`, and a queue that was empty meanwhile. As in "Fail at Scale"
//! (ACM Queue 2015), overload is not over at the first delay below the target, which refusing brings
//! about; CoDel would have to wait for a whole interval of lateness to begin again.
//!
//! An executor that sleeps has nothing to do. So sleep is no delay, even if it is longer than what is
//! measured should take (timers have slack), and what was known before is over.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Lateness {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    /// The last delay that was measured, and when.
    measured: Duration,
    measured_at: Mark,
    /// The measurement that is under way began then.
    began: Option<Mark>,
    /// Since then each delay that was seen was above the target.
    late: Option<Mark>,
    /// It was last seen late then, if it is overloaded.
    overloaded: Option<Instant>,
}

/// A time, and how long the executor had slept by then.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    slept: Duration,
}

impl Lateness {
    pub(super) fn new(target: Duration, interval: Duration, now: Instant) -> Self {
        Lateness {
            // An executor that has not slept at all has slept for as long as zero.
            target: target.max(Duration::from_nanos(1)),
            interval,
            measured: Duration::ZERO,
            measured_at: Mark {
                at: now,
                slept: Duration::ZERO,
            },
            began: None,
            late: None,
            overloaded: None,
        }
    }

    /// When what is measured was runnable, or will be.
    pub(super) fn began(&self) -> Option<Instant> {
        self.began.map(|it| it.at)
    }

    /// Something becomes runnable at `now`, to see when it runs. `slept` is how long the executor has
    /// slept in its life by this call. False if a measurement is under way.
    pub(super) fn begin(&mut self, now: Instant, slept: Duration) -> bool {
        if self.began.is_some() {
            return false;
        }
        self.forget_the_past(now, slept);
        self.began = Some(Mark { at: now, slept });
        true
    }

    /// Forgets what was known if it is old, or the executor has had nothing to do since.
    fn forget_the_past(&mut self, now: Instant, slept: Duration) {
        let known = self.measured_at;
        let is_old = now.saturating_duration_since(known.at) >= self.interval;
        if is_old && self.began.is_none() || slept.saturating_sub(known.slept) >= self.target {
            *self = Lateness {
                measured_at: Mark { at: now, slept },
                began: self.began,
                ..Lateness::new(self.target, self.interval, now)
            };
        }
    }

    /// It runs.
    pub(super) fn end(&mut self, now: Instant, slept: Duration) {
        self.measured = self.under_way(now, slept);
        if self.began.take().is_some() {
            self.measured_at = Mark { at: now, slept };
            self.see(self.measured, now, slept);
        }
    }

    /// The delay of what runs now, as far as is known: that of the last measurement, or of the one
    /// under way, which has taken some time already.
    pub(super) fn delay(&self, now: Instant, slept: Duration) -> Duration {
        self.measured.max(self.under_way(now, slept))
    }

    fn under_way(&self, now: Instant, slept: Duration) -> Duration {
        self.began.map_or(Duration::ZERO, |began| {
            let passed = now.saturating_duration_since(began.at);
            passed.saturating_sub(slept.saturating_sub(began.slept))
        })
    }

    /// The delay, if what asks now is to be refused.
    pub(super) fn refusal(&mut self, now: Instant, slept: Duration) -> Option<Duration> {
        self.forget_the_past(now, slept);
        // That it has taken little time so far says nothing.
        if self.under_way(now, slept) > self.target {
            self.see(self.under_way(now, slept), now, slept);
        }
        let delay = self.delay(now, slept);
        (self.overloaded.is_some() && delay > self.target).then_some(delay)
    }

    pub(super) fn is_overloaded(&self) -> bool {
        self.overloaded.is_some()
    }

    fn see(&mut self, delay: Duration, now: Instant, slept: Duration) {
        let is_long_ago = |it: Instant| now.saturating_duration_since(it) >= self.interval;
        if delay <= self.target {
            self.late = None;
            self.overloaded = self.overloaded.filter(|&late| !is_long_ago(late));
            return;
        }
        let has_slept = |it: Mark| slept.saturating_sub(it.slept) >= self.target;
        if self.late.is_some_and(has_slept) {
            self.late = None;
            self.overloaded = None;
        }
        let late = *self.late.get_or_insert(Mark { at: now, slept });
        if self.overloaded.is_some() || is_long_ago(late.at) {
            self.overloaded = Some(now);
        }
    }
}
