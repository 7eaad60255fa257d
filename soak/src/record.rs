//! The record of a run: everything that `--json` writes and the report is drawn from.
//!
//! Field names carry their units. Durations are whole nanoseconds, times within the run seconds.

use serde::{Deserialize, Serialize};
use support::quantiles::Histogram;

use crate::counters::Totals;

/// One run of one build.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Which fields there are: [`FORMAT`].
    pub(crate) format: u32,
    /// Of the soak.
    pub(crate) version: String,
    /// `staged timing wheel` or `classic ordered map`.
    pub(crate) timer_queue: String,
    /// What the run is called beside another: its timer queue, or its driver.
    pub(crate) name: String,
    pub(crate) machine: Machine,
    pub(crate) plan: PlanRecord,
    /// When the run began, in seconds since 1970, UTC.
    pub(crate) started_unix_s: u64,
    pub(crate) ran_s: f64,
    /// It was ended before its time.
    pub(crate) is_interrupted: bool,
    pub(crate) outcome: Outcome,
    pub(crate) rows: Vec<Row>,
    /// The first violations of each executor, and how executors failed.
    pub(crate) words: Vec<String>,
    /// The first warnings in the library's log.
    pub(crate) complaints: Vec<String>,
    pub(crate) totals: Totals,
    /// Of the whole run, each with its name.
    pub(crate) distributions: Vec<Distribution>,
    /// In order of time, evenly spaced.
    pub(crate) samples: Vec<Sample>,
}

/// Where it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) cpu: String,
    pub(crate) cores: u64,
    pub(crate) memory_bytes: u64,
    /// `release` or `debug`.
    pub(crate) build: String,
    /// The driver, how its ring was set up, and what it was done without. Empty: the reactor did not say.
    pub(crate) ring: String,
    /// How many times slower than the reference machine, at least 1.
    pub(crate) slowness: f64,
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanRecord {
    pub(crate) workloads: Vec<String>,
    pub(crate) duration_s: f64,
    pub(crate) seed: u64,
    pub(crate) load: f64,
    /// Client executors of the message queue, if it runs.
    pub(crate) clients: u64,
    pub(crate) executors: Vec<String>,
    /// Where files are written, and how. Empty if none are.
    pub(crate) files: String,
}

/// One line of the verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) invariant: String,
    /// In a sentence.
    pub(crate) meaning: String,
    pub(crate) checks: u64,
    pub(crate) violations: u64,
    /// With its unit.
    pub(crate) worst: String,
    pub(crate) bound: String,
    pub(crate) standing: Outcome,
}

/// How a promise came out of the run, and a run as the worst of its promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Nothing in this run could have broken it.
    #[default]
    NotExercised,
    Pass,
    /// The machine was too noisy to tell.
    Inconclusive,
    Fail,
}

impl Outcome {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let worst = rows.iter().map(|row| row.standing).max();
        worst.map_or(Outcome::Pass, |worst| worst.max(Outcome::Pass))
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::NotExercised => "not exercised",
            Outcome::Pass => "pass",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Fail => "FAIL",
        }
    }
}

/// A latency histogram.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Distribution {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p90_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) p999_ns: u64,
    pub(crate) max_ns: u64,
    /// Upper bound in nanoseconds and count of each bucket that is not empty; bounds grow by a
    /// quarter.
    pub(crate) buckets: Vec<(u64, u64)>,
}

impl Distribution {
    pub(crate) fn new(name: &str, histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Distribution {
            name: name.to_owned(),
            count: histogram.len(),
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: histogram.max(),
            buckets: histogram
                .iter_log(1, BUCKET_GROWTH)
                .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
                .filter(|&(_, count)| count > 0)
                .collect(),
        }
    }
}

