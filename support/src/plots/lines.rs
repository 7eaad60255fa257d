//! Lines over two axes, linear or logarithmic, panels side by side.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;

use super::{Area, Drawn, PALE, Rgb, color, svg};
use crate::numbers::{COUNTS, round};

/// What a file shows.
#[derive(Debug)]
pub struct Diagram {
    /// Above the panels.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// Left to right.
    pub panels: Vec<DiagramPanel>,
    /// Of each panel in pixels: how wide, and how high.
    pub panel_size: (u32, u32),
}

/// What an axis is about.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Beside it.
    pub label: String,
    /// Else it is linear, and begins at zero.
    pub is_log: bool,
    /// How the numbers on it are written.
    pub text: fn(f64) -> String,
}

/// One coordinate system.
#[derive(Debug)]
pub struct DiagramPanel {
    /// Above it.
    pub title: String,
    /// In the order of the legend, the most important first.
    pub lines: Vec<Line>,
    /// Spans of the axis to the right that do not count.
    pub shaded: Vec<(f64, f64)>,
}

/// One line.
#[derive(Debug)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// That of its place, unless it has one of its own.
    pub color: Option<Rgb>,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether it is one of the lines that the diagram is about.
    pub is_bold: bool,
}

/// For panels of which there are two.
pub const PANEL_SIZE: (u32, u32) = (600, 500);

impl Axis {
    /// A logarithmic axis of round counts: 100, 10k, 1M.
    pub fn counts(label: &str) -> Self {
        Axis {
            label: label.to_owned(),
            is_log: true,
            text: |value| round(value, &COUNTS),
        }
    }

    /// From zero, or on a logarithmic axis from the least of `values`, to the largest, and a little more. On a logarithmic
    /// one what is a millionth of the largest is at its end.
    fn over(&self, values: impl Iterator<Item = f64>) -> Scale {
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let is_log = self.is_log;
        let ends = match is_log {
            _ if low > high => 0.5..2.0,
            true => low.max(high / 1e6) * 0.8..high * 1.25,
            false => 0.0..1.05 * high,
        };
        let decades = (-9..=15).map(|exponent| 10_f64.powi(exponent));
        let ticks: Vec<f64> = if !is_log {
            // As few steps of such a length as are up to ten.
            let steps = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|it| it * decade));
            let mut long_enough = steps.filter(|step| ends.end / step <= 10.0);
            let step = long_enough.next().unwrap_or(ends.end);
            (0..=10).map(|count| f64::from(count) * step).collect()
        } else if ends.end / ends.start < 1e5 {
            // Whole decades are too few on a short axis.
            let steps = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|it| it * decade));
            steps.collect()
        } else {
            decades.collect()
        };
        let is_within = |tick: &f64| ends.contains(tick);
        Scale {
            is_log,
            ticks: ticks.into_iter().filter(is_within).collect(),
            ends,
        }
    }
}

/// An axis with its ends.
#[derive(Clone, Debug)]
struct Scale {
    is_log: bool,
    ends: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn range(&self) -> Range<f64> {
        self.ends.clone()
    }

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let place = |value: f64| match self.is_log {
            true => value.max(f64::MIN_POSITIVE).log10(),
            false => value,
        };
        let [start, end] = [self.ends.start, self.ends.end].map(place);
        let part = ((place(*value) - start) / (end - start)).clamp(0.0, 1.0);
        first + (part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.clone(),
        }
    }
}

