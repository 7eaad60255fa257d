//! The judgement: every invariant against its bound, as a table.
//!
//! Bounds in time have two parts. One is an allowance for work, stretched by how slow the machine is,
//! how much of it others took away, and how much more than usual was asked for. The other is a
//! multiple of what a sleeping thread suffered beside the run. Everything else is exact.

use std::fmt;
use std::time::Duration;

use crate::invariants::{Count, Invariant, Unit};
use crate::noise::Level;
use crate::progress::short;

/// What a run has brought to light.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) counts: [Count; Invariant::ALL.len()],
    pub(crate) first_violations: Vec<String>,
    pub(crate) lateness: Lateness,
    pub(crate) noise: Level,
    /// How many times slower than the reference machine this one is.
    pub(crate) slowness: f64,
    /// How many times longer than they ran the executors would have liked to.
    pub(crate) contention: f64,
    /// How many times the reference machine's number of timers.
    pub(crate) load: f64,
    pub(crate) memory: Memory,
    pub(crate) descriptors: Descriptors,
    pub(crate) executors: usize,
    /// Executors that did not end, or not well, each in words.
    pub(crate) failures: Vec<String>,
}

impl Evidence {
    /// How many times longer than on an idle reference machine the same work may take.
    fn stretch(&self) -> f64 {
        self.slowness.max(1.0) * self.contention.max(1.0) * self.load.max(1.0)
    }
}

/// How late timer callbacks began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lateness {
    pub(crate) timers: u64,
    pub(crate) p50: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

/// Resident memory after the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) samples: u64,
    pub(crate) warm_bytes: u64,
    pub(crate) peak_bytes: u64,
}

/// Open descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Descriptors {
    pub(crate) samples: u64,
    /// How far the count was at worst from what it was after the warm-up, and at the end from what it
    /// was before the first executor.
    pub(crate) deviation: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    rows: Vec<Row>,
    words: Vec<String>,
}

#[derive(Clone, Debug)]
struct Row {
    label: &'static str,
    checks: u64,
    worst: String,
    bound: String,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Pass,
    Fail,
    /// Nothing in this run could have broken it.
    Idle,
}

impl Verdict {
    pub(crate) fn new(evidence: &Evidence) -> Self {
        let mut rows: Vec<Row> = Invariant::ALL
            .iter()
            .zip(&evidence.counts)
            .map(|(&invariant, count)| Row::of_invariant(invariant, count))
            .collect();
        rows.extend(Row::of_lateness(evidence));
        rows.push(Row::of_memory(&evidence.memory));
        rows.push(Row::of_descriptors(&evidence.descriptors));
        rows.push(Row::of_executors(evidence));
        let mut words = evidence.failures.clone();
        words.extend(evidence.first_violations.iter().cloned());
        Verdict { rows, words }
    }

    /// Whether nothing was broken.
    pub(crate) fn passed(&self) -> bool {
        self.rows.iter().all(|row| row.standing != Standing::Fail)
    }
}

impl Row {
    fn new(label: &'static str, checks: u64, worst: String, bound: String, holds: bool) -> Self {
        let standing = match (holds, checks) {
            (false, _) => Standing::Fail,
            (true, 0) => Standing::Idle,
            (true, _) => Standing::Pass,
        };
        Row {
            label,
            checks,
            worst,
            bound,
            standing,
        }
    }

    fn of_invariant(invariant: Invariant, count: &Count) -> Self {
        let worst = match invariant.unit() {
            Unit::Nanoseconds => format!("{} ns", grouped(count.worst)),
            Unit::Count => grouped(count.worst),
        };
        let worst = match count.violations {
            0 => worst,
            violations => format!("{worst} ({} times)", grouped(violations)),
        };
        Row::new(
            invariant.label(),
            count.checks,
            worst,
            "0".to_owned(),
            count.violations == 0,
        )
    }

    fn of_lateness(evidence: &Evidence) -> [Self; 2] {
        let Evidence {
            lateness, noise, ..
        } = evidence;
        let stretch = evidence.stretch();
        let bound = |work: Duration, noise: Duration| work.mul_f64(stretch) + noise * NOISE_FACTOR;
        [
            (
                "lateness p99.9",
                lateness.p999,
                bound(WORK_P999, noise.p999),
            ),
            ("lateness max", lateness.max, bound(WORK_MAX, noise.max)),
        ]
        .map(|(label, worst, bound)| {
            Row::new(
                label,
                lateness.timers,
                short(worst),
                short(bound),
                worst <= bound,
            )
        })
    }

