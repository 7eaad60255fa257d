//! The judgement: every invariant against its bound, as a table.
//!
//! Bounds in time are [`timeliness`](crate::check::timeliness)'s. Everything else is exact.

use std::fmt;

use support::tables::Table;

use crate::check::invariants::{Count, Invariant};
use crate::check::timeliness::Timeliness;
use crate::counts::{self, grouped};
use crate::measure::quiet::Taken;
use crate::measure::resources::Resources;
use crate::record::{Outcome, Record, Row};

/// What a run has brought to light.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) counts: [Count; Invariant::ALL.len()],
    pub(crate) first_violations: Vec<String>,
    pub(crate) timeliness: Timeliness,
    /// What the host of a virtual machine took away, and what a quota did.
    pub(crate) taken: [Taken; 2],
    /// How many times slower than the reference machine this one is.
    pub(crate) slowness: f64,
    /// How many times the reference machine's number of timers.
    pub(crate) load: f64,
    pub(crate) resources: Resources,
    pub(crate) executors: usize,
    /// Executors that did not end, or not well, each in words.
    pub(crate) failures: Vec<String>,
}

impl Evidence {
    /// Every promise with how it came out.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let promises = Invariant::ALL.iter().zip(&self.counts);
        let mut rows: Vec<Row> = promises
            .map(|(&invariant, count)| of_invariant(invariant, count))
            .collect();
        let idle = &mut rows[Invariant::IdleCpu as usize];
        if idle.standing == Outcome::Fail && !self.timeliness.is_steady() {
            idle.standing = Outcome::Inconclusive;
        }
        // How many times longer than on the reference machine the same work may take.
        let stretch = self.slowness.max(1.0) * self.load.max(1.0);
        rows.extend(self.timeliness.rows(stretch));
        rows.extend(self.of_the_process());
        rows
    }

    /// What no executor sees.
    fn of_the_process(&self) -> [Row; 4] {
        let held = &self.resources;
        let growth = held.peak_bytes.saturating_sub(held.warm_bytes);
        let growth_max = MEMORY_GROWTH_BYTES
            + held.warm_bytes / MEMORY_GROWTH_DIVISOR
            + held.timers_added * BYTES_PER_TIMER;
        let left = held.left.unwrap_or_default();
        let sizes = [
            growth,
            held.warm_bytes,
            growth_max,
            left.bytes,
            LEFT_BYTES_MAX,
        ];
        let [grown, warm, bound, left_over, left_max] = sizes.map(counts::bytes);
        let (open, failures) = (held.descriptor_deviation, self.failures.len() as u64);
        let left_over = format!("{left_over} in {} blocks", grouped(left.blocks));
        let has_ended = u64::from(held.left.is_some());
        [
            row(
                "memory after warm-up",
                "Once the run is under way, the process grows by no more than this.",
                [held.samples, u64::from(growth > growth_max)],
                [format!("+{grown} on {warm}"), format!("+{bound}")],
            ),
            row(
                "memory after the end",
                "When everything has ended, the program has given back the memory it asked for.",
                [has_ended, u64::from(left.bytes > LEFT_BYTES_MAX)],
                [left_over, left_max],
            ),
            row(
                "descriptors constant",
                "No file or socket is left open.",
                [held.descriptor_samples, u64::from(open > 0)],
                [open.to_string(), "0".to_owned()],
            ),
            row(
                "executors ended well",
                "Every thread of the run came to its end without an error.",
                [self.executors as u64, failures],
                [failures.to_string(), "0".to_owned()],
            ),
        ]
    }
}

/// A row with its meaning that is exact: one violation breaks it.
fn row(
    label: &str,
    meaning: &str,
    [checks, violations]: [u64; 2],
    [worst, bound]: [String; 2],
) -> Row {
    Row {
        invariant: label.to_owned(),
        meaning: meaning.to_owned(),
        checks,
        violations,
        worst,
        bound,
        standing: match (violations, checks) {
            (0, 0) => Outcome::NotExercised,
            (0, _) => Outcome::Pass,
            _ => Outcome::Fail,
        },
    }
}

