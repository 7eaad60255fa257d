//! Compares this repository's glommio with the published runtimes, on the same workloads.
//!
//! The workloads are compiled once per crate from one source, in `benches/peers`, a workspace of
//! its own with its own lock file. This driver builds those binaries, then runs them in turn: for
//! each round and each case every crate gets a fresh process, and the crates change places from
//! round to round, so that a disturbance of the machine hits all of them alike. A figure is the
//! median of its rounds; what counts is its ratio to one of the crates in the same run, glommio
//! 0.9.0 in most tables.
//!
//! The report goes to the terminal and, with the spread of each figure, to a file in
//! `target/peers`; with `--write-docs` also to the page of `docs/` that is about it.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use support::machine;
use support::output::{docs_directory, exit_code, write_block};
use support::plots::lines::Diagram;
use support::plots::save;

pub mod chart;
pub mod load;
pub mod method;
pub mod peers;
mod process;
mod report;
pub mod rounds;
pub mod rows;

use load::{Generator, Load};
use method::{Alone, Method};
use peers::{Builds, Peer};
use rounds::Figures;
use rows::Row;

use crate::command::{FEATURES, command};

/// One table: what is measured, and where the report goes.
#[derive(Debug)]
pub struct Comparison {
    /// The heading of the report.
    pub title: &'static str,
    /// The report is `<name>.md`.
    pub name: &'static str,
    /// The rows, in the order of the table.
    pub rows: &'static [Row],
    /// The crates to compare if the command line names none, with commas between them.
    pub crates: &'static str,
    /// What Cargo calls `CARGO_TARGET_TMPDIR`: binaries and reports go to the folder `peers`
    /// beside it.
    pub target_tmpdir: &'static str,
    /// The cases that are servers under a load from outside; if there are none, each case measures
    /// itself.
    pub loads: &'static [Load],
    /// The crate whose figures are the unit of the ratios.
    pub against: &'static str,
    /// Where `--write-docs` writes to.
    pub page: Option<Page>,
}

/// A page of `docs/`.
#[derive(Debug)]
pub struct Page {
    /// The name of its file, without `.md`. That of the diagram begins with it.
    pub name: &'static str,
    /// The block of the page that the report replaces.
    pub block: &'static str,
    /// The picture above the report.
    pub picture: Option<Picture>,
}

/// A diagram on a page.
#[derive(Debug)]
pub struct Picture {
    /// What it is about: the end of the name of its file.
    pub subject: &'static str,
    /// Makes it.
    pub diagram: fn(&[Peer], &Figures) -> Diagram,
}

