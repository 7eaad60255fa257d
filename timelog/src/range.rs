//! Ranges of time.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use crate::Ts;

/// A range of timestamps, made from each of std's ranges of `i64` and from a pair of [`Bound`]s.
///
/// Empty and reversed ranges are values too: reading one gives nothing.
///
/// # Examples
///
/// ```
/// use timelog::TimeRange;
///
/// assert_eq!(TimeRange::from(3..6), TimeRange::from(3..=5));
/// assert!(TimeRange::from(..=i64::MAX).contains(i64::MAX));
/// assert!(TimeRange::from(6..3).is_empty());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// The first and the last timestamp, both inside; `None` when the range is empty.
    bounds: Option<(Ts, Ts)>,
}

impl TimeRange {
    pub(crate) const EMPTY: Self = Self { bounds: None };

    /// The timestamps of a range, as each call takes one.
    ///
    /// ```
    /// use timelog::TimeRange;
    ///
    /// assert_eq!(TimeRange::new(3..6).bounds(), Some((3, 5)));
    /// ```
    pub fn new(range: impl RangeBounds<Ts>) -> Self {
        (range.start_bound().cloned(), range.end_bound().cloned()).into()
    }

    /// The range that holds `ts` alone.
    ///
    /// ```
    /// assert_eq!(timelog::TimeRange::at(i64::MAX).bounds(), Some((i64::MAX, i64::MAX)));
    /// ```
    pub const fn at(ts: Ts) -> Self {
        Self {
            bounds: Some((ts, ts)),
        }
    }

    /// The first and the last timestamp of the range, or `None` if it is empty.
    ///
    /// ```
    /// assert_eq!(timelog::TimeRange::from(..4).bounds(), Some((i64::MIN, 3)));
    /// ```
    pub const fn bounds(self) -> Option<(Ts, Ts)> {
        self.bounds
    }

    /// Whether no timestamp is inside.
    pub const fn is_empty(self) -> bool {
        self.bounds.is_none()
    }

    /// Whether `ts` is inside.
    pub fn contains(self, ts: Ts) -> bool {
        self.bounds
            .is_some_and(|(first, last)| first <= ts && ts <= last)
    }
}

impl RangeBounds<Ts> for TimeRange {
    fn start_bound(&self) -> Bound<&Ts> {
        self.bounds
            .as_ref()
            .map_or(Bound::Excluded(&Ts::MAX), |bounds| {
                Bound::Included(&bounds.0)
            })
    }

    fn end_bound(&self) -> Bound<&Ts> {
        self.bounds
            .as_ref()
            .map_or(Bound::Excluded(&Ts::MIN), |bounds| {
                Bound::Included(&bounds.1)
            })
    }
}

impl From<(Bound<Ts>, Bound<Ts>)> for TimeRange {
    fn from((start, end): (Bound<Ts>, Bound<Ts>)) -> Self {
        let first = match start {
            Bound::Included(ts) => Some(ts),
            Bound::Excluded(ts) => ts.checked_add(1),
            Bound::Unbounded => Some(Ts::MIN),
        };
        let last = match end {
            Bound::Included(ts) => Some(ts),
            Bound::Excluded(ts) => ts.checked_sub(1),
            Bound::Unbounded => Some(Ts::MAX),
        };
        Self {
            bounds: first.zip(last).filter(|(first, last)| first <= last),
        }
    }
}

macro_rules! from_std {
    ($($range:ty),*) => {$(
        impl From<$range> for TimeRange {
            fn from(range: $range) -> Self {
                Self::new(range)
            }
        }
    )*};
}

from_std!(
    Range<Ts>,
    RangeInclusive<Ts>,
    RangeFrom<Ts>,
    RangeTo<Ts>,
    RangeToInclusive<Ts>,
    RangeFull
);