fn of_invariant(invariant: Invariant, count: &Count) -> Row {
    let mut worst = grouped(count.worst) + invariant.unit();
    if count.violations > 0 {
        worst += &format!(" ({} times)", grouped(count.violations));
    }
    row(
        invariant.label(),
        invariant.meaning(),
        [count.checks, count.violations],
        [worst, "0".to_owned()],
    )
}

/// What the bounds in time are made of.
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timeliness.fmt(f)?;
        for (by, taken) in ["host: ", "quota:"].into_iter().zip(self.taken) {
            if taken.worst_second >= TAKEN_SHOWN {
                writeln!(
                    f,
                    "{by}  took {:.2} cores away on average, {:.2} in the worst second",
                    taken.on_average, taken.worst_second,
                )?;
            }
        }
        writeln!(
            f,
            "work:   {:.2} times slower than the reference machine, {:.2} times the load",
            self.slowness, self.load,
        )
    }
}

/// The table, what is to be said beside it, and the verdict.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["invariant", "checks", "worst", "bound", "verdict"]).left(4);
        for row in &self.rows {
            table.push([
                row.invariant.as_str(),
                &grouped(row.checks),
                &row.worst,
                &row.bound,
                row.standing.word(),
            ]);
        }
        f.write_str(&table.terminal())?;
        for word in &self.words {
            writeln!(f, "  ! {word}")?;
        }
        if self.outcome == Outcome::Inconclusive {
            writeln!(f, "{INCONCLUSIVE}")?;
        }
        write!(f, "verdict: {}", self.outcome.word())
    }
}

/// What to do about it.
const INCONCLUSIVE: &str = "\
Nothing was broken. How late timers were was not judged everywhere: too few seconds of this run were\n\
quiet. Run it optimised and for a minute or more, on a machine that does nothing else.";

/// In cores: less is shown as nothing.
const TAKEN_SHOWN: f64 = 0.005;

/// Peaks of several executors come together now and then, each in an arena of its own.
const MEMORY_GROWTH_BYTES: u64 = 32 << 20;
const MEMORY_GROWTH_DIVISOR: u64 = 4;

/// A task, its timer, its message, and what the model knows of it.
const BYTES_PER_TIMER: u64 = 1_024;

/// Threads, the allocator's caller and the terminal keep a little for themselves.
const LEFT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use support::quantiles::histogram;

    use super::*;
    use crate::measure::quiet::Second;

    /// Its processor time is charged with what its host took away, which it cannot see.
    #[test]
    fn an_emulated_processor_is_not_found_to_be_busy() {
        let mut evidence = Evidence::default();
        evidence.counts[Invariant::IdleCpu as usize].violations = 7;
        assert_eq!(Outcome::of(&evidence.rows()), Outcome::Fail);
        let mut noise = histogram();
        noise.saturating_record(1_000_000);
        evidence.timeliness.begin(&Second::default(), &noise);
        assert_eq!(Outcome::of(&evidence.rows()), Outcome::Inconclusive);
    }

    /// A row for which there is no planted defect was never seen to fail.
    #[test]
    fn every_row_has_a_planted_defect() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/planted");
        let patches = std::fs::read_dir(folder).expect("the folder of the defects");
        let planted = patches.map(|entry| {
            let patch = entry.expect("a patch").path();
            std::fs::read_to_string(patch).expect("text")
        });
        let planted: String = planted.collect();
        let runs = (planted.lines()).filter_map(|line| line.strip_prefix("row: "));
        let rows = runs.filter_map(|run| run.split(" | ").next());
        let seen_in: Vec<_> = rows.flat_map(|rows| rows.split("; ")).collect();
        for row in Evidence::default().rows() {
            assert!(seen_in.contains(&&*row.invariant), "{}", row.invariant);
        }
    }
}
