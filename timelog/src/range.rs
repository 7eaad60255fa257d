//! Ranges of time.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

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

impl From<Range<Ts>> for TimeRange {
    fn from(range: Range<Ts>) -> Self {
        (Bound::Included(range.start), Bound::Excluded(range.end)).into()
    }
}

impl From<RangeInclusive<Ts>> for TimeRange {
    fn from(range: RangeInclusive<Ts>) -> Self {
        // One that was iterated to its end is empty, though its bounds do not show it.
        if range.is_empty() {
            return Self::EMPTY;
        }
        let (start, end) = range.into_inner();
        (Bound::Included(start), Bound::Included(end)).into()
    }
}

impl From<RangeFrom<Ts>> for TimeRange {
    fn from(range: RangeFrom<Ts>) -> Self {
        (Bound::Included(range.start), Bound::Unbounded).into()
    }
}

impl From<RangeTo<Ts>> for TimeRange {
    fn from(range: RangeTo<Ts>) -> Self {
        (Bound::Unbounded, Bound::Excluded(range.end)).into()
    }
}

impl From<RangeToInclusive<Ts>> for TimeRange {
    fn from(range: RangeToInclusive<Ts>) -> Self {
        (Bound::Unbounded, Bound::Included(range.end)).into()
    }
}

impl From<RangeFull> for TimeRange {
    fn from(_: RangeFull) -> Self {
        (Bound::Unbounded, Bound::Unbounded).into()
    }
}
