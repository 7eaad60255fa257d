//! The judgement: every invariant against its bound, as a table.
//!
//! Bounds in time have two parts. One is an allowance for work, stretched by how slow the machine is,
//! how much of it others took away, and how much more than usual was asked for. The other is a
//! multiple of what a sleeping thread suffered beside the run. Everything else is exact.

use std::fmt;
use std::time::Duration;

use crate::check::invariants::{Count, Invariant, Unit};
use crate::measure::memory::Allocated;
use crate::measure::resources::{Descriptors, Memory};
use crate::record::{Row, Standing, Totals};
use crate::sampler::Stolen;
use crate::words::{self, grouped, short};

/// What a run has brought to light.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) counts: [Count; Invariant::ALL.len()],
    pub(crate) first_violations: Vec<String>,
    /// How late timer callbacks began.
    pub(crate) lateness: Lags,
    /// How late callbacks began that were due with 100,000 others.
    pub(crate) burst: Lags,
    /// How long a ping took beside bursts of timers.
    pub(crate) ping: Lags,
    /// By how much a plain thread's sleeps were overslept.
    pub(crate) noise: Lags,
    pub(crate) stolen: Stolen,
    /// How many times slower than the reference machine this one is.
    pub(crate) slowness: f64,
    /// How many times longer than they ran the executors would have liked to.
    pub(crate) contention: f64,
    /// How many times the reference machine's number of timers.
    pub(crate) load: f64,
    pub(crate) memory: Memory,
    /// What the allocator had not got back at the end, if the executors ended.
    pub(crate) left: Option<Allocated>,
    pub(crate) descriptors: Descriptors,
    pub(crate) executors: usize,
    /// Executors that did not end, or not well, each in words.
    pub(crate) failures: Vec<String>,
}

/// A latency histogram in three numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lags {
    pub(crate) samples: u64,
    pub(crate) p50: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

impl Evidence {
    /// How many times longer than on an idle reference machine the same work may take.
    fn stretch(&self) -> f64 {
        self.slowness.max(1.0) * self.contention.max(1.0) * self.load.max(1.0)
    }
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) rows: Vec<Row>,
    pub(crate) words: Vec<String>,
}

impl Verdict {
    pub(crate) fn new(evidence: &Evidence) -> Self {
        let mut rows: Vec<Row> = Invariant::ALL
            .iter()
            .zip(&evidence.counts)
            .map(|(&invariant, count)| of_invariant(invariant, count))
            .collect();
        rows.extend(of_lags(evidence));
        rows.push(of_memory(&evidence.memory));
        rows.push(of_what_is_left(evidence.left));
        rows.push(of_descriptors(evidence.descriptors));
        rows.push(of_executors(evidence));
        let mut words = evidence.failures.clone();
        words.extend(evidence.first_violations.iter().cloned());
        Verdict { rows, words }
    }

    /// Whether nothing was broken.
    pub(crate) fn has_passed(&self) -> bool {
        self.rows.iter().all(|row| row.standing != Standing::Fail)
    }
}

fn row(label: &str, checks: u64, violations: u64, worst: String, bound: String) -> Row {
    Row {
        invariant: label.to_owned(),
        checks,
        violations,
        worst,
        bound,
        standing: match (violations, checks) {
            (0, 0) => Standing::NotExercised,
            (0, _) => Standing::Pass,
            _ => Standing::Fail,
        },
    }
}

fn of_invariant(invariant: Invariant, count: &Count) -> Row {
    let worst = match invariant.unit() {
        Unit::Nanoseconds => format!("{} ns", grouped(count.worst)),
        Unit::Bytes => format!("{} bytes", grouped(count.worst)),
        Unit::Count => grouped(count.worst),
    };
    let worst = match count.violations {
        0 => worst,
        violations => format!("{worst} ({} times)", grouped(violations)),
    };
    row(
        invariant.label(),
        count.checks,
        count.violations,
        worst,
        "0".to_owned(),
    )
}

fn of_lags(evidence: &Evidence) -> Vec<Row> {
    let Evidence {
        lateness,
        burst,
        ping,
        noise,
        ..
    } = evidence;
    let stretch = evidence.stretch();
    let of = |label, samples, worst: Duration, work: Duration, noise: Duration| {
        let bound = work.mul_f64(stretch) + noise * NOISE_FACTOR;
        let violations = u64::from(worst > bound);
        row(label, samples, violations, short(worst), short(bound))
    };
    let (late, pings) = (lateness.samples, ping.samples);
    vec![
        of("lateness p50", late, lateness.p50, WORK_P50, noise.p50),
        of("lateness p99.9", late, lateness.p999, WORK_P999, noise.p999),
        of("lateness max", late, lateness.max, WORK_MAX, noise.max),
        of(
            "lateness max in bursts",
            burst.samples,
            burst.max,
            WORK_BURST,
            noise.max,
        ),
        of(
            "ping p99.9 beside bursts",
            pings,
            ping.p999,
            WORK_PING,
            noise.p999,
        ),
        of(
            "ping max beside bursts",
            pings,
            ping.max,
            WORK_MAX,
            noise.max,
        ),
    ]
}

