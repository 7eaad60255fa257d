//! How late things were, second by second, and the rows of the verdict about it.
//!
//! ```text
//!   a second's latencies ──┬────────────────────────▶ whole run: shown
//!                          └── quiet? ──▶ quiet run: judged against the noise of the same seconds
//! ```
//!
//! A bound has two parts. One is an allowance for the work that stands between a deadline and its
//! callback in that workload, on the reference machine; it is stretched by how slow this one is and
//! by the load that was asked for. The other is a small multiple of what a plain thread's sleeps
//! suffered in the same seconds. The tails, p99.9 and the longest, are judged second by second:
//! each against the noise of its own second, and may be later by the longest wait of the executor's thread for a core, or by a
//! part of all its waits (`schedstat`). If the quiet seconds are too few the row is
//! inconclusive, and never a pass.

mod promises;

use std::cmp::max_by_key;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use promises::{PROMISES, Promise};
use support::numbers;
use support::quantiles::{Durations, Histogram, histogram};

use crate::check::probe::{PING_EVERY, Timing, Workload};
use crate::counts::grouped;
use crate::measure::nanos;
use crate::measure::process::Waited;
use crate::measure::quiet::{NOISE_P50_MAX, Second, Seconds};
use crate::record::{Distribution, Outcome, Row};

/// The latencies of a run.
#[derive(Debug)]
pub(crate) struct Timeliness {
    latencies: BTreeMap<(Workload, Timing), Latency>,
    /// By how much a plain thread's sleeps were overslept, in the whole run and in what is judged.
    noise: [Histogram<u64>; 2],
    seconds: Seconds,
    was_quiet: bool,
    /// What the noise of the second at hand excuses in its tails, p99.9 and the longest, if it is judged.
    judged_by: Option<[Duration; 2]>,
}

/// Of one kind, in one workload.
#[derive(Debug)]
struct Latency {
    whole: Histogram<u64>,
    quiet: Histogram<u64>,
    /// In how many quiet seconds it was seen, and in which one last.
    seconds: u64,
    last_second: u64,
    p999: Tail,
    max: Tail,
}

/// One quantile of each quiet second and executor.
#[derive(Debug)]
struct Tail {
    /// The largest of all seconds,
    largest: InSecond,
    /// and the one that is furthest beyond its excuse.
    worst: InSecond,
    /// By how much each was beyond it.
    beyond: Histogram<u64>,
}

/// A quantile of a quiet second.
#[derive(Clone, Copy, Debug, Default)]
struct InSecond {
    latency: Duration,
    /// The noise of that second, and what the executor waited for a core.
    excuse: Duration,
}

impl Default for Timeliness {
    fn default() -> Self {
        Timeliness::new(Workload::value_variants())
    }
}

impl Timeliness {
    /// Of a run of these workloads. Memory is taken here, and no more later.
    pub(crate) fn new(workloads: &[Workload]) -> Self {
        let promises = PROMISES
            .iter()
            .filter(|promise| workloads.contains(&promise.workload));
        let kinds = promises.map(|promise| (promise.workload, promise.timing));
        Timeliness {
            latencies: kinds.map(|kind| (kind, Latency::new())).collect(),
            noise: [histogram(), histogram()],
            seconds: Seconds::default(),
            was_quiet: false,
            judged_by: None,
        }
    }

    /// A second has passed, with this noise. What is entered until the next call belongs to it.
    pub(crate) fn begin(&mut self, second: &Second, noise: &Histogram<u64>) {
        let disturbance = second.disturbance();
        let is_quiet = disturbance.is_none();
        let is_judged = std::mem::replace(&mut self.was_quiet, is_quiet) && is_quiet;
        self.seconds.enter(disturbance, is_judged);
        let tails = [noise.at(0.999), noise.longest()];
        self.judged_by = is_judged.then(|| tails.map(|it| it * NOISE_FACTOR));
        self.noise[0].merge(noise);
        if is_judged {
            self.noise[1].merge(noise);
        }
    }

    /// The run is over: what is entered from now on is shown and not judged.
    pub(crate) fn end(&mut self) {
        self.judged_by = None;
    }

