//! The tables and diagrams of a run.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use support::numbers::number;
use support::plots::lines::{Diagram, DiagramPanel, Line, PANEL_SIZE, Scale};
use support::plots::save;
use support::tables::Table;

use crate::columns::{Column, YARDSTICK};
use crate::exactness::Exactness;
use crate::figures::Start;
use crate::model::Agreement;
use crate::rounds::Samples;
use crate::rows::{Group, INSERTED, POPULATIONS, churn_name, insert_name};
use crate::workload::Deadlines;

/// What a run has found out.
pub struct Findings<'a> {
    /// Machine, kernel, commit, load, command, duration.
    pub setting: String,
    /// What was compared.
    pub columns: &'a [Column],
    /// What was measured.
    pub groups: &'a [Group],
    /// What came out.
    pub samples: Samples,
    /// When each queue fires what; empty if not measured.
    pub exactness: Vec<(&'static str, Exactness)>,
    /// Whether ours agree with a sorted map; `None` if not checked.
    pub agreement: Option<Agreement>,
}

impl Findings<'_> {
    /// Setting, ratios, exactness.
    pub fn figures(&self) -> String {
        let mut text = self.setting.clone();
        if !self.groups.is_empty() {
            text.push_str(
                "\nMedians of the rounds, the least of the longest polls; classic = 1.00, lower is better. \
                 The first column is the classic queue's own figure; what is counted is shown as it is.\n\n",
            );
            for groups in self
                .groups
                .chunk_by(|one, other| one.section == other.section)
            {
                let _ = writeln!(text, "### {}\n", groups[0].section);
                text.push_str(&self.ratios(groups).markdown());
                text.push('\n');
            }
        }
        if self.is_any_astray() {
            text.push_str(
                "† fired early or late: the figure is for other timers than those that were due.\n",
            );
        }
        if !self.exactness.is_empty() {
            text.push_str(
                "\n### Exactness\n\n20,000 timers over 20 s, polled every 100 to 200 µs.\n\n",
            );
            text.push_str(&self.exactness_table().markdown());
        }
        if let Some(agreement) = &self.agreement {
            let _ = writeln!(text, "\n{agreement}");
        }
        text
    }

    /// Smallest, middle and largest figure of the rounds.
    pub fn spreads(&self) -> String {
        let mut table = Table::new(self.header("row, unit"));
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            let mut line = vec![format!("{}, {}", row.title, row.unit)];
            line.extend(self.columns.iter().map(|column| {
                match self.samples.spread(column.name, &row.name) {
                    Some(spread) => spread.to_string(),
                    None => "—".to_owned(),
                }
            }));
            table.push(line);
        }
        let mut text = "## Medians, smallest and largest figures\n\n".to_owned();
        text.push_str(&table.markdown());
        text
    }

    /// Churn against population, and inserts.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn draw(&self, directory: &Path) -> io::Result<()> {
        let panel = |title: &str, populations: &[usize], name: &dyn Fn(usize) -> String| {
            let line = |column: &Column| Line {
                name: column.name.to_owned(),
                points: populations
                    .iter()
                    .filter_map(|&timers| {
                        let spread = self.samples.spread(column.name, &name(timers))?;
                        Some((timers as f64, spread.median))
                    })
                    .collect(),
                is_bold: column.is_ours && column.name != YARDSTICK,
            };
            DiagramPanel {
                title: title.to_owned(),
                lines: self.columns.iter().map(line).collect(),
            }
        };
        let churn = Diagram {
            title: "Timer queues: cancel + insert".to_owned(),
            x: Scale::counts("live timers"),
            y: Scale::whole("ns per cancel and insert"),
            panel_size: PANEL_SIZE,
            panels: [
                ("recent", "the timer just armed is cancelled"),
                ("random", "any timer is cancelled"),
            ]
            .map(|(victim, title)| {
                panel(title, &POPULATIONS, &|timers| {
                    churn_name(victim, Deadlines::Mixed, timers)
                })
            })
            .into(),
        };
        let insert = Diagram {
            title: "Timer queues: insert".to_owned(),
            x: Scale::counts("timers inserted"),
            y: Scale::whole("ns per insert"),
            panel_size: PANEL_SIZE,
            panels: [
                (Start::Cold, "cold: a fresh queue, its memory included"),
                (Start::Warm, "warm: a queue that was as full before"),
            ]
            .map(|(start, title)| panel(title, &INSERTED, &|timers| insert_name(start, timers)))
            .into(),
        };
        for (name, diagram) in [("timers-churn.svg", churn), ("timers-insert.svg", insert)] {
            let has_points =
                |panel: &DiagramPanel| panel.lines.iter().any(|line| !line.points.is_empty());
            if diagram.panels.iter().all(has_points) {
                save(&directory.join(name), diagram.svg())?;
            }
        }
        Ok(())
    }

    fn header(&self, first: &str) -> Vec<String> {
        let mut line = vec![first.to_owned()];
        line.extend(self.columns.iter().map(|column| column.name.to_owned()));
        line
    }

    fn ratios(&self, groups: &[Group]) -> Table {
        let mut table = Table::new(self.header("row"));
        for row in groups.iter().flat_map(|group| &group.rows) {
            let of = |column: &Column| self.samples.spread(column.name, &row.name);
            let yardstick = self
                .columns
                .iter()
                .find(|column| column.name == YARDSTICK)
                .and_then(of)
                .map(|spread| row.figure(spread));
            let mut line = vec![row.title.clone()];
            line.extend(self.columns.iter().map(|column| {
                let Some(spread) = of(column) else {
                    return "—".to_owned();
                };
                let figure = row.figure(spread);
                let is_astray = self.samples.is_astray(column.name, &row.name);
                let mark = if is_astray { "†" } else { "" };
                match yardstick {
                    // Of what is counted the count says more.
                    Some(yardstick)
                        if column.name != YARDSTICK
                            && yardstick > 0.0
                            && !["B", "calls"].contains(&row.unit) =>
                    {
                        format!("{}{mark}", number(figure / yardstick))
                    }
                    _ => format!("{} {}{mark}", number(figure), row.unit),
                }
            }));
            table.push(line);
        }
        table
    }

    fn is_any_astray(&self) -> bool {
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        self.columns
            .iter()
            .any(|column| rows().any(|row| self.samples.is_astray(column.name, &row.name)))
    }

    fn exactness_table(&self) -> Table {
        let mut header = vec!["observed".to_owned()];
        header.extend(self.exactness.iter().map(|(name, _)| (*name).to_owned()));
        let mut table = Table::new(header);
        type Figure = fn(&Exactness) -> Option<f64>;
        let rows: [(&str, Figure); 6] = [
            ("never fired", |seen| Some(seen.never_fired as f64)),
            ("worst early, µs", |seen| Some(seen.early_us_max)),
            (
                "worst miss by a poll that could have fired it, µs",
                |seen| Some(seen.missed_us_max),
            ),
            ("fired after one that should have come later", |seen| {
                Some(seen.inversions as f64)
            }),
            ("next expiry too early by, µs", |seen| {
                seen.next_early_us_max
            }),
            ("next expiry too late by, µs", |seen| seen.next_late_us_max),
        ];
        for (title, figure) in rows {
            let mut line = vec![title.to_owned()];
            line.extend(self.exactness.iter().map(|(_, seen)| {
                figure(seen).map_or_else(|| "—".to_owned(), |value| format!("{value:.0}"))
            }));
            table.push(line);
        }
        table
    }
}