impl Diagram {
    /// The SVG of it. All panels have the same axes, so that they can be compared.
    ///
    /// # Errors
    /// If it cannot be drawn.
    ///
    /// # Examples
    /// ```
    /// use support::plots::lines::{Axis, Diagram, DiagramPanel, Line, PANEL_SIZE};
    ///
    /// # fn main() -> support::plots::Drawn {
    /// let staged = Line {
    ///     name: "staged".to_owned(),
    ///     color: None,
    ///     points: vec![(1e3, 40.0), (1e6, 60.0)],
    ///     is_bold: true,
    /// };
    /// let diagram = Diagram {
    ///     title: "Insert".to_owned(),
    ///     x: Axis::counts("timers"),
    ///     y: Axis::counts("ns per insert"),
    ///     panels: vec![DiagramPanel {
    ///         title: "warm".to_owned(),
    ///         lines: vec![staged],
    ///         shaded: Vec::new(),
    ///     }],
    ///     panel_size: PANEL_SIZE,
    /// };
    /// assert!(diagram.svg()?.contains("ns per insert"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn svg(&self) -> Drawn<String> {
        let (width, height) = self.panel_size;
        let size = (width * self.panels.len() as u32, height);
        svg(size, |root| {
            let root = root.titled(&self.title, ("sans-serif", 22))?;
            let areas = root.split_evenly((1, self.panels.len()));
            let mut panels = areas.iter().zip(&self.panels);
            panels.try_for_each(|(area, panel)| self.draw(area, panel))
        })
    }

    /// One of its panels alone, on the axes of all.
    ///
    /// # Errors
    /// As [`svg`](Self::svg).
    pub fn svg_of(&self, panel: &DiagramPanel) -> Drawn<String> {
        svg(self.panel_size, |area| self.draw(&area, panel))
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        lines.flat_map(|line| line.points.iter().copied())
    }

    fn draw(&self, area: &Area<'_>, panel: &DiagramPanel) -> Drawn {
        let (x, y) = (&self.x, &self.y);
        let xs = x.over(self.points().map(|it| it.0));
        let ys = y.over(self.points().map(|it| it.1));
        // The legend stands beside the lines, not on them.
        let plot_width = area.dim_in_pixel().0.saturating_sub(self.legend_width());
        let (plot_area, legend_area) = area.split_horizontally(plot_width);
        let mut chart = ChartBuilder::on(&plot_area)
            .caption(&panel.title, ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(64)
            .build_cartesian_2d(xs, ys.clone())?;
        chart
            .configure_mesh()
            .x_desc(&x.label)
            .y_desc(&y.label)
            .axis_desc_style(("sans-serif", 15))
            .label_style(("sans-serif", 13))
            .light_line_style(WHITE)
            .bold_line_style(PALE)
            .x_label_formatter(&|&value| (x.text)(value))
            .y_label_formatter(&|&value| (y.text)(value))
            .draw()?;
        chart.draw_series(panel.shaded.iter().map(|&(from, to)| {
            let corners = [(from, ys.ends.start), (to, ys.ends.end)];
            Rectangle::new(corners, BLACK.mix(0.08).filled())
        }))?;
        // What the diagram is about lies on top, and the first of it highest.
        let mut lines: Vec<(usize, &Line)> = panel.lines.iter().enumerate().rev().collect();
        lines.sort_by_key(|(_, line)| line.is_bold);
        for (place, line) in lines {
            let color = line.color.unwrap_or(color(place));
            let style = color.stroke_width(if line.is_bold { 4 } else { 2 });
            chart.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
            if line.points.len() <= MARKED_MAX {
                let marked = |&at: &_| EmptyElement::at(at) + mark((0, 0), place, color);
                chart.draw_series(line.points.iter().map(marked))?;
            }
            draw_legend(&legend_area, line, place, style)?;
        }
        Ok(())
    }

    /// As wide as the longest name may be, of letters that are seven pixels wide or less.
    fn legend_width(&self) -> u32 {
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let letters = lines.map(|line| line.name.chars().count()).max();
        (36 + 7 * letters.unwrap_or(0) as u32).max(100)
    }
}

fn draw_legend(area: &Area<'_>, line: &Line, place: usize, style: ShapeStyle) -> Drawn {
    let at = (4, 60 + 26 * place as i32);
    let size = if line.is_bold { 15 } else { 13 };
    let mut font = ("sans-serif", size).into_font();
    if line.is_bold {
        font = font.style(FontStyle::Bold);
    }
    area.draw(
        &(EmptyElement::at(at)
            + PathElement::new(vec![(0, 0), (24, 0)], style)
            + mark((12, 0), place, line.color.unwrap_or(color(place)))
            + Text::new(line.name.clone(), (30, -7), font)),
    )?;
    Ok(())
}

/// A square, a diamond, a hexagon or a triangle, by the place of the line.
fn mark(at: (i32, i32), place: usize, color: Rgb) -> Polygon<(i32, i32)> {
    let corners: &[(i32, i32)] = match place % 4 {
        0 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        1 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
        2 => &[(-3, -5), (3, -5), (6, 0), (3, 5), (-3, 5), (-6, 0)],
        _ => &[(0, -6), (5, 4), (-5, 4)],
    };
    let corners = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y));
    Polygon::new(corners.collect::<Vec<_>>(), color.filled())
}

/// Of more points none is marked.
const MARKED_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(points: &[(f64, f64)]) -> Diagram {
        let line = |place: usize, name: &str| Line {
            name: name.to_owned(),
            color: None,
            points: points.to_vec(),
            is_bold: place > 0,
        };
        let panel = |title: &str| DiagramPanel {
            title: title.to_owned(),
            lines: vec![line(0, "classic"), line(1, "staged & sorted")],
            shaded: vec![(2e3, 3e3)],
        };
        Diagram {
            title: "Churn".to_owned(),
            x: Axis::counts("live timers"),
            y: Axis::counts("ns"),
            panels: vec![panel("recent"), panel("random")],
            panel_size: PANEL_SIZE,
        }
    }

    #[test]
    fn a_diagram_says_what_it_shows() {
        let svg = diagram(&[(1e3, 196.0), (1e4, 288.0), (1e6, 1362.0)]).svg();
        let svg = svg.expect("a string can be written");
        assert!(svg.contains("width=\"1200\""), "{svg}");
        for text in [
            "Churn",
            "recent",
            "random",
            "staged &amp; sorted",
            "10k",
            "1k",
            "live timers",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn lines_without_points_are_only_named() {
        for points in [&[][..], &[(5.0, 7.0)]] {
            let svg = diagram(points).svg().expect("a string can be written");
            assert!(svg.contains("classic"), "{svg}");
        }
    }

    #[test]
    fn axes_have_ticks_as_many_as_they_need() {
        let mut axis = Axis::counts("");
        let texts = |axis: &Axis, values: [f64; 2]| {
            let ticks = axis.over(values.into_iter()).ticks.into_iter();
            ticks.map(axis.text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&axis, [9.0, 110.0]), ["10", "20", "50", "100"]);
        assert_eq!(
            texts(&axis, [1.0, 1e5]),
            ["1", "10", "100", "1k", "10k", "100k"]
        );
        axis.is_log = false;
        assert_eq!(
            texts(&axis, [1.0, 300.0]),
            ["0", "50", "100", "150", "200", "250", "300"]
        );
    }
}
