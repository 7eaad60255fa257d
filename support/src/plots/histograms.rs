//! Histograms of latencies, panels side by side, on one logarithmic axis of microseconds.

use plotters::prelude::*;

use super::{Area, Drawn, color, svg};
use crate::quantiles::Histogram;

/// What a file shows.
#[derive(Debug)]
pub struct Histograms<'a> {
    /// Above the panels.
    pub title: &'a str,
    /// What a bar is a part of.
    pub y_label: &'a str,
    /// Left to right.
    pub panels: Vec<Panel<'a>>,
}

/// One coordinate system.
#[derive(Debug)]
pub struct Panel<'a> {
    /// Above it.
    pub title: String,
    /// In the order of the legend.
    pub series: Vec<Series<'a>>,
}

/// Latencies of one kind.
#[derive(Debug)]
pub struct Series<'a> {
    /// In the legend.
    pub name: &'a str,
    /// In nanoseconds.
    pub latency: &'a Histogram<u64>,
}

const PANEL_SIZE: (u32, u32) = (440, 360);
/// From a tenth of a microsecond to a hundred milliseconds.
const DECADES: std::ops::Range<i32> = -1..5;
const BINS_PER_DECADE: i32 = 8;

impl Histograms<'_> {
    /// The SVG of it. All panels have one scale, so that they can be compared.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn svg(&self) -> Drawn<String> {
        let size = (PANEL_SIZE.0 * self.panels.len() as u32, PANEL_SIZE.1 + 30);
        svg(size, |root| {
            let root = root.titled(self.title, ("sans-serif", 20))?;
            let binned: Vec<Vec<Vec<f64>>> = self
                .panels
                .iter()
                .map(|panel| panel.series.iter().map(|it| bins(it.latency)).collect())
                .collect();
            let tallest = binned.iter().flatten().flatten().copied();
            let height = tallest.fold(1.0, f64::max) * 1.1;
            let areas = root.split_evenly((1, self.panels.len()));
            for ((area, panel), bins) in areas.iter().zip(&self.panels).zip(&binned) {
                draw_panel(area, self.y_label, panel, bins, height)?;
            }
            Ok(())
        })
    }
}

fn draw_panel(
    area: &Area<'_>,
    y_label: &str,
    panel: &Panel<'_>,
    binned: &[Vec<f64>],
    height: f64,
) -> Drawn {
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
        .y_desc(y_label)
        .axis_desc_style(("sans-serif", 14))
        .label_style(("sans-serif", 12))
        .light_line_style(WHITE)
        .x_label_formatter(&|us| format!("{us}"))
        .y_label_formatter(&|percent| format!("{percent:.0}"))
        .draw()?;
    for (place, (series, bins)) in panel.series.iter().zip(binned).enumerate() {
        let color = color(place);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::quantiles::{Durations, histogram};

    #[test]
    fn every_latency_is_in_a_bin() {
        let mut latency = histogram();
        for ns in [1, 90, 1_000, 15_000, 15_100, 1_000_000, 1_000_000_000] {
            latency.enter(Duration::from_nanos(ns));
        }
        let bins = bins(&latency);
        assert!((bins.iter().sum::<f64>() - 100.0).abs() < 1e-9, "{bins:?}");
        let counted = bins.iter().map(|percent| (percent * 7.0 / 100.0).round());
        let counted: Vec<f64> = counted.filter(|count| *count > 0.0).collect();
        // What is outside of the axis is in its first and in its last bin.
        assert_eq!(counted, [2.0, 1.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn a_picture_names_its_series() {
        let mut latency = histogram();
        latency.enter(Duration::from_micros(20));
        let series = |name| Series {
            name,
            latency: &latency,
        };
        let picture = Histograms {
            title: "From a wake to the first instruction",
            y_label: "% of the starts",
            panels: vec![Panel {
                title: "woken by its timer".to_owned(),
                series: vec![series("Matters(1 ms)"), series("NotImportant")],
            }],
        };
        let svg = picture.svg().expect("a string can be written");
        for text in [
            picture.title,
            picture.y_label,
            "Matters(1 ms)",
            "NotImportant",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }
}
