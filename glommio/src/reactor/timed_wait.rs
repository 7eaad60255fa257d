//! Waits for deadlines that are near.
//!
//! A sleep with an end costs more than its length: the kernel starts a timer before it looks whether
//! it has expired, the thread leaves the CPU, and comes back late. In a virtual machine that takes
//! some 17 µs of CPU time, also for a deadline that is past, where a look at the clock takes 0.02. So
//! the thread polls the clock for deadlines nearer than the *reach*, a part of what such a sleep
//! costs here, and does not enter the kernel for those that are past.
//!
//! What a sleep costs is learned: by how much the sleeps of this executor outlast their ends. On real
//! hardware that is little, and so is the reach then.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::sleep_timeout::FAR;
use crate::clock;
use crate::ring::Wait;
use crate::tuning;

/// What an executor does about the delay with which the kernel ends a sleep.
///
/// Timers are never early in either mode.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutorBuilder, TimerPrecision, timer::sleep};
/// use std::time::Duration;
///
/// let executor = LocalExecutorBuilder::default()
///     .timer_precision(TimerPrecision::Tightest)
///     .make()?;
/// executor.run(sleep(Duration::from_micros(100)));
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimerPrecision {
    /// Polls the clock for deadlines that are at most a few microseconds away, because a sleep would
    /// take more CPU time.
    #[default]
    Balanced,
    /// Ends sleeps before the deadline, by their usual delay, and polls the clock for the rest: at most
    /// 64 µs for each distinct deadline. Timers are late by less than a microsecond as a rule, as long
    /// as the machine gives the thread a CPU.
    Tightest,
}

/// The first guess, as in a virtual machine.
const DELAY: Duration = Duration::from_micros(12);

/// A longer delay is one of a busy machine.
const LONGEST_DELAY: Duration = Duration::from_micros(48);

/// By how much a sleep ends before the deadline is the delay and this part of it.
const MARGIN_PART: u32 = 3;

/// What an executor knows of its sleeps.
#[derive(Debug)]
pub(super) struct TimedWait {
    precision: TimerPrecision,
    /// By how much sleeps outlast their ends.
    delay: Cell<Duration>,
    /// When the running sleep is to end.
    until: Cell<Option<Instant>>,
}

impl TimedWait {
    pub(super) fn new(precision: TimerPrecision) -> Self {
        TimedWait {
            precision,
            delay: Cell::new(DELAY),
            until: Cell::new(None),
        }
    }

    /// Deadlines that are nearer than this are polled for.
    fn reach(&self) -> Duration {
        match self.precision {
            TimerPrecision::Balanced => {
                self.delay.get() / tuning::get().polled_delay_divisor.max(1)
            }
            TimerPrecision::Tightest => self.early_by(),
        }
    }

    /// By how much a sleep ends before the deadline.
    fn early_by(&self) -> Duration {
        match self.precision {
            TimerPrecision::Balanced => Duration::ZERO,
            TimerPrecision::Tightest => self.delay.get() + self.delay.get() / MARGIN_PART,
        }
    }

    /// Whether what ends a sleep is past, or too near to sleep. The last look at the clock was at
    /// `looked`.
    pub(super) fn is_near(&self, wait: Wait, looked: Instant) -> bool {
        match wait {
            Wait::Now => true,
            Wait::Forever => false,
            // Nearly all that far from the last look at the clock still is: that saves another.
            Wait::Until(end) if end > looked + FAR => false,
            Wait::Until(end) => end <= clock::real() + self.reach(),
        }
    }

    /// The sleep that does for `wait`; the thread is about to sleep.
    pub(super) fn begin(&self, wait: Wait) -> Wait {
        let Wait::Until(deadline) = wait else {
            return wait;
        };
        let end = deadline.checked_sub(self.early_by()).unwrap_or(deadline);
        self.until.set(Some(end));
        Wait::Until(end)
    }

    /// The thread is awake, and it is `now`. Follows what most sleeps take, and soon falls after a
    /// time in which the machine was busy.
    pub(super) fn end(&self, now: Instant) {
        let until = self.until.take();
        // Another event may have ended the sleep.
        let Some(delay) = until.and_then(|end| now.checked_duration_since(end)) else {
            return;
        };
        let known = self.delay.get();
        let next = if delay < known {
            known - (known - delay) / 4
        } else {
            known + (delay - known).min(known) / 8
        };
        self.delay.set(next.min(LONGEST_DELAY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(wait: Wait) -> Instant {
        match wait {
            Wait::Until(end) => end,
            Wait::Now | Wait::Forever => panic!("a sleep with an end was begun"),
        }
    }

    fn after_sleeps(precision: TimerPrecision, delay: Duration, count: usize) -> TimedWait {
        let wait = TimedWait::new(precision);
        let deadline = Instant::now() + Duration::from_secs(60);
        for _ in 0..count {
            wait.end(end_of(wait.begin(Wait::Until(deadline))) + delay);
        }
        wait
    }

    #[test]
    fn the_delay_of_sleeps_is_learned_within_bounds() {
        for micros in [1, 5, 12, 30] {
            let delay = Duration::from_micros(micros);
            let learned = after_sleeps(TimerPrecision::Balanced, delay, 100)
                .delay
                .get();
            assert!(
                learned.abs_diff(delay) < Duration::from_nanos(100),
                "{delay:?}: {learned:?}"
            );
        }
        let busy = after_sleeps(TimerPrecision::Balanced, Duration::from_millis(5), 100);
        assert_eq!(busy.delay.get(), LONGEST_DELAY);
        assert!(busy.reach() <= Duration::from_micros(16));
        let busy = after_sleeps(TimerPrecision::Tightest, Duration::from_millis(5), 100);
        assert_eq!(busy.reach(), Duration::from_micros(64));
    }

    #[test]
    fn a_sleep_that_another_event_ended_teaches_nothing() {
        let wait = TimedWait::new(TimerPrecision::Balanced);
        let deadline = Instant::now() + Duration::from_secs(1);
        let end = end_of(wait.begin(Wait::Until(deadline)));
        wait.end(end - Duration::from_nanos(1));
        wait.end(end + Duration::from_secs(1));
        assert_eq!(wait.delay.get(), DELAY);
    }

    #[test]
    fn only_the_tightest_ends_sleeps_early_and_polls_for_as_long() {
        let deadline = Instant::now() + Duration::from_secs(60);
        let balanced = TimedWait::new(TimerPrecision::Balanced);
        assert_eq!(end_of(balanced.begin(Wait::Until(deadline))), deadline);
        let tightest = TimedWait::new(TimerPrecision::Tightest);
        let end = end_of(tightest.begin(Wait::Until(deadline)));
        assert_eq!(end, deadline - tightest.reach());
    }
}
