//! The run as Markdown.

use std::time::Duration;

use support::numbers::{COUNTS, duration, nanoseconds as ns, scaled};
use support::quantiles::Spread;

use super::bars::{Outcome, Wanted};
use super::case::Form;
use super::durable;
use super::latency::quantiles;
use super::matrix;
use super::results::{Measured, Results};
use super::scaling::{Growth, PARTS};

/// A table: what it shows, and its cells as text.
pub struct Table {
    pub title: &'static str,
    pub before: &'static str,
    pub columns: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
    pub after: String,
}

impl Table {
    fn markdown(&self) -> String {
        let mut table = support::tables::Table::new(self.columns.iter().copied());
        for (index, column) in self.columns.iter().enumerate() {
            if has_words(column) {
                table = table.left(index);
            }
        }
        for row in &self.rows {
            table.push(row.iter().map(String::as_str));
        }
        table.markdown()
    }
}

/// Whether the cells of this column are words, which begin at the left, and not figures.
pub fn has_words(column: &str) -> bool {
    ["Case", "What", "Form", "Floor or peer", "Cell"].contains(&column)
}

pub const TITLE: &str = "timelog: the benchmark";
pub const INTRODUCTION: &str = "\
The cases are those of the published Timelog, another project, which this crate is not affiliated with; it was written \
without its source. Written by `cargo run --release -p timelog -- bench --out docs`; the page \
`timelog-benchmark-plots.html` next to this one has the plots, `timelog-benchmark.json` all figures.";

pub const NOTES: [&str; 8] = [
    "Published figures are of version 0.4.5 on Windows 10 with Python 3.13; \"1.3.0\" is one run of its Python package on \
     a guest with two processors and Linux 6.18, the better end where it is a range. Ours is a Rust library without \
     Python objects. The ratios therefore compare systems as their users meet them, not algorithms.",
    "Published A, D and E time parsing CSV and making Python objects: compare them with `e2e`, which starts when the \
     CSV is opened; `engine` has its rows ready. A0 in `e2e` is rows over the sum of parsing, loading, and both.",
    "Published F1 and F2 read no timestamp, only where spans begin and end; the rows named \"summed\" read all. \
     Published I2 reads \"cold\" data from memory, as ours does. Published B5 and H4 hold the scan that picks the \
     timestamps: so does `e2e`.",
    "The data set is made by `timelog gen` (100,000 rows, 5 and 20 % late, seed 42); the row counts of windows differ \
     from the published ones, whose data is not public.",
    "\"Steps between\" stands for background maintenance: `step(1024)` after each 64 appends, or a step of as many rows \
     as the batch before it, in the clock; that all but the last memtable is flushed at the end is asserted. K1 and K1B \
     time each append and each call of maintenance by itself, and all of it together.",
    "Up to the page of an earlier commit, A2B and A2B_less took a step of 1,024 rows after each batch of 10,000, and so \
     flushed next to nothing; maintenance of K1 and K1B was outside of the clock; the floors \"copy\" and \"push\" grew \
     their vectors, which now have their capacity before the clock runs; p95 and p99 of ten rounds were one figure, the \
     greatest; B5, B6, C1, H3, I and some floors did not load the values of the rows; and all reads were of one segment \
     that nothing overlaps: the rows L1 to L4 and the floors of \"many segments\" and \"lived in\" are of segments that \
     overlap, deletes, and a memtable.",
    "Up to the page of an earlier commit, sums of `spans` and of columns ran twice in a round and the second was timed: \
     what other work had driven out of the caches was not back in all of them then, and a sum of a column took up to twice \
     as long as one of the same column after three passes, which it has now. The bar of `spans` of 100,000 rows was held \
     to one column; now it is held to as many columns as the log has pages, each with its values behind it: a bare loop \
     is slower where memory is cut so. The row without a bar still compares with one column. Commits of ours next to \
     fjall and redb were an `executor.run` each, while the log was still preparing its next file; now all three have a \
     second before, and ours has one task for all commits of a round. A round of a thousand writers was 40 MB, and the \
     bare writes after it met the checkpoint of the round before; now it is 100 MB, and they wait for that, outside of \
     the clock.",
    "Each round runs every case once, so noise meets all alike; three rounds warm up. A case that only reads, and each \
     floor, runs twice in a round and the second is timed, of sums of `spans` four times. What takes longer than 100 µs is timed by the processor time of \
     its thread, as other programs may run at the same time; the latencies are by the clock. MAD is the median distance from the median. Results are \
     asserted in every round.",
];

