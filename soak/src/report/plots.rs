//! The four plots, drawn by plotters: a panel for each run, on common axes.

use std::fmt::Write;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use plotters::prelude::*;
use support::numbers::{COUNTS, DURATIONS, nanoseconds, round};
use support::plots::{Area, BLUE, Drawn, GREEN, GREY, PALE, Rgb, VERMILION, svg};

use crate::check::probe::Timing;
use crate::check::timeliness::MACHINE_NOISE;
use crate::record::{BUCKET_GROWTH, Distribution, Record, Sample};

/// What is drawn, once per run.
pub(super) struct Plot {
    /// In the name of its picture's file.
    key: &'static str,
    pub(super) title: &'static str,
    pub(super) explanation: &'static str,
    x: Axis,
    y: Axis,
    pub(super) panels: Vec<Panel>,
}

/// The lines of one run. The first matters most: it lies on top.
pub(super) struct Panel {
    pub(super) name: String,
    lines: Vec<Line>,
    /// Spans of the x axis that do not count.
    shaded: Vec<(f64, f64)>,
}

struct Line {
    name: String,
    color: Rgb,
    points: Vec<(f64, f64)>,
}

/// plotters draws all axes as linear ones: a place on a logarithmic axis is the exponent.
#[derive(Clone)]
struct Axis {
    title: String,
    is_log: bool,
    text: fn(f64) -> String,
    places: Range<f64>,
}

impl Axis {
    /// From zero, or from the least positive one of `values`, to the largest, with space for the names of the lines.
    fn over(
        title: impl Into<String>,
        is_log: bool,
        text: fn(f64) -> String,
        values: impl Iterator<Item = f64>,
    ) -> Self {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let places = match is_log {
            true if low <= high => {
                let from = low.max(high / 1e6).log10().floor();
                from..high.log10().ceil().max(from) + 1.0
            }
            true => 0.0..1.0,
            false => 0.0..if low <= high { 1.35 * high } else { 1.0 },
        };
        Axis {
            title: title.into(),
            is_log,
            text,
            places,
        }
    }

    /// Where `value` lies, within the ends.
    fn place(&self, value: f64) -> f64 {
        let place = if self.is_log {
            value.max(f64::MIN_POSITIVE).log10()
        } else {
            value
        };
        place.clamp(self.places.start, self.places.end)
    }

    fn label(&self, place: f64) -> String {
        (self.text)(if self.is_log {
            10_f64.powf(place)
        } else {
            place
        })
    }

    fn labels(&self) -> usize {
        if self.is_log {
            (self.places.end - self.places.start) as usize + 1
        } else {
            7
        }
    }
}

impl Plot {
    /// What one panel shows, in words.
    pub(super) fn text(&self, panel: &Panel) -> String {
        let mut text = format!("{}, {}.", self.title, panel.name);
        for line in &panel.lines {
            let values = || line.points.iter().map(|point| point.1);
            let (low, high) = (
                values().fold(f64::MAX, f64::min),
                values().fold(0.0, f64::max),
            );
            let [low, high] = [low, high].map(self.y.text);
            write!(text, " {}: from {low} to {high}.", line.name)
                .expect("a string takes all texts");
        }
        text
    }

    /// Within a page it needs no name space, which is an address.
    pub(super) fn svg_within_page(&self, panel: &Panel) -> String {
        let drawn = svg(PANEL_SIZE, |area| self.draw(&area, panel));
        drawn.expect(DRAWN).replacen(NAME_SPACE, "", 1)
    }

    /// All panels in a file, which documents show.
    fn picture(&self) -> String {
        let count = self.panels.len();
        let size = (PANEL_SIZE.0 * count as u32, PANEL_SIZE.1 + 48);
        let drawn = svg(size, |area| {
            let area = area.titled(self.title, ("sans-serif", 18))?;
            for (area, panel) in area.split_evenly((1, count)).iter().zip(&self.panels) {
                let name = if count > 1 { &*panel.name } else { "" };
                self.draw(&area.titled(name, ("sans-serif", 14))?, panel)?;
            }
            Ok(())
        });
        drawn.expect(DRAWN)
    }

