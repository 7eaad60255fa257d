//! The rows, and what measures them in a queue.

use std::time::Duration;

use benches::bench::{Case, Column};
use benches::figures::Measured;
use benches::row::{Aim, Row, row};
use support::numbers::{COUNTS, round};

use crate::measure::{Figures, basics, burst, exactness, expiry, latency, memory, mix};
use crate::queues::{Queue, TimerQueue};
use crate::workload::Deadlines;

/// Rows whose figures come from one measurement.
pub struct Group {
    /// As many as there are figures, or more.
    pub rows: Vec<Row>,
    /// It is measured in one of so many rounds.
    pub one_in: usize,
    /// Measures once.
    pub run: Box<dyn Fn() -> Figures>,
}

/// The column of a queue that has these rows.
pub fn column<Q: Queue>(groups: Vec<Group>) -> Column {
    let cases = groups.into_iter().map(|group| Case {
        name: group.rows[0].case.clone(),
        one_in: group.one_in,
        run: Box::new(move || {
            let figures = (group.run)();
            let rows = group.rows.iter().map(|row| row.name.clone());
            let measured = rows.zip(figures.values).map(|(row, value)| Measured {
                row,
                value,
                is_astray: figures.is_astray,
            });
            Ok(measured.collect())
        }),
    });
    Column {
        name: Q::NAME.to_owned(),
        cases: cases.collect(),
    }
}

/// The tables, in the order of the page.
const SECTIONS: [&str; 5] = [
    OPERATIONS,
    ONE_DURATION,
    "Single operations",
    "Polls",
    "Memory",
];
const OPERATIONS: &str = "Insert, cancel, re-arm";
const ONE_DURATION: &str = "One duration for all: 5 s, as time passes";
const EXACTNESS: &str = "Exactness: 20,000 timers over 20 s, polled every 100 to 200 µs";

/// What every keeper of timers does. Only what is over in no time even without optimisation if it is to be small.
pub fn unordered<Q: Queue>(is_small: bool) -> Vec<Group> {
    let mut groups = Vec::new();
    let sizes = |sizes: &[usize]| sizes_of(sizes, is_small);
    for (is_warm, name, title) in [
        (false, "cold", "into a fresh queue (cold)"),
        (true, "warm", "into one that was as full before (warm)"),
    ] {
        for timers in sizes(&[100, 1_000, 10_000, 100_000, 1_000_000]) {
            let title = format!("{title}, {}", short(timers));
            let rows = vec![ns(format!("insert-{name}-{timers}"), title)];
            let run = move || basics::insert::<Q>(timers, is_warm);
            groups.push(group(OPERATIONS, rows, run).seldom_if(timers >= 1_000_000));
        }
    }
    for (deadlines, name, title, least) in [
        (Deadlines::Mixed, "mixed", "due in 1 ms to 30 s", 1_000),
        (Deadlines::Uniform, "5s", "all due in 5 s", 1_000_000),
    ] {
        let wanted = sizes(&[1_000, 10_000, 100_000, 1_000_000]);
        for timers in wanted.into_iter().filter(|timers| *timers >= least) {
            let row = |victim, what| {
                let title = format!("{what}, {} live, {title}", short(timers));
                ns(format!("churn-{victim}-{name}-{timers}"), title)
            };
            let rows = vec![
                row("recent", "the timer just armed"),
                row("random", "any timer"),
            ];
            let run = move || basics::churn::<Q>(timers, deadlines);
            groups.push(group(OPERATIONS, rows, run).seldom_if(timers >= 1_000_000));
        }
    }
    for timers in sizes(&[100_000, 250]) {
        let operations = [
            ("insert", "insert"),
            ("cancel", "cancel of any timer"),
            ("pair", "cancel of any timer + insert"),
        ];
        let run = move || latency::operations::<Q>(timers, quantiles(timers));
        groups.push(single(timers, &operations, run));
    }
    if !is_small {
        let rows = vec![
            unit("memory", "bytes per timer at 100k", "B"),
            unit("memory-empty", "bytes of an empty queue", "B"),
            unit(
                "allocations",
                "allocator calls per cancel + insert, 100k live",
                "calls",
            ),
        ];
        // Each round would say the same.
        let one_in = usize::MAX;
        let memory = group("Memory", rows, memory::of_queue::<Q>);
        groups.push(Group { one_in, ..memory });
    }
    groups
}

