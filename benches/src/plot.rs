//! Diagrams of time against population, both logarithmic, panels side by side.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

/// Whether a diagram could be drawn.
pub type DrawResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// What a file shows.
#[derive(Debug)]
pub struct Diagram {
    /// Above the panels.
    pub title: String,
    /// Below each panel.
    pub x_label: String,
    /// Beside each panel.
    pub y_label: String,
    /// Left to right.
    pub panels: Vec<DiagramPanel>,
}

/// One coordinate system.
#[derive(Debug)]
pub struct DiagramPanel {
    /// Above it.
    pub title: String,
    /// In the order of the legend. The same place has the same colour in every panel.
    pub lines: Vec<Line>,
}

/// One queue.
#[derive(Debug)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// Population and time, populations ascending.
    pub points: Vec<(f64, f64)>,
    /// Whether it is one of the lines that the diagram is about.
    pub is_bold: bool,
}

const PANEL_SIZE: (u32, u32) = (600, 500);
/// Told apart by the colour-blind (Okabe and Ito), and without colour by the marks.
const COLORS: [RGBColor; 9] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(128, 102, 64),
    RGBColor(110, 110, 110),
    RGBColor(0, 0, 0),
];

/// Draws `diagram` to an SVG file.
///
/// # Errors
/// If the file cannot be written.
pub fn draw(path: &Path, diagram: &Diagram) -> DrawResult {
    let (width, height) = PANEL_SIZE;
    let size = (width * diagram.panels.len() as u32, height);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(&diagram.title, ("sans-serif", 22))?;
    let areas = root.split_evenly((1, diagram.panels.len()));
    // One scale for all panels, so that they can be compared.
    let points: Vec<(f64, f64)> = diagram
        .panels
        .iter()
        .flat_map(|panel| &panel.lines)
        .flat_map(|line| line.points.iter().copied())
        .collect();
    let x_range = range(points.iter().map(|point| point.0), 0.8, 1.25);
    let y_range = range(points.iter().map(|point| point.1), 0.7, 1.6);
    for (area, panel) in areas.iter().zip(&diagram.panels) {
        draw_panel(area, diagram, panel, x_range, y_range)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    diagram: &Diagram,
    panel: &DiagramPanel,
    x_range: (f64, f64),
    y_range: (f64, f64),
) -> DrawResult {
    // The legend stands beside the lines, not on them.
    let (plot_area, legend_area) = area.split_horizontally(PANEL_SIZE.0 - 130);
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
        .x_desc(&diagram.x_label)
        .y_desc(&diagram.y_label)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .x_label_formatter(&|&population| count(population))
        .y_label_formatter(&|ns| format!("{ns:.0}"))
        .draw()?;
    // What the diagram is about lies on top.
    let mut places: Vec<(usize, &Line)> = panel.lines.iter().enumerate().collect();
    places.sort_by_key(|(_, line)| line.is_bold);
    for (place, line) in places {
        let color = COLORS[place % COLORS.len()];
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

fn draw_legend(area: &Area<'_>, line: &Line, place: usize, style: ShapeStyle) -> DrawResult {
    let at = (4, 60 + 26 * place as i32);
    let size = if line.is_bold { 15 } else { 13 };
    let mut font = ("sans-serif", size).into_font();
    if line.is_bold {
        font = font.style(FontStyle::Bold);
    }
    area.draw(
        &(EmptyElement::at(at)
            + PathElement::new(vec![(0, 0), (24, 0)], style)
            + marked((12, 0), place, COLORS[place % COLORS.len()])
            + Text::new(line.name.clone(), (30, -7), font)),
    )?;
    Ok(())
}

/// 100, 10k, 1M.
fn count(population: f64) -> String {
    match population {
        1e6.. => format!("{:.0}M", population / 1e6),
        1e3.. => format!("{:.0}k", population / 1e3),
        _ => format!("{population:.0}"),
    }
}

/// A square, a diamond, a hexagon or a triangle, by the place of the line.
fn marked(at: (i32, i32), place: usize, color: RGBColor) -> Polygon<(i32, i32)> {
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

/// 1, 2, 5, 10, 20, ... as far as the range goes: whole decades are too few on a short axis.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let decades = (-3..=12).map(|exponent| 10.0_f64.powi(exponent));
    let steps = decades.flat_map(|decade| [decade, 2.0 * decade, 5.0 * decade]);
    steps.filter(|step| (low..=high).contains(step)).collect()
}