fn of_memory(memory: &Memory) -> Row {
    let growth = memory.peak_bytes.saturating_sub(memory.warm_bytes);
    let bound = MEMORY_GROWTH_BYTES
        + memory.warm_bytes / MEMORY_GROWTH_DIVISOR
        + memory.timers_added * BYTES_PER_TIMER;
    row(
        "memory after warm-up",
        memory.samples,
        u64::from(growth > bound),
        format!(
            "+{} on {}",
            words::bytes(growth),
            words::bytes(memory.warm_bytes)
        ),
        format!("+{}", words::bytes(bound)),
    )
}

fn of_what_is_left(left: Option<Allocated>) -> Row {
    let Allocated { bytes, blocks } = left.unwrap_or_default();
    row(
        "memory after the end",
        u64::from(left.is_some()),
        u64::from(bytes > LEFT_BYTES_MAX),
        format!("{} in {} blocks", words::bytes(bytes), grouped(blocks)),
        words::bytes(LEFT_BYTES_MAX),
    )
}

fn of_descriptors(Descriptors { samples, deviation }: Descriptors) -> Row {
    let worst = deviation.to_string();
    row(
        "descriptors constant",
        samples,
        u64::from(deviation > 0),
        worst,
        "0".to_owned(),
    )
}

fn of_executors(evidence: &Evidence) -> Row {
    let failures = evidence.failures.len();
    let executors = evidence.executors as u64;
    row(
        "executors ended well",
        executors,
        failures as u64,
        failures.to_string(),
        "0".to_owned(),
    )
}

/// What the bounds in time are made of.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence {
            lateness,
            noise,
            stolen,
            ..
        } = self;
        writeln!(
            f,
            "late:   {} timers that fired, p50 {} p99.9 {} max {}",
            grouped(lateness.samples),
            short(lateness.p50),
            short(lateness.p999),
            short(lateness.max),
        )?;
        writeln!(
            f,
            "noise:  {} sleeps of 1 ms, overslept p50 {} p99.9 {} max {}",
            grouped(noise.samples),
            short(noise.p50),
            short(noise.p999),
            short(noise.max),
        )?;
        if stolen.worst_second >= STOLEN_SHOWN {
            writeln!(
                f,
                "host:   took {:.2} cores away on average, {:.2} in the worst second",
                stolen.on_average, stolen.worst_second,
            )?;
        }
        writeln!(
            f,
            "work:   {:.2} times slower than the reference machine, {:.2} times longer in the most \
             contended second, {:.2} times the load",
            self.slowness, self.contention, self.load,
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<26}{:>14}  {:>24}  {:>12}  verdict",
            "invariant", "checks", "worst", "bound"
        )?;
        for row in &self.rows {
            let standing = match row.standing {
                Standing::Pass => "pass",
                Standing::Fail => "FAIL",
                Standing::NotExercised => "not exercised",
            };
            writeln!(
                f,
                "{:<26}{:>14}  {:>24}  {:>12}  {standing}",
                row.invariant,
                grouped(row.checks),
                row.worst,
                row.bound,
            )?;
        }
        for word in &self.words {
            writeln!(f, "  ! {word}")?;
        }
        write!(
            f,
            "verdict: {}",
            if self.has_passed() { "pass" } else { "FAIL" }
        )
    }
}

/// What was done, in three lines.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "timers: {} armed, {} re-armed, {} cancelled, {} fired, {} live at the most",
            grouped(self.timers_armed),
            grouped(self.timers_rearmed),
            grouped(self.timers_cancelled),
            grouped(self.timers_fired),
            grouped(self.live_timers_max),
        )?;
        if self.messages_published > 0 {
            writeln!(
                f,
                "queue:  {} messages published, {} acked, {} redelivered, {} dead, {} in flight at \
                 the most",
                grouped(self.messages_published),
                grouped(self.messages_acked),
                grouped(self.messages_redelivered),
                grouped(self.messages_dead),
                grouped(self.in_flight_max),
            )?;
        }
        if self.datagrams_sent > 0 {
            writeln!(
                f,
                "udp:    {} datagrams sent, {} of them again, {} lost on purpose, {} delivered",
                grouped(self.datagrams_sent),
                grouped(self.datagrams_repeated),
                grouped(self.datagrams_lost),
                words::bytes(self.bytes_delivered),
            )?;
        }
        if self.stalls > 0 {
            writeln!(f, "stalls: the process was stopped {} times", self.stalls)?;
        }
        Ok(())
    }
}

/// The median may be late by a turn of a busy executor.
const WORK_P50: Duration = Duration::from_millis(2);

