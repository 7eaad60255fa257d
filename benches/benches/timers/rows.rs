//! The rows of the table, by the case that yields them.

use benches::timers::Deadlines;
use support::numbers::{COUNTS, round};
use support::quantiles::Spread;

use crate::cases::Case;
use crate::figures::{Order, Start};

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
pub fn all() -> Vec<Group> {
    let mut groups = Vec::new();
    for (start, title) in [
        (Start::Cold, "into a fresh queue (cold)"),
        (Start::Warm, "into one that was as full before (warm)"),
    ] {
        groups.extend(INSERTED.map(|timers| Group {
            section: "Insert",
            case: Case::Insert { timers, start },
            rows: vec![row(
                &insert_name(start, timers),
                format!("{title}, {}", short(timers)),
                "ns",
            )],
        }));
    }
    for (deadlines, title) in [
        (Deadlines::Mixed, "due in 1 ms to 30 s"),
        (Deadlines::Uniform, "all due in 5 s"),
    ] {
        groups.extend(POPULATIONS.map(|timers| {
            let churn = |victim, what| {
                row(
                    &churn_name(victim, deadlines, timers),
                    format!("{what}, {} live, {title}", short(timers)),
                    "ns",
                )
            };
            Group {
                section: "Cancel and insert",
                case: Case::Churn { timers, deadlines },
                rows: vec![
                    churn("recent", "the timer just armed"),
                    churn("random", "any timer"),
                ],
            }
        }));
    }
    groups.push(latency(100_000));
    groups.extend(FEW.map(latency));
    groups.extend([100, 1_000, 100_000, 1_000_000].map(empty_poll));
    groups.extend([
        group(
            "Polls",
            Case::Expiry,
            [
                (
                    "expire-100",
                    "expire 100 of 100k, in the poll, per timer",
                    "ns",
                ),
                (
                    "expire-100-released",
                    "the same with the handles released",
                    "ns",
                ),
                ("expire-100-p50", "the same, p50 of the polls", "cycles"),
                ("expire-100-p99", "the same, p99 of the polls", "cycles"),
                ("expire-100-p999", "the same, p999 of the polls", "cycles"),
            ],
        ),
        burst(Order::Sorted, "sorted", "in order"),
        burst(Order::Random, "random", "at random"),
        group(
            "Polls",
            Case::Stall,
            [("stall", "poll after an hour, 1k due of 11k", "µs")],
        ),
        mix(50),
        mix(500),
        group(
            "100k timers: create, set, set, expire",
            Case::Table,
            [
                ("table-create", "create", "ms"),
                ("table-set-same", "set all to one time", "ms"),
                ("table-set-different", "set all to different times", "ms"),
                ("table-expire", "expire all in one poll", "ms"),
            ],
        ),
        peak(),
        group(
            "Memory",
            Case::Memory,
            [
                ("memory", "bytes per timer at 100k", "B"),
                ("memory-empty", "bytes of an empty queue", "B"),
                (
                    "allocations",
                    "allocator calls per cancel + insert, 100k live",
                    "calls",
                ),
            ],
        ),
    ]);
    groups
}

/// What the command line asks for: groups with a row that matches.
pub fn chosen(pattern: &str) -> Vec<Group> {
    let mut groups = all();
    groups.retain(|group| group.rows.iter().any(|row| row.matches(pattern)));
    groups
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
            row(
                &format!("{name}-{quantile}-{timers}"),
                format!("{title}, {} live, {quantile}", short(timers)),
                "cycles",
            )
        })
    });
    Group {
        section: if timers < 256 {
            "Single operations, fewer than 256 timers"
        } else {
            "Single operations, 100k timers"
        },
        case: Case::Latency { timers },
        rows: rows.collect(),
    }
}

fn empty_poll(timers: usize) -> Group {
    let rows = ["p50", "p999"].map(|quantile| {
        row(
            &format!("empty-poll-{quantile}-{timers}"),
            format!("empty poll, {} live, {quantile}", short(timers)),
            "cycles",
        )
    });
    Group {
        section: "Polls",
        case: Case::EmptyPoll { timers },
        rows: rows.to_vec(),
    }
}

fn burst(order: Order, name: &str, title: &str) -> Group {
    let title = format!("100k due in one ms, armed {title}");
    Group {
        section: "Polls",
        case: Case::Burst(order),
        rows: vec![
            row(
                &format!("burst-{name}"),
                format!("{title}: per timer"),
                "ns",
            ),
            maximum(
                &format!("burst-{name}-longest"),
                format!("{title}: longest poll"),
                "µs",
            ),
            row(
                &format!("burst-{name}-no-budget"),
                format!("{title}: per timer without a budget"),
                "ns",
            ),
        ],
    }
}

fn mix(messages_per_ms: usize) -> Group {
    let title = format!("message queue, {messages_per_ms}/ms");
    Group {
        section: "A message queue",
        case: Case::Mix { messages_per_ms },
        rows: vec![
            row(
                &format!("mix-{messages_per_ms}"),
                format!("{title}: per message"),
                "ns",
            ),
            row(
                &format!("mix-{messages_per_ms}-p999"),
                format!("{title}: poll + next expiry p999"),
                "µs",
            ),
            maximum(
                &format!("mix-{messages_per_ms}-longest"),
                format!("{title}: longest poll + next expiry"),
                "µs",
            ),
        ],
    }
}

fn peak() -> Group {
    let survivors = "empty poll, 200 survivors of 200k re-armed in place, p50";
    let closed = "1M due in one ms, cancelled 2 ms before: longest poll";
    let held = "bytes held an hour after 1M were cancelled, per timer";
    Group {
        section: "After a peak",
        case: Case::Peak,
        rows: vec![
            row("peak-survivors", survivors.to_owned(), "cycles"),
            maximum("peak-closed-longest", closed.to_owned(), "µs"),
            row("peak-held", held.to_owned(), "B"),
        ],
    }
}

fn group<const ROWS: usize>(
    section: &'static str,
    case: Case,
    rows: [(&str, &str, &'static str); ROWS],
) -> Group {
    let rows = rows.map(|(name, title, unit)| row(name, title.to_owned(), unit));
    Group {
        section,
        case,
        rows: rows.into(),
    }
}

fn row(name: &str, title: String, unit: &'static str) -> Row {
    Row {
        name: name.to_owned(),
        title,
        unit,
        is_maximum: false,
    }
}

fn maximum(name: &str, title: String, unit: &'static str) -> Row {
    Row {
        is_maximum: true,
        ..row(name, title, unit)
    }
}

/// 1M, 10k, 250.
fn short(count: usize) -> String {
    round(count as f64, &COUNTS)
}
