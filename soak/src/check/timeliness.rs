//! How late things were, second by second, and the rows of the verdict about it.
//!
//! ```text
//!   a second's latencies ──┬────────────────────────▶ whole run: shown
//!                          └── quiet? ──▶ quiet run: judged against the noise of the same seconds
//! ```
//!
//! A bound has two parts. One is an allowance for the work that stands between a deadline and its
//! callback in that workload, on the reference machine; it is stretched by how slow this one is and by
//! the load that was asked for. The other is a small multiple of what a plain thread's sleeps suffered
//! in the same seconds. The longest lateness is held against the noise of its own second, and may be
//! later by a part of the time for which the executor's thread waited for a core (`schedstat`). If the
//! quiet seconds are too few the row is inconclusive, and never a pass.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use hdrhistogram::Histogram;

use crate::check::probe::{Timing, Workload};
use crate::measure::lag::new_histogram;
use crate::measure::nanos;
use crate::measure::quiet::{Disturbance, NOISE_P50_MAX, Second, Seconds};
use crate::record::{Distribution, Row, Standing};
use crate::words::{grouped, short};

/// The latencies of a run.
#[derive(Debug)]
pub(crate) struct Timeliness {
    latencies: BTreeMap<(Workload, Timing), Latency>,
    /// By how much a plain thread's sleeps were overslept, in the whole run and in what is judged.
    noise: [Histogram<u64>; 2],
    seconds: Seconds,
    was_quiet: bool,
    /// Of the second at hand, if it is judged.
    judged_by: Option<Duration>,
}

/// Of one kind, in one workload.
#[derive(Debug)]
struct Latency {
    whole: Histogram<u64>,
    quiet: Histogram<u64>,
    /// In how many quiet seconds it was seen, and in which one last.
    seconds: u64,
    last_second: u64,
    /// What 999 of a thousand were, of each quiet second.
    p999_of_seconds: Histogram<u64>,
    /// Of all of them,
    longest: Longest,
    /// and the one that is furthest beyond its excuse.
    worst: Longest,
}

/// The longest latency of a quiet second.
#[derive(Clone, Copy, Debug, Default)]
struct Longest {
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
            noise: [new_histogram(), new_histogram()],
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
        self.judged_by = is_judged.then(|| Duration::from_nanos(noise.max()) * NOISE_FACTOR);
        add(&mut self.noise[0], noise);
        if is_judged {
            add(&mut self.noise[1], noise);
        }
    }

    /// The run is over: what is entered from now on is shown and not judged.
    pub(crate) fn end(&mut self) {
        self.judged_by = None;
    }

    /// What was seen in one executor, whose thread waited for a core for so long in the second before
    /// and in this one.
    pub(crate) fn enter(
        &mut self,
        workload: Workload,
        timing: Timing,
        seen: &Histogram<u64>,
        waited: [Duration; 2],
    ) {
        let latency = self.latencies.get_mut(&(workload, timing));
        let latency = latency.expect("there is a promise for every kind that is timed");
        let corrected = timing.interval().map(|interval| {
            let interval = nanos(interval);
            seen.clone_correct(interval)
        });
        let seen = corrected.as_ref().unwrap_or(seen);
        add(&mut latency.whole, seen);
        let waited_max = Promise::find(workload, timing).waited_max;
        if let Some(noise) = self.judged_by
            && waited.iter().all(|&waited| waited <= waited_max)
        {
            add(&mut latency.quiet, seen);
            // Several executors may have seen it.
            let is_new = latency.last_second < self.seconds.all;
            latency.seconds += u64::from(is_new);
            latency.last_second = self.seconds.all;
            latency
                .p999_of_seconds
                .saturating_record(seen.value_at_quantile(0.999));
            let longest = Longest {
                latency: Duration::from_nanos(seen.max()),
                excuse: noise + (waited[0] + waited[1]) / WAIT_PARTS,
            };
            latency.longest = latency.longest.max_by(longest, |it| it.latency);
            latency.worst = latency.worst.max_by(longest, Longest::over);
        }
    }

    /// Of the whole run: by kind, then by kind and workload where there are several, then the noise.
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

    /// Whether a thread that runs can be told from one that the host has put aside: the processor time
    /// that the kernel counts means something.
    pub(crate) fn is_steady(&self) -> bool {
        at(&self.noise[0], 0.5) <= NOISE_P50_MAX
    }

    /// How the whole run was late, whatever the machine did.
    pub(crate) fn whole(&self, timing: Timing) -> Histogram<u64> {
        let mut whole = new_histogram();
        self.of(timing)
            .for_each(|(_, latency)| add(&mut whole, &latency.whole));
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
            let [p50, p999] = [0.5, 0.999].map(|quantile| short(at(histogram, quantile)));
            format!(
                "p50 {p50} p99.9 {p999} max {}",
                short(Duration::from_nanos(histogram.max()))
            )
        });
        writeln!(f, "late:   {} timers that fired, {late}", count[0])?;
        writeln!(f, "noise:  {} sleeps of 1 ms, overslept {noise}", count[1])?;
        let Seconds { all, judged, .. } = self.seconds;
        write!(f, "quiet:  time is judged in {judged} of {all} seconds")?;
        for (by, words) in [
            (Disturbance::Stopped, "stopped on purpose"),
            (Disturbance::Stolen, "stolen from by the host"),
            (Disturbance::Others, "disturbed by other processes"),
            (Disturbance::Noise, "noisy for a sleeping thread"),
        ] {
            let count = self.seconds.disturbed(by);
            if count > 0 {
                write!(f, "; {count} {words}")?;
            }
        }
        writeln!(f)
    }
}

