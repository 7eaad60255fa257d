//! From Criterion's estimates to a table and a plot.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs, io};

use benches::timers::OURS;
use criterion::Criterion;
use support::machine::Machine;
use support::output::target_directory;
use support::plots::lines::{Diagram, DiagramPanel, Line, PANEL_SIZE, Scale};
use support::plots::save;
use support::tables::Table;

use super::chart::{Chart, Estimate, Panel, Series};

/// A Criterion that obeys the command line and writes to the target directory.
pub(super) fn criterion() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .output_directory(&target_directory().join("criterion"))
        .configure_from_args()
}

/// Prints the tables of `chart` and saves them and the plot to `target/timers/`.
///
/// What a filter on the command line has left out is shown as an earlier run has measured it. Does
/// nothing if benches are only listed or tried out.
///
/// # Errors
/// If a file cannot be written or the plot not be drawn. A bench that was never measured is no
/// error: its cell stays empty.
pub(super) fn summarize(chart: &Chart) -> io::Result<()> {
    let has_argument = |name: &str| env::args().any(|argument| argument == name);
    if !has_argument("--bench") || has_argument("--list") || has_argument("--test") {
        return Ok(());
    }
    let figures: Vec<Vec<Series>> = chart
        .panels
        .iter()
        .map(|panel| read(chart, panel))
        .collect();
    let directory = target_directory().join("timers");
    fs::create_dir_all(&directory)?;
    let text = tables(chart, &figures);
    println!("{text}");
    let table_path = directory.join(chart.name).with_extension("md");
    fs::write(&table_path, text)?;
    let plot_path = directory.join(chart.name).with_extension("svg");
    save(&plot_path, diagram(chart, &figures).svg())?;
    println!(
        "saved to {} and {}",
        table_path.display(),
        plot_path.display()
    );
    Ok(())
}

fn tables(chart: &Chart, figures: &[Vec<Series>]) -> String {
    let mut text = format!(
        "# {}\n\n`cargo bench -p benches --bench {}` on {}.\nMedians in {}; in brackets the improvement over `{}`.\n",
        chart.title,
        chart.name,
        Machine::this(),
        chart.operation_label,
        OURS[0],
    );
    for (panel, series) in chart.panels.iter().zip(figures) {
        let _ = writeln!(text, "\n## {}\n", panel.title);
        let queues = series.iter().map(|series| format!("{}, ns", series.queue));
        let titles = [chart.population_label.to_owned()]
            .into_iter()
            .chain(queues);
        let mut table = Table::new(titles);
        for (row, population) in chart.populations.iter().enumerate() {
            let mut line = vec![population.to_string()];
            let baseline = series[0].points[row];
            for (column, series) in series.iter().enumerate() {
                line.push(match (series.points[row], baseline) {
                    (None, _) => "–".to_owned(),
                    (Some(point), Some(baseline)) if column > 0 => {
                        let saved = 100.0 * (1.0 - point.ns / baseline.ns);
                        format!("{} ({saved:+.0} %)", interval(point))
                    }
                    (Some(point), _) => interval(point),
                });
            }
            table.push(line);
        }
        text.push_str(&table.markdown());
    }
    text
}

fn diagram(chart: &Chart, figures: &[Vec<Series>]) -> Diagram {
    let line = |series: &Series| Line {
        name: series.queue.to_owned(),
        points: chart
            .populations
            .iter()
            .zip(&series.points)
            .filter_map(|(&population, point)| Some((population as f64, point.as_ref()?.ns)))
            .collect(),
        is_bold: series.queue != OURS[0],
    };
    Diagram {
        title: chart.title.to_owned(),
        x: Scale::counts(chart.population_label),
        y: Scale::whole(chart.operation_label),
        panels: chart
            .panels
            .iter()
            .zip(figures)
            .map(|(panel, series)| DiagramPanel {
                title: panel.title.to_owned(),
                lines: series.iter().map(line).collect(),
            })
            .collect(),
        panel_size: PANEL_SIZE,
    }
}

/// A median and half the width of its 95 % confidence interval.
fn interval(estimate: Estimate) -> String {
    let half = (estimate.high_ns - estimate.low_ns) / 2.0;
    format!("{:.1} ± {half:.1}", estimate.ns)
}

fn read(chart: &Chart, panel: &Panel) -> Vec<Series> {
    let series = |&queue: &&'static str| Series {
        queue,
        points: chart
            .populations
            .iter()
            .map(|&population| {
                let directory = target_directory()
                    .join("criterion")
                    .join(panel.group)
                    .join(queue)
                    .join(population.to_string());
                estimate(&directory, (panel.operations)(population) as f64)
            })
            .collect(),
    };
    OURS.iter().map(series).collect()
}

fn estimate(directory: &Path, operations: f64) -> Option<Estimate> {
    let text = fs::read_to_string(directory.join("new/estimates.json")).ok()?;
    let estimates: serde_json::Value = serde_json::from_str(&text).ok()?;
    let median = &estimates["median"];
    let interval = &median["confidence_interval"];
    Some(Estimate {
        ns: median["point_estimate"].as_f64()? / operations,
        low_ns: interval["lower_bound"].as_f64()? / operations,
        high_ns: interval["upper_bound"].as_f64()? / operations,
    })
}
