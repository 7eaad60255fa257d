//! Which plots there are, and what of the record they show.
//!
//! With two records every plot has a panel for each, on common axes.

use support::plots::{BLUE, GREEN, GREY, Rgb, VERMILION};

use super::axis::{Axis, Quantity};
use super::plot::{Line, Panel, Plot};
use crate::check::probe::Timing;
use crate::check::timeliness::MACHINE_NOISE;
use crate::record::{Distribution, Record, Sample};

/// The plots of a page in order, without those that would be empty.
pub(super) fn all(records: &[Record]) -> Vec<Plot> {
    let mut plots: Vec<Plot> = SERIES.iter().map(|series| series.plot(records)).collect();
    plots.insert(1, histogram(records));
    plots.retain(|plot| !plot.panels.iter().all(Panel::is_empty));
    plots
}

/// A plot of numbers over the time of the run.
struct Series {
    key: &'static str,
    title: &'static str,
    explanation: &'static str,
    /// Of the y axis.
    measure: &'static str,
    quantity: Quantity,
    is_log: bool,
    lines: &'static [Curve],
}

/// Its name, its colour, and where its values come from.
type Curve = (&'static str, Rgb, fn(&Sample) -> f64);

impl Series {
    fn plot(&self, records: &[Record]) -> Plot {
        let panels: Vec<Panel> = records.iter().map(|record| self.panel(record)).collect();
        let values = values(&panels, |point| point.1);
        let y = if self.is_log {
            Axis::log(self.measure, self.quantity, &values)
        } else {
            Axis::linear(self.measure, self.quantity, &values)
        };
        let ends = records.iter().flat_map(|record| &record.samples);
        let end = ends.map(|sample| sample.at_s).fold(0.0, f64::max);
        Plot {
            key: self.key,
            title: self.title,
            explanation: self.explanation,
            x: Axis::of_run(end),
            y,
            panels,
        }
    }

    fn panel(&self, record: &Record) -> Panel {
        let line = |&(name, color, value): &Curve| {
            let point = |sample: &Sample| {
                let value = value(sample);
                (sample.at_s, if value.is_finite() { value } else { 0.0 })
            };
            let points: Vec<_> = record.samples.iter().map(point).collect();
            // What the workloads of this run do not do has no line.
            (points.iter().any(|point| point.1 != 0.0)).then(|| Line {
                name: name.to_owned(),
                color,
                is_filled: false,
                points,
            })
        };
        let first_violation = record.samples.iter().find(|sample| sample.violations > 0);
        Panel {
            name: record.name.clone(),
            lines: self.lines.iter().filter_map(line).collect(),
            marker: first_violation.map(|sample| (sample.at_s, "first violation")),
            shaded: if self.is_log {
                disturbed(record)
            } else {
                Vec::new()
            },
        }
    }
}

/// When the machine was not quiet.
fn disturbed(record: &Record) -> Vec<(f64, f64)> {
    let starts = [0.0]
        .into_iter()
        .chain(record.samples.iter().map(|sample| sample.at_s));
    let spans = starts.zip(&record.samples);
    let disturbed = spans.filter(|(_, sample)| !sample.is_quiet);
    disturbed
        .map(|(from, sample)| (from, sample.at_s))
        .collect()
}

/// How often each lateness was seen, of the timers and of the machine.
fn histogram(records: &[Record]) -> Plot {
    let line = |distribution: &Distribution| {
        let color = match &*distribution.name {
            MACHINE_NOISE => GREY,
            name if name == Timing::Lateness.label() => VERMILION,
            _ => return None,
        };
        (!distribution.buckets.is_empty()).then(|| Line {
            name: distribution.name.clone(),
            color,
            is_filled: true,
            points: steps(distribution),
        })
    };
    let panel = |record: &Record| Panel {
        name: record.name.clone(),
        lines: record.distributions.iter().filter_map(line).collect(),
        marker: None,
        shaded: Vec::new(),
    };
    let panels: Vec<Panel> = records.iter().map(panel).collect();
    let lateness = values(&panels, |point| point.0);
    let shares = values(&panels, |point| point.1);
    Plot {
        key: "latencies",
        title: "How late timers are",
        explanation: "Share of the timers by their lateness. The machine's noise is by how much a \
                      plain sleeping thread overslept.",
        x: Axis::log("late by", Quantity::Nanoseconds, &lateness),
        y: Axis::linear("share", Quantity::Percent, &shares),
        panels,
    }
}

/// The outline of a histogram: a step up and down for each bucket, in percent of all values.
fn steps(distribution: &Distribution) -> Vec<(f64, f64)> {
    let held: u64 = distribution.buckets.iter().map(|&(_, count)| count).sum();
    let whole = held.max(1) as f64;
    let mut outline: Vec<(f64, f64)> = Vec::new();
    for &(bound, count) in &distribution.buckets {
        let bound = bound.max(1) as f64;
        let (low, share) = (bound / BUCKET_GROWTH, 100.0 * count as f64 / whole);
        match outline.last() {
            // Buckets that touch share their wall, but for what rounding made of the bounds.
            Some(&(end, _)) if low <= end * 1.05 => outline.push((end, share)),
            last => {
                let fall = last.map(|&(end, _)| (end, 0.0));
                outline.extend(fall);
                outline.extend([(low, 0.0), (low, share)]);
            }
        }
        outline.push((bound, share));
    }
    let fall = outline.last().map(|&(end, _)| (end, 0.0));
    outline.extend(fall);
    outline
}

fn values(panels: &[Panel], value: fn(&(f64, f64)) -> f64) -> Vec<f64> {
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    lines
        .flat_map(|line| line.points.iter().map(value))
        .collect()
}

const BUCKET_GROWTH: f64 = 1.25;

/// Less than that of the noise beside it.
const PALE_GREY: Rgb = Rgb(180, 180, 180);

const SERIES: [Series; 3] = [
    Series {
        key: "lateness",
        title: "Lateness over time",
        explanation: "How long after its deadline a timer's callback began: the median, the latest \
                      of a hundred, and the latest of all in each span of the run. Grey is the \
                      machine itself: how much a plain sleeping thread overslept. Shaded: not \
                      quiet, so that lateness was not judged.",
        measure: "late by",
        quantity: Quantity::Nanoseconds,
        is_log: true,
        lines: &[
            ("p50", BLUE, |sample| sample.late_p50_ns as f64),
            ("p99", GREEN, |sample| sample.late_p99_ns as f64),
            ("max", VERMILION, |sample| sample.late_max_ns as f64),
            ("noise p99", GREY, |sample| sample.noise_p99_ns as f64),
            ("noise max", PALE_GREY, |sample| sample.noise_max_ns as f64),
        ],
    },
    Series {
        key: "alive",
        title: "Timers and messages alive",
        explanation: "Timers that wait for their deadline, and messages that wait for their \
                      acknowledgement.",
        measure: "alive",
        quantity: Quantity::Count,
        is_log: false,
        lines: &[
            ("timers", BLUE, |sample| sample.live_timers as f64),
            ("in flight", VERMILION, |sample| sample.in_flight as f64),
        ],
    },
    Series {
        key: "memory",
        title: "Memory",
        explanation: "Resident: what the system counts for the process. Allocated: what the \
                      program asked for and has not given back.",
        measure: "bytes",
        quantity: Quantity::Bytes,
        is_log: false,
        lines: &[
            ("resident", BLUE, |sample| sample.resident_bytes as f64),
            ("allocated", GREEN, |sample| sample.allocated_bytes as f64),
        ],
    },
];
