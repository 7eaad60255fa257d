//! Lines over axes that are both logarithmic, panels side by side.

use plotters::prelude::*;

use super::{Area, Drawn, Rgb, color, svg};
use crate::numbers::{COUNTS, round};

/// What a file shows.
#[derive(Debug)]
pub struct Diagram {
    /// Above the panels.
    pub title: String,
    /// To the right.
    pub x: Scale,
    /// Upwards.
    pub y: Scale,
    /// Left to right.
    pub panels: Vec<DiagramPanel>,
    /// Of each panel in pixels: how wide, and how high.
    pub panel_size: (u32, u32),
}

/// What an axis is about.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Beside it.
    pub label: String,
    /// How the numbers on it are written.
    pub text: fn(f64) -> String,
}

/// One coordinate system.
#[derive(Debug)]
pub struct DiagramPanel {
    /// Above it.
    pub title: String,
    /// In the order of the legend. The same place has the same colour in every panel.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Debug)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether it is one of the lines that the diagram is about.
    pub is_bold: bool,
}

/// For panels of which there are two.
pub const PANEL_SIZE: (u32, u32) = (600, 500);

impl Scale {
    /// An axis of round counts: 100, 10k, 1M.
    pub fn counts(label: &str) -> Self {
        Scale {
            label: label.to_owned(),
            text: |value| round(value, &COUNTS),
        }
    }
}

impl Diagram {
    /// The SVG of it. All panels have one scale, so that they can be compared.
    ///
    /// # Errors
    /// If it cannot be drawn.
    ///
    /// # Examples
    /// ```
    /// use support::plots::lines::{Diagram, DiagramPanel, Line, PANEL_SIZE, Scale};
    ///
    /// # fn main() -> support::plots::Drawn {
    /// let staged = Line {
    ///     name: "staged".to_owned(),
    ///     points: vec![(1e3, 40.0), (1e6, 60.0)],
    ///     is_bold: true,
    /// };
    /// let diagram = Diagram {
    ///     title: "Insert".to_owned(),
    ///     x: Scale::counts("timers"),
    ///     y: Scale::counts("ns per insert"),
    ///     panels: vec![DiagramPanel {
    ///         title: "warm".to_owned(),
    ///         lines: vec![staged],
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
            let points: Vec<(f64, f64)> = self
                .panels
                .iter()
                .flat_map(|panel| &panel.lines)
                .flat_map(|line| line.points.iter().copied())
                .collect();
            let x_range = range(points.iter().map(|point| point.0), 0.8, 1.25);
            let y_range = range(points.iter().map(|point| point.1), 0.7, 1.6);
            for (area, panel) in areas.iter().zip(&self.panels) {
                draw_panel(area, self, panel, x_range, y_range)?;
            }
            Ok(())
        })
    }
}

fn draw_panel(
    area: &Area<'_>,
    diagram: &Diagram,
    panel: &DiagramPanel,
    x_range: (f64, f64),
    y_range: (f64, f64),
) -> Drawn {
    // The legend stands beside the lines, not on them.
    let legend_width = legend_width(diagram);
    let plot_width = diagram.panel_size.0.saturating_sub(legend_width);
    let (plot_area, legend_area) = area.split_horizontally(plot_width);
    let mut context = ChartBuilder::on(&plot_area)
        .caption(&panel.title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (x_range.0..x_range.1).log_scale(),
            (y_range.0..y_range.1)
                .log_scale()
                .with_key_points(ticks(y_range)),
        )?;
    context
        .configure_mesh()
        .x_desc(&diagram.x.label)
        .y_desc(&diagram.y.label)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .x_label_formatter(&|&value| (diagram.x.text)(value))
        .y_label_formatter(&|&value| (diagram.y.text)(value))
        .draw()?;
    // What the diagram is about lies on top.
    let mut places: Vec<(usize, &Line)> = panel.lines.iter().enumerate().collect();
    places.sort_by_key(|(_, line)| line.is_bold);
    for (place, line) in places {
        let color = color(place);
        let style = color.stroke_width(if line.is_bold { 4 } else { 1 });
        context.draw_series(LineSeries::new(line.points.iter().copied(), style))?;
        let marks = line
            .points
            .iter()
            .map(|&point| EmptyElement::at(point) + marked((0, 0), place, color));
        context.draw_series(marks)?;
        draw_legend(&legend_area, line, place, style)?;
    }
    Ok(())
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
            + marked((12, 0), place, color(place))
            + Text::new(line.name.clone(), (30, -7), font)),
    )?;
    Ok(())
}

/// As wide as the longest name may be, of letters that are seven pixels wide or less.
fn legend_width(diagram: &Diagram) -> u32 {
    let lines = diagram.panels.iter().flat_map(|panel| &panel.lines);
    let letters = lines.map(|line| line.name.chars().count()).max();
    (36 + 7 * letters.unwrap_or(0) as u32).max(130)
}

/// A square, a diamond, a hexagon or a triangle, by the place of the line.
fn marked(at: (i32, i32), place: usize, color: Rgb) -> Polygon<(i32, i32)> {
    let corners: &[(i32, i32)] = match place % 4 {
        0 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        1 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
        2 => &[(-3, -5), (3, -5), (6, 0), (3, 5), (-3, 5), (-6, 0)],
        _ => &[(0, -6), (5, 4), (-5, 4)],
    };
    let corners = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y));
    Polygon::new(corners.collect::<Vec<_>>(), color.filled())
}

/// The range of an axis, a little wider than the figures.
fn range(figures: impl Iterator<Item = f64>, below: f64, above: f64) -> (f64, f64) {
    let (low, high) = figures.fold((f64::MAX, 1.0_f64), |(low, high), figure| {
        (low.min(figure), high.max(figure))
    });
    (low.min(high) * below, high * above)
}

/// 1, 2, 5, 10, 20, ... as far as the range goes, as whole decades are too few on a short axis; on
/// a long one decades alone.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let is_short = high / low < 1e5;
    let decades = (-9..=15).map(|exponent| 10.0_f64.powi(exponent));
    let steps: Vec<f64> = if is_short {
        let steps = decades.flat_map(|decade| [decade, 2.0 * decade, 5.0 * decade]);
        steps.collect()
    } else {
        decades.collect()
    };
    let is_within = |step: &f64| (low..=high).contains(step);
    steps.into_iter().filter(is_within).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagram(points: &[(f64, f64)]) -> Diagram {
        let line = |name: &str, is_bold| Line {
            name: name.to_owned(),
            points: points.to_vec(),
            is_bold,
        };
        let panel = |title: &str| DiagramPanel {
            title: title.to_owned(),
            lines: vec![line("classic", false), line("staged & sorted", true)],
        };
        Diagram {
            title: "Churn".to_owned(),
            x: Scale::counts("live timers"),
            y: Scale::counts("ns"),
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
    fn short_axes_have_more_ticks_than_decades() {
        assert_eq!(ticks((8.0, 120.0)), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(ticks((0.5, 2e5)), [1.0, 10.0, 100.0, 1e3, 1e4, 1e5]);
    }
}
