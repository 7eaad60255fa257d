//! Ticks at even distances.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_core::Stream;

use super::Timer;
use crate::clock;
use crate::reactor::{budget, deadline_after};

/// Ticks now, and then every `period`.
///
/// # Panics
///
/// Panics if `period` is zero, or if no executor is running on this thread.
///
/// # Examples
///
/// ```
/// use glommio::timer::{interval, interval_at};
/// use std::time::{Duration, Instant};
///
/// glommio::LocalExecutor::default().run(async {
///     let period = Duration::from_millis(1);
///     let mut heartbeat = interval(period);
///     let first = heartbeat.tick().await;
///     let second = heartbeat.tick().await;
///     assert_eq!(second - first, period);
///     assert!(Instant::now() >= second);
///
///     let mut later = interval_at(second + period, period);
///     assert_eq!(later.tick().await, second + period);
/// });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(clock::now(), period)
}

/// Ticks at `start`, and then every `period`. From a `start` in the past the ticks that it missed
/// are [made up for](MissedTickBehavior).
///
/// # Panics
///
/// Panics if `period` is zero, or if no executor is running on this thread.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "the period of an interval must be longer than zero"
    );
    Interval {
        timer: Timer::at(start),
        period,
        missed_tick_behavior: MissedTickBehavior::default(),
    }
}

/// What an [`Interval`] does when it was not polled in time for its ticks.
///
/// With a period of 10 ms, and a tick at 20 that is delivered at 45:
///
/// | | the next ticks |
/// |---|---|
/// | `Burst` | 30 and 40 at once, 50, 60 |
/// | `Skip` | 50, 60 |
/// | `Delay` | 55, 65 |
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MissedTickBehavior {
    /// Delivers those that were missed one after the other, until none is left; other tasks run in
    /// between when the slice of this one is over. The number of ticks stays right.
    #[default]
    Burst,
    /// Drops those that were missed. Ticks stay at multiples of the period from the start.
    Skip,
    /// Counts anew from a tick that is delivered late, so that the distance of ticks stays right.
    /// Late is a tick that is delivered 5 ms, or a whole period if that is shorter, after it
    /// was scheduled; the schedule does not drift by less.
    Delay,
}

/// A tick that is later than this is late for [`MissedTickBehavior::Delay`].
const LATE: Duration = Duration::from_millis(5);

/// Ticks at even distances; see [`interval`]. As a [`Stream`] of the scheduled instants it never
/// ends.
#[derive(Debug)]
pub struct Interval {
    /// Set to the tick that comes next.
    timer: Timer,
    period: Duration,
    missed_tick_behavior: MissedTickBehavior,
}

impl Interval {
    /// Waits for the next tick. The output is when it was scheduled, so `Instant::now()` less this
    /// is how late it is.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: the tick comes with the next call.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::timer::{MissedTickBehavior, interval};
    /// use std::{future::poll_fn, time::{Duration, Instant}};
    ///
    /// let mut ticks = interval(Duration::from_millis(1));
    /// let first = ticks.tick().await;
    /// assert_eq!(poll_fn(|cx| ticks.poll_tick(cx)).await - first, ticks.period());
    /// assert_eq!(ticks.missed_tick_behavior(), MissedTickBehavior::Burst);
    /// ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    /// let before = Instant::now();
    /// ticks.reset();
    /// assert!(ticks.tick().await >= before + ticks.period());
    /// # });
    /// ```
    pub fn tick(&mut self) -> Tick<'_> {
        Tick { interval: self }
    }

    /// One poll of [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(budget::poll_leave(cx));
        // The timer counts.
        let scheduled = ready!(Pin::new(&mut self.timer).poll(cx));
        let next = self.next_after(scheduled, clock::now());
        self.timer.reset_at(next);
        Poll::Ready(scheduled)
    }

    /// Drops the ticks that are scheduled, and ticks one period from now.
    pub fn reset(&mut self) {
        self.timer.reset(self.period);
    }

    /// The distance of ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// What it does when ticks are missed. The default is [`MissedTickBehavior::Burst`].
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed_tick_behavior
    }

    /// Sets what it does when ticks are missed, from the next tick on.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed_tick_behavior = behavior;
    }

    /// When the tick after `scheduled`, which is delivered at `now`, is to come.
    fn next_after(&self, scheduled: Instant, now: Instant) -> Instant {
        let period = self.period;
        let lateness = now.saturating_duration_since(scheduled);
        match self.missed_tick_behavior {
            MissedTickBehavior::Delay if lateness >= period.min(LATE) => {
                deadline_after(now, period)
            }
            MissedTickBehavior::Skip if lateness >= period => {
                deadline_after(now, period - remainder(lateness, period))
            }
            _ => deadline_after(scheduled, period),
        }
    }
}

/// What is left of `length` when as many whole `period`s as fit are taken off.
fn remainder(length: Duration, period: Duration) -> Duration {
    const SECOND_NS: u128 = 1_000_000_000;
    let left = length.as_nanos() % period.as_nanos();
    let secs = u64::try_from(left / SECOND_NS).expect("it is shorter than `length`");
    let nanos = u32::try_from(left % SECOND_NS).expect("it is less than a second");
    Duration::new(secs, nanos)
}

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(cx).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// See [`Interval::tick`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Tick<'a> {
    interval: &'a mut Interval,
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        self.interval.poll_tick(cx)
    }
}
