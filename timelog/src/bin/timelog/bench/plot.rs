//! Plots: cases beside the published, floors, percentiles, growth, K5.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::bars::Wanted;
use super::case::Form;
use super::report::{ns, short};
use super::scaling::{Growth, PARTS};
use super::{Results, bars, latency, matrix};

type Drawn<T> = Result<T, Box<dyn Error + Send + Sync>>;
/// A name, a colour and points.
type Line = (String, RGBColor, Vec<(f64, f64)>);
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Told apart by the colour-blind (Okabe and Ito).
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const GREY: RGBColor = RGBColor(130, 130, 130);
const PALE: RGBColor = RGBColor(225, 225, 225);

/// Each plot as SVG, with the title of the table that it belongs to.
pub fn all(results: &Results) -> Drawn<Vec<(&'static str, String)>> {
    let mut plots = Vec::new();
    if !results.floors.is_empty() {
        plots.push(("Floors", floors(&results.floors)?));
    }
    if !results.cases.is_empty() {
        plots.push(("Cases", cases(results)?));
    }
    if !results.latencies.is_empty() {
        plots.push(("Latency", percentiles(&results.latencies)?));
    }
    if let Some(growth) = &results.growth {
        plots.push(("Growth", slopes(growth)?));
    }
    if !results.matrix.is_empty() {
        plots.push(("K5", heat(&results.matrix)?));
    }
    Ok(plots)
}

fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Drawn<String> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        area.present()?;
    }
    Ok(text)
}

fn label(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, horizontal: HPos) -> Drawn<()> {
    let style = ("sans-serif", size)
        .into_text_style(area)
        .pos(Pos::new(horizontal, VPos::Center));
    area.draw_text(text, &style, at)?;
    Ok(())
}

const ROW: i32 = 17;
const TOP: i32 = 56;

/// A logarithmic axis in pixels.
struct Axis {
    low: f64,
    high: f64,
    left: i32,
    right: i32,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, left: i32, right: i32) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .fold((f64::MAX, 0.0f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        Self {
            low: low.log10().floor(),
            high: high.log10().ceil().max(low.log10().floor() + 1.0),
            left,
            right,
        }
    }

    fn at(&self, value: f64) -> i32 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.left + (share * f64::from(self.right - self.left)) as i32
    }

    fn draw(&self, area: &Area<'_>, bottom: i32, text: impl Fn(f64) -> String) -> Drawn<()> {
        for decade in self.low as i32..=self.high as i32 {
            let value = 10f64.powi(decade);
            let x = self.at(value);
            area.draw(&PathElement::new([(x, TOP - 10), (x, bottom)], PALE))?;
            label(area, &text(value), (x, TOP - 18), 11, HPos::Center)?;
        }
        Ok(())
    }
}

fn cases(results: &Results) -> Drawn<String> {
    let mut ids: Vec<&str> = results
        .cases
        .iter()
        .map(|measured| measured.case.id)
        .collect();
    ids.dedup();
    let bottom = TOP + ROW * ids.len() as i32;
    let figures = results.cases.iter().flat_map(|measured| {
        let case = measured.case;
        [Some(measured.summary.rate()), case.published, case.newer]
    });
    let axis = Axis::over(figures.flatten(), 130, 880);
    svg((960, bottom as u32 + 16), |area| {
        let legend = [
            ("published 0.4.5", GREY),
            ("1.3.0", BLUE),
            ("ours, engine", VERMILION),
            ("ours, e2e", GREEN),
        ];
        for (number, (name, color)) in (0..).zip(legend) {
            let x = 140 + number * 170;
            area.draw(&Circle::new((x, 14), 5, color.filled()))?;
            label(area, name, (x + 12, 14), 13, HPos::Left)?;
        }
        axis.draw(area, bottom, |rate| format!("{}/s", short(rate)))?;
        for (number, id) in (0..).zip(&ids) {
            let y = TOP + ROW * number + ROW / 2;
            label(area, id, (120, y), 12, HPos::Right)?;
            area.draw(&PathElement::new([(axis.left, y), (axis.right, y)], PALE))?;
            for measured in results
                .cases
                .iter()
                .filter(|measured| measured.case.id == *id)
            {
                let color = if measured.form == Form::E2e {
                    GREEN
                } else {
                    VERMILION
                };
                let marks = [
                    (measured.case.published, GREY),
                    (measured.case.newer, BLUE),
                    (Some(measured.summary.rate()), color),
                ];
                for (figure, color) in marks {
                    if let Some(figure) = figure {
                        area.draw(&Circle::new((axis.at(figure), y), 5, color.filled()))?;
                    }
                }
            }
        }
        Ok(())
    })
}

/// Each ratio over its bar, so that what reaches beyond one is met.
fn floors(outcomes: &[bars::Outcome]) -> Drawn<String> {
    let shares: Vec<(String, f64)> = outcomes
        .iter()
        .filter_map(|outcome| {
            let ratio = outcome.ratio[0].max(1e-9);
            let share = match outcome.wanted {
                Wanted::Rate(bar) => ratio / bar,
                Wanted::Time(bar) | Wanted::Nanoseconds(bar) => bar / ratio,
                Wanted::Nothing => return None,
            };
            let name = match outcome.floor {
                "" => outcome.what.to_owned(),
                floor => format!("{} / {floor}", outcome.what),
            };
            Some((name.replace('`', ""), share))
        })
        .collect();
    let bottom = TOP + ROW * shares.len() as i32;
    let axis = Axis::over(
        shares.iter().map(|share| share.1).chain([0.5, 2.0]),
        430,
        880,
    );
    svg((960, bottom as u32 + 16), |area| {
        label(
            area,
            "ratio over its bar: right of 1 it is met",
            (430, 14),
            13,
            HPos::Left,
        )?;
        axis.draw(area, bottom, |share| format!("{share}"))?;
        let one = axis.at(1.0);
        area.draw(&PathElement::new([(one, TOP - 10), (one, bottom)], BLACK))?;
        for (number, (name, share)) in (0..).zip(&shares) {
            let y = TOP + ROW * number;
            let color = if *share >= 1.0 { GREEN } else { VERMILION };
            let (from, to) = (one.min(axis.at(*share)), one.max(axis.at(*share)));
            area.draw(&Rectangle::new(
                [(from, y + 3), (to.max(from + 1), y + ROW - 3)],
                color.filled(),
            ))?;
            label(area, name, (420, y + ROW / 2), 12, HPos::Right)?;
        }
        Ok(())
    })
}

