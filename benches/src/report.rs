//! The tables and diagrams of a bench.

use std::cmp::Ordering;
use std::fmt::Write as _;

use support::numbers::number;
use support::plots::lines::{Axis, Diagram, DiagramPanel, Line, PANEL_SIZE};
use support::plots::ratios::{Ratio, Ratios, Verdict};
use support::quantiles::Spread;
use support::tables::Table;

use crate::about::{Bench, Lines};
pub use crate::about::{Panel, Picture};
use crate::figures::Figures;
use crate::row::{Aim, Row};

/// What the page shows.
pub fn page(bench: &Bench, rows: &[Row], figures: &Figures) -> String {
    let mut text = figures.setting.clone();
    let of_rounds = match bench.has_ranges {
        true => " (smallest–largest)",
        false => "",
    };
    let of_yardstick = match bench.yardstick {
        _ if !has_yardstick(bench, figures) => String::new(),
        name => format!(", after × the median of the ratios to {name} within the rounds"),
    };
    let about = format!("Medians{of_rounds}{of_yardstick}. {}", bench.preface);
    let _ = writeln!(text, "\n{}", about.trim_end());
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
    text += &decided(bench, rows, figures);
    if bench.has_sum {
        text += &sum(bench, rows, figures);
    }
    text
}

/// How many rows our first column has won and lost against each that is not ours, and which were lost. Undecided are those in
/// which the ranges of the rounds meet.
fn decided(bench: &Bench, rows: &[Row], figures: &Figures) -> String {
    let own = own(bench, figures);
    // With no yardstick, or one of ours, nothing can be won.
    let Some(own) = own.filter(|_| !["", bench.ours[0]].contains(&bench.yardstick)) else {
        return String::new();
    };
    // Not aligned, as the last cell may be long.
    let mut table =
        format!("\n| {own} to | won | ranges meet | lost | which |\n|---|--:|--:|--:|---|\n");
    let others = figures.columns.iter();
    for other in others.filter(|it| !bench.ours.contains(&it.as_str())) {
        let (mut won, mut undecided, mut lost) = (0, 0, Vec::new());
        for (row, title) in titled(rows) {
            match verdict(figures, row, own, other) {
                Some(Verdict::Won) => won += 1,
                Some(Verdict::Undecided) => undecided += 1,
                Some(Verdict::Lost) => lost.push(title),
                None => {}
            }
        }
        let count = lost.len();
        if won + undecided + count > 0 {
            let which = lost.join("; ");
            let _ = writeln!(
                table,
                "| {other} | {won} | {undecided} | {count} | {which} |"
            );
        }
    }
    table
}

/// The first of our columns that was measured.
fn own(bench: &Bench, figures: &Figures) -> Option<&'static str> {
    let is_there = |name: &&str| figures.columns.iter().any(|it| it == *name);
    bench.ours.iter().copied().find(is_there)
}

/// Whether `own` has won `row` against `other`: it has not if the ranges of the rounds meet. `None` where there is nothing
/// to compare.
fn verdict(figures: &Figures, row: &Row, own: &str, other: &str) -> Option<Verdict> {
    if figures.is_astray(row, own) || figures.is_astray(row, other) {
        return None;
    }
    let order = figures.order(row, own, other)?;
    // How busy a server is says nothing by itself.
    (row.unit != "%").then_some(match order {
        Ordering::Equal => Verdict::Undecided,
        _ if (order == Ordering::Greater) == row.is_better_if_larger() => Verdict::Won,
        _ => Verdict::Lost,
    })
}

/// Our first column to `other`, of all rows that can be compared. `None` if there are none.
pub fn ratios(bench: &Bench, rows: &[Row], figures: &Figures, other: &str) -> Option<Ratios> {
    let own = own(bench, figures)?;
    let lines = titled(rows).filter_map(|(row, title)| {
        let verdict = verdict(figures, row, own, other)?;
        let Spread { min, median, max } = figures.ratio_spread(row, own, other)?;
        let (middle, range) = match row.is_better_if_larger() {
            false => (median, (min, max)),
            true => (1.0 / median, (1.0 / max, 1.0 / min)),
        };
        let is_shown = row.against == row.name && range.0 > 0.0;
        is_shown.then_some(Ratio {
            title,
            middle,
            range,
            verdict,
        })
    });
    let lines: Vec<Ratio> = lines.collect();
    (!lines.is_empty()).then(|| Ratios {
        title: format!("What {own} takes, in proportion to {other}"),
        axis: "ratios within the rounds; of rates the inverse: less is better. Filled: the ranges do not meet".to_owned(),
        lines,
    })
}

