//! The four plots: a panel for each run, on common axes.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use support::numbers::{COUNTS, DURATIONS, nanoseconds, round};
use support::plots::lines::{Axis, Diagram, DiagramPanel, Line};
use support::plots::{BLUE, GREEN, GREY, Rgb, VERMILION, save};

use crate::check::probe::Timing;
use crate::check::timeliness::MACHINE_NOISE;
use crate::record::{BUCKET_GROWTH, Distribution, Record, Sample};

/// What is drawn, once per run.
pub(super) struct Plot {
    /// In the name of its picture's file.
    key: &'static str,
    pub(super) explanation: &'static str,
    pub(super) diagram: Diagram,
}

impl Plot {
    /// What one panel shows, in words.
    pub(super) fn text(&self, panel: &DiagramPanel) -> String {
        let mut text = format!("{}, {}.", self.diagram.title, panel.title);
        for line in &panel.lines {
            let values = || line.points.iter().map(|point| point.1);
            let ends = [
                values().fold(f64::MAX, f64::min),
                values().fold(0.0, f64::max),
            ];
            let [low, high] = ends.map(self.diagram.y.text);
            write!(text, " {}: from {low} to {high}.", line.name)
                .expect("a string takes all texts");
        }
        text
    }

    /// Within a page it needs no name space, which is an address.
    pub(super) fn svg_within_page(&self, panel: &DiagramPanel) -> String {
        let drawn = self.diagram.svg_of(panel);
        drawn.expect(DRAWN).replacen(NAME_SPACE, "", 1)
    }
}

/// The plots of a page in order, without those that would be empty.
pub(super) fn all(records: &[Record]) -> Vec<Plot> {
    let series = SERIES.iter().map(|series| over_time(series, records));
    let mut plots: Vec<_> = series.collect();
    plots.insert(1, histogram(records));
    let is_empty = |panel: &DiagramPanel| panel.lines.is_empty();
    plots.retain(|plot| !plot.diagram.panels.iter().all(is_empty));
    plots
}

/// Writes every plot to a file of its own in `dir`, which is made if there is none.
pub(crate) fn write_pictures(dir: &Path, records: &[Record]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    all(records).into_iter().try_for_each(|plot| {
        let file = dir.join(format!("soak-{}.svg", plot.key));
        save(&file, plot.diagram.svg())
    })
}

