//! The diagram: time against population, both logarithmic, a panel for each group.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::chart::{Chart, Panel, Series};

type DrawResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const PANEL_SIZE: (u32, u32) = (560, 420);
/// Told apart without colour by their marks, and by the colour-blind.
const COLORS: [RGBColor; 3] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
];

pub(super) fn draw(path: &Path, chart: &Chart, figures: &[Vec<Series>]) -> DrawResult {
    let (width, height) = PANEL_SIZE;
    let size = (width * chart.panels.len() as u32, height);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(chart.title, ("sans-serif", 22))?;
    let areas = root.split_evenly((1, chart.panels.len()));
    // One scale for all panels, so that they can be compared.
    let range_ns = range_ns(figures.iter().flatten());
    for ((area, panel), series) in areas.iter().zip(chart.panels).zip(figures) {
        draw_panel(area, chart, panel, series, range_ns)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    chart: &Chart,
    panel: &Panel,
    series: &[Series],
    range_ns: (f64, f64),
) -> DrawResult {
    let smallest = chart.populations[0] as f64;
    let largest = chart.populations[chart.populations.len() - 1] as f64;
    let mut context = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(
            (smallest * 0.8..largest * 1.25).log_scale(),
            (range_ns.0..range_ns.1)
                .log_scale()
                .with_key_points(ticks(range_ns)),
        )?;
    context
        .configure_mesh()
        .x_desc(chart.population_label)
        .y_desc(chart.operation_label)
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 13))
        .light_line_style(WHITE)
        .x_label_formatter(&|population| format!("{population:.0}"))
        .y_label_formatter(&|ns| format!("{ns:.0}"))
        .draw()?;
    for (mark, series) in series.iter().enumerate() {
        let color = COLORS[mark % COLORS.len()];
        let points: Vec<(f64, f64)> = chart
            .populations
            .iter()
            .zip(&series.points)
            .filter_map(|(&population, point)| Some((population as f64, point.as_ref()?.ns)))
            .collect();
        context
            .draw_series(LineSeries::new(
                points.iter().copied(),
                color.stroke_width(2),
            ))?
            .label(series.queue)
            .legend(move |(x, y)| {
                EmptyElement::at((x, y))
                    + PathElement::new(vec![(0, 0), (24, 0)], color.stroke_width(2))
                    + marked((12, 0), mark, color)
            });
        context.draw_series(
            points
                .into_iter()
                .map(|point| EmptyElement::at(point) + marked((0, 0), mark, color)),
        )?;
    }
    context
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .legend_area_size(32)
        .label_font(("sans-serif", 15))
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.4))
        .draw()?;
    Ok(())
}

/// A square, a diamond or a hexagon, by the number of the series.
fn marked(at: (i32, i32), mark: usize, color: RGBColor) -> Polygon<(i32, i32)> {
    let corners: &[(i32, i32)] = match mark {
        0 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        1 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
        _ => &[(-3, -5), (3, -5), (6, 0), (3, 5), (-3, 5), (-6, 0)],
    };
    let corners = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y));
    Polygon::new(corners.collect::<Vec<_>>(), color.filled())
}

/// The range of the vertical axis, a little wider than the figures.
fn range_ns<'a>(series: impl Iterator<Item = &'a Series>) -> (f64, f64) {
    let (mut low, mut high) = (f64::MAX, 1.0_f64);
    for estimate in series.flat_map(|series| series.points.iter().flatten()) {
        low = low.min(estimate.ns);
        high = high.max(estimate.ns);
    }
    (low.min(high) * 0.7, high * 1.6)
}

/// 1, 2, 5, 10, 20, ... as far as the range goes: whole decades are too few on a short axis.
fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let decades = (-3..=12).map(|exponent| 10.0_f64.powi(exponent));
    let steps = decades.flat_map(|decade| [decade, 2.0 * decade, 5.0 * decade]);
    steps.filter(|step| (low..=high).contains(step)).collect()
}