/// Compares glommio with the published runtimes.
#[derive(Debug, Parser)]
struct Options {
    /// How often each case runs on each crate.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only rows whose name or title contains this.
    #[arg(long, visible_alias = "only", default_value = "")]
    rows: String,
    /// Only these crates: ours (timing wheel), classic (ours with the ordered map), metrics (ours
    /// that counts what it does), glommio (0.9.0), ng, tokio, monoio, compio, bare (no runtime at
    /// all), flume, async-channel; by default those that the table is about. Without the
    /// feature `peers` of this package ours and classic.
    #[arg(long, value_delimiter = ',')]
    crates: Vec<String>,
    /// Build the crates with one codegen unit and thin LTO, instead of what a release build does
    /// by default.
    #[arg(long)]
    thin_lto: bool,
    /// Write to docs/ too.
    #[arg(long)]
    write_docs: bool,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Comparison {
    /// The `main` of a bench: measures what the command line asks for, prints and writes the
    /// report.
    pub fn main(&self) -> ExitCode {
        let options = Options::parse();
        if !options.bench {
            self.check();
            return ExitCode::SUCCESS;
        }
        exit_code(self.run(&options))
    }

    /// As `cargo test` wants of a bench: finds out what can be wrong with the rows without building
    /// the crates.
    fn check(&self) {
        for (index, row) in self.rows.iter().enumerate() {
            let name = row.name;
            let mut before = self.rows[..index].iter();
            assert!(before.all(|other| other.name != name), "two rows `{name}`");
            let mut rows = self.rows.iter();
            assert!(
                rows.any(|other| other.name == row.against),
                "`{name}` is in proportion to no row"
            );
            let mut loads = self.loads.iter();
            assert!(
                self.loads.is_empty() || loads.any(|load| load.case == row.case),
                "no load yields `{name}`"
            );
        }
    }

    fn run(&self, options: &Options) -> Result<(), String> {
        let names = match &*options.crates {
            [] => self.crates.split(',').map(str::to_owned).collect(),
            names => names.to_vec(),
        };
        let peers = Peer::chosen(&names)
            .map_err(|unknown| format!("there is no crate `{unknown}` to compare; see --help"))?;
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.matches(&options.rows))
            .collect();
        if rows.is_empty() {
            return Err(format!("no row is called anything like `{}`", options.rows));
        }
        if options.write_docs && self.page.is_none() {
            return Err("no page of docs/ is about this alone".to_owned());
        }

        let directory = Path::new(self.target_tmpdir).with_file_name("peers");
        let builds = Builds::new(&directory, options.thin_lto);
        let method = self.method(&builds)?;
        let built: Vec<_> = peers
            .into_iter()
            .filter_map(|peer| peers::build(peer, &builds))
            .collect();
        if built.is_empty() {
            return Err("none of the crates could be built".to_owned());
        }
        let begin = Instant::now();
        let load_before = machine::load();
        let figures = rounds::run(method.as_ref(), &built, &rows, options.rounds);

        let crates: Vec<Peer> = built.iter().map(|binary| binary.peer).collect();
        let setting = report::Setting {
            command: command(self.name, FEATURES),
            machine: machine::describe(),
            load: format!(
                "load average {load_before} before, {} after",
                machine::load()
            ),
            remark: method.remark(),
            against: self.against,
            rounds: options.rounds,
            minutes: begin.elapsed().as_secs_f64() / 60.0,
        };
        print!("{}", report::terminal(&setting, &crates, &rows, &figures));
        let report = report::markdown(&setting, &crates, &rows, &figures);
        let file = builds.directory.join(self.name).with_extension("md");
        fs::write(&file, format!("# {}\n\n{report}", self.title))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        println!("\nwith spreads: {}", file.display());
        if let Some(page) = &self.page {
            if let Some(picture) = &page.picture {
                picture.draw(&builds.directory, page, &crates, &figures)?;
            }
            if options.write_docs {
                page.write(&report, &crates, &figures)?;
            }
        }
        Ok(())
    }

    fn method(&self, builds: &Builds) -> Result<Box<dyn Method>, String> {
        Ok(match self.loads {
            [] => Box::new(Alone),
            loads => Box::new(Generator::build(loads, builds)?),
        })
    }
}

impl Page {
    fn write(&self, report: &str, crates: &[Peer], figures: &Figures) -> Result<(), String> {
        let docs = docs_directory().map_err(|error| error.to_string())?;
        let mut text = String::new();
        if let Some(picture) = &self.picture {
            let title = (picture.diagram)(crates, figures).title;
            text = format!("![{title}]({})\n\n", picture.file(self));
            picture.draw(&docs, self, crates, figures)?;
        }
        text.push_str(report);
        write_block(
            &docs.join(self.name).with_extension("md"),
            self.block,
            &text,
        )
        .map_err(|error| error.to_string())?;
        println!("written to {}", docs.display());
        Ok(())
    }
}

impl Picture {
    fn draw(
        &self,
        directory: &Path,
        page: &Page,
        crates: &[Peer],
        figures: &Figures,
    ) -> Result<(), String> {
        let file = directory.join(self.file(page));
        let diagram = (self.diagram)(crates, figures);
        save(&file, diagram.svg())
            .map_err(|error| format!("cannot draw {}: {error}", file.display()))
    }

    fn file(&self, page: &Page) -> String {
        format!("{}-{}.svg", page.name, self.subject)
    }
}