    /// What was seen in one executor, whose thread waited for a core for so long in the second
    /// before and in this one.
    pub(crate) fn enter(
        &mut self,
        workload: Workload,
        timing: Timing,
        seen: &Histogram<u64>,
        waited: [Waited; 2],
    ) {
        let latency = self.latencies.get_mut(&(workload, timing));
        let latency = latency.expect("there is a promise for every kind that is timed");
        // A ping waits for the end of the one before: a long one stands for all that it has kept
        // from beginning (coordinated omission). Deadlines do not wait for each other, and datagrams
        // are sent however long others take.
        let corrected = (timing == Timing::Ping).then(|| seen.clone_correct(nanos(PING_EVERY)));
        let seen = corrected.as_ref().unwrap_or(seen);
        latency.whole.merge(seen);
        let waited_max = Promise::find(workload, timing).waited_max();
        if let Some([p999, max]) = self.judged_by
            && waited.iter().all(|waited| waited.all <= waited_max)
        {
            latency.quiet.merge(seen);
            // Several executors may have seen it.
            let is_new = latency.last_second < self.seconds.all;
            latency.seconds += u64::from(is_new);
            latency.last_second = self.seconds.all;
            let parts = (waited[0].all + waited[1].all) / WAIT_PARTS;
            let waited = parts.max(waited[0].longest).max(waited[1].longest);
            latency.p999.enter(seen.at(0.999), p999 + waited);
            latency.max.enter(seen.longest(), max + waited);
        }
    }

    /// Of the whole run: by kind, then by kind and workload where there are several, then the
    /// noise.
    pub(crate) fn distributions(&self) -> Vec<Distribution> {
        let mut all = Vec::new();
        for timing in Timing::ALL {
            let of: Vec<_> = self.of(timing).collect();
            all.push(Distribution::new(timing.label(), &self.whole(timing)));
            if of.len() > 1 {
                all.extend(of.into_iter().map(|(workload, latency)| {
                    let name = format!("{}, {}", timing.label(), workload.label());
                    Distribution::new(&name, &latency.whole)
                }));
            }
        }
        all.push(Distribution::new(MACHINE_NOISE, &self.noise[0]));
        all.retain(|distribution| distribution.count > 0);
        all
    }

    /// Whether a thread that runs can be told from one that the host has put aside: the processor
    /// time that the kernel counts means something.
    pub(crate) fn is_steady(&self) -> bool {
        self.noise[0].at(0.5) <= NOISE_P50_MAX
    }

    /// How the whole run was late, whatever the machine did.
    pub(crate) fn whole(&self, timing: Timing) -> Histogram<u64> {
        let mut whole = histogram();
        self.of(timing)
            .for_each(|(_, latency)| whole.merge(&latency.whole));
        whole
    }

    fn of(&self, timing: Timing) -> impl Iterator<Item = (Workload, &Latency)> {
        let latencies = self.latencies.iter();
        latencies.filter_map(move |(&(workload, of), latency)| {
            (of == timing && !latency.whole.is_empty()).then_some((workload, latency))
        })
    }

    /// The rows about time, of the workloads that ran. `stretch`: how many times longer than on the
    /// reference machine the same work may take.
    pub(crate) fn rows(&self, stretch: f64) -> Vec<Row> {
        let promises = PROMISES.iter().filter_map(|promise| {
            let latency = self.latencies.get(&(promise.workload, promise.timing))?;
            Some(promise.rows(latency, &self.noise[1], stretch))
        });
        promises.flatten().collect()
    }
}

/// In which seconds time was judged, for people.
impl fmt::Display for Timeliness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = self.whole(Timing::Lateness);
        let count = [&late, &self.noise[0]].map(|histogram| grouped(histogram.len()));
        let [late, noise] = [&late, &self.noise[0]].map(|histogram| {
            let [p50, p999] =
                [0.5, 0.999].map(|quantile| numbers::duration(histogram.at(quantile)));
            format!(
                "p50 {p50} p99.9 {p999} max {}",
                numbers::duration(histogram.longest())
            )
        });
        writeln!(f, "late:   {} timers that fired, {late}", count[0])?;
        writeln!(f, "noise:  {} sleeps of 1 ms, overslept {noise}", count[1])?;
        let Seconds { all, judged, .. } = self.seconds;
        write!(f, "quiet:  time is judged in {judged} of {all} seconds")?;
        for (words, count) in &self.seconds.disturbed {
            write!(f, "; {count} {words}")?;
        }
        writeln!(f)
    }
}

impl Latency {
    fn new() -> Self {
        Latency {
            whole: histogram(),
            quiet: histogram(),
            seconds: 0,
            last_second: 0,
            p999: Tail::new(),
            max: Tail::new(),
        }
    }
}

impl Tail {
    fn new() -> Self {
        Tail {
            largest: InSecond::default(),
            worst: InSecond::default(),
            beyond: histogram(),
        }
    }