impl Latency {
    fn new() -> Self {
        Latency {
            whole: new_histogram(),
            quiet: new_histogram(),
            seconds: 0,
            last_second: 0,
            p999_of_seconds: new_histogram(),
            longest: Longest::default(),
            worst: Longest::default(),
        }
    }
}

impl Longest {
    /// By how many nanoseconds it is beyond its excuse; at first, before there is any, by the least.
    fn over(&self) -> i128 {
        let [latency, excuse] = [self.latency, self.excuse].map(|it| it.as_nanos().cast_signed());
        if latency == 0 {
            return i128::MIN;
        }
        latency - excuse
    }

    fn max_by<T: Ord>(self, other: Longest, key: impl Fn(&Longest) -> T) -> Longest {
        std::cmp::max_by_key(self, other, key)
    }
}

/// What is promised of one kind of latency in one workload: what the work may take before a callback
/// begins, on the reference machine, of half of them, of 999 in a thousand, and at the longest.
struct Promise {
    workload: Workload,
    timing: Timing,
    p50: Option<Duration>,
    p999: Option<Duration>,
    max: Option<Duration>,
    /// For how long the executor may have waited for a core within a second to be judged for it.
    waited_max: Duration,
    /// In how many seconds it must have been seen.
    seconds_least: u64,
}

