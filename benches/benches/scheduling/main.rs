//! Measures how an executor shares its thread: by shares, by latency, with other threads, and alone.
//!
//! ```text
//! cargo bench -p benches --bench scheduling -- [--rounds 5] [--rows start] [--write-docs]
//! ```
//!
//! `docs/scheduling.md` says what the figures mean.

use std::process::ExitCode;
use std::time::Duration;

use benches::bench::{Bench, Column, Lines, case, figures};
use benches::report::{Panel, Picture};
use benches::row::{Aim, Row, row};

mod busy;
mod crowd;
mod idle;
mod shares;
mod starts;

fn main() -> ExitCode {
    Bench {
        name: "scheduling",
        page: "scheduling",
        preface: "Latency matters to the queues that say so, and the tasks that compute do so in loops of some microseconds.",
        ours: &["`Matters(1 ms)`, its timer"],
        lines: Lines::Columns("what"),
        pictures: &[PICTURE],
        ..Bench::DEFAULT
    }
    .main(rows(), |options| {
        let (window, samples) = if options.bench {
            (Duration::from_secs(1), 1000)
        } else {
            (Duration::from_millis(20), 10)
        };
        let mut columns = shares::columns(window);
        columns.extend(starts::columns(samples));
        columns.extend(crowd::columns(window));
        let look = move || {
            let (wake_ups, cpu) = idle::measure(window);
            let us = |time: Duration| time.as_secs_f64() * 1e6;
            let of_loop = us(busy::loop_length());
            let rows = [("wakes", wake_ups as f64), ("cpu", us(cpu)), ("loop", of_loop)];
            Ok(figures("idle", rows))
        };
        columns.push(Column {
            name: "one executor".to_owned(),
            cases: vec![case("idle", look)],
        });
        Ok(columns)
    })
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let of = |case: &'static str, section, rows: &[(&str, &str, &'static str)]| {
        let row = |&(end, title, unit)| row(format!("{case}-{end}"), case, title, unit, Aim::Open).within(section);
        rows.iter().map(row).collect::<Vec<_>>()
    };
    [
        of("split", "The split of the time", &[
            ("due", "due", "%"),
            ("first", "the first got", "%"),
            ("second", "the second got", "%"),
            ("off", "off", "% of what was due"),
            ("wait-first", "longest wait of the first", "ms"),
            ("wait-second", "of the second", "ms"),
        ]),
        of("start", "From a wake to the first instruction", &[
            ("p50", "p50", "µs"),
            ("p90", "p90", "µs"),
            ("p99", "p99", "µs"),
            ("p999", "p99.9", "µs"),
            ("max", "max", "µs"),
        ]),
        of("crowd", "Many queues", &[
            ("none", "a poll without latency", "ns"),
            ("tenth", "where every tenth has latency", "ns"),
        ]),
        of("idle", "An idle executor, and a busy task", &[
            ("wakes", "wake-ups in a second", ""),
            ("cpu", "CPU in a second", "µs"),
            ("loop", "a loop of a task that computes", "µs"),
        ]),
    ]
    .concat()
}

/// Of a thousand starts, one may take as long as the last point.
#[rustfmt::skip]
const POINTS: &[(f64, &str)] =
    &[(2.0, "start-p50"), (10.0, "start-p90"), (100.0, "start-p99"), (1000.0, "start-p999")];

#[rustfmt::skip]
const PICTURE: Picture = Picture {
    file: "scheduling-starts.svg",
    title: "From a wake to the first instruction, beside a task that computes",
    x: "one in so many starts takes longer",
    y: "µs",
    panels: &[
        Panel { title: "woken by its timer", of: ", its timer", points: POINTS },
        Panel { title: "woken by another thread", of: ", another thread", points: POINTS },
        Panel { title: "woken by the neighbour", of: ", the neighbour", points: POINTS },
    ],
};
