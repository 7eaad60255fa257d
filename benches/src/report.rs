//! The tables and diagrams of a bench.

use std::fmt::Write as _;

use support::numbers::number;
use support::plots::lines::{Diagram, DiagramPanel, Line, PANEL_SIZE, Scale};
use support::quantiles::Spread;
use support::tables::Table;

use crate::about::{Bench, Lines};
pub use crate::about::{Panel, Picture};
use crate::figures::Figures;
use crate::row::{Aim, Row};

/// What the page shows.
pub fn page(bench: &Bench, rows: &[Row], figures: &Figures) -> String {
    let mut text = figures.setting.clone();
    let of_rounds = if bench.has_ranges {
        " (smallest–largest)"
    } else {
        ""
    };
    let of_yardstick = match bench.yardstick {
        _ if !has_yardstick(bench, figures) => String::new(),
        name => format!(", after × the median of the ratios to {name} within the rounds"),
    };
    let _ = writeln!(
        text,
        "\nMedians{of_rounds}{of_yardstick}. {}",
        bench.preface
    );
    for rows in rows.chunk_by(|one, other| one.section == other.section) {
        let columns = figures.columns.iter().map(String::as_str);
        let is_measured = |column: &&str| {
            rows.iter()
                .any(|row| figures.spread(&row.name, column).is_some())
        };
        let columns: Vec<&str> = columns.filter(is_measured).collect();
        if !rows[0].section.is_empty() {
            let _ = writeln!(text, "\n### {}", rows[0].section);
        }
        let table = match bench.lines {
            Lines::Rows => by_rows(bench, figures, &columns, rows),
            Lines::Columns(name) => by_columns(bench, figures, name, &columns, rows),
        };
        let _ = write!(text, "\n{}", table.markdown());
    }
    if rows.iter().any(|row| {
        figures
            .columns
            .iter()
            .any(|column| figures.is_astray(row, column))
    }) {
        text +=
            "\n† fired early or late: the figure is for other timers than those that were due.\n";
    }
    if bench.has_sum {
        text += &sum(bench, rows, figures);
    }
    text
}

/// What the rows should be and whether they are, as markdown: for those who work on the crate, and only of rows with an
/// aim. `None` where there are none.
pub fn aims(bench: &Bench, rows: &[Row], figures: &Figures) -> Option<String> {
    let is_there = |name: &&&str| figures.columns.iter().any(|it| it == **name);
    let own: Vec<&str> = bench.ours.iter().filter(is_there).copied().collect();
    let head = ["row".to_owned(), "aim".to_owned()];
    let titles = own.iter().map(|name| format!("{name}?"));
    let mut table = Table::new(head.into_iter().chain(titles));
    let (mut subject, mut has_aims) = ("", false);
    for row in rows {
        let title = match row.title.strip_prefix("same, ") {
            Some(what) => format!("{subject}; {what}"),
            None => {
                subject = &row.title;
                subject.to_owned()
            }
        };
        if matches!(row.aim, Aim::Open) {
            continue;
        }
        has_aims = true;
        let mut line = vec![title, row.aim.to_string()];
        line.extend(own.iter().map(|column| {
            let ratio = figures.ratio(row, column, bench.yardstick);
            match row.aim.is_met(figures.figure(row, column), ratio) {
                Some(true) => "met".to_owned(),
                Some(false) => "MISSED".to_owned(),
                None => "—".to_owned(),
            }
        }));
        table.push(line);
    }
    let has_aims = has_aims && !own.is_empty();
    has_aims.then(|| format!("{}\n{}", figures.setting, table.markdown()))
}

fn has_yardstick(bench: &Bench, figures: &Figures) -> bool {
    figures.columns.iter().any(|it| it == bench.yardstick)
}

/// Title, unit, and a cell for each column.
fn by_rows(bench: &Bench, figures: &Figures, columns: &[&str], rows: &[Row]) -> Table {
    let mut table = Table::new(["row", "unit"].into_iter().chain(columns.iter().copied())).left(1);
    for row in rows {
        let mut line = vec![row.title.clone(), row.unit.to_owned()];
        line.extend(
            columns
                .iter()
                .map(|column| cell(bench, figures, row, column)),
        );
        table.push(line);
    }
    table
}

/// A line for each column.
fn by_columns(
    bench: &Bench,
    figures: &Figures,
    name: &str,
    columns: &[&str],
    rows: &[Row],
) -> Table {
    let titles = rows.iter().map(|row| match row.unit {
        "" => row.title.clone(),
        unit => format!("{}, {unit}", row.title),
    });
    let mut table = Table::new([name.to_owned()].into_iter().chain(titles));
    for column in columns {
        let mut line = vec![(*column).to_owned()];
        line.extend(rows.iter().map(|row| cell(bench, figures, row, column)));
        table.push(line);
    }
    table
}

/// The figure, the range of the rounds, and the ratio.
fn cell(bench: &Bench, figures: &Figures, row: &Row, column: &str) -> String {
    let (Some(figure), Some(spread)) = (
        figures.figure(row, column),
        figures.spread(&row.name, column),
    ) else {
        return "—".to_owned();
    };
    let mut cell = number(figure);
    let (min, max) = (number(spread.min), number(spread.max));
    if bench.has_ranges && min != max {
        let _ = write!(cell, " ({min}–{max})");
    }
    let yardstick = row.yardstick.unwrap_or(bench.yardstick);
    let ratio = figures.ratio(row, column, yardstick);
    if let Some(ratio) = ratio.filter(|_| column != yardstick) {
        let _ = write!(cell, " ×{}", number(ratio));
    }
    if figures.is_astray(row, column) {
        cell += "†";
    }
    cell
}

/// Of columns that differ in a feature, what it costs on the whole.
fn sum(bench: &Bench, rows: &[Row], figures: &Figures) -> String {
    let yardstick = bench.yardstick;
    let others = figures.columns.iter().filter(|it| *it != yardstick);
    let lines = others.filter_map(|column| {
        let (all, Spread { min, median, max }) = figures.together(rows, column, yardstick)?;
        Some(format!(
            "\nAll rows together, {column} to {yardstick}: {all:.3}, the geometric mean of the ratios. That of a single \
             round is {median:.3} in the middle, from {min:.3} to {max:.3}.\n"
        ))
    });
    lines.collect()
}

impl Picture {
    /// `None` if a panel would have no points.
    pub fn diagram(&self, bench: &Bench, figures: &Figures) -> Option<Diagram> {
        let panels: Vec<DiagramPanel> = self
            .panels
            .iter()
            .map(|panel| {
                let line = |column: &String| {
                    let points = panel.points.iter().filter_map(|&(place, row)| {
                        Some((place, figures.spread(row, column)?.median))
                    });
                    Some(Line {
                        name: column.strip_suffix(panel.of)?.to_owned(),
                        points: points.collect(),
                        is_bold: bench.ours.contains(&column.as_str()),
                    })
                };
                DiagramPanel {
                    title: panel.title.to_owned(),
                    lines: figures.columns.iter().filter_map(line).collect(),
                }
            })
            .collect();
        let has_points = |panel: &DiagramPanel| panel.lines.iter().any(|it| !it.points.is_empty());
        panels.iter().all(has_points).then(|| Diagram {
            title: self.title.to_owned(),
            x: Scale::counts(self.x),
            y: Scale::counts(self.y),
            panels,
            panel_size: PANEL_SIZE,
        })
    }
}