pub fn markdown(results: &Results) -> String {
    let mut text = format!(
        "# {TITLE}\n\n{INTRODUCTION}\n\nMachine: {}.\n",
        results.setting.text()
    );
    for table in tables(results) {
        text += &format!("\n## {}\n\n{}\n\n", table.title, table.before);
        text += &table.markdown();
        if !table.after.is_empty() {
            text += &format!("\n{}\n", table.after);
        }
    }
    text += "\n## Notes\n\n";
    for note in NOTES {
        text += &format!("- {note}\n");
    }
    text
}

/// All tables that the run has figures for.
pub fn tables(results: &Results) -> Vec<Table> {
    let mut tables = Vec::new();
    if !results.floors.is_empty() {
        tables.push(floors(&results.floors, results.memory));
    }
    if !results.cases.is_empty() {
        tables.push(cases(&results.cases));
    }
    if !results.latencies.is_empty() {
        tables.push(latencies(results));
    }
    tables.extend(results.growth.as_ref().map(growth));
    if !results.matrix.is_empty() {
        tables.push(cells(&results.matrix));
    }
    if !results.durable.is_empty() {
        tables.push(durable(&results.durable));
    }
    tables
}

fn floors(outcomes: &[Outcome], memory: Option<f64>) -> Table {
    let mut rows: Vec<Vec<String>> = outcomes.iter().map(floor).collect();
    if let Some(ratio) = memory {
        rows.push(vec![
            "memory of a flushed row".into(),
            "–".into(),
            "its bytes".into(),
            "–".into(),
            format!("{ratio:.2}"),
            "–".into(),
            "≤ 1.1".into(),
            verdict(Some(ratio <= 1.1)).into(),
        ]);
    }
    let missed = outcomes
        .iter()
        .filter(|outcome| outcome.is_met() == Some(false));
    let missed: Vec<&str> = missed.map(|outcome| outcome.what).collect();
    Table {
        title: "Floors",
        before: "Rows of 16 bytes compared with bare loops over the same rows and with std's collections, each pair one \
                 after the other in each round. A ratio of rates, so that more is better, where the bar is a least \
                 one; else a ratio of times. In brackets the least and the greatest of the \
                 rounds; \"quickest\" is the ratio of the quickest round of each, which noise has met least. A bar is \
                 judged by the median.",
        columns: &[
            "What",
            "Time",
            "Floor or peer",
            "Time",
            "Ratio",
            "Quickest",
            "Bar",
            "Met",
        ],
        rows,
        after: if missed.is_empty() {
            "Every bar is met in this run.".into()
        } else {
            format!(
                "Missed in this run: {}. `timelog.md` says where their time goes.",
                missed.join("; ")
            )
        },
    }
}

fn floor(outcome: &Outcome) -> Vec<String> {
    let Spread {
        min: least,
        median: ratio,
        max: greatest,
    } = outcome.ratio;
    let (ratio, bar) = match outcome.wanted {
        Wanted::Rate(bar) => (
            format!("{ratio:.2} ({least:.2}–{greatest:.2})"),
            format!("≥ {bar}"),
        ),
        Wanted::Time(bar) => (
            format!("{ratio:.2} ({least:.2}–{greatest:.2})"),
            format!("≤ {bar}"),
        ),
        Wanted::Nanoseconds(bar) => (
            format!("{} ({}–{})", ns(ratio), ns(least), ns(greatest)),
            format!("≤ {}", ns(bar)),
        ),
        Wanted::Nothing => (format!("{ratio:.2} ({least:.2}–{greatest:.2})"), "–".into()),
    };
    let has_floor = !outcome.floor.is_empty();
    let floor = |text: String| if has_floor { text } else { "–".into() };
    vec![
        outcome.what.into(),
        ns(outcome.ns),
        floor(outcome.floor.into()),
        floor(ns(outcome.floor_ns)),
        ratio,
        match outcome.wanted {
            Wanted::Nanoseconds(_) => ns(outcome.quickest),
            _ => format!("{:.2}", outcome.quickest),
        },
        bar,
        verdict(outcome.is_met()).into(),
    ]
}

