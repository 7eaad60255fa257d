//! How often a duration was of which size.
//!
//! The buckets are log-linear, as those of HdrHistogram: each power of two of nanoseconds is cut
//! into eight, so that a bucket's bounds are within an eighth of what is in it, and the memory is
//! fixed.
//!
//! ```text
//!   nanoseconds   0 1 2 … 7 │ 8 9 … 15 │ 16 18 … 30 │ 32 36 … 60 │ …
//!   bucket        0 1 2 … 7 │ 8 9 … 15 │ 16 17 … 23 │ 24 25 … 31 │ …
//! ```

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets in a power of two.
const STEPS: u64 = 8;
const STEP_BITS: u32 = STEPS.ilog2();

/// Durations from here on, about 18 minutes, are in the last bucket.
const BITS: u32 = 40;
const BUCKETS: usize = ((BITS - STEP_BITS) as u64 * STEPS + STEPS) as usize;

/// The bucket that `ns` is in.
#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let ns = ns.min((1 << BITS) - 1);
    let shift = ns.ilog2() - STEP_BITS;
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// The least that is in the bucket after this one.
fn end_of(bucket: usize) -> u64 {
    let next = bucket as u64 + 1;
    if next < 2 * STEPS {
        return next;
    }
    (next % STEPS + STEPS) << (next / STEPS - 1)
}

/// A histogram that one thread writes and others read.
pub(crate) struct LiveHistogram([AtomicU64; BUCKETS]);

impl LiveHistogram {
    #[inline]
    pub(super) fn record(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let bucket = &self.0[bucket_of(ns)];
        // One thread writes: no read-modify-write.
        let count = bucket.load(Ordering::Relaxed).wrapping_add(1);
        bucket.store(count, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Histogram {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        Histogram {
            counts: counts.collect(),
        }
    }
}

impl Default for LiveHistogram {
    fn default() -> Self {
        LiveHistogram([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl fmt::Debug for LiveHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// How often a duration was of which size, to within an eighth. From about 18 minutes on, durations
/// are not told apart.
///
/// # Examples
///
/// ```
/// # use glommio::{metrics, timer::sleep};
/// # use std::time::Duration;
/// # let executor = glommio::LocalExecutor::default();
/// # executor.run(sleep(Duration::from_millis(1)));
/// # let snapshot = executor.metrics().snapshot();
/// let late = snapshot.timer_lateness;
/// println!("{} timers, half of them within {:?}", late.count(), late.quantile(0.5));
/// for (bound, count) in late.buckets() {
///     println!("less than {bound:?}: {count}");
/// }
/// # assert_eq!(late.count(), 1);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Box<[u64]>,
}

impl Histogram {
    /// How many durations there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The duration that the share `q` of all is below, rounded up to the end of its bucket; zero
    /// if there are none.
    ///
    /// # Panics
    ///
    /// Panics if `q` is not between 0 and 1.
    pub fn quantile(&self, q: f64) -> Duration {
        assert!(
            (0.0..=1.0).contains(&q),
            "a quantile is between 0 and 1, not {q}"
        );
        let rank = (self.count() as f64 * q).ceil().max(1.0) as u64;
        let mut seen = 0;
        let bound = self.buckets().find_map(|(bound, count)| {
            seen += count;
            (seen >= rank).then_some(bound)
        });
        bound.unwrap_or_default()
    }

    /// The end of the last bucket that has something in it; zero if there is none.
    pub fn max(&self) -> Duration {
        self.buckets()
            .last()
            .map_or(Duration::ZERO, |(bound, _)| bound)
    }

    /// The buckets that have something in them, by their ends, and how much.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counts = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        counts.map(|(bucket, &count)| (Duration::from_nanos(end_of(bucket)), count))
    }

    /// What came since `before`, an earlier snapshot of the same histogram.
    ///
    /// # Examples
    ///
    /// ```
    /// let executor = glommio::LocalExecutor::default();
    /// let before = executor.metrics().snapshot();
    /// executor.run(glommio::timer::sleep(std::time::Duration::from_millis(1)));
    /// let now = executor.metrics().snapshot();
    /// let lateness = now.timer_lateness.since(&before.timer_lateness);
    /// println!("{} timers, late by {:?} at most", lateness.count(), lateness.max());
    /// ```
    #[must_use]
    pub fn since(&self, before: &Histogram) -> Histogram {
        let counts = self.counts.iter().zip(&before.counts);
        Histogram {
            counts: counts
                .map(|(now, before)| now.wrapping_sub(*before))
                .collect(),
        }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.buckets()).finish()
    }
}
