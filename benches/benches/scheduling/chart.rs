//! Histograms of latencies, panels side by side, on one logarithmic axis.

use std::path::Path;

use hdrhistogram::Histogram;
use plotters::coord::Shift;
use plotters::prelude::*;

/// One coordinate system.
pub struct Panel<'a> {
    pub title: String,
    pub series: Vec<Series<'a>>,
}

/// Latencies of one kind, in nanoseconds.
pub struct Series<'a> {
    pub name: &'a str,
    pub latency: &'a Histogram<u64>,
}

type DrawResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

const PANEL_SIZE: (u32, u32) = (440, 360);
/// Told apart by the colour-blind (Okabe and Ito).
const COLORS: [RGBColor; 2] = [RGBColor(213, 94, 0), RGBColor(0, 114, 178)];
/// From a tenth of a microsecond to a hundred milliseconds.
const DECADES: std::ops::Range<i32> = -1..5;
const BINS_PER_DECADE: i32 = 8;

/// Draws the panels to an SVG file.
///
/// # Errors
/// If the file cannot be written.
pub fn draw(path: &Path, panels: &[Panel<'_>]) -> DrawResult {
    let size = (PANEL_SIZE.0 * panels.len() as u32, PANEL_SIZE.1 + 30);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE)?;
    let title = "From a wake to the first instruction, beside a task that computes";
    let root = root.titled(title, ("sans-serif", 20))?;
    let binned: Vec<Vec<Vec<f64>>> = panels
        .iter()
        .map(|panel| panel.series.iter().map(|it| bins(it.latency)).collect())
        .collect();
    let tallest = binned.iter().flatten().flatten().copied();
    let height = tallest.fold(1.0, f64::max) * 1.1;
    let areas = root.split_evenly((1, panels.len()));
    for ((area, panel), bins) in areas.iter().zip(panels).zip(&binned) {
        draw_panel(area, panel, bins, height)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &Panel<'_>,
    binned: &[Vec<f64>],
    height: f64,
) -> DrawResult {
    let mut context = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 16))
        .margin(10)
        .margin_right(24)
        .x_label_area_size(42)
        .y_label_area_size(48)
        .build_cartesian_2d(
            (edge(0)..edge((DECADES.end - DECADES.start) * BINS_PER_DECADE)).log_scale(),
            0.0..height,
        )?;
    context
        .configure_mesh()
        .x_desc("µs")
        .y_desc("% of the starts")
        .axis_desc_style(("sans-serif", 14))
        .label_style(("sans-serif", 12))
        .light_line_style(WHITE)
        .x_label_formatter(&|us| format!("{us}"))
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .draw()?;
    for (place, (series, bins)) in panel.series.iter().zip(binned).enumerate() {
        let color = COLORS[place % COLORS.len()];
        let bars = bins.iter().zip(0..).filter(|(percent, _)| **percent > 0.0);
        context.draw_series(bars.map(|(&percent, bin)| {
            let corners = [(edge(bin), 0.0), (edge(bin + 1), percent)];
            Rectangle::new(corners, color.mix(0.55).filled())
        }))?;
        // At the left, where the bars are low: few starts take a microsecond.
        let (x, y) = (72, 50 + 22 * place as i32);
        area.draw(&Rectangle::new(
            [(x, y), (x + 14, y + 12)],
            color.mix(0.55).filled(),
        ))?;
        area.draw(&Text::new(
            series.name.to_owned(),
            (x + 20, y - 1),
            ("sans-serif", 13),
        ))?;
    }
    Ok(())
}

/// The lower edge of a bin, in microseconds.
fn edge(bin: i32) -> f64 {
    10.0_f64.powf(f64::from(DECADES.start) + f64::from(bin) / f64::from(BINS_PER_DECADE))
}

/// Percent of the latencies in each bin; what lies outside goes to the first or the last.
fn bins(latency: &Histogram<u64>) -> Vec<f64> {
    let count = (DECADES.end - DECADES.start) * BINS_PER_DECADE;
    let mut bins = vec![0.0; count as usize];
    for value in latency.iter_recorded() {
        let us = value.value_iterated_to() as f64 / 1e3;
        let place = (us.log10() - f64::from(DECADES.start)) * f64::from(BINS_PER_DECADE);
        let bin = (place as i32).clamp(0, count - 1);
        bins[bin as usize] += 100.0 * value.count_at_value() as f64 / latency.len() as f64;
    }
    bins
}