fn durable(measured: &[durable::Row]) -> Table {
    let rows = measured.iter().map(|row| {
        let Spread { min, median, max } = row.figure;
        let bar = match row.wanted {
            Wanted::Rate(bar) => format!("≥ {bar}"),
            Wanted::Time(bar) => format!("≤ {bar}"),
            _ => "–".into(),
        };
        vec![
            row.what.clone(),
            format!("{median:.2} {}", row.unit),
            format!("{min:.2}–{max:.2}"),
            bar,
            verdict(row.wanted.is_met(median)).into(),
        ]
    });
    Table {
        title: "Durable logs",
        before: "`timelog::durable::Log` of rows of 16 bytes, with the default configuration, next to bare direct writes \
                 and reads of the same disk, and to fjall and redb with keys of 16 bytes and values of 8. What is \
                 compared runs in turns, with `--published` the same source on ours and on the published glommio 0.9.0 \
                 too; a ratio is of the two in one round. The median, and the least and the greatest \
                 round. Bandwidth is of rows, which are written twice: to the write-ahead log and to a checkpoint; all bytes \
                 are those that the kernel counts for this process. A timer's time is how late it was.",
        columns: &["What", "Median", "Rounds", "Bar", "Met"],
        rows: rows.collect(),
        after: String::new(),
    }
}

fn verdict(is_met: Option<bool>) -> &'static str {
    match is_met {
        Some(true) => "yes",
        Some(false) => "**no**",
        None => "–",
    }
}

/// What a case must reach: so many times the published rate and that of 1.3.0.
fn wanted(measured: &Measured) -> Option<(f64, f64)> {
    let has_e2e = measured.case.forms.contains(&Form::E2e);
    if has_e2e && measured.form == Form::Engine {
        return None;
    }
    match measured.case.id {
        "F1" | "F2" => Some((10.0, 1.0)),
        "F1-summed" | "F2-summed" | "F5" => Some((20.0, 0.0)),
        "F3" | "F4" | "A0-parse" | "C1-count" => None,
        _ => Some((5.0, 2.0)),
    }
}

pub fn is_met(measured: &Measured) -> Option<bool> {
    let (published, newer) = wanted(measured)?;
    let rate = measured.summary.rate();
    let holds =
        |figure: Option<f64>, times: f64| figure.is_none_or(|figure| rate >= times * figure);
    Some(holds(measured.case.published, published) && holds(measured.case.newer, newer))
}

fn cases(cases: &[Measured]) -> Table {
    let missed = cases
        .iter()
        .filter(|measured| is_met(measured) == Some(false));
    let missed: Vec<String> = missed
        .map(|measured| format!("{} ({})", measured.case.id, measured.form.name()))
        .collect();
    Table {
        title: "Cases",
        before: "Rows of 48 bytes, rates in rows a second, of B5 to B8 and H4 in operations. The bar, judged in `e2e` \
                 where a case has that form: five times the published rate and twice that of 1.3.0; F1 and F2 ten \
                 times and once, F summed and F5 twenty times the published.",
        columns: &[
            "Case",
            "What",
            "Form",
            "Operations",
            "Median /s",
            "Least",
            "Greatest",
            "MAD",
            "Published /s",
            "Ratio",
            "1.3.0 /s",
            "Ratio",
            "Met",
        ],
        rows: cases.iter().map(case).collect(),
        after: if missed.is_empty() {
            "Every case reaches its bar in this run.".into()
        } else {
            format!("Below their bar in this run: {}.", missed.join(", "))
        },
    }
}

fn case(measured: &Measured) -> Vec<String> {
    let Measured {
        case,
        form,
        summary,
    } = measured;
    let figure = |figure: Option<f64>| figure.map_or("–".into(), short);
    let ratio = |figure: Option<f64>| {
        figure.map_or("–".into(), |figure| {
            format!("{:.1}", summary.rate() / figure)
        })
    };
    vec![
        case.id.into(),
        case.what.into(),
        form.name().into(),
        summary.operations.to_string(),
        short(summary.rate()),
        duration(summary.least),
        duration(summary.greatest),
        duration(summary.mad),
        figure(case.published),
        ratio(case.published),
        figure(case.newer),
        ratio(case.newer),
        verdict(is_met(measured)).into(),
    ]
}

