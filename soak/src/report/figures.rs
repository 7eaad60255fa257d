//! The figures that sum up a run, as tiles for one and as a table for two.

use maud::{Markup, html};

use super::axis::Quantity;
use super::table;
use crate::check::probe::Timing;
use crate::check::timeliness::MACHINE_NOISE;
use crate::record::{Distribution, Record, Sample};

/// A figure that is worth comparing: its name, what stands on the tiles in fewer words, and its value.
struct Figure(
    &'static str,
    Option<&'static str>,
    Quantity,
    fn(&Record) -> Option<f64>,
);

impl Figure {
    fn of(&self, record: &Record) -> Option<f64> {
        (self.3)(record).filter(|value| value.is_finite())
    }

    /// Of two runs, and the first as a multiple of the second.
    fn cells(&self, first: &Record, second: &Record) -> [String; 3] {
        [
            self.text(first),
            self.text(second),
            self.ratio(first, second),
        ]
    }

    fn text(&self, record: &Record) -> String {
        let value = self.of(record);
        value.map_or_else(|| "–".to_owned(), |value| self.2.text(value))
    }

    fn ratio(&self, first: &Record, second: &Record) -> String {
        match self.of(first).zip(self.of(second)) {
            Some((first, second)) if second > 0.0 => format!("{:.2}", first / second),
            _ => "–".to_owned(),
        }
    }
}

/// A few large numbers about one run.
pub(super) fn tiles(record: &Record) -> Markup {
    html! {
        dl.tiles {
            @for figure in &FIGURES {
                @if let Some((tile, value)) = figure.1.zip(figure.of(record)) {
                    div { dt { (tile) } dd { (figure.2.text(value)) } }
                }
            }
        }
    }
}

/// Both runs in columns, with their ratio, for a terminal.
pub(crate) fn compared(first: &Record, second: &Record) -> String {
    let row =
        |name: &str, [a, b, ratio]: [&str; 3]| format!("{name:<24}{a:>22}{b:>22}{ratio:>10}\n");
    let mut table = row("", [&first.name, &second.name, "ratio"]);
    for figure in &FIGURES {
        let [a, b, ratio] = figure.cells(first, second);
        table.push_str(&row(figure.0, [&a, &b, &ratio]));
    }
    let [a, b] = [first, second].map(|run| run.outcome.word());
    table + row("verdict", [a, b, ""]).trim_end()
}

/// Both runs in columns, with their ratio.
pub(super) fn comparison(first: &Record, second: &Record) -> Markup {
    let heads = ["", &*first.name, &*second.name, "ratio"];
    let rows = (FIGURES.iter()).map(|figure| table::texts(figure.0, figure.cells(first, second)));
    table::table(heads, rows)
}

fn lateness(record: &Record, ns: fn(&Distribution) -> u64) -> Option<f64> {
    let timers = distribution(record, Timing::Lateness.label())?;
    (timers.count > 0).then(|| ns(timers) as f64)
}

/// The mean of a sum over the whole run.
fn per_second(record: &Record, total: u64) -> Option<f64> {
    (record.ran_s > 0.0).then(|| total as f64 / record.ran_s)
}

fn peak(record: &Record, bytes: fn(&Sample) -> u64) -> Option<f64> {
    record
        .samples
        .iter()
        .map(bytes)
        .max()
        .map(|bytes| bytes as f64)
}

fn mean_cores(record: &Record) -> Option<f64> {
    let sum: f64 = record.samples.iter().map(|sample| sample.cpu_cores).sum();
    (!record.samples.is_empty()).then(|| sum / record.samples.len() as f64)
}

fn distribution<'a>(record: &'a Record, name: &str) -> Option<&'a Distribution> {
    let mut distributions = record.distributions.iter();
    distributions.find(|distribution| distribution.name == name)
}

/// How often anything was held against what is promised.
pub(super) fn checks(record: &Record) -> u64 {
    record.rows.iter().map(|row| row.checks).sum()
}

const FIGURES: [Figure; 15] = {
    use Quantity::{Bytes, Cores, Count, Nanoseconds};
    [
        Figure("lateness p50", Some("late by, p50"), Nanoseconds, |it| {
            lateness(it, |it| it.p50_ns)
        }),
        Figure("lateness p99", None, Nanoseconds, |it| {
            lateness(it, |it| it.p99_ns)
        }),
        Figure(
            "lateness p99.9",
            Some("late by, p99.9"),
            Nanoseconds,
            |it| lateness(it, |it| it.p999_ns),
        ),
        Figure("lateness max", None, Nanoseconds, |it| {
            lateness(it, |it| it.max_ns)
        }),
        Figure("noise p99.9", Some("noise, p99.9"), Nanoseconds, |it| {
            distribution(it, MACHINE_NOISE).map(|noise| noise.p999_ns as f64)
        }),
        Figure("timers armed/s", None, Count, |it| {
            per_second(it, it.totals.timers_armed)
        }),
        Figure("timers cancelled/s", None, Count, |it| {
            per_second(it, it.totals.timers_cancelled)
        }),
        Figure("timers fired/s", Some("timers fired/s"), Count, |it| {
            per_second(it, it.totals.timers_fired)
        }),
        Figure(
            "most timers alive",
            Some("most timers alive"),
            Count,
            |it| Some(it.totals.live_timers_max as f64),
        ),
        Figure("messages acked/s", None, Count, |it| {
            per_second(it, it.totals.messages_acked)
        }),
        Figure("datagrams sent/s", None, Count, |it| {
            per_second(it, it.totals.datagrams_sent)
        }),
        Figure(
            "cores used on average",
            Some("processor, mean"),
            Cores,
            mean_cores,
        ),
        Figure("peak resident memory", Some("peak memory"), Bytes, |it| {
            peak(it, |sample| sample.resident_bytes)
        }),
        Figure("peak allocated memory", None, Bytes, |it| {
            peak(it, |sample| sample.allocated_bytes)
        }),
        Figure("checks made", Some("checks made"), Count, |it| {
            Some(checks(it) as f64)
        }),
    ]
};
