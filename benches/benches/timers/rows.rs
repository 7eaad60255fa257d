//! The rows of the table, by the case that yields them.

use std::time::Duration;

use support::numbers::{COUNTS, round};
use support::quantiles::Spread;

use crate::cases::Case;
use crate::figures::{Order, Start};
use crate::workload::Deadlines;

/// A case and the rows that its figures go to.
#[derive(Debug)]
pub struct Group {
    /// Above the table that the rows are in.
    pub section: &'static str,
    /// What is run.
    pub case: Case,
    /// As many as the case has figures.
    pub rows: Vec<Row>,
}

/// One line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The word for it on the command line.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Of the figures.
    pub unit: &'static str,
    /// Whether each figure is a maximum. The rounds do the same work, and what disturbs one of
    /// them can only make its maximum larger: the smallest stands for the row then, else the
    /// median.
    pub is_maximum: bool,
}

impl Row {
    /// The figure that stands for the row.
    pub fn figure(&self, spread: Spread) -> f64 {
        if self.is_maximum {
            spread.min
        } else {
            spread.median
        }
    }

    /// Whether it is asked for by `pattern`.
    pub fn matches(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.title.contains(pattern)
    }
}

/// Populations of the rows that show growth.
pub const POPULATIONS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// The same from a hundred on.
pub const INSERTED: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// Below the 256 at which a staged queue turns to its wheel.
const FEW: [usize; 3] = [10, 100, 250];

/// The name of a row of inserts.
pub fn insert_name(start: Start, timers: usize) -> String {
    let start = match start {
        Start::Cold => "cold",
        Start::Warm => "warm",
    };
    format!("insert-{start}-{timers}")
}

/// The name of a row of churn.
pub fn churn_name(victim: &str, deadlines: Deadlines, timers: usize) -> String {
    let deadlines = match deadlines {
        Deadlines::Mixed => "mixed",
        Deadlines::Uniform => "5s",
    };
    format!("churn-{victim}-{deadlines}-{timers}")
}

/// All rows, in the order of the table.
#[rustfmt::skip]
pub fn all() -> Vec<Group> {
    let mut groups = Vec::new();
    for (start, title) in [
        (Start::Cold, "into a fresh queue (cold)"),
        (Start::Warm, "into one that was as full before (warm)"),
    ] {
        groups.extend(INSERTED.map(|timers| {
            let title = format!("{title}, {}", short(timers));
            let rows = vec![row(insert_name(start, timers), title, "ns")];
            group("Insert", Case::Insert { timers, start }, rows)
        }));
    }
    for (deadlines, title) in [
        (Deadlines::Mixed, "due in 1 ms to 30 s"),
        (Deadlines::Uniform, "all due in 5 s"),
    ] {
        groups.extend(POPULATIONS.map(|timers| {
            let churn = |victim, what| {
                let title = format!("{what}, {} live, {title}", short(timers));
                row(churn_name(victim, deadlines, timers), title, "ns")
            };
            let rows = vec![churn("recent", "the timer just armed"), churn("random", "any timer")];
            group("Cancel and insert", Case::Churn { timers, deadlines }, rows)
        }));
    }
    groups.extend([1_000, 10_000, 100_000].map(rearm));
    groups.extend([100, 1_000, 10_000, 100_000].map(next_expiry));
    groups.extend([1_000, 100_000].map(fixed));
    groups.push(latency(100_000));
    groups.extend(FEW.map(latency));
    groups.extend([100, 1_000, 100_000, 1_000_000].map(empty_poll));
    groups.extend([
        group("Polls", Case::Expiry { timers: 100_000, batch: 100 }, vec![
            row("expire-100", "expire 100 of 100k, in the poll, per timer", "ns"),
            row("expire-100-released", "the same with the handles released", "ns"),
            row("expire-100-p50", "the same, p50 of the polls", "cycles"),
            row("expire-100-p99", "the same, p99 of the polls", "cycles"),
            row("expire-100-p999", "the same, p999 of the polls", "cycles"),
        ]),
        expiry(1_000, 100),
        expiry(10_000, 100),
        expiry(1_000, 1_000),
        expiry(10_000, 10_000),
        expiry(100_000, 100_000),
        burst(Order::Sorted, "sorted", "in order"),
        burst(Order::Random, "random", "at random"),
        silence("60s", "60 s"),
        silence("day", "a day"),
        group("Polls", Case::Stall, vec![row("stall", "poll after an hour, 1k due of 11k", "µs")]),
        mix(50),
        mix(500),
        group("100k timers: create, set, set, expire", Case::Table, vec![
            row("table-create", "create", "ms"),
            row("table-set-same", "set all to one time", "ms"),
            row("table-set-different", "set all to different times", "ms"),
            row("table-expire", "expire all in one poll", "ms"),
        ]),
        group("After a peak", Case::Peak, vec![
            row("peak-survivors", "empty poll, 200 survivors of 200k re-armed in place, p50", "cycles"),
            maximum("peak-closed-longest", "1M due in one ms, cancelled 2 ms before: longest poll", "µs"),
            row("peak-held", "bytes held an hour after 1M were cancelled, per timer", "B"),
        ]),
        group("Memory", Case::Memory, vec![
            row("memory", "bytes per timer at 100k", "B"),
            row("memory-empty", "bytes of an empty queue", "B"),
            row("allocations", "allocator calls per cancel + insert, 100k live", "calls"),
        ]),
    ]);
    groups
}