/// What callbacks due together may cost each other on the reference machine: one in a thousand.
const WORK_P999: Duration = Duration::from_millis(20);

/// A question and its answer are several turns of an executor in the middle of a burst.
const WORK_PING: Duration = Duration::from_millis(50);

/// The same for the worst: one preemption interval of 100 ms and as much again.
const WORK_MAX: Duration = Duration::from_millis(200);

/// A hundred thousand callbacks, each of which asks the model: five microseconds each.
const WORK_BURST: Duration = Duration::from_millis(500);

/// In cores: less is shown as nothing.
const STOLEN_SHOWN: f64 = 0.005;

/// A sleeping thread is woken at once when a core is free or it has slept for long; an executor at
/// work competes with every other thread for its share, and waits several times as long.
const NOISE_FACTOR: u32 = 10;

/// Peaks of several executors come together now and then, each in an arena of its own.
const MEMORY_GROWTH_BYTES: u64 = 32 << 20;
const MEMORY_GROWTH_DIVISOR: u64 = 4;

/// A task, its timer, its message, and what the model knows of it.
const BYTES_PER_TIMER: u64 = 1_024;

/// Threads, the allocator's caller and the terminal keep a little for themselves.
const LEFT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> Evidence {
        Evidence {
            counts: [Count {
                checks: 10,
                violations: 0,
                worst: 0,
            }; Invariant::ALL.len()],
            slowness: 1.0,
            lateness: Lags {
                samples: 10,
                p999: Duration::from_millis(1),
                ..Lags::default()
            },
            burst: Lags {
                samples: 10,
                max: Duration::from_millis(100),
                ..Lags::default()
            },
            ping: Lags {
                samples: 10,
                ..Lags::default()
            },
            left: Some(Allocated::default()),
            memory: Memory {
                samples: 5,
                warm_bytes: 100 << 20,
                peak_bytes: 110 << 20,
                timers_added: 0,
            },
            descriptors: Descriptors {
                samples: 5,
                deviation: 0,
            },
            executors: 3,
            ..Evidence::default()
        }
    }

    /// One promise broken at a time: the verdict fails, and says so in exactly one row.
    #[test]
    fn any_one_broken_promise_fails_the_run() {
        assert!(Verdict::new(&healthy()).has_passed());
        let breaks: [fn(&mut Evidence); 10] = [
            |evidence| {
                evidence.counts[0] = Count {
                    checks: 1,
                    violations: 1,
                    worst: 1,
                }
            },
            |evidence| evidence.lateness.p999 = Duration::from_secs(1),
            |evidence| evidence.lateness.max = Duration::from_secs(10),
            |evidence| evidence.lateness.p50 = Duration::from_millis(100),
            |evidence| evidence.burst.max = Duration::from_secs(1),
            |evidence| evidence.ping.p999 = Duration::from_secs(1),
            |evidence| evidence.memory.peak_bytes = 200 << 20,
            |evidence| {
                evidence.left = Some(Allocated {
                    bytes: 100 << 20,
                    blocks: 1_000_000,
                })
            },
            |evidence| evidence.descriptors.deviation = 1,
            |evidence| evidence.failures.push("broker: panicked".to_owned()),
        ];
        for (index, break_it) in breaks.into_iter().enumerate() {
            let mut evidence = healthy();
            break_it(&mut evidence);
            let verdict = Verdict::new(&evidence);
            let failed = verdict
                .rows
                .iter()
                .filter(|row| row.standing == Standing::Fail)
                .count();
            assert_eq!(failed, 1, "break {index}: {verdict}");
            assert!(!verdict.has_passed() && verdict.to_string().ends_with("verdict: FAIL"));
        }
    }

    #[test]
    fn noise_and_slowness_widen_the_bounds_in_time() {
        let mut evidence = healthy();
        evidence.lateness.p999 = Duration::from_millis(90);
        assert!(!Verdict::new(&evidence).has_passed());
        let stretches: [fn(&mut Evidence) -> &mut f64; 3] = [
            |evidence| &mut evidence.slowness,
            |evidence| &mut evidence.contention,
            |evidence| &mut evidence.load,
        ];
        for stretch in stretches {
            *stretch(&mut evidence) = 5.0;
            assert!(Verdict::new(&evidence).has_passed());
            *stretch(&mut evidence) = 1.0;
            assert!(!Verdict::new(&evidence).has_passed());
        }
        evidence.noise.p999 = Duration::from_millis(9);
        assert!(Verdict::new(&evidence).has_passed());
    }

    #[test]
    fn what_was_not_checked_does_not_pass_for_checked() {
        let mut evidence = healthy();
        evidence.counts[5] = Count::default();
        let table = Verdict::new(&evidence).to_string();
        assert_eq!(table.matches("not exercised").count(), 1, "{table}");
        assert!(table.ends_with("verdict: pass"));
    }
}
