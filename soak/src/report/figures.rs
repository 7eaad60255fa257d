//! The figures that sum up a run, as tiles for one and as a table for two.

use crate::check::probe::Timing;
use crate::check::timeliness::MACHINE_NOISE;
use crate::record::{Distribution, Record, Sample};

use super::axis::Quantity;
use super::markup::Markup;
use super::table;

/// A figure that is worth comparing.
struct Figure {
    name: &'static str,
    quantity: Quantity,
    value: fn(&Record) -> Option<f64>,
    /// What stands on the tiles, in fewer words.
    tile: Option<&'static str>,
}

impl Figure {
    fn of(&self, record: &Record) -> Option<f64> {
        (self.value)(record).filter(|value| value.is_finite())
    }

    fn text(&self, record: &Record) -> String {
        let value = self.of(record);
        value.map_or_else(|| "–".to_owned(), |value| self.quantity.text(value))
    }

    /// The first as a multiple of the second.
    fn ratio(&self, first: &Record, second: &Record) -> String {
        match self.of(first).zip(self.of(second)) {
            Some((first, second)) if second > 0.0 => format!("{:.2}", first / second),
            _ => "–".to_owned(),
        }
    }
}

/// A few large numbers about one run.
pub(super) fn tiles(markup: &mut Markup, record: &Record) {
    markup.element("dl", &[("class", "tiles")], |tiles| {
        for figure in &FIGURES {
            let Some((tile, value)) = figure.tile.zip(figure.of(record)) else {
                continue;
            };
            tiles.element("div", &[], |div| {
                div.leaf("dt", &[], tile);
                div.leaf("dd", &[], figure.quantity.text(value));
            });
        }
    });
}

/// Both runs in columns, with their ratio.
pub(super) fn comparison(markup: &mut Markup, first: &Record, second: &Record) {
    let heads = ["", &*first.timer_queue, &*second.timer_queue, "ratio"];
    table::scrolling(markup, "Both runs compared", |scroll| {
        table::table(scroll, &heads, |rows| {
            for figure in &FIGURES {
                let (one, other) = (figure.text(first), figure.text(second));
                let cells = [one, other, figure.ratio(first, second)];
                table::row(rows, figure.name, &cells);
            }
        });
    });
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

const FIGURES: [Figure; 15] = [
    Figure {
        name: "lateness p50",
        quantity: Quantity::Nanoseconds,
        value: |record| lateness(record, |timers| timers.p50_ns),
        tile: Some("late by, p50"),
    },
    Figure {
        name: "lateness p99",
        quantity: Quantity::Nanoseconds,
        value: |record| lateness(record, |timers| timers.p99_ns),
        tile: None,
    },
    Figure {
        name: "lateness p99.9",
        quantity: Quantity::Nanoseconds,
        value: |record| lateness(record, |timers| timers.p999_ns),
        tile: Some("late by, p99.9"),
    },
    Figure {
        name: "lateness max",
        quantity: Quantity::Nanoseconds,
        value: |record| lateness(record, |timers| timers.max_ns),
        tile: None,
    },
    Figure {
        name: "noise p99.9",
        quantity: Quantity::Nanoseconds,
        value: |record| distribution(record, MACHINE_NOISE).map(|noise| noise.p999_ns as f64),
        tile: Some("noise, p99.9"),
    },
    Figure {
        name: "timers armed/s",
        quantity: Quantity::Count,
        value: |record| per_second(record, record.totals.timers_armed),
        tile: None,
    },
    Figure {
        name: "timers cancelled/s",
        quantity: Quantity::Count,
        value: |record| per_second(record, record.totals.timers_cancelled),
        tile: None,
    },
    Figure {
        name: "timers fired/s",
        quantity: Quantity::Count,
        value: |record| per_second(record, record.totals.timers_fired),
        tile: Some("timers fired/s"),
    },
    Figure {
        name: "most timers alive",
        quantity: Quantity::Count,
        value: |record| Some(record.totals.live_timers_max as f64),
        tile: Some("most timers alive"),
    },
    Figure {
        name: "messages acked/s",
        quantity: Quantity::Count,
        value: |record| per_second(record, record.totals.messages_acked),
        tile: None,
    },
    Figure {
        name: "datagrams sent/s",
        quantity: Quantity::Count,
        value: |record| per_second(record, record.totals.datagrams_sent),
        tile: None,
    },
    Figure {
        name: "cores used on average",
        quantity: Quantity::Cores,
        value: |record| mean_cores(record),
        tile: Some("processor, mean"),
    },
    Figure {
        name: "peak resident memory",
        quantity: Quantity::Bytes,
        value: |record| peak(record, |sample| sample.resident_bytes),
        tile: Some("peak memory"),
    },
    Figure {
        name: "peak allocated memory",
        quantity: Quantity::Bytes,
        value: |record| peak(record, |sample| sample.allocated_bytes),
        tile: None,
    },
    Figure {
        name: "checks made",
        quantity: Quantity::Count,
        value: |record| Some(checks(record) as f64),
        tile: Some("checks made"),
    },
];