fn latencies(results: &Results) -> Table {
    let mut rows = Vec::new();
    for outcome in &results.latencies {
        let case = outcome.case;
        let mut row = vec![
            case.id.into(),
            case.what.into(),
            outcome.appends.to_string(),
        ];
        row.extend(quantiles(&outcome.append).map(ns));
        row.extend(
            [case.published, case.newer].map(|[p50, p99]| format!("{}, {}", ns(p50), ns(p99))),
        );
        rows.push(row);
        let mut row = vec![
            case.id.into(),
            "the clock alone".into(),
            outcome.appends.to_string(),
        ];
        row.extend(quantiles(&outcome.clock).map(ns));
        row.extend(["–".into(), "–".into()]);
        rows.push(row);
        let mut row = vec![
            case.id.into(),
            "the steps, flushes, compactions between".into(),
            outcome.steps.len().to_string(),
        ];
        row.extend(quantiles(&outcome.steps).map(ns));
        let each = outcome.elapsed.as_nanos() as f64 / outcome.appends as f64;
        row.extend([format!("{} a row in all", ns(each)), "–".into()]);
        rows.push(row);
    }
    Table {
        title: "Latency",
        before: "Single appends of 48 bytes, each timed by itself, and in turn with them nothing: reading the clock \
                 costs about as much as an append, and the machine may pause at any time. Bars: p50 ≤ 65 ns, p99 ≤ \
                 187 ns, p99.9 ≤ 1 µs, greatest ≤ 100 µs.",
        columns: &[
            "Case",
            "What",
            "Appends",
            "p50",
            "p99",
            "p99.9",
            "max",
            "Published p50, p99",
            "1.3.0 p50, p99",
        ],
        rows,
        after: late(results),
    }
}

/// Which bars of latency are missed, and what the clock alone shows there.
fn late(results: &Results) -> String {
    let mut missed = Vec::new();
    for outcome in &results.latencies {
        let (append, clock) = (quantiles(&outcome.append), quantiles(&outcome.clock));
        for (place, (name, bar)) in LATENCY_BARS.iter().enumerate() {
            if append[place] > *bar {
                let (id, found, alone) = (outcome.case.id, ns(append[place]), ns(clock[place]));
                missed.push(format!("{id} {name} {found} (the clock alone: {alone})"));
            }
        }
    }
    if missed.is_empty() {
        "Every bar is met in this run.".into()
    } else {
        format!("Missed in this run: {}.", missed.join("; "))
    }
}

const LATENCY_BARS: [(&str, f64); 4] = [
    ("p50", 65.0),
    ("p99", 187.0),
    ("p99.9", 1_000.0),
    ("max", 100_000.0),
];

fn growth(growth: &Growth) -> Table {
    let rows = growth.times.iter().map(|times| {
        let each = |part: Duration| ns(part.as_nanos() as f64 / times.rows as f64);
        let mut row = vec![times.rows.to_string()];
        row.extend(times.parts().map(each));
        row
    });
    let slopes = PARTS.iter().zip(growth.slopes);
    let slopes: Vec<String> = slopes
        .map(|(part, slope)| format!("{part} {slope:.3}"))
        .collect();
    let is_met = growth.slopes.iter().all(|slope| *slope <= 1.1) && growth.doubling <= 2.3;
    Table {
        title: "Growth",
        before: "Time for a row as their number doubles (J2, J3), each part by the median of its rounds. Bars: slope ≤ 1.1, a doubling from 2,000 on ≤ 2.3.",
        columns: &["Rows", PARTS[0], PARTS[1], PARTS[2]],
        rows: rows.collect(),
        after: format!(
            "Slopes of the logarithms: {}. The greatest ratio of a doubling: {:.2}. Published: slope 1.05, doubling 2.1; \
             1.3.0: 1.07, 2.1. {}",
            slopes.join(", "),
            growth.doubling,
            if is_met {
                "Every bar is met in this run."
            } else {
                "A bar is missed in this run."
            }
        ),
    }
}

fn cells(outcomes: &[matrix::Outcome]) -> Table {
    let rows = outcomes.iter().map(|outcome| {
        let stats = &outcome.stats;
        vec![
            outcome.cell.name(),
            short(outcome.summary.rate()),
            stats.pressure.to_string(),
            stats.sealed_runs_max.to_string(),
            stats.rows_flushed.to_string(),
            stats.rows_rewritten.to_string(),
        ]
    });
    Table {
        title: "K5",
        before: "20,000 rows of `late20` by 1,000, the last second read after each batch; 1.3.0: 121k rows a second.",
        columns: &[
            "Cell",
            "Rows/s",
            "Pressure",
            "Most runs",
            "Rows flushed",
            "Rewritten",
        ],
        rows: rows.collect(),
        after: String::new(),
    }
}

/// A rate with three digits and its unit.
pub fn short(rate: f64) -> String {
    scaled(rate, &COUNTS)
}
