//! The table, for the terminal and as markdown.

use support::numbers::number;
use support::quantiles::Spread;
use support::tables::Table;

use super::peers::{METRICS, OURS, Peer};
use super::rounds::Figures;
use super::rows::{Aim, Row, Verdict};

/// Under which circumstances the figures came to be.
#[derive(Debug)]
pub struct Setting {
    /// Command, machine, load, and what else is to be known.
    pub text: String,
    /// The crate whose figures are the unit of the ratios.
    pub against: &'static str,
}

/// The table with aligned columns: median and ratio per crate; and that of the aims.
pub fn terminal(setting: &Setting, crates: &[Peer], rows: &[&Row], figures: &Figures) -> String {
    let table = table(setting, crates, rows, figures).terminal();
    let aims = aims_table(setting, crates, rows, figures)
        .map_or_else(String::new, |table| format!("\n{}", table.terminal()));
    format!(
        "{}\n{table}{aims}{}{}",
        preface(setting, crates),
        together(setting, crates, rows, figures),
        failures(figures)
    )
}

/// The same as markdown, and a second table with the smallest and largest figure of each cell.
pub fn markdown(setting: &Setting, crates: &[Peer], rows: &[&Row], figures: &Figures) -> String {
    let mut spreads = Table::new(header(crates)).left(1);
    for row in rows {
        let mut line = vec![row.title.to_owned(), row.unit.to_owned()];
        line.extend(crates.iter().map(|&peer| match figures.spread(row, peer) {
            Some(Spread { min, max, .. }) => format!("{} – {}", number(min), number(max)),
            None => "—".to_owned(),
        }));
        spreads.push(line);
    }
    format!(
        "{}\n{}{}\n### From the smallest to the largest figure of the rounds\n\n{}{}",
        preface(setting, crates),
        table(setting, crates, rows, figures).markdown(),
        together(setting, crates, rows, figures),
        spreads.markdown(),
        failures(figures)
    )
}

/// What the rows should be and whether they are, as markdown: for those who work on the crate, and
/// only of rows with an aim. `None` where there are none.
pub fn aims(
    setting: &Setting,
    crates: &[Peer],
    rows: &[&Row],
    figures: &Figures,
) -> Option<String> {
    let table = aims_table(setting, crates, rows, figures)?;
    Some(format!("{}\n{}", setting.text, table.markdown()))
}

fn preface(setting: &Setting, crates: &[Peer]) -> String {
    let has = |name| crates.iter().any(|peer| peer.name == name);
    let ratio = setting.yardstick(crates).map_or_else(String::new, |peer| {
        let title = peer.title();
        format!(", in parentheses the median of the ratios to {title} within the rounds")
    });
    let mut columns = String::from("\"ours\" keeps its timers in the timing wheel");
    if has("classic") {
        columns.push_str(", \"classic\"\nis the same crate without that feature");
    }
    if has(METRICS) {
        columns.push_str(", \"metrics\"\nis \"ours\" with the feature of that name");
    }
    format!("{}\nMedians{ratio}. {columns}.\n", setting.text)
}

impl Setting {
    fn yardstick(&self, crates: &[Peer]) -> Option<Peer> {
        crates.iter().copied().find(|it| it.name == self.against)
    }
}

/// Of crates that differ in a feature, what it costs on the whole.
fn together(setting: &Setting, crates: &[Peer], rows: &[&Row], figures: &Figures) -> String {
    let yardstick = setting.yardstick(crates).filter(|peer| peer.name == OURS);
    let Some(yardstick) = yardstick else {
        return String::new();
    };
    let others = crates.iter().filter(|&&peer| peer != yardstick);
    let lines = others.filter_map(|&peer| {
        let all = figures.ratio_of_all(rows, peer, yardstick)?;
        let rounds = figures.ratios_of_rounds(rows, peer, yardstick).spread()?;
        let Spread { min, median, max } = rounds;
        Some(format!(
            "\nAll rows together, {} to {}: {all:.3}, the geometric mean of the ratios. That of a single round is {median:.3} \
             in the middle, from {min:.3} to {max:.3}.\n",
            peer.title(),
            yardstick.title(),
        ))
    });
    lines.collect()
}

fn table(setting: &Setting, crates: &[Peer], rows: &[&Row], figures: &Figures) -> Table {
    let yardstick = setting.yardstick(crates);
    let mut table = Table::new(header(crates)).left(1);
    for row in rows {
        let ratio = |peer| yardstick.and_then(|yardstick| figures.ratio(row, peer, yardstick));
        let mut line = vec![row.title.to_owned(), row.unit.to_owned()];
        line.extend(crates.iter().map(|&peer| match figures.spread(row, peer) {
            Some(Spread { median, .. }) => match ratio(peer) {
                Some(ratio) if Some(peer) != yardstick => {
                    format!("{} ({})", number(median), number(ratio))
                }
                _ => number(median),
            },
            None => "—".to_owned(),
        }));
        table.push(line);
    }
    table
}

/// Title, aim, and for each own crate a verdict.
fn aims_table(
    setting: &Setting,
    crates: &[Peer],
    rows: &[&Row],
    figures: &Figures,
) -> Option<Table> {
    let own: Vec<Peer> = (crates.iter().copied())
        .filter(|peer| peer.is_ours)
        .collect();
    if own.is_empty() || rows.iter().all(|row| matches!(row.aim, Aim::Open)) {
        return None;
    }
    let yardstick = setting.yardstick(crates);
    let titles = own.iter().map(|peer| format!("{}?", peer.name));
    let head = ["row".to_owned(), "aim".to_owned()];
    let mut table = Table::new(head.into_iter().chain(titles));
    let mut subject = "";
    for row in rows {
        let title = match row.title.strip_prefix("same, ") {
            Some(what) => format!("{subject}; {what}"),
            None => {
                subject = row.title;
                subject.to_owned()
            }
        };
        if matches!(row.aim, Aim::Open) {
            continue;
        }
        let mut line = vec![title, row.aim.to_string()];
        line.extend(own.iter().map(|&peer| {
            let figure = figures.spread(row, peer).map(|spread| spread.median);
            let ratio = yardstick.and_then(|yardstick| figures.ratio(row, peer, yardstick));
            match row.aim.verdict(figure, ratio) {
                Some(Verdict::Met) => "met".to_owned(),
                Some(Verdict::Missed) => "MISSED".to_owned(),
                None => "—".to_owned(),
            }
        }));
        table.push(line);
    }
    Some(table)
}

/// Title, unit, and a column per crate.
fn header(crates: &[Peer]) -> Vec<String> {
    let mut line = vec!["row".to_owned(), "unit".to_owned()];
    line.extend(crates.iter().map(|peer| peer.title().to_owned()));
    line
}

fn failures(figures: &Figures) -> String {
    if figures.failures.is_empty() {
        return String::new();
    }
    let list: String = figures
        .failures
        .iter()
        .map(|failure| format!("- {failure}\n"))
        .collect();
    format!("\nFailed:\n\n{list}")
}