/// What the command line asks for: groups with a row that matches.
pub fn chosen(pattern: &str) -> Vec<Group> {
    let mut groups = all();
    groups.retain(|group| group.rows.iter().any(|row| row.matches(pattern)));
    groups
}

fn rearm(timers: usize) -> Group {
    let rows = [
        ("later", "to a later time than all others"),
        ("any", "to any time"),
    ];
    let rows = rows.map(|(name, what)| {
        let title = format!("re-arm of any timer, {} live, {what}", short(timers));
        row(format!("rearm-{name}-{timers}"), title, "ns")
    });
    group("Re-arm, next expiry", Case::Rearm { timers }, rows.into())
}

fn fixed(timers: usize) -> Group {
    let rows = [
        ("renew", "re-arm of any timer"),
        ("again", "cancel of any timer + insert"),
        ("expire", "expire all, in polls every ms, per timer"),
    ];
    let rows = rows.map(|(name, what)| {
        let title = format!("{what}, {} live", short(timers));
        row(format!("fixed-{name}-{timers}"), title, "ns")
    });
    group(
        "One duration for all: 5 s, as time passes",
        Case::Fixed { timers },
        rows.into(),
    )
}

fn next_expiry(timers: usize) -> Group {
    let rows = [
        ("changed", "cancel of any timer, insert, next expiry"),
        ("unchanged", "next expiry again"),
    ];
    let rows = rows.map(|(name, what)| {
        let title = format!("{what}, {} live", short(timers));
        row(format!("next-expiry-{name}-{timers}"), title, "ns")
    });
    let case = Case::NextExpiry { timers };
    group("Re-arm, next expiry", case, rows.into())
}

fn latency(timers: usize) -> Group {
    let operations = [
        ("insert", "insert"),
        ("cancel", "cancel of any timer"),
        ("pair", "cancel of any timer + insert"),
        ("next", "next expiry after a change"),
    ];
    let rows = operations.iter().flat_map(|(name, title)| {
        Case::quantiles(timers).iter().map(move |quantile| {
            let title = format!("{title}, {} live, {quantile}", short(timers));
            row(format!("{name}-{quantile}-{timers}"), title, "cycles")
        })
    });
    let section = match timers {
        ..256 => "Single operations, fewer than 256 timers",
        _ => "Single operations, 100k timers",
    };
    group(section, Case::Latency { timers }, rows.collect())
}

fn empty_poll(timers: usize) -> Group {
    let rows = ["p50", "p999"].map(|quantile| {
        let title = format!("empty poll, {} live, {quantile}", short(timers));
        row(format!("empty-poll-{quantile}-{timers}"), title, "cycles")
    });
    group("Polls", Case::EmptyPoll { timers }, rows.into())
}

fn expiry(timers: usize, batch: usize) -> Group {
    let live = short(timers);
    let row = if batch == timers {
        let title = format!("expire all of {live} in one poll, per timer");
        row(format!("expire-all-{timers}"), title, "ns")
    } else {
        let title = format!("expire {batch} of {live}, in the poll, per timer");
        row(format!("expire-{batch}-of-{timers}"), title, "ns")
    };
    group("Polls", Case::Expiry { timers, batch }, vec![row])
}

#[rustfmt::skip]
fn burst(order: Order, name: &str, title: &str) -> Group {
    let title = format!("100k due in one ms, armed {title}");
    group("Polls", Case::Burst(order), vec![
        row(format!("burst-{name}"), format!("{title}: per timer"), "ns"),
        maximum(format!("burst-{name}-longest"), format!("{title}: longest poll"), "µs"),
        row(format!("burst-{name}-no-budget"), format!("{title}: per timer without a budget"), "ns"),
    ])
}

#[rustfmt::skip]
fn silence(name: &str, title: &str) -> Group {
    let title = format!("100k due in one ms, {title} without a poll");
    let silence = Duration::from_secs(if name == "day" { 86_400 } else { 60 });
    group("Polls", Case::Silence(silence), vec![
        row(format!("silence-{name}-first"), format!("{title}: until the first fires"), "µs"),
        row(format!("silence-{name}-polls"), "the same, in polls", "polls"),
        row(format!("silence-{name}-all"), "the same, until all have fired", "ms"),
    ])
}

#[rustfmt::skip]
fn mix(messages_per_ms: usize) -> Group {
    let title = format!("message queue, {messages_per_ms}/ms");
    let name = format!("mix-{messages_per_ms}");
    group("A message queue", Case::Mix { messages_per_ms }, vec![
        row(name.clone(), format!("{title}: per message"), "ns"),
        row(format!("{name}-p999"), format!("{title}: poll + next expiry p999"), "µs"),
        maximum(format!("{name}-longest"), format!("{title}: longest poll + next expiry"), "µs"),
    ])
}

fn group(section: &'static str, case: Case, rows: Vec<Row>) -> Group {
    Group {
        section,
        case,
        rows,
    }
}

fn row(name: impl Into<String>, title: impl Into<String>, unit: &'static str) -> Row {
    Row {
        name: name.into(),
        title: title.into(),
        unit,
        is_maximum: false,
    }
}

fn maximum(name: impl Into<String>, title: impl Into<String>, unit: &'static str) -> Row {
    Row {
        is_maximum: true,
        ..row(name, title, unit)
    }
}

/// 1M, 10k, 250.
fn short(count: usize) -> String {
    round(count as f64, &COUNTS)
}