impl Promise {
    fn find(workload: Workload, timing: Timing) -> &'static Promise {
        let mut promises = PROMISES.iter();
        let found = promises.find(|it| it.workload == workload && it.timing == timing);
        found.expect("there is a promise for every kind that is timed")
    }

    fn rows(&self, latency: &Latency, noise: &Histogram<u64>, stretch: f64) -> Vec<Row> {
        let quantile = |quantile, work: Duration, factor, least| Measured {
            worst: at(&latency.quiet, quantile),
            bound: work.mul_f64(stretch) + at(noise, quantile) * factor,
            shown: at(&latency.whole, quantile),
            least,
            exceeded_in: None,
        };
        let all = [
            self.p50.map(|work| {
                let measured = quantile(0.5, work, 1, LEAST_P50);
                ("p50", "Half of them come within this time", measured)
            }),
            self.p999.map(|work| {
                let mut measured = quantile(0.999, work, NOISE_FACTOR, LEAST_P999);
                let of_seconds = &latency.p999_of_seconds;
                measured.exceeded_in =
                    Some(of_seconds.count_between(nanos(measured.bound), of_seconds.high()));
                let meaning = "Of a thousand, 999 come within this time";
                ("p99.9", meaning, measured)
            }),
            self.max.map(|work| {
                let work = work.mul_f64(stretch);
                let is_kept = latency.worst.latency <= work + latency.worst.excuse;
                let shown = [latency.worst, latency.longest][usize::from(is_kept)];
                let measured = Measured {
                    worst: shown.latency,
                    bound: work + shown.excuse,
                    shown: Duration::from_nanos(latency.whole.max()),
                    least: 1,
                    exceeded_in: None,
                };
                ("max", "The last of them comes within this time", measured)
            }),
        ];
        let (what, whose) = self.words();
        let rows = all.into_iter().flatten().enumerate();
        let rows = rows.map(|(index, (which, meaning, measured))| {
            let meaning = match index {
                0 => format!("{meaning}: {whose}."),
                _ => format!("{meaning}."),
            };
            Row {
                invariant: format!("{what} {which}"),
                meaning,
                ..measured.row(latency, self.seconds_least)
            }
        });
        rows.collect()
    }

    /// What its rows are called, and what they are about.
    fn words(&self) -> (String, String) {
        let workload = self.workload.label();
        let (what, whose) = match self.timing {
            Timing::Lateness => {
                let whose = "callbacks of timers after their deadlines, in the workload";
                return (format!("late, {workload}"), format!("{whose} {workload}"));
            }
            Timing::Burst => (
                "late, in a burst",
                "callbacks of 100,000 timers with one and the same deadline",
            ),
            Timing::Crowd => (
                "late, in a crowd",
                "callbacks of 100,000 timers that are due one after the other, over seconds",
            ),
            Timing::Neighbour => (
                "late, beside a hog",
                "callbacks of timers while a task of another queue works without a pause and yields \
                 when it is asked to",
            ),
            Timing::Sleep => (
                "late, 1 ms sleeps",
                "ends of sleeps in an executor that does nothing else, as the plain thread that \
                 measures the noise",
            ),
            Timing::Ping => (
                "ping beside bursts",
                "answers over a socket of an executor in which 100,000 timers are due",
            ),
            Timing::SegmentRtt => ("round trip", "acknowledgements of datagrams"),
        };
        (what.to_owned(), whose.to_owned())
    }
}

impl Measured {
    /// Without its name.
    fn row(&self, latency: &Latency, seconds_least: u64) -> Row {
        let is_kept = self.worst <= self.bound;
        let is_chance = !is_kept
            && self
                .exceeded_in
                .is_some_and(|seconds| seconds < EXCEEDED_LEAST);
        let is_enough =
            latency.seconds >= seconds_least && latency.quiet.len() >= self.least && !is_chance;
        let (worst, bound) = match is_enough {
            true => (self.worst, short(self.bound)),
            false => (self.shown, "-".to_owned()),
        };
        Row {
            checks: latency.quiet.len(),
            violations: u64::from(is_enough && !is_kept),
            worst: short(worst),
            bound,
            standing: match (latency.whole.is_empty(), is_enough, is_kept) {
                (true, ..) => Standing::NotExercised,
                (_, false, _) => Standing::Inconclusive,
                (_, _, true) => Standing::Pass,
                (_, _, false) => Standing::Fail,
            },
            ..Row::default()
        }
    }
}

/// One quantile against its bound.
struct Measured {
    worst: Duration,
    bound: Duration,
    /// Of the whole run, for when it cannot be judged.
    shown: Duration,
    /// How many latencies it takes.
    least: u64,
    /// In how many seconds it was beyond the bound, where one stall decides about many latencies.
    exceeded_in: Option<u64>,
}

