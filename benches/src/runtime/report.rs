//! The table, for the terminal and as markdown.

use std::fmt::Write;

use super::peers::{Peer, YARDSTICK};
use super::rounds::{Figures, Spread};
use super::rows::{Row, Verdict};

/// Under which circumstances the figures came to be.
#[derive(Debug)]
pub struct Setting {
    /// To be repeated.
    pub command: String,
    /// Kernel, CPU, commit.
    pub machine: String,
    /// Load averages.
    pub load: String,
    /// What else is to be known.
    pub remark: Option<String>,
    /// How many rounds.
    pub rounds: u32,
    /// How long all of it took.
    pub minutes: f64,
}

/// The table with aligned columns: median and ratio per crate, the aim, and whether it is met.
pub fn terminal(setting: &Setting, crates: &[Peer], rows: &[&Row], figures: &Figures) -> String {
    let table = table(crates, rows, figures);
    let mut widths = vec![0; table[0].len()];
    for line in &table {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = preface(setting, crates);
    text.push('\n');
    for line in &table {
        for (index, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            match index {
                0 | 1 => write!(text, "{cell}{padding}  "),
                _ => write!(text, "{padding}{cell}  "),
            }
            .expect("a String takes everything");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text + &failures(figures)
}

/// The same as markdown, and a second table with the smallest and largest figure of each cell.
pub fn markdown(setting: &Setting, crates: &[Peer], rows: &[&Row], figures: &Figures) -> String {
    let mut text = preface(setting, crates);
    text.push('\n');
    markdown_table(&mut text, &table(crates, rows, figures));
    text.push_str("\n### From the smallest to the largest figure of the rounds\n\n");
    let mut spreads = vec![header(crates, &[])];
    for row in rows {
        let mut line = vec![row.title.to_owned(), row.unit.to_owned()];
        line.extend(crates.iter().map(|&peer| match figures.spread(row, peer) {
            Some(Spread { min, max, .. }) => format!("{} – {}", number(min), number(max)),
            None => "—".to_owned(),
        }));
        spreads.push(line);
    }
    markdown_table(&mut text, &spreads);
    text + &failures(figures)
}

fn preface(setting: &Setting, crates: &[Peer]) -> String {
    let remark = setting.remark.as_ref();
    let has = |name| crates.iter().any(|peer| peer.name == name);
    let ratio = match has(YARDSTICK) {
        true => ", in parentheses the median of the ratios to glommio 0.9.0 within the rounds",
        false => "",
    };
    format!(
        "- `{}`\n- {}\n- {}; {} rounds in {:.1} min\n{}\n\
         Medians{ratio}. \"ours\" keeps its timers in the timing wheel, \"classic\"\n\
         is the same crate without that feature.\n",
        setting.command,
        setting.machine,
        setting.load,
        setting.rounds,
        setting.minutes,
        remark.map_or_else(String::new, |remark| format!("- {remark}\n")),
    )
}

fn table(crates: &[Peer], rows: &[&Row], figures: &Figures) -> Vec<Vec<String>> {
    let own: Vec<Peer> = crates.iter().copied().filter(|peer| peer.is_ours).collect();
    let yardstick = crates.iter().copied().find(|peer| peer.name == YARDSTICK);
    let mut lines = vec![header(crates, &own)];
    for row in rows {
        let ratio = |peer| yardstick.and_then(|yardstick| figures.ratio(row, peer, yardstick));
        let mut line = vec![row.title.to_owned(), row.unit.to_owned()];
        line.extend(crates.iter().map(|&peer| match figures.spread(row, peer) {
            Some(Spread { median, .. }) => match ratio(peer) {
                Some(ratio) if peer.name != YARDSTICK => {
                    format!("{} ({})", number(median), number(ratio))
                }
                _ => number(median),
            },
            None => "—".to_owned(),
        }));
        if !own.is_empty() {
            line.push(row.aim.to_string());
        }
        line.extend(own.iter().map(|&peer| {
            let figure = figures.spread(row, peer).map(|spread| spread.median);
            match row.aim.verdict(figure, ratio(peer)) {
                Some(Verdict::Met) => "met".to_owned(),
                Some(Verdict::Missed) => "MISSED".to_owned(),
                None => "—".to_owned(),
            }
        }));
        lines.push(line);
    }
    lines
}

/// Title, unit, a column per crate, and if there are own crates to judge: the aim and a verdict for
/// each.
fn header(crates: &[Peer], judged: &[Peer]) -> Vec<String> {
    let mut line = vec!["row".to_owned(), "unit".to_owned()];
    line.extend(crates.iter().map(|peer| peer.title().to_owned()));
    if !judged.is_empty() {
        line.push("aim".to_owned());
        line.extend(judged.iter().map(|peer| format!("{}?", peer.name)));
    }
    line
}

fn markdown_table(text: &mut String, table: &[Vec<String>]) {
    for (index, line) in table.iter().enumerate() {
        writeln!(text, "| {} |", line.join(" | ")).expect("a String takes everything");
        if index == 0 {
            writeln!(text, "|---|---{}|", "|---:".repeat(line.len() - 2))
                .expect("a String takes everything");
        }
    }
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

/// Three digits, more before the point where there are more; two for ratios next to nothing.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.0..0.001 => format!("{value:.1e}"),
        0.001..0.01 => format!("{value:.4}"),
        0.01..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
