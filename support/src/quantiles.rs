//! Medians, spreads and quantiles of what was measured.
//!
//! A few rounds are [`Samples`], whose quantiles are values that were measured. Many latencies go
//! into a [`Histogram`], which has three digits and a fixed size; [`Durations`] enters and reads
//! them as durations.

use std::fmt;
use std::time::Duration;

pub use hdrhistogram::Histogram;

use crate::numbers::number;

/// The same quantity, measured several times.
///
/// A quantile is the smallest value that so large a part of the values does not exceed (nearest
/// rank), so that the median of an even number is the smaller of the two in the middle.
///
/// # Examples
/// ```
/// use support::quantiles::Samples;
///
/// let samples: Samples = [4.0, 1.0, 2.0, 9.0].into_iter().collect();
/// assert_eq!(samples.median(), Some(2.0));
/// assert_eq!(samples.quantile(0.75), Some(4.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    sorted: Vec<f64>,
}

/// The middle and the ends of some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The one in the middle; of an even number the smaller of the two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

/// The middle one and, in parentheses, the ends.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, min, max] = [self.median, self.min, self.max].map(number);
        write!(f, "{median} ({min} – {max})")
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Samples { sorted }
    }
}

impl Samples {
    /// The smallest value that this part of all, from 0 to 1, does not exceed. `None` of none.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let count = self.sorted.len();
        // Not the next rank for what multiplying has added to a whole number.
        let rank = (part * count as f64 - 1e-9).ceil() as usize;
        self.sorted.get(rank.clamp(1, count.max(1)) - 1).copied()
    }

    /// The one in the middle; of an even number the smaller of the two. `None` of none.
    pub fn median(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// The middle and the ends. `None` of none.
    pub fn spread(&self) -> Option<Spread> {
        Some(Spread {
            min: *self.sorted.first()?,
            median: self.median()?,
            max: *self.sorted.last()?,
        })
    }
}

/// An empty histogram of nanoseconds, 1 ns to 10 minutes, with three digits: a quarter of a
/// megabyte, however much is entered.
///
/// # Panics
/// Never: the bounds are legal.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("the bounds are constants and legal")
}

/// The duration in nanoseconds, at most 584 years.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A histogram of nanoseconds, in durations.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use support::quantiles::{Durations, histogram};
///
/// let mut latencies = histogram();
/// for ms in 1..=100 {
///     latencies.enter(Duration::from_millis(ms));
/// }
/// assert_eq!(latencies.at(0.5).as_millis(), 50);
/// assert_eq!(latencies.longest().as_millis(), 100);
/// ```
pub trait Durations {
    /// Counts `duration`; what is longer than the histogram reaches counts as the longest.
    fn enter(&mut self, duration: Duration);

    /// What this part of all, from 0 to 1, did not exceed, to three digits; zero of none.
    fn at(&self, quantile: f64) -> Duration;

    /// The longest, to three digits; zero of none.
    fn longest(&self) -> Duration;

    /// Counts what `other` has counted.
    fn merge(&mut self, other: &Self);
}

impl Durations for Histogram<u64> {
    fn enter(&mut self, duration: Duration) {
        self.saturating_record(nanos(duration));
    }

    fn at(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.value_at_quantile(quantile))
    }

    fn longest(&self) -> Duration {
        Duration::from_nanos(self.max())
    }

    fn merge(&mut self, other: &Self) {
        self.add(other)
            .expect("all histograms have the same bounds");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let samples: Samples = (1..=20).rev().map(f64::from).collect();
        let quantiles = [0.0, 0.05, 0.5, 0.95, 0.96, 0.99, 1.0];
        let found = quantiles.map(|part| samples.quantile(part));
        assert_eq!(found, [1.0, 1.0, 10.0, 19.0, 20.0, 20.0, 20.0].map(Some));
        // Multiplied as they are, 0.07 * 100 is a little more than 7.
        let samples: Samples = (1..=100).map(f64::from).collect();
        assert_eq!(samples.quantile(0.07), Some(7.0));
    }

    #[test]
    fn spreads_have_a_middle_and_ends() {
        let samples: Samples = [5.0, 1.0, 3.0].into_iter().collect();
        let spread = Spread {
            min: 1.0,
            median: 3.0,
            max: 5.0,
        };
        assert_eq!(samples.spread(), Some(spread));
        assert_eq!(spread.to_string(), "3.00 (1.00 – 5.00)");
    }

    #[test]
    fn histograms_merge_and_saturate() {
        let [mut one, mut other] = [histogram(), histogram()];
        assert_eq!(
            (one.at(0.5), one.longest()),
            (Duration::ZERO, Duration::ZERO)
        );
        one.enter(Duration::from_micros(10));
        other.enter(Duration::MAX);
        one.merge(&other);
        assert_eq!(one.len(), 2);
        assert!(one.longest() >= Duration::from_secs(600));
        assert_eq!(one.at(0.5).as_micros(), 10);
    }
}
