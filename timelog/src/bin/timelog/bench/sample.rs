//! Measured rounds and their statistics.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::process::thread_time;
use support::quantiles::Samples;

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
    let on_processor = thread_time();
    let start = Instant::now();
    let operations = work();
    let elapsed = start.elapsed();
    Sample {
        operations,
        elapsed: if elapsed < BRIEF {
            elapsed
        } else {
            thread_time().saturating_sub(on_processor)
        },
    }
}

/// As `timed`, right after doing the work once outside the clock: reads and the floors they are
/// held against meet caches in the same state.
pub fn timed_again(mut work: impl FnMut() -> u64) -> Sample {
    black_box(work());
    timed(work)
}

/// As `timed_again`, for sums of one column: once is not enough there. What other work has driven out of
/// the caches is back in all of them only when it was read two or three times, and such a sum then
/// takes half as long.
pub fn timed_warm(mut work: impl FnMut() -> u64) -> Sample {
    for _ in 0..2 {
        black_box(work());
    }
    timed_again(work)
}

/// Times of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub operations: u64,
    pub median: Duration,
    pub least: Duration,
    pub greatest: Duration,
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
        let times: Samples = samples.iter().map(|sample| sample.elapsed).collect();
        let time = |ns: Option<f64>| Duration::from_nanos(ns.expect("there are samples") as u64);
        Self {
            operations,
            median: time(times.median()),
            least: time(times.quantile(0.0)),
            greatest: time(times.quantile(1.0)),
            mad: time(times.deviation()),
        }
    }

    /// Operations a second, by the median.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.median.as_secs_f64().max(1e-9)
    }
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
        let times = [summary.median, summary.least, summary.greatest, summary.mad]
            .map(|time| time.as_micros());
        assert_eq!(times, [10, 1, 20, 5]);
        assert_eq!(summary.rate().round(), 1e6);
    }
}