/// The rows, each with its title, where "same" has become what it stands for: what is before the colon of the row that it
/// stands for. Without one it is another case of that row, if it has its unit, else something else of the case before.
fn titled(rows: &[Row]) -> impl Iterator<Item = (&Row, String)> {
    let (mut subject, mut unit, mut case) = ("", "", String::new());
    rows.iter().map(move |row| {
        let title = row.title.strip_prefix("the ").unwrap_or(&row.title);
        let Some(what) = title.strip_prefix("same, ") else {
            (subject, unit) = (&row.title, row.unit);
            case.clone_from(&row.title);
            return (row, case.clone());
        };
        if let Some((of, _)) = subject.split_once(": ") {
            return (row, format!("{of}: {what}"));
        }
        if row.unit != unit {
            return (row, format!("{case}; {what}"));
        }
        case = format!("{subject}; {what}");
        (row, case.clone())
    })
}

/// What the rows should be and whether they are, as markdown: for those who work on the crate, and only of rows with an
/// aim. `None` where there are none.
pub fn aims(bench: &Bench, rows: &[Row], figures: &Figures) -> Option<String> {
    let is_there = |name: &&&str| figures.columns.iter().any(|it| it == **name);
    let own: Vec<&str> = bench.ours.iter().filter(is_there).copied().collect();
    let head = ["row".to_owned(), "aim".to_owned()];
    let titles = own.iter().map(|name| format!("{name}?"));
    let mut table = Table::new(head.into_iter().chain(titles));
    let mut has_aims = false;
    for (row, title) in titled(rows) {
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

/// What the page shows of columns that differ in a feature: what that costs on the whole.
pub fn sum_alone(bench: &Bench, rows: &[Row], figures: &Figures) -> String {
    figures.setting.clone() + &sum(bench, rows, figures)
}

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
                        color: None,
                        points: points.collect(),
                        is_bold: bench.ours.contains(&column.as_str()),
                    })
                };
                DiagramPanel {
                    title: panel.title.to_owned(),
                    lines: figures.columns.iter().filter_map(line).collect(),
                    shaded: Vec::new(),
                }
            })
            .collect();
        let has_points = |panel: &DiagramPanel| panel.lines.iter().any(|it| !it.points.is_empty());
        panels.iter().all(has_points).then(|| Diagram {
            title: self.title.to_owned(),
            x: Axis::counts(self.x),
            y: Axis::counts(self.y),
            panels,
            panel_size: PANEL_SIZE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Measured;
    use crate::row::row;

    #[test]
    fn a_row_is_lost_where_the_ranges_do_not_meet() {
        let bench = Bench {
            yardstick: "theirs",
            ours: &["ours", "classic"],
            ..Bench::DEFAULT
        };
        let rows = [
            row("ping", "", "a ping", "µs", Aim::Open),
            row("apart", "", "same, apart", "µs", Aim::Open),
            row("cpu", "", "same, CPU", "ns", Aim::Open),
            row("rate", "", "echo: requests", "k/s", Aim::Open),
            row("late", "", "same, p99", "k/s", Aim::Open),
            row("busy", "", "same, server on its CPU", "%", Aim::Open),
        ];
        let mut figures = Figures::of(["classic", "ours", "theirs"].map(str::to_owned).into());
        // Of two rounds: ours and theirs.
        let measured = [
            ("ping", [1.0, 2.0], [2.0, 3.0]),
            ("cpu", [5.0, 6.0], [3.0, 4.0]),
            ("rate", [5.0, 6.0], [3.0, 4.0]),
            ("late", [3.0, 4.0], [5.0, 6.0]),
            ("busy", [5.0, 6.0], [3.0, 4.0]),
        ];
        for (row, ours, theirs) in measured {
            for (column, values) in [("ours", ours), ("theirs", theirs)] {
                for (round, value) in values.into_iter().enumerate() {
                    let (row, is_astray) = (row.to_owned(), false);
                    figures.add(
                        column,
                        round,
                        Measured {
                            row,
                            value,
                            is_astray,
                        },
                    );
                }
            }
        }
        let told = decided(&bench, &rows, &figures);
        let cells = told
            .lines()
            .last()
            .expect("a line")
            .split('|')
            .map(str::trim);
        let expected = ["theirs", "1", "1", "2", "a ping; apart; CPU; echo: p99"];
        assert!(cells.filter(|it| !it.is_empty()).eq(expected), "{told}");
    }
}
