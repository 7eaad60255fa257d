//! Timestamps and their unit.

use std::fmt;
use std::str::FromStr;
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

/// `seconds`, `millis`, `micros` or `nanos`.
impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimeUnit::Seconds => "seconds",
            TimeUnit::Millis => "millis",
            TimeUnit::Micros => "micros",
            TimeUnit::Nanos => "nanos",
        })
    }
}

/// As it is displayed. An error says what was expected.
impl FromStr for TimeUnit {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        use TimeUnit::{Micros, Millis, Nanos, Seconds};
        let mut units = [Seconds, Millis, Micros, Nanos].into_iter();
        let unit = units.find(|unit| unit.to_string() == name);
        unit.ok_or("seconds, millis, micros or nanos")
    }
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
