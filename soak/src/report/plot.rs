//! One plot, drawn by plotters: on a page a panel at a time, in a file all of them side by side.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use support::plots::{Area, Drawn, PALE, Rgb, svg};

use super::axis::Axis;

/// What is drawn, once per run.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// In the name of its picture's file.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    /// A sentence on how to read it.
    pub(super) explanation: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) panels: Vec<Panel>,
}

/// The lines of one run.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// Of the run's timer queue.
    pub(super) name: String,
    /// The first is the one that matters most: it lies on top.
    pub(super) lines: Vec<Line>,
    /// Spans of the x axis that do not count.
    pub(super) shaded: Vec<(f64, f64)>,
    /// A place on the x axis that deserves attention, and why.
    pub(super) marker: Option<(f64, &'static str)>,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) color: Rgb,
    pub(super) is_filled: bool,
    pub(super) points: Vec<(f64, f64)>,
}

impl Plot {
    /// What one panel shows, in words.
    pub(super) fn text(&self, panel: &Panel) -> String {
        let mut text = format!("{}, {}.", self.title, panel.name);
        for line in panel.lines.iter().filter(|line| !line.points.is_empty()) {
            let values = line.points.iter().map(|point| point.1);
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            let (low, high) = (self.y.quantity.text(low), self.y.quantity.text(high));
            write!(text, " {}: from {low} to {high}.", line.name)
                .expect("a string takes every text");
        }
        text
    }

    /// One panel on a page, which scales it to the width there is.
    pub(super) fn element(&self, panel: &Panel) -> Markup {
        let drawn = svg(PANEL_SIZE, |area| self.draw(&area, panel));
        // Within a page it needs no name space, which is an address.
        let drawn = drawn.expect(DRAWN).replacen(NAME_SPACE, "", 1);
        html! {
            div.plane role="img" aria-label=(self.text(panel)) { (PreEscaped(drawn)) }
        }
    }

    /// All panels in a file, which documents show.
    pub(super) fn picture(&self) -> String {
        let count = self.panels.len();
        let size = (PANEL_SIZE.0 * count as u32, PANEL_SIZE.1 + TITLE_HEIGHT);
        let drawn = svg(size, |area| {
            let area = area.titled(self.title, ("sans-serif", 18))?;
            for (area, panel) in area.split_evenly((1, count)).iter().zip(&self.panels) {
                if count > 1 {
                    self.draw(&area.titled(&panel.name, ("sans-serif", 14))?, panel)?;
                } else {
                    self.draw(area, panel)?;
                }
            }
            Ok(())
        });
        drawn.expect(DRAWN)
    }

    fn draw(&self, area: &Area<'_>, panel: &Panel) -> Drawn {
        let area = below_names(area, panel)?;
        let (x, y) = (&self.x, &self.y);
        let (bottom, top) = (y.range.start, y.range.end);
        let mut chart = ChartBuilder::on(&area)
            .margin_left(10)
            .margin_right(24)
            .x_label_area_size(42)
            .y_label_area_size(MARGIN_LEFT as u32 - 10)
            .build_cartesian_2d(x.clone(), y.clone())?;
        chart
            .configure_mesh()
            .x_desc(&x.title)
            .y_desc(&y.title)
            .axis_desc_style(("sans-serif", 13))
            .label_style(("sans-serif", 12))
            .light_line_style(TRANSPARENT)
            .bold_line_style(PALE)
            .draw()?;
        chart.draw_series(panel.shaded.iter().map(|&(from, to)| {
            let [from, to] = [from, to].map(|at| x.place(at).unwrap_or(x.range.start));
            Rectangle::new([(from, bottom), (to, top)], BLACK.mix(0.08).filled())
        }))?;
        for line in panel.lines.iter().rev() {
            for piece in self.pieces(line) {
                if line.is_filled {
                    let ends = [piece[0], piece[piece.len() - 1]].map(|(x, _)| (x, bottom));
                    let outline = [&ends[..1], &piece, &ends[1..]].concat();
                    let area = Polygon::new(outline, line.color.mix(0.14).filled());
                    chart.draw_series([area])?;
                }
                // A single point has no length.
                let dot = (piece.len() == 1).then(|| Circle::new(piece[0], 3, line.color.filled()));
                chart.draw_series(dot)?;
                chart.draw_series(LineSeries::new(piece, line.color.stroke_width(2)))?;
            }
        }
        let marker = panel.marker;
        if let Some((place, why)) = marker.and_then(|(at, why)| Some((x.place(at)?, why))) {
            let is_late = place > (x.range.start + x.range.end) / 2.0;
            let side = if is_late { HPos::Right } else { HPos::Left };
            let style = ("sans-serif", 12).into_text_style(&area).color(&RED);
            chart.draw_series([PathElement::new([(place, bottom), (place, top)], RED)])?;
            let style = style.pos(Pos::new(side, VPos::Top));
            chart.draw_series([Text::new(why, (place, top), style)])?;
        }
        if panel.is_empty() {
            let (width, height) = area.dim_in_pixel();
            let style = ("sans-serif", 14).into_text_style(&area);
            let at = (width as i32 / 2, height as i32 / 2);
            area.draw_text(
                "nothing to show",
                &style.pos(Pos::new(HPos::Center, VPos::Center)),
                at,
            )?;
        }
        Ok(())
    }