    fn draw(&self, area: &Area<'_>, panel: &Panel) -> Drawn {
        let (x, y) = (&self.x, &self.y);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .margin_right(24)
            .x_label_area_size(42)
            .y_label_area_size(74)
            .build_cartesian_2d(x.places.clone(), y.places.clone())?;
        chart
            .configure_mesh()
            .x_desc(&x.title)
            .y_desc(&y.title)
            .axis_desc_style(("sans-serif", 13))
            .label_style(("sans-serif", 12))
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .x_labels(x.labels())
            .y_labels(y.labels())
            .x_label_formatter(&|place| x.label(*place))
            .y_label_formatter(&|place| y.label(*place))
            .draw()?;
        chart.draw_series(panel.shaded.iter().map(|&(from, to)| {
            let corners = [(x.place(from), y.places.start), (x.place(to), y.places.end)];
            Rectangle::new(corners, BLACK.mix(0.08).filled())
        }))?;
        for line in panel.lines.iter().rev() {
            let points = line.points.iter().map(|&(a, b)| (x.place(a), y.place(b)));
            let style = line.color.stroke_width(2);
            chart
                .draw_series(LineSeries::new(points, style))?
                .label(&*line.name)
                .legend(move |at| PathElement::new([at, (at.0 + 18, at.1)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .label_font(("sans-serif", 12))
            .background_style(WHITE.mix(0.8))
            .draw()?;
        Ok(())
    }
}

/// The plots of a page in order, without those that would be empty.
pub(super) fn all(records: &[Record]) -> Vec<Plot> {
    let mut plots: Vec<_> = SERIES
        .iter()
        .map(|series| over_time(series, records))
        .collect();
    plots.insert(1, histogram(records));
    plots.retain(|plot| plot.panels.iter().any(|panel| !panel.lines.is_empty()));
    plots
}

/// Writes every plot to a file of its own in `dir`, which is made if there is none.
pub(crate) fn write_pictures(dir: &Path, records: &[Record]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut plots = all(records).into_iter();
    plots.try_for_each(|plot| fs::write(dir.join(format!("soak-{}.svg", plot.key)), plot.picture()))
}

/// A plot of numbers over the time of the run: its key, title and explanation, what is measured, whether its axis is
/// logarithmic, how values are written, and the lines.
type Series = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    bool,
    fn(f64) -> String,
    &'static [Curve],
);

/// Its name, its colour, and where its values come from.
type Curve = (&'static str, Rgb, fn(&Sample) -> f64);

fn over_time(series: &Series, records: &[Record]) -> Plot {
    let &(key, title, explanation, measure, is_log, text, curves) = series;
    let panels = records.iter().map(|record| {
        let lines = curves.iter().filter_map(|&(name, color, value)| {
            let points = record.samples.iter().map(|it| (it.at_s, value(it)));
            let points: Vec<_> = points.filter(|point| point.1.is_finite()).collect();
            // What the workloads of this run do not do has no line.
            let is_any = points.iter().any(|point| point.1 > 0.0);
            is_any.then(|| Line {
                name: name.to_owned(),
                color,
                points,
            })
        });
        let starts = [0.0]
            .into_iter()
            .chain(record.samples.iter().map(|it| it.at_s));
        let disturbed = starts
            .zip(&record.samples)
            .filter(|(_, it)| is_log && !it.is_quiet);
        Panel {
            name: record.name.clone(),
            lines: lines.collect(),
            shaded: disturbed
                .map(|(from, sample)| (from, sample.at_s))
                .collect(),
        }
    });
    let panels: Vec<_> = panels.collect();
    let times = values(&panels, |point| point.0);
    Plot {
        key,
        title,
        explanation,
        x: Axis::over("into the run", false, run_time, times),
        y: Axis::over(measure, is_log, text, values(&panels, |point| point.1)),
        panels,
    }
}

/// How often each lateness was seen, of the timers and of the machine.
fn histogram(records: &[Record]) -> Plot {
    let line = |of: &Distribution| {
        let color = match &*of.name {
            MACHINE_NOISE => GREY,
            name if name == Timing::Lateness.label() => VERMILION,
            _ => return None,
        };
        Some(Line {
            name: of.name.clone(),
            color,
            points: steps(of),
        })
    };
    let panels = records.iter().map(|record| Panel {
        name: record.name.clone(),
        lines: record.distributions.iter().filter_map(line).collect(),
        shaded: Vec::new(),
    });
    let panels: Vec<_> = panels.collect();
    Plot {
        key: "latencies",
        title: "How late timers are",
        explanation: "Share of the timers by their lateness. The machine's noise is by how much a plain sleeping thread overslept.",
        x: Axis::over("late by", true, duration, values(&panels, |point| point.0)),
        y: Axis::over(
            "share",
            false,
            |share| format!("{share:.0} %"),
            values(&panels, |point| point.1),
        ),
        panels,
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

fn values(panels: &[Panel], of: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
    let lines = panels.iter().flat_map(|panel| &panel.lines);
    lines.flat_map(move |line| line.points.iter().map(of))
}

/// Time within a run, to the tenth of a second.
pub(super) fn run_time(seconds: f64) -> String {
    let tenths = (seconds * 10.0).round().max(0.0) as u64;
    humantime::format_duration(Duration::from_millis(100 * tenths)).to_string()
}

fn duration(ns: f64) -> String {
    round(ns.round(), &DURATIONS)
}

const SERIES: [Series; 3] = [
    (
        "lateness",
        "Lateness over time",
        "How long after its deadline a timer's callback began: the median, the latest of a hundred, and the latest of all in each \
         span of the run. Grey is the machine itself: how much a plain sleeping thread overslept. Shaded: not quiet, so that \
         lateness was not judged.",
        "late by",
        true,
        nanoseconds,
        &[
            ("p50", BLUE, |it| it.late_p50_ns as f64),
            ("p99", GREEN, |it| it.late_p99_ns as f64),
            ("max", VERMILION, |it| it.late_max_ns as f64),
            ("noise p99", GREY, |it| it.noise_p99_ns as f64),
            ("noise max", RGBColor(180, 180, 180), |it| {
                it.noise_max_ns as f64
            }),
        ],
    ),
    (
        "alive",
        "Timers and messages alive",
        "Timers that wait for their deadline, and messages that wait for their acknowledgement.",
        "alive",
        false,
        |count| round(count.round(), &COUNTS),
        &[
            ("timers", BLUE, |it| it.live_timers as f64),
            ("in flight", VERMILION, |it| it.in_flight as f64),
        ],
    ),
    (
        "memory",
        "Memory",
        "Resident: what the system counts for the process. Allocated: what the program asked for and has not given back.",
        "MiB",
        false,
        |mebibytes| format!("{mebibytes:.0}"),
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
