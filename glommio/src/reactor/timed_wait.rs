//! Waits for deadlines that are near.
//!
//! A sleep with an end costs more than its length: the kernel starts a timer before it looks whether
//! it has expired, the thread leaves the CPU, and comes back late. In a virtual machine that takes
//! about 17 µs of CPU time, also for a deadline that is past, where a look at the clock takes 0.02. So
//! the thread polls the clock for deadlines nearer than the *reach*, a part of what such a sleep
//! costs here, and does not enter the kernel for those that are past.
//!
//! What a sleep costs is learned: by how much the sleeps of this executor outlast their ends. On real
//! hardware that is little, and so is the reach then. Short sleeps and long ones are told apart, for a
//! processor that has slept for milliseconds takes several times as long to wake up: an executor that
//! took this for the price of a short sleep would poll where it could sleep, and as it does not sleep
//! then, it would not learn better. For the same reason the reach shrinks with each deadline that was polled
//! for, by little, until a sleep says again what it should be.

#[cfg(test)]
mod tests;

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
    /// Polls the clock for deadlines that are at most a few microseconds away (16 where sleeps end
    /// late), because a sleep would take more CPU time.
    #[default]
    Balanced,
    /// Ends sleeps before the deadline, by their usual delay, and polls the clock for the rest: at most
    /// 64 µs for each distinct deadline. Timers are late by less than a microsecond as a rule, as long
    /// as the machine gives the thread a CPU.
    Tightest,
}

/// The first guess, as in a virtual machine.
const DELAY: Duration = Duration::from_micros(12);

/// Sleeps up to this are short: processors and hypervisors save no power in them that it takes long to
/// come back from.
const SHORT: Duration = Duration::from_micros(200);

/// A deadline that was polled for takes this part of what is known of short sleeps.
const FORGOTTEN_PART: u32 = 256;

/// A longer delay is one of a busy machine.
const LONGEST_DELAY: Duration = Duration::from_micros(48);

/// The clock is not polled for longer, whatever sleeps take.
const LONGEST_REACH: Duration = Duration::from_micros(16);

/// By how much a sleep ends before the deadline is the delay and this part of it.
const MARGIN_PART: u32 = 3;

/// What an executor knows of its sleeps.
#[derive(Debug)]
pub(super) struct TimedWait {
    precision: TimerPrecision,
    short: Delay,
    long: Delay,
    /// Whether the sleep that is about to begin is short.
    is_short: Cell<bool>,
    /// When the running sleep is to end.
    until: Cell<Option<Instant>>,
}

/// By how much sleeps outlast their ends.
#[derive(Debug)]
struct Delay(Cell<Duration>);

impl Delay {
    /// A sleep has outlasted its end by `delay`. Follows what most sleeps take, and soon falls after a
    /// time in which the machine was busy.
    fn learn(&self, delay: Duration) {
        let known = self.0.get();
        let next = if delay < known {
            known - (known - delay) / 4
        } else {
            known + (delay - known).min(known) / 8
        };
        self.0.set(next.min(LONGEST_DELAY));
    }
}

impl TimedWait {
    pub(super) fn new(precision: TimerPrecision) -> Self {
        TimedWait {
            precision,
            short: Delay(Cell::new(DELAY)),
            long: Delay(Cell::new(DELAY)),
            is_short: Cell::new(false),
            until: Cell::new(None),
        }
    }

    fn delay(&self) -> &Delay {
        if self.is_short.get() {
            &self.short
        } else {
            &self.long
        }
    }

    /// Deadlines that are nearer than this are polled for.
    fn reach(&self) -> Duration {
        match self.precision {
            TimerPrecision::Balanced => {
                let delay = self.short.0.get();
                (delay / tuning::get().polled_delay_divisor.max(1)).min(LONGEST_REACH)
            }
            TimerPrecision::Tightest => self.early_by(),
        }
    }

    /// By how much a sleep ends before the deadline.
    fn early_by(&self) -> Duration {
        match self.precision {
            TimerPrecision::Balanced => Duration::ZERO,
            TimerPrecision::Tightest => {
                let delay = self.delay().0.get();
                delay + delay / MARGIN_PART
            }
        }
    }

    /// Whether what ends a sleep is past, or too near to sleep. The last look at the clock was at
    /// `looked`.
    pub(super) fn is_near(&self, wait: Wait, looked: Instant) -> bool {
        self.is_short.set(false);
        match wait {
            Wait::Now => true,
            Wait::Forever => false,
            // Nearly all that far from the last look at the clock still is: that saves another.
            Wait::Until(end) if end > looked + FAR => false,
            Wait::Until(end) => {
                let now = clock::real();
                self.is_short.set(end <= now + SHORT);
                end <= now + self.reach()
            }
        }
    }

    /// A deadline was polled for.
    pub(super) fn polled(&self) {
        if self.precision == TimerPrecision::Balanced {
            self.short.0.update(|known| known - known / FORGOTTEN_PART);
        }
    }

    /// The sleep that does for `wait`, which is not [near](Self::is_near); the thread is about to sleep.
    pub(super) fn begin(&self, wait: Wait) -> Wait {
        let Wait::Until(deadline) = wait else {
            return wait;
        };
        let end = deadline.checked_sub(self.early_by()).unwrap_or(deadline);
        self.until.set(Some(end));
        Wait::Until(end)
    }

    /// The thread is awake, and it is `now`.
    pub(super) fn end(&self, now: Instant) {
        let until = self.until.take();
        // Another event may have ended the sleep.
        if let Some(delay) = until.and_then(|end| now.checked_duration_since(end)) {
            self.delay().learn(delay);
        }
    }
}
