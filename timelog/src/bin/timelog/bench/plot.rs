//! Plots: cases beside the published, floors, percentiles, growth, K5.

use support::numbers::{DURATIONS, percentile, round};
use support::plots::canvas::{Anchor, LogAxis, canvas};
use support::plots::lines::{Diagram, DiagramPanel, Line, Scale};
use support::plots::{BLACK, BLUE, Drawn, GREEN, GREY, PALE, Rgb, VERMILION};
use support::quantiles::Histogram;

use super::bars::Wanted;
use super::case::Form;
use super::report::short;
use super::results::Results;
use super::scaling::{Growth, PARTS};
use super::{bars, latency, matrix};

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

const ROW: i32 = 17;
const TOP: i32 = 56;
const LEFT: i32 = 130;
const RIGHT: i32 = 880;

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
    let axis = LogAxis::over(figures.flatten(), LEFT, RIGHT);
    canvas((960, bottom as u32 + 16), |canvas| {
        let legend = [
            ("published 0.4.5", GREY),
            ("1.3.0", BLUE),
            ("ours, engine", VERMILION),
            ("ours, e2e", GREEN),
        ];
        for (number, (name, color)) in (0..).zip(legend) {
            let x = 140 + number * 170;
            canvas.dot((x, 14), color)?;
            canvas.text(name, (x + 12, 14), 13, Anchor::Start)?;
        }
        axis.draw(canvas, (TOP - 10, bottom), |rate| {
            format!("{}/s", short(rate))
        })?;
        for (number, id) in (0..).zip(&ids) {
            let y = TOP + ROW * number + ROW / 2;
            canvas.text(id, (120, y), 12, Anchor::End)?;
            canvas.line((LEFT, y), (RIGHT, y), PALE)?;
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
                        canvas.dot((axis.at(figure), y), color)?;
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
            let ratio = outcome.ratio.median.max(1e-9);
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
    let axis = LogAxis::over(
        shares.iter().map(|share| share.1).chain([0.5, 2.0]),
        430,
        RIGHT,
    );
    canvas((960, bottom as u32 + 16), |canvas| {
        let title = "ratio over its bar: right of 1 it is met";
        canvas.text(title, (430, 14), 13, Anchor::Start)?;
        axis.draw(canvas, (TOP - 10, bottom), |share| format!("{share}"))?;
        let one = axis.at(1.0);
        canvas.line((one, TOP - 10), (one, bottom), BLACK)?;
        for (number, (name, share)) in (0..).zip(&shares) {
            let y = TOP + ROW * number;
            let color = if *share >= 1.0 { GREEN } else { VERMILION };
            let (from, to) = (one.min(axis.at(*share)), one.max(axis.at(*share)));
            canvas.bar([(from, y + 3), (to.max(from + 1), y + ROW - 3)], color)?;
            canvas.text(name, (420, y + ROW / 2), 12, Anchor::End)?;
        }
        Ok(())
    })
}

/// Latency against how rare it is: each nine as wide as the last.
fn percentiles(outcomes: &[latency::Outcome]) -> Drawn<String> {
    let lines = outcomes.iter().flat_map(|outcome| {
        let line = |name: String, times: &Histogram<u64>, is_bold| {
            let rarities = (0..30).map(|step| 10f64.powf(f64::from(step) / 4.0));
            let seen = rarities.take_while(|rarity| *rarity <= outcome.appends as f64);
            let at = |rarity: f64| times.value_at_quantile(1.0 - 1.0 / rarity).max(1) as f64;
            Line {
                name,
                points: seen.map(|rarity| (rarity, at(rarity))).collect(),
                is_bold,
            }
        };
        let id = outcome.case.id;
        [
            line(id.to_owned(), &outcome.append, true),
            line(format!("{id}, the clock alone"), &outcome.clock, false),
        ]
    });
    let x = Scale {
        label: "percentile".to_owned(),
        text: |rarity| format!("{} %", percentile(rarity)),
    };
    diagram("Time of a single append", x, lines.collect())
}

fn slopes(growth: &Growth) -> Drawn<String> {
    let lines = (0..3).map(|part| {
        let points = growth.times.iter().map(|times| {
            let ns = times.parts()[part].as_nanos().max(1);
            (times.rows as f64, ns as f64)
        });
        Line {
            name: format!("{}: slope {:.3}", PARTS[part], growth.slopes[part]),
            points: points.collect(),
            is_bold: false,
        }
    });
    diagram("Time for all rows", Scale::counts("rows"), lines.collect())
}

/// Times by `x`, both logarithmic.
fn diagram(title: &str, x: Scale, lines: Vec<Line>) -> Drawn<String> {
    let diagram = Diagram {
        title: title.to_owned(),
        x,
        y: Scale {
            label: "time".to_owned(),
            text: |ns| round(ns, &DURATIONS),
        },
        panels: vec![DiagramPanel {
            title: String::new(),
            lines,
        }],
        panel_size: (960, 460),
    };
    diagram.svg()
}

/// Sixteen cells: maintenance and policy down, memtable and runs across.
fn heat(outcomes: &[matrix::Outcome]) -> Drawn<String> {
    let rates = outcomes.iter().map(|outcome| outcome.summary.rate());
    let (low, high) = rates.fold((f64::MAX, 0.0f64), |(low, high), rate| {
        (low.min(rate), high.max(rate))
    });
    const WIDTH: i32 = 170;
    const HEIGHT: i32 = 54;
    canvas((960, 300), |canvas| {
        canvas.text("rows a second", (20, 20), 14, Anchor::Start)?;
        for (number, outcome) in (0..).zip(outcomes) {
            let (row, column) = (number / 4, number % 4);
            let (x, y) = (220 + column * WIDTH, 60 + row * HEIGHT);
            let rate = outcome.summary.rate();
            let share = (rate - low) / (high - low).max(1.0);
            let shade = |from: u8, to: u8| {
                (f64::from(from) + share * (f64::from(to) - f64::from(from))) as u8
            };
            let color = Rgb(shade(253, 90), shade(231, 185), shade(200, 150));
            let corners = [(x, y), (x + WIDTH - 4, y + HEIGHT - 4)];
            canvas.bar(corners, color)?;
            let center = (x + WIDTH / 2 - 2, y + HEIGHT / 2 - 2);
            canvas.text(&short(rate), center, 15, Anchor::Middle)?;
            let cell = outcome.cell;
            if row == 0 {
                let name = format!("{} KiB, runs {}", cell.memtable_kib, cell.sealed_runs);
                canvas.text(&name, (center.0, 46), 12, Anchor::Middle)?;
            }
            if column == 0 {
                let steps = if cell.is_background {
                    "steps between"
                } else {
                    "no maintenance"
                };
                let name = format!("{steps}, {:?}", cell.busy);
                canvas.text(&name, (210, center.1), 12, Anchor::End)?;
            }
        }
        Ok(())
    })
}
