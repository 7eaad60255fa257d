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
    /// The planted defect, if any.
    pub(crate) injected: Option<String>,
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
    pub(crate) standing: RowStatus,
}

/// How a run came out: as the worst of its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Pass,
    /// Nothing was broken, and not everything could be judged.
    Inconclusive,
    /// Also of a run that did not come to its judgement.
    #[default]
    Fail,
}

impl RowStatus {
    pub(crate) fn word(self) -> &'static str {
        match self {
            RowStatus::Pass => "pass",
            RowStatus::Fail => "FAIL",
            RowStatus::Inconclusive => "inconclusive",
            RowStatus::NotExercised => "not exercised",
        }
    }
}

impl Outcome {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let outcomes = rows.iter().map(|row| match row.standing {
            RowStatus::Pass | RowStatus::NotExercised => Outcome::Pass,
            RowStatus::Inconclusive => Outcome::Inconclusive,
            RowStatus::Fail => Outcome::Fail,
        });
        outcomes.max().unwrap_or(Outcome::Pass)
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Pass => "pass",
            Outcome::Inconclusive => "inconclusive",
            Outcome::Fail => "FAIL",
        }
    }
}

/// How an invariant came out of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowStatus {
    Pass,
    Fail,
    /// The machine was too noisy to tell.
    Inconclusive,
    /// Nothing in this run could have broken it.
    #[default]
    NotExercised,
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

/// The numbers of one span of the run, a second or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Its end.
    pub(crate) at_s: f64,
    pub(crate) in_flight: u64,
    pub(crate) live_timers: i64,
    pub(crate) armed_per_s: f64,
    pub(crate) cancelled_per_s: f64,
    pub(crate) fired_per_s: f64,
    pub(crate) acks_per_s: f64,
    pub(crate) timeouts_per_s: f64,
    pub(crate) datagrams_per_s: f64,
    pub(crate) late_p50_ns: u64,
    pub(crate) late_p99_ns: u64,
    pub(crate) late_max_ns: u64,
    /// Of a plain thread's sleeps.
    pub(crate) noise_p99_ns: u64,
    pub(crate) noise_max_ns: u64,
    /// Whether others left the machine alone: see [`crate::measure::quiet`].
    pub(crate) is_quiet: bool,
    pub(crate) resident_bytes: u64,
    /// Handed out by the allocator and not given back.
    pub(crate) allocated_bytes: u64,
    /// Of the whole process, in cores.
    pub(crate) cpu_cores: f64,
    /// What the host of a virtual machine took away while there was work here, in cores.
    pub(crate) stolen_cores: f64,
    /// What other processes used, in cores.
    pub(crate) other_cores: f64,
    /// Since the start of the run.
    pub(crate) violations: u64,
}

impl Sample {
    /// Two neighbouring spans as one: rates and shares are averaged, the worst is kept, the rest is
    /// as it was at the end.
    fn joined_with(self, later: Sample) -> Sample {
        let mean = |a: f64, b: f64| (a + b) / 2.0;
        Sample {
            armed_per_s: mean(self.armed_per_s, later.armed_per_s),
            cancelled_per_s: mean(self.cancelled_per_s, later.cancelled_per_s),
            fired_per_s: mean(self.fired_per_s, later.fired_per_s),
            acks_per_s: mean(self.acks_per_s, later.acks_per_s),
            timeouts_per_s: mean(self.timeouts_per_s, later.timeouts_per_s),
            datagrams_per_s: mean(self.datagrams_per_s, later.datagrams_per_s),
            cpu_cores: mean(self.cpu_cores, later.cpu_cores),
            stolen_cores: mean(self.stolen_cores, later.stolen_cores),
            other_cores: mean(self.other_cores, later.other_cores),
            is_quiet: self.is_quiet && later.is_quiet,
            live_timers: self.live_timers.max(later.live_timers),
            late_p50_ns: self.late_p50_ns.max(later.late_p50_ns),
            late_p99_ns: self.late_p99_ns.max(later.late_p99_ns),
            late_max_ns: self.late_max_ns.max(later.late_max_ns),
            noise_p99_ns: self.noise_p99_ns.max(later.noise_p99_ns),
            noise_max_ns: self.noise_max_ns.max(later.noise_max_ns),
            resident_bytes: self.resident_bytes.max(later.resident_bytes),
            allocated_bytes: self.allocated_bytes.max(later.allocated_bytes),
            ..later
        }
    }
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
pub(crate) const FORMAT: u32 = 3;

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

    #[test]
    fn buckets_hold_every_value_once() {
        let mut histogram = support::quantiles::histogram();
        for ns in [900, 1_000, 50_000, 50_100, 7_000_000] {
            histogram.record(ns).expect("within the bounds");
        }
        let distribution = Distribution::new("test", &histogram);
        let held: u64 = distribution.buckets.iter().map(|&(_, count)| count).sum();
        assert_eq!((held, distribution.count), (5, 5));
        assert!(distribution.buckets.is_sorted_by_key(|&(bound, _)| bound));
        assert!(distribution.max_ns >= 7_000_000);
    }

    #[test]
    fn a_record_survives_its_json() {
        let record = Record {
            format: FORMAT,
            rows: vec![Row {
                invariant: "nothing early".to_owned(),
                standing: RowStatus::Fail,
                ..Row::default()
            }],
            samples: vec![sample(1.0, 5)],
            ..Record::default()
        };
        let json = serde_json::to_string(&record).expect("a record is plain data");
        assert!(json.contains(r#""standing":"fail""#), "{json}");
        let read: Record = serde_json::from_str(&json).expect("it was written just now");
        assert_eq!(read, record);
    }
}