    /// Where the points of a line lie, in pieces where it leaves the axes.
    fn pieces(&self, line: &Line) -> Vec<Vec<(f64, f64)>> {
        let place = |&(x, y): &(f64, f64)| Some((self.x.place(x)?, self.y.place(y)?));
        let places: Vec<_> = line.points.iter().map(place).collect();
        let pieces = places.split(Option::is_none);
        let pieces = pieces.map(|piece| piece.iter().flatten().copied().collect());
        pieces.filter(|piece: &Vec<_>| !piece.is_empty()).collect()
    }
}

impl Panel {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }
}

/// Writes the names of the lines beside their colours, in rows, and returns what is left below.
fn below_names<'a>(area: &Area<'a>, panel: &Panel) -> Drawn<Area<'a>> {
    let (mut x, mut y) = (MARGIN_LEFT, 14);
    for line in &panel.lines {
        let width = 36 + 7 * line.name.chars().count() as i32;
        if x + width > PANEL_SIZE.0 as i32 && x > MARGIN_LEFT {
            (x, y) = (MARGIN_LEFT, y + 18);
        }
        area.draw(
            &(EmptyElement::at((x, y))
                + PathElement::new([(0, 0), (18, 0)], line.color.stroke_width(4))
                + Text::new(line.name.clone(), (24, -7), ("sans-serif", 13))),
        )?;
        x += width;
    }
    Ok(area.split_vertically(y + 16).1)
}

/// In pixels, unless a page stretches it.
const PANEL_SIZE: (u32, u32) = (560, 320);
const MARGIN_LEFT: i32 = 74;
const TITLE_HEIGHT: u32 = 48;

const DRAWN: &str = "a string takes every drawing";
const NAME_SPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

#[cfg(test)]
mod tests {
    use super::super::axis::Quantity;
    use super::*;

    #[test]
    fn lines_are_cut_where_they_leave_the_axes() {
        let plot = Plot {
            key: "",
            title: "",
            explanation: "",
            x: Axis::of_run(4.0),
            y: Axis::log("late by", Quantity::Nanoseconds, &[1e3, 1e6]),
            panels: Vec::new(),
        };
        let line = Line {
            name: String::new(),
            color: RED,
            is_filled: false,
            points: vec![
                (0.0, 0.0),
                (1.0, 1e3),
                (2.0, 1e4),
                (3.0, f64::NAN),
                (4.0, 1e6),
            ],
        };
        let pieces = [vec![(1.0, 3.0), (2.0, 4.0)], vec![(4.0, 6.0)]];
        assert_eq!(plot.pieces(&line), pieces);
    }
}
