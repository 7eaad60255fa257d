//! `--report`: one HTML page that shows a run, or the runs of both timer queues side by side.
//!
//! ```text
//!   Record ──▶ figures, page ───────▶ HTML ──▶ one file without scripts, fonts or addresses
//!         └──▶ plots ──▶ Plot ──▶ SVG ┘ └────▶ or one picture per plot, for documents
//! ```
//!
//! The page is read on phones and on desks, in light and in dark, by people who were not there:
//! what it says, it says in words as well as in colours, and every plot has a text in its place.

mod axis;
mod facts;
mod figures;
mod page;
mod plot;
mod plots;
pub(crate) mod progress;
mod table;
mod totals;
mod verdict;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::{fs, io};

pub(crate) use self::figures::compared;
use crate::record::Record;

/// The page about `records`: one run, or one of each timer queue.
pub(crate) fn page(records: &[Record]) -> String {
    page::page(records)
}

/// Writes every plot of the page to a file of its own in `dir`, which is made if there is none.
pub(crate) fn write_pictures(dir: &Path, records: &[Record]) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(dir)?;
    let plots = plots::all(records);
    plots
        .iter()
        .map(|plot| {
            let path = dir.join(format!("soak-{}.svg", plot.key));
            fs::write(&path, plot.picture())?;
            Ok(path)
        })
        .collect()
}
