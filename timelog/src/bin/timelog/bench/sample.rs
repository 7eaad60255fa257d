//! Measured rounds and their statistics.

use std::hint::black_box;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// One round of a case.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub operations: u64,
    pub elapsed: Duration,
}

/// What takes longer than this is measured by the time that its thread was on a processor: on a
/// machine that does other things too it will be interrupted, for longer than it runs. What is
/// shorter is measured by the clock, since asking for processor time is a system call.
const BRIEF: Duration = Duration::from_micros(100);

/// Measures `work`, which gives the number of its operations.
pub fn timed(work: impl FnOnce() -> u64) -> Sample {
    let on_processor = on_processor();
    let start = Instant::now();
    let operations = work();
    let elapsed = start.elapsed();
    Sample {
        operations,
        elapsed: if elapsed < BRIEF {
            elapsed
        } else {
            self::on_processor().saturating_sub(on_processor)
        },
    }
}

/// How long this thread has run.
fn on_processor() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.expect("Linux counts the time of threads").into()
}

/// As `timed`, right after doing the work once outside the clock: reads and the floors they are
/// held against meet caches in the same state.
pub fn timed_again(mut work: impl FnMut() -> u64) -> Sample {
    black_box(work());
    timed(work)
}

/// Times of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub operations: u64,
    pub median: Duration,
    pub p95: Duration,
    pub p99: Duration,
    /// The median of the distances from the median.
    pub mad: Duration,
}

impl Summary {
    /// # Panics
    /// If there is no sample, or their operations differ.
    pub fn of(samples: &[Sample]) -> Self {
        let operations = samples[0].operations;
        assert!(
            samples.iter().all(|sample| sample.operations == operations),
            "rounds do the same"
        );
        let mut times: Vec<_> = samples.iter().map(|sample| sample.elapsed).collect();
        times.sort_unstable();
        let median = quantile(&times, 50);
        let mut distances: Vec<_> = times.iter().map(|time| time.abs_diff(median)).collect();
        distances.sort_unstable();
        let mad = quantile(&distances, 50);
        Self {
            operations,
            median,
            p95: quantile(&times, 95),
            p99: quantile(&times, 99),
            mad,
        }
    }

    /// Operations a second, by the median.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.median.as_secs_f64().max(1e-9)
    }
}

/// The least that so many hundredths of sorted values do not exceed.
fn quantile(sorted: &[Duration], hundredths: usize) -> Duration {
    sorted[(sorted.len() * hundredths).div_ceil(100).max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_rounds() {
        let samples: Vec<_> = (1..=20)
            .map(|round| Sample {
                operations: 10,
                elapsed: Duration::from_micros(round),
            })
            .collect();
        let summary = Summary::of(&samples);
        let times =
            [summary.median, summary.p95, summary.p99, summary.mad].map(|time| time.as_micros());
        assert_eq!(times, [10, 19, 20, 5]);
        assert_eq!(summary.rate().round(), 1e6);
    }
}
