//! What goes into a page of `docs/`: the command that makes it, tables, and the place where a bench
//! puts them.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The features that this was built with, as on the command line.
pub const FEATURES: &str = if cfg!(feature = "peers") {
    " --features peers"
} else {
    ""
};

/// The command that ran this bench, to be repeated; `features` as on the command line.
pub fn command(bench: &str, features: &str) -> String {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let separator = if arguments.is_empty() { "" } else { " -- " };
    format!(
        "cargo bench -p benches --bench {bench}{features}{separator}{}",
        arguments.join(" ")
    )
}

/// Where the pages are.
///
/// # Errors
/// If this is no clone of the repository any more.
pub fn docs_directory() -> io::Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .canonicalize()
}

/// Puts `figures` between the marks of the page.
///
/// # Errors
/// If the page has no marks, or cannot be read or written.
pub fn write_figures(page: &Path, figures: &str) -> io::Result<()> {
    write_block(page, "figures", figures)
}

/// Puts `text` between the marks of the block `name`, on a page that several benches fill.
///
/// # Errors
/// As [`write_figures`].
pub fn write_block(page: &Path, name: &str, text: &str) -> io::Result<()> {
    let marks = ["begin", "end"].map(|place| format!("<!-- {name}:{place} -->\n"));
    let old = fs::read_to_string(page)?;
    let parts = old.split_once(&marks[0]).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(&marks[1])?;
        Some((before, after))
    });
    let (before, after) = parts
        .ok_or_else(|| io::Error::other(format!("{} has no marks for {name}", page.display())))?;
    fs::write(
        page,
        [before, &marks[0], "\n", text, "\n", &marks[1], after].concat(),
    )
}

/// Appends a table in markdown, its columns aligned; the first line is the header.
pub fn push_table(text: &mut String, table: &[Vec<String>]) {
    let mut widths = vec![3; table[0].len()];
    for line in table {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for (index, line) in table.iter().enumerate() {
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            text.push_str(&match column {
                0 => format!("| {cell}{padding} |"),
                _ => format!(" {padding}{cell} |"),
            });
        }
        text.push('\n');
        if index == 0 {
            for (column, &width) in widths.iter().enumerate() {
                text.push_str(&match column {
                    0 => format!("|{}|", "-".repeat(width + 2)),
                    _ => format!("{}:|", "-".repeat(width + 1)),
                });
            }
            text.push('\n');
        }
    }
}

/// Three digits, more before the point where there are more; two for what is next to nothing.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.0..0.001 => format!("{value:.1e}"),
        0.001..0.1 => format!("{value:.3}"),
        0.1..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}
