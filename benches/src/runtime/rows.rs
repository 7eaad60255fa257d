//! What a row of a table is, and the rows that more than one table has.
//!
//! What a row measures exactly, and how it is warmed up, is said at its case in
//! `peers/workloads/src/cases`.

use std::fmt;

/// One figure that every crate is asked for.
#[derive(Debug)]
pub struct Row {
    /// The word for it on the command line and in what the binaries print.
    pub name: &'static str,
    /// The case that yields it, perhaps among others.
    pub case: &'static str,
    /// What it is.
    pub title: &'static str,
    /// In what unit.
    pub unit: &'static str,
    /// Where our crate wants to be.
    pub aim: Aim,
    /// The row whose figure of glommio 0.9.0 is the unit of the ratios: this one, unless 0.9.0
    /// lacks what it measures.
    pub against: &'static str,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug)]
pub enum Aim {
    /// At most this often the figure of glommio 0.9.0.
    RatioAtMost(f64),
    /// At least this often the figure of glommio 0.9.0.
    RatioAtLeast(f64),
    /// As [`Aim::RatioAtMost`]; figures up to `floor` are as good as nothing, and met whatever the
    /// ratio.
    RatioAtMostOrFloor {
        /// How often the figure of glommio 0.9.0.
        ratio: f64,
        /// What is always good enough.
        floor: f64,
    },
    /// At most this, whatever the others do.
    AtMost(f64),
    /// Zero.
    Zero,
    /// Nothing in particular: the row is there to be read.
    Open,
}

/// Whether an aim was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Met,
    /// It was not.
    Missed,
}

/// The row `name` of `case`.
pub const fn row(
    name: &'static str,
    case: &'static str,
    title: &'static str,
    unit: &'static str,
    aim: Aim,
) -> Row {
    Row {
        name,
        case,
        title,
        unit,
        aim,
        against: name,
    }
}

impl Row {
    /// The same row, in proportion to the row `name`.
    #[must_use]
    pub const fn against(mut self, name: &'static str) -> Row {
        self.against = name;
        self
    }

    /// Whether the row is asked for by `pattern`.
    pub fn matches(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.title.contains(pattern)
    }
}

impl Aim {
    /// Judges `figure`, given its ratio to glommio 0.9.0; `None` where there is nothing to judge or
    /// to judge by.
    pub fn verdict(self, figure: Option<f64>, ratio: Option<f64>) -> Option<Verdict> {
        let figure = figure?;
        let is_met = match self {
            Aim::RatioAtMost(most) => ratio? <= most,
            Aim::RatioAtLeast(least) => ratio? >= least,
            Aim::RatioAtMostOrFloor { ratio: most, floor } => figure <= floor || ratio? <= most,
            Aim::AtMost(limit) => figure <= limit,
            Aim::Zero => figure == 0.0,
            Aim::Open => return None,
        };
        Some(if is_met {
            Verdict::Met
        } else {
            Verdict::Missed
        })
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aim::RatioAtMost(ratio) => write!(formatter, "≤ {ratio}×"),
            Aim::RatioAtLeast(ratio) => write!(formatter, "≥ {ratio}×"),
            Aim::RatioAtMostOrFloor { ratio, floor } => write!(formatter, "≤ {ratio}× or {floor}"),
            Aim::AtMost(limit) => write!(formatter, "≤ {limit}"),
            Aim::Zero => formatter.write_str("0"),
            Aim::Open => formatter.write_str("—"),
        }
    }
}

/// Timers beside many others, in either table.
#[rustfmt::skip]
pub const TIMER_100K_5S: Row = row("timer-100k-5s", "timer-100k-5s", "`Timer`: create, poll once, drop; 100k sleepers, 5 s", "ns", Aim::RatioAtMost(0.25));

/// The same with deadlines of all lengths.
#[rustfmt::skip]
pub const TIMER_100K_MIXED: Row = row("timer-100k-mixed", "timer-100k-mixed", "same, 100k sleepers, 1 ms to 30 s", "ns", Aim::RatioAtMost(0.15));

/// How exact a short sleep is.
#[rustfmt::skip]
pub const OVERSHOOT_100US: Row = row("overshoot-100us", "overshoot", "overshoot of a 100 µs sleep, p50", "µs", Aim::RatioAtMost(0.8));

/// What a sleep is worth next to others that work.
#[rustfmt::skip]
pub const LATE_YIELD_NOW: Row = row("late-yield-now", "late-yield-now", "lateness of a 1 ms sleep next to a self-waking task", "µs", Aim::RatioAtMost(0.001));