macro_rules! sample {
    ($($(#[$doc:meta])* $name:ident: $of:ty = $joined:expr,)*) => {
        /// The numbers of one span of the run, a second or more.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub(crate) struct Sample {
            $($(#[$doc])* pub(crate) $name: $of,)*
        }

        impl Sample {
            /// Two neighbouring spans as one.
            fn joined_with(self, later: Sample) -> Sample {
                Sample {
                    $($name: $joined(self.$name, later.$name),)*
                }
            }
        }
    };
}

// Each with what becomes of it when two neighbours are joined.
sample! {
    /// Its end.
    at_s: f64 = latest,
    in_flight: u64 = latest,
    live_timers: i64 = i64::max,
    armed_per_s: f64 = mean,
    cancelled_per_s: f64 = mean,
    fired_per_s: f64 = mean,
    acks_per_s: f64 = mean,
    timeouts_per_s: f64 = mean,
    datagrams_per_s: f64 = mean,
    late_p50_ns: u64 = u64::max,
    late_p99_ns: u64 = u64::max,
    late_max_ns: u64 = u64::max,
    /// Of a plain thread's sleeps.
    noise_p99_ns: u64 = u64::max,
    noise_max_ns: u64 = u64::max,
    /// Whether others left the machine alone: see [`crate::measure::quiet`].
    is_quiet: bool = bool::min,
    resident_bytes: u64 = u64::max,
    /// Handed out by the allocator and not given back.
    allocated_bytes: u64 = u64::max,
    /// Of the whole process, in cores.
    cpu_cores: f64 = mean,
    /// What the host of a virtual machine took away while there was work here, in cores.
    stolen_cores: f64 = mean,
    /// What other processes used, in cores.
    other_cores: f64 = mean,
    /// Since the start of the run.
    violations: u64 = latest,
}

fn mean(a: f64, b: f64) -> f64 {
    (a + b) / 2.0
}

fn latest<T>(_: T, later: T) -> T {
    later
}

/// The samples of a run of any length, evenly spaced: when there are too many, neighbours are
/// joined.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    samples: Vec<Sample>,
    /// How many of the samples that come in make one that is kept.
    stride: u32,
    gathered: Option<(u32, Sample)>,
}

impl Series {
    pub(crate) fn new() -> Self {
        Series {
            samples: Vec::new(),
            stride: 1,
            gathered: None,
        }
    }

    pub(crate) fn push(&mut self, sample: Sample) {
        let (count, gathered) = match self.gathered.take() {
            Some((count, earlier)) => (count + 1, earlier.joined_with(sample)),
            None => (1, sample),
        };
        if count < self.stride {
            self.gathered = Some((count, gathered));
            return;
        }
        self.samples.push(gathered);
        if self.samples.len() == SAMPLES_MAX {
            let pairs = self.samples.chunks_exact(2);
            self.samples = pairs.map(|pair| pair[0].joined_with(pair[1])).collect();
            self.stride *= 2;
        }
    }

    /// What was kept, and what was still being gathered.
    pub(crate) fn finish(mut self) -> Vec<Sample> {
        self.samples.extend(self.gathered.map(|(_, sample)| sample));
        self.samples
    }
}

/// Counts up when a field changes its meaning or goes.
pub(crate) const FORMAT: u32 = 4;

pub(crate) const BUCKET_GROWTH: f64 = 1.25;

/// More than a picture has columns.
const SAMPLES_MAX: usize = 1_200;
const _: () = assert!(
    SAMPLES_MAX.is_multiple_of(2),
    "neighbours are joined in pairs"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: f64, late_max_ns: u64) -> Sample {
        Sample {
            at_s,
            late_max_ns,
            fired_per_s: at_s,
            ..Sample::default()
        }
    }

    #[test]
    fn long_runs_keep_few_samples_and_every_peak() {
        let mut series = Series::new();
        let count = 5 * SAMPLES_MAX as u64;
        for second in 1..=count {
            let late = if second == 4_321 { 99 } else { 1 };
            series.push(sample(second as f64, late));
        }
        let kept = series.finish();
        assert!(kept.len() <= SAMPLES_MAX, "{}", kept.len());
        assert_eq!(kept.last().map(|last| last.at_s), Some(count as f64));
        assert_eq!(kept.iter().filter(|kept| kept.late_max_ns == 99).count(), 1);
        let mean = kept.iter().map(|kept| kept.fired_per_s).sum::<f64>() / kept.len() as f64;
        assert!((mean - count as f64 / 2.0).abs() < 10.0, "{mean}");
    }
}