    fn enter(&mut self, latency: Duration, excuse: Duration) {
        let it = InSecond { latency, excuse };
        self.largest = max_by_key(self.largest, it, |it| it.latency);
        self.worst = max_by_key(self.worst, it, InSecond::over);
        self.beyond.enter(latency.saturating_sub(excuse));
    }

    /// Against `work` and each second's excuse, which may be exceeded in `allowed` seconds.
    fn measured(&self, work: Duration, allowed: u64) -> Measured {
        let over = self.beyond.highest_equivalent(nanos(work)) + 1;
        let exceeded = self.beyond.count_between(over, self.beyond.high());
        let is_kept = exceeded <= allowed;
        let shown = [self.worst, self.largest][usize::from(is_kept)];
        Measured {
            worst: shown.latency,
            bound: work + shown.excuse,
            is_kept,
        }
    }
}

impl InSecond {
    /// By how many nanoseconds it is beyond its excuse; at first, before there is any, by the
    /// least.
    fn over(&self) -> i128 {
        let [latency, excuse] = [self.latency, self.excuse].map(|it| it.as_nanos().cast_signed());
        if latency == 0 {
            return i128::MIN;
        }
        latency - excuse
    }
}

impl Promise {
    fn rows(&self, latency: &Latency, noise: &Histogram<u64>, stretch: f64) -> Vec<Row> {
        let Latency { whole, quiet, .. } = latency;
        let work = self.work().map(|it| it.map(|it| it.mul_f64(stretch)));
        let p50 = work[0].map(|work| {
            let (worst, bound) = (quiet.at(0.5), work + noise.at(0.5));
            let is_kept = worst <= bound;
            Measured {
                worst,
                bound,
                is_kept,
            }
        });
        let allowed = ALLOWED_LEAST + latency.p999.beyond.len() / ALLOWED_ONE_IN;
        let p999 = work[1].map(|work| latency.p999.measured(work, allowed));
        let max = work[2].map(|work| latency.max.measured(work, 0));
        let (what, whose) = self.words();
        let mut rows = Vec::new();
        // Each with what is shown if it cannot be judged, and how many latencies it takes.
        for (which, meaning, measured, shown, least) in [
            (
                "p50",
                "Half of them come",
                p50,
                whole.at(0.5),
                self.p50_least(),
            ),
            (
                "p99.9",
                "Of a thousand in a second, 999 come",
                p999,
                whole.at(0.999),
                LEAST_P999,
            ),
            ("max", "The last of them comes", max, whole.longest(), 1),
        ] {
            let Some(measured) = measured else { continue };
            let is_enough = latency.seconds >= self.seconds_least() && quiet.len() >= least;
            let (worst, bound) = match is_enough {
                true => (measured.worst, numbers::duration(measured.bound)),
                false => (shown, "-".to_owned()),
            };
            let of_whom = if rows.is_empty() {
                format!(": {whose}")
            } else {
                String::new()
            };
            rows.push(Row {
                invariant: format!("{what} {which}"),
                meaning: format!("{meaning} within this time{of_whom}."),
                checks: quiet.len(),
                violations: u64::from(is_enough && !measured.is_kept),
                worst: numbers::duration(worst),
                bound,
                standing: match measured.is_kept {
                    _ if whole.is_empty() => Outcome::NotExercised,
                    _ if !is_enough => Outcome::Inconclusive,
                    true => Outcome::Pass,
                    false => Outcome::Fail,
                },
            });
        }
        rows
    }
}

/// One quantile against its bound.
struct Measured {
    worst: Duration,
    bound: Duration,
    is_kept: bool,
}

/// In the tail one thread meets what the other is spared.
const NOISE_FACTOR: u32 = 4;

/// Of what an executor has waited in two seconds, a timer may have waited for one part in so many, a little at a time; and
/// for all of a wait at a stretch.
const WAIT_PARTS: u32 = 4;

/// So many latencies make a p99.9.
const LEAST_P999: u64 = 2_000;

/// All timers that are due in one stall are late by it. So p99.9 may be exceeded in so many
/// seconds, each of them held against its own noise, and in one of a hundred: the row of the
/// longest judges the stalls.
const ALLOWED_LEAST: u64 = 2;
const ALLOWED_ONE_IN: u64 = 100;

/// The distribution that is of no timers.
pub(crate) const MACHINE_NOISE: &str = "machine noise";

#[cfg(test)]
mod tests;