/// Latency against how rare it is: each nine as wide as the last.
fn percentiles(outcomes: &[latency::Outcome]) -> Drawn<String> {
    let lines: Vec<Line> = outcomes
        .iter()
        .zip([(VERMILION, GREY), (BLUE, GREEN)])
        .flat_map(|(outcome, colors)| {
            let points = |times: &hdrhistogram::Histogram<u64>| -> Vec<(f64, f64)> {
                let rarities = (0..60).map(|step| 10f64.powf(f64::from(step) / 8.0));
                let seen = rarities.take_while(|rarity| *rarity <= outcome.appends as f64);
                let at = |rarity: f64| times.value_at_quantile(1.0 - 1.0 / rarity).max(1) as f64;
                seen.map(|rarity| (rarity, at(rarity))).collect()
            };
            let id = outcome.case.id;
            [
                (id.to_owned(), colors.0, points(&outcome.append)),
                (
                    format!("{id}, the clock alone"),
                    colors.1,
                    points(&outcome.clock),
                ),
            ]
        })
        .collect();
    let name = |rarity: &f64| format!("{:.4} %", 100.0 - 100.0 / rarity);
    lines_of("nanoseconds of a single append", "percentile", &lines, name)
}

fn slopes(growth: &Growth) -> Drawn<String> {
    let lines: Vec<_> = (0..3)
        .zip([VERMILION, BLUE, GREEN])
        .map(|(part, color)| {
            let points = growth.times.iter().map(|times| {
                (
                    times.rows as f64,
                    times.parts()[part].as_nanos().max(1) as f64,
                )
            });
            let name = format!("{}: slope {:.3}", PARTS[part], growth.slopes[part]);
            (name, color, points.collect())
        })
        .collect();
    lines_of("time for all rows", "rows", &lines, |rows| short(*rows))
}

/// Lines over logarithmic axes, the ordinate a time.
fn lines_of(
    title: &str,
    abscissa: &str,
    lines: &[Line],
    name: impl Fn(&f64) -> String,
) -> Drawn<String> {
    let points = || lines.iter().flat_map(|line| &line.2);
    let range = |values: Vec<f64>| {
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        (low * 0.8)..(high.max(low * 2.0) * 1.3)
    };
    let x_range = range(points().map(|point| point.0).collect());
    let y_range = range(points().map(|point| point.1).collect());
    svg((960, 460), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 16))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(70)
            .build_cartesian_2d(x_range.log_scale(), y_range.log_scale())?;
        chart
            .configure_mesh()
            .x_desc(abscissa)
            .light_line_style(WHITE)
            .x_label_formatter(&name)
            .y_label_formatter(&|value| ns(*value))
            .draw()?;
        for (name, color, points) in lines {
            chart
                .draw_series(LineSeries::new(
                    points.iter().copied(),
                    color.stroke_width(2),
                ))?
                .label(name)
                .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE)
            .border_style(PALE)
            .draw()?;
        Ok(())
    })
}

/// Sixteen cells: maintenance and policy down, memtable and runs across.
fn heat(outcomes: &[matrix::Outcome]) -> Drawn<String> {
    let rates = outcomes.iter().map(|outcome| outcome.summary.rate());
    let (low, high) = rates.fold((f64::MAX, 0.0f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    const WIDTH: i32 = 170;
    const HEIGHT: i32 = 54;
    svg((960, 300), |area| {
        label(area, "rows a second", (20, 20), 14, HPos::Left)?;
        for (number, outcome) in (0..).zip(outcomes) {
            let (row, column) = (number / 4, number % 4);
            let (x, y) = (220 + column * WIDTH, 60 + row * HEIGHT);
            let rate = outcome.summary.rate();
            let share = (rate - low) / (high - low).max(1.0);
            let shade = |from: u8, to: u8| {
                (f64::from(from) + share * (f64::from(to) - f64::from(from))) as u8
            };
            let color = RGBColor(shade(253, 90), shade(231, 185), shade(200, 150));
            let corners = [(x, y), (x + WIDTH - 4, y + HEIGHT - 4)];
            area.draw(&Rectangle::new(corners, color.filled()))?;
            let center = (x + WIDTH / 2 - 2, y + HEIGHT / 2 - 2);
            label(area, &short(rate), center, 15, HPos::Center)?;
            let cell = outcome.cell;
            if row == 0 {
                let name = format!("{} KiB, runs {}", cell.memtable_kib, cell.sealed_runs);
                label(area, &name, (center.0, 46), 12, HPos::Center)?;
            }
            if column == 0 {
                let steps = if cell.is_background {
                    "steps between"
                } else {
                    "no maintenance"
                };
                label(
                    area,
                    &format!("{steps}, {:?}", cell.busy),
                    (210, center.1),
                    12,
                    HPos::Right,
                )?;
            }
        }
        Ok(())
    })
}