/// What a timer queue does besides.
#[rustfmt::skip]
pub fn all<Q: TimerQueue>(is_small: bool) -> Vec<Group> {
    let mut groups = unordered::<Q>(is_small);
    let sizes = |sizes: &[usize]| sizes_of(sizes, is_small);
    for timers in sizes(&[1_000, 100_000]) {
        let title = |what| format!("re-arm of any timer, {} live, {what}", short(timers));
        let rows = vec![
            ns(format!("rearm-later-{timers}"), title("to a later time than all others")),
            ns(format!("rearm-any-{timers}"), title("to any time")),
        ];
        groups.push(group(OPERATIONS, rows, move || basics::rearm::<Q>(timers)));
    }
    if Q::TELLS_NEXT {
        for timers in sizes(&[100, 100_000]) {
            let title = |what| format!("{what}, {} live", short(timers));
            let rows = vec![
                ns(format!("next-expiry-changed-{timers}"), title("cancel of any timer, insert, next expiry")),
                ns(format!("next-expiry-unchanged-{timers}"), title("next expiry again")),
            ];
            groups.push(group(OPERATIONS, rows, move || basics::next_expiry::<Q>(timers)));
        }
        for timers in sizes(&[100_000, 250]) {
            let run = move || latency::next_expiry::<Q>(timers, quantiles(timers));
            groups.push(single(timers, &[("next", "next expiry after a change")], run));
        }
    }
    groups.extend(fixed::<Q>(is_small));
    for timers in sizes(&[100, 100_000, 1_000_000]) {
        let rows = vec![unit(format!("empty-poll-{timers}"), format!("empty poll, {} live, p50", short(timers)), "cycles")];
        groups.push(group("Polls", rows, move || latency::empty_poll::<Q>(timers)).seldom_if(timers >= 1_000_000));
    }
    groups.push(group("Polls", vec![ns("expire-100-of-1000", "expire 100 of 1k, in the poll, per timer")], || expiry::in_batches::<Q>(1_000, 100)));
    groups.push(group("Polls", vec![ns("expire-all-1000", "expire all of 1k in one poll, per timer")], || expiry::in_batches::<Q>(1_000, 1_000)));
    if !is_small {
        groups.extend(large::<Q>());
    }
    groups.sort_by_key(|group| SECTIONS.iter().position(|it| *it == group.rows[0].section).unwrap_or(SECTIONS.len()));
    groups
}

/// Timers that all have one duration.
pub fn fixed<Q: TimerQueue>(is_small: bool) -> Vec<Group> {
    let group = |timers| {
        let row = |name, what| {
            let title = format!("{what}, {} live", short(timers));
            ns(format!("fixed-{name}-{timers}"), title)
        };
        let rows = vec![
            row("renew", "re-arm of any timer"),
            row("again", "cancel of any timer + insert"),
            row("expire", "expire all, in polls every ms, per timer"),
        ];
        group(ONE_DURATION, rows, move || {
            expiry::one_duration::<Q>(timers)
        })
    };
    let sizes = sizes_of(&[1_000, 100_000], is_small);
    sizes.into_iter().map(group).collect()
}