fn at(histogram: &Histogram<u64>, quantile: f64) -> Duration {
    Duration::from_nanos(histogram.value_at_quantile(quantile))
}

fn add(into: &mut Histogram<u64>, what: &Histogram<u64>) {
    into.add(what).expect("all histograms have the same bounds");
}

const fn promise(workload: Workload, timing: Timing, us: [u64; 3]) -> Promise {
    const fn work(us: u64) -> Option<Duration> {
        match us {
            0 => None,
            us => Some(Duration::from_micros(us)),
        }
    }
    let [p50, p999, max] = us;
    Promise {
        workload,
        timing,
        p50: work(p50),
        p999: work(p999),
        max: work(max),
        waited_max: match timing {
            Timing::Neighbour => WAITED_MAX_BESIDE_A_HOG,
            _ => WAITED_MAX,
        },
        seconds_least: match timing {
            Timing::Burst | Timing::Crowd | Timing::Ping => 1,
            _ => SECONDS_LEAST,
        },
    }
}

/// In microseconds: the median, 999 of a thousand, the longest. Zero: nothing is promised.
#[rustfmt::skip]
const PROMISES: [Promise; 11] = [
    promise(Workload::MessageQueue, Timing::Lateness, [150, 10_000, 30_000]),
    promise(Workload::ReliableUdp, Timing::Lateness, [150, 5_000, 30_000]),
    promise(Workload::ReliableUdp, Timing::SegmentRtt, [0, 0, 0]),
    promise(Workload::ReEntrancy, Timing::Lateness, [150, 10_000, 30_000]),
    // A hundred thousand callbacks, each of which asks the model: seven microseconds each. An answer
    // takes several turns of the executor, each of 256 callbacks.
    promise(Workload::Cluster, Timing::Burst, [0, 0, 700_000]),
    // Each callback keeps the next ones waiting for what the model does.
    promise(Workload::Cluster, Timing::Crowd, [300, 20_000, 60_000]),
    // A stall counts once for each answer that it delays, so that 999 of a thousand are all but the three or four
    // longest stalls of a run, and nothing excuses those for the time without a core as it does the longest.
    promise(Workload::Cluster, Timing::Ping, [1_000, 0, 60_000]),
    promise(Workload::Churn, Timing::Lateness, [150, 10_000, 30_000]),
    // Many of these have waited for a hog, and then for each other.
    promise(Workload::Idle, Timing::Lateness, [300, 0, 30_000]),
    promise(Workload::Idle, Timing::Neighbour, [300, 0, 20_000]),
    promise(Workload::Idle, Timing::Sleep, [50, 5_000, 20_000]),
];

/// In the tail one thread meets what the other is spared.
const NOISE_FACTOR: u32 = 4;

/// For so long an executor may have waited for a core within a second to be judged for it,
const WAITED_MAX: Duration = Duration::from_millis(400);

/// and less where a task works all the time: it is put aside in the middle of what is measured.
const WAITED_MAX_BESIDE_A_HOG: Duration = Duration::from_millis(200);

/// Of what an executor has waited in two seconds, one part in so many may have been at a stretch.
const WAIT_PARTS: u32 = 4;

/// So many latencies make a quantile.
const LEAST_P50: u64 = 100;
const LEAST_P999: u64 = 2_000;

/// All timers that are due during a stall are late by it, so that in a short run a single one decides what 999 of a
/// thousand are. The row of the longest judges a stall; this one takes stalls in so many seconds.
const EXCEEDED_LEAST: u64 = 3;

/// Fewer quiet seconds than these are a matter of chance; a burst comes every six seconds.
const SECONDS_LEAST: u64 = 5;

/// The distribution that is of no timers.
pub(crate) const MACHINE_NOISE: &str = "machine noise";

#[cfg(test)]
mod tests;