/// A plot of numbers over the time of the run: its key, title and explanation, the axis upwards, and the lines.
type Series = (
    &'static str,
    &'static str,
    &'static str,
    (&'static str, bool, fn(f64) -> String),
    &'static [Curve],
);

/// Its name, its colour, and where its values come from.
type Curve = (&'static str, Rgb, fn(&Sample) -> f64);

fn over_time(series: &Series, records: &[Record]) -> Plot {
    let &(key, title, explanation, y, curves) = series;
    let panel = |record: &Record| {
        let lines = curves.iter().filter_map(|&(name, color, value)| {
            let points = record.samples.iter().map(|it| (it.at_s, value(it)));
            let points: Vec<_> = points.filter(|point| point.1.is_finite()).collect();
            // What the workloads of this run do not do has no line.
            let is_any = points.iter().any(|point| point.1 > 0.0);
            is_any.then(|| line(name, color, points))
        });
        let ends = record.samples.iter().map(|it| it.at_s);
        let spans = [0.0].into_iter().chain(ends).zip(&record.samples);
        let disturbed = spans.filter(|(_, it)| y.1 && !it.is_quiet);
        DiagramPanel {
            title: record.name.clone(),
            lines: lines.collect(),
            shaded: disturbed.map(|(from, it)| (from, it.at_s)).collect(),
        }
    };
    let x = ("into the run", false, run_time as fn(f64) -> String);
    plot([key, title, explanation], [x, y], records, panel)
}

/// How often each lateness was seen, of the timers and of the machine.
fn histogram(records: &[Record]) -> Plot {
    let line = |of: &Distribution| {
        let color = match &*of.name {
            MACHINE_NOISE => GREY,
            name if name == Timing::Lateness.label() => VERMILION,
            _ => return None,
        };
        Some(line(&of.name, color, steps(of)))
    };
    let panel = |record: &Record| DiagramPanel {
        title: record.name.clone(),
        lines: record.distributions.iter().filter_map(line).collect(),
        shaded: Vec::new(),
    };
    let words = [
        "latencies",
        "How late timers are",
        "Share of the timers by their lateness. The machine's noise is by how much a plain sleeping thread overslept.",
    ];
    let duration: fn(f64) -> String = |ns| round(ns.round(), &DURATIONS);
    let y: AxisOf<'_> = ("share", false, |share| format!("{share:.0} %"));
    plot(words, [("late by", true, duration), y], records, panel)
}

/// Its label, whether it is logarithmic, and how a value is written.
type AxisOf<'a> = (&'a str, bool, fn(f64) -> String);

fn plot(
    [key, title, explanation]: [&'static str; 3],
    axes: [AxisOf<'_>; 2],
    records: &[Record],
    panel: impl Fn(&Record) -> DiagramPanel,
) -> Plot {
    let [x, y] = axes.map(|(label, is_log, text)| Axis {
        label: label.to_owned(),
        is_log,
        text,
    });
    let diagram = Diagram {
        title: title.to_owned(),
        x,
        y,
        panels: records.iter().map(panel).collect(),
        panel_size: PANEL_SIZE,
    };
    Plot {
        key,
        explanation,
        diagram,
    }
}

fn line(name: &str, color: Rgb, points: Vec<(f64, f64)>) -> Line {
    Line {
        name: name.to_owned(),
        color: Some(color),
        points,
        is_bold: false,
    }
}

/// The outline of a histogram: a step for each bucket, in percent of all values.
fn steps(of: &Distribution) -> Vec<(f64, f64)> {
    let steps = of.buckets.iter().flat_map(|&(bound, count)| {
        let share = 100.0 * count as f64 / of.count.max(1) as f64;
        let high = bound.max(1) as f64;
        let low = high / BUCKET_GROWTH;
        [(low, 0.0), (low, share), (high, share), (high, 0.0)]
    });
    steps.collect()
}

/// Time within a run, to the tenth of a second.
pub(super) fn run_time(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round().max(0.0) as u64;
    humantime::format_duration(Duration::from_millis(100 * tenths)).to_string()
}

const SERIES: [Series; 3] = [
    (
        "lateness",
        "Lateness over time",
        "How long after its deadline a timer's callback began: the median, the latest of a hundred, and the latest of all in each \
         span of the run. Grey is the machine itself: how much a plain sleeping thread overslept. Shaded: not quiet, so that \
         lateness was not judged.",
        ("late by", true, nanoseconds),
        &[
            ("p50", BLUE, |it| it.late_p50_ns as f64),
            ("p99", GREEN, |it| it.late_p99_ns as f64),
            ("max", VERMILION, |it| it.late_max_ns as f64),
            ("noise p99", GREY, |it| it.noise_p99_ns as f64),
            ("noise max", Rgb(180, 180, 180), |it| it.noise_max_ns as f64),
        ],
    ),
    (
        "alive",
        "Timers and messages alive",
        "Timers that wait for their deadline, and messages that wait for their acknowledgement.",
        ("alive", false, |count| round(count.round(), &COUNTS)),
        &[
            ("timers", BLUE, |it| it.live_timers as f64),
            ("in flight", VERMILION, |it| it.in_flight as f64),
        ],
    ),
    (
        "memory",
        "Memory",
        "Resident: what the system counts for the process. Allocated: what the program asked for and has not given back.",
        ("MiB", false, |mebibytes| format!("{mebibytes:.0}")),
        &[
            ("resident", BLUE, |it| it.resident_bytes as f64 / MEBIBYTE),
            ("allocated", GREEN, |it| {
                it.allocated_bytes as f64 / MEBIBYTE
            }),
        ],
    ),
];

const MEBIBYTE: f64 = (1 << 20) as f64;

/// In pixels, unless a page stretches it.
const PANEL_SIZE: (u32, u32) = (560, 320);

const DRAWN: &str = "a string takes every drawing";
const NAME_SPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";
