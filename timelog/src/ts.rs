//! Timestamps and their unit.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A timestamp, in the [unit](TimeUnit) of its log. Every `i64` is a legal timestamp.
pub type Ts = i64;

/// What one tick of a [`Ts`] stands for.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timelog::TimeUnit;
///
/// assert_eq!(TimeUnit::Millis.ticks(Duration::from_secs(2)), 2_000);
/// assert_eq!(TimeUnit::Nanos.ticks(Duration::MAX), i64::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds, the default.
    #[default]
    Nanos,
}

impl TimeUnit {
    /// The time since the Unix epoch by the system's clock, in this unit. Saturates.
    ///
    /// # Examples
    ///
    /// ```
    /// assert!(timelog::TimeUnit::Seconds.now() > 1_600_000_000);
    /// ```
    pub fn now(self) -> Ts {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => self.ticks(since),
            Err(before) => -self.ticks(before.duration()),
        }
    }

    /// The whole ticks in `duration`. Saturates at `i64::MAX`.
    pub fn ticks(self, duration: Duration) -> i64 {
        let ticks = match self {
            TimeUnit::Seconds => duration.as_secs().into(),
            TimeUnit::Millis => duration.as_millis(),
            TimeUnit::Micros => duration.as_micros(),
            TimeUnit::Nanos => duration.as_nanos(),
        };
        i64::try_from(ticks).unwrap_or(i64::MAX)
    }
}