    fn of_memory(memory: &Memory) -> Self {
        let growth = memory.peak_bytes.saturating_sub(memory.warm_bytes);
        let bound = MEMORY_GROWTH_BYTES + memory.warm_bytes / MEMORY_GROWTH_DIVISOR;
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let worst = format!("+{} on {}", mib(growth), mib(memory.warm_bytes));
        Row::new(
            "memory after warm-up",
            memory.samples,
            worst,
            format!("+{}", mib(bound)),
            growth <= bound,
        )
    }

    fn of_descriptors(descriptors: &Descriptors) -> Self {
        let Descriptors { samples, deviation } = *descriptors;
        Row::new(
            "descriptors constant",
            samples,
            deviation.to_string(),
            "0".to_owned(),
            deviation == 0,
        )
    }

    fn of_executors(evidence: &Evidence) -> Self {
        let failures = evidence.failures.len();
        let executors = evidence.executors as u64;
        Row::new(
            "executors ended well",
            executors,
            failures.to_string(),
            "0".to_owned(),
            failures == 0,
        )
    }
}

/// What the bounds in time are made of.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Evidence {
            lateness, noise, ..
        } = self;
        writeln!(
            f,
            "timers: {} fired, late p50 {} p99.9 {} max {}",
            grouped(lateness.timers),
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
                Standing::Idle => "not exercised",
            };
            writeln!(
                f,
                "{:<26}{:>14}  {:>24}  {:>12}  {standing}",
                row.label,
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
            if self.passed() { "pass" } else { "FAIL" }
        )
    }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// What callbacks due together may cost each other on the reference machine: one in a thousand.
const WORK_P999: Duration = Duration::from_millis(20);

/// The same for the worst: one preemption interval of 100 ms and as much again.
const WORK_MAX: Duration = Duration::from_millis(200);

/// A sleeping thread is woken at once when a core is free or it has slept for long; an executor at
/// work competes with every other thread for its share, and waits several times as long.
const NOISE_FACTOR: u32 = 10;

const MEMORY_GROWTH_BYTES: u64 = 16 << 20;
const MEMORY_GROWTH_DIVISOR: u64 = 4;

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
            lateness: Lateness {
                timers: 10,
                p999: Duration::from_millis(1),
                ..Lateness::default()
            },
            memory: Memory {
                samples: 5,
                warm_bytes: 100 << 20,
                peak_bytes: 110 << 20,
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
        assert!(Verdict::new(&healthy()).passed());
        let breaks: [fn(&mut Evidence); 6] = [
            |evidence| {
                evidence.counts[0] = Count {
                    checks: 1,
                    violations: 1,
                    worst: 1,
                }
            },
            |evidence| evidence.lateness.p999 = Duration::from_secs(1),
            |evidence| evidence.lateness.max = Duration::from_secs(10),
            |evidence| evidence.memory.peak_bytes = 200 << 20,
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
            assert!(!verdict.passed() && verdict.to_string().ends_with("verdict: FAIL"));
        }
    }

    #[test]
    fn noise_and_slowness_widen_the_bounds_in_time() {
        let mut evidence = healthy();
        evidence.lateness.p999 = Duration::from_millis(90);
        assert!(!Verdict::new(&evidence).passed());
        let stretches: [fn(&mut Evidence) -> &mut f64; 3] = [
            |evidence| &mut evidence.slowness,
            |evidence| &mut evidence.contention,
            |evidence| &mut evidence.load,
        ];
        for stretch in stretches {
            *stretch(&mut evidence) = 5.0;
            assert!(Verdict::new(&evidence).passed());
            *stretch(&mut evidence) = 1.0;
            assert!(!Verdict::new(&evidence).passed());
        }
        evidence.noise.p999 = Duration::from_millis(9);
        assert!(Verdict::new(&evidence).passed());
    }

    #[test]
    fn what_was_not_checked_does_not_pass_for_checked() {
        let mut evidence = healthy();
        evidence.counts[5] = Count::default();
        let table = Verdict::new(&evidence).to_string();
        assert_eq!(table.matches("not exercised").count(), 1, "{table}");
        assert!(table.ends_with("verdict: pass"));
    }

    #[test]
    fn digits_in_groups() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