/// What takes long without optimisation.
#[rustfmt::skip]
fn large<Q: TimerQueue>() -> Vec<Group> {
    let mut groups = vec![
        group("Polls", vec![
            ns("expire-100", "expire 100 of 100k, in the poll, per timer"),
            ns("expire-100-released", "the same with the handles released"),
            unit("expire-100-p50", "the same, p50 of the polls", "cycles"),
            unit("expire-100-p999", "the same, p999 of the polls", "cycles"),
        ], || expiry::in_batches::<Q>(100_000, 100)),
        group("Polls", vec![ns("expire-all-100000", "expire all of 100k in one poll, per timer")], || expiry::in_batches::<Q>(100_000, 100_000)),
    ];
    for (is_sorted, name, title) in [(true, "sorted", "in order"), (false, "random", "at random")] {
        let title = |what| format!("100k due in one ms, armed {title}: {what}");
        groups.push(group("Polls", vec![
            ns(format!("burst-{name}"), title("per timer")),
            maximum(format!("burst-{name}-longest"), title("longest poll")),
        ], move || burst::of_100k::<Q>(is_sorted, burst::BUDGET)));
        if Q::IS_EXACT {
            let rows = vec![ns(format!("burst-{name}-no-budget"), title("per timer without a budget"))];
            groups.push(group("Polls", rows, move || burst::of_100k::<Q>(is_sorted, usize::MAX)));
        }
    }
    groups.push(group("Polls", vec![
        unit("silence-day-first", "100k due in one ms, a day without a poll: until the first fires", "µs"),
        unit("silence-day-polls", "the same, in polls", "polls"),
        unit("silence-day-all", "the same, until all have fired", "ms"),
    ], || burst::after_silence::<Q>(Duration::from_secs(86_400))));
    groups.push(group("Polls", vec![unit("stall", "poll after an hour, 1k due of 11k", "µs")], burst::after_an_hour::<Q>));
    for per_ms in [50, 500] {
        let title = |what| format!("message queue, {per_ms}/ms: {what}");
        let rows = vec![
            ns(format!("mix-{per_ms}"), title("per message")),
            unit(format!("mix-{per_ms}-p999"), title("poll + next expiry p999"), "µs"),
            maximum(format!("mix-{per_ms}-longest"), title("longest poll + next expiry")),
        ];
        groups.push(group("Polls", rows, move || mix::run::<Q>(per_ms)).seldom_if(per_ms == 500));
    }
    groups.push(group("Polls", vec![
        unit("table-create", "100k timers: create all", "ms"),
        unit("table-set-same", "100k timers: set all to one time", "ms"),
        unit("table-set-different", "100k timers: set all to different times", "ms"),
        unit("table-expire", "100k timers: expire all in one poll", "ms"),
    ], basics::create_set_expire::<Q>));
    let peak = |rows, run: fn() -> Figures| group("Polls", rows, run).seldom_if(true);
    groups.push(peak(vec![unit("peak-survivors", "empty poll, 200 survivors of 200k re-armed in place, p50", "cycles")], memory::survivors::<Q>));
    if Q::CANCELS_FIRED {
        groups.push(peak(vec![maximum("peak-closed-longest", "1M due in one ms, cancelled 2 ms before: longest poll")], memory::closed::<Q>));
    }
    groups.push(peak(vec![unit("peak-held", "bytes held an hour after 1M were cancelled, per timer", "B")], memory::held::<Q>));
    let observed = group(EXACTNESS, vec![
        unit("exact-never", "never fired", "timers"),
        unit("exact-early", "worst early", "µs"),
        unit("exact-missed", "worst miss by a poll that could have fired it", "µs"),
        unit("exact-order", "fired after one that should have come later", "timers"),
        unit("exact-next-early", "next expiry too early by", "µs"),
        unit("exact-next-late", "next expiry too late by", "µs"),
    ], exactness::observe::<Q>);
    groups.push(Group { one_in: usize::MAX, ..observed });
    groups
}

impl Group {
    /// In a quarter of the rounds, where it takes long.
    fn seldom_if(self, is_long: bool) -> Self {
        let one_in = if is_long { 4 } else { 1 };
        Group { one_in, ..self }
    }
}

fn group(section: &str, rows: Vec<Row>, run: impl Fn() -> Figures + 'static) -> Group {
    let case = rows[0].name.clone();
    let within = |row: Row| Row {
        case: case.clone(),
        ..row.within(section)
    };
    Group {
        rows: rows.into_iter().map(within).collect(),
        one_in: 1,
        run: Box::new(run),
    }
}

/// Single operations, each with its quantiles.
fn single(
    timers: usize,
    operations: &[(&str, &str)],
    run: impl Fn() -> Figures + 'static,
) -> Group {
    let rows = operations.iter().flat_map(|(name, title)| {
        let names = quantiles(timers).iter().zip(["p50", "p999"]);
        names.map(move |(_, quantile)| {
            let title = format!("{title}, {} live, {quantile}", short(timers));
            unit(format!("{name}-{quantile}-{timers}"), title, "cycles")
        })
    });
    group("Single operations", rows.collect(), run)
}

/// With few timers everything is in the cache, and the tails are those of the machine.
fn quantiles(timers: usize) -> &'static [f64] {
    if timers < 1_000 {
        &[0.5]
    } else {
        &[0.5, 0.999]
    }
}

fn sizes_of(sizes: &[usize], is_small: bool) -> Vec<usize> {
    let is_wanted = |size: &usize| !is_small || *size <= 1_000;
    sizes.iter().copied().filter(is_wanted).collect()
}

fn unit(name: impl Into<String>, title: impl Into<String>, unit: &'static str) -> Row {
    row(name, "", title, unit, Aim::Open)
}

fn ns(name: impl Into<String>, title: impl Into<String>) -> Row {
    unit(name, title, "ns")
}

fn maximum(name: impl Into<String>, title: impl Into<String>) -> Row {
    Row {
        is_maximum: true,
        ..unit(name, title, "µs")
    }
}

/// 1M, 10k, 250.
fn short(count: usize) -> String {
    round(count as f64, &COUNTS)
}
