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

use std::process::ExitCode;

use clap::Parser;
use support::output::{docs_directory, exit_code, target_directory, write_block};
use support::plots::save;

pub mod chart;
pub mod load;
pub mod method;
pub mod peers;
mod report;
pub mod rounds;
pub mod rows;

use chart::Picture;
use load::{Generator, Load};
use method::{Alone, Method};
use peers::{Builds, Peer};
use rows::Row;

use crate::run::{Common, Destination, FEATURES, Run};

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
    /// The cases that are servers under a load from outside; if there are none, each case measures
    /// itself.
    pub loads: &'static [Load],
    /// The crate whose figures are the unit of the ratios.
    pub against: &'static str,
    /// The page of `docs/` that `--write-docs` writes to, without `.md`.
    pub page: &'static str,
    /// The block of it that the report replaces.
    pub block: &'static str,
    /// The picture above the report.
    pub picture: Option<Picture>,
}

impl Comparison {
    /// What most tables have in common: the runtimes, each case by itself, and the page.
    pub const DEFAULT: Comparison = Comparison {
        title: "",
        name: "",
        rows: &[],
        crates: peers::DEFAULT,
        loads: &[],
        against: peers::PUBLISHED,
        page: "benchmarks",
        block: "figures",
        picture: None,
    };
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
    #[command(flatten)]
    common: Common,
}

impl Comparison {
    /// The `main` of a bench: measures what the command line asks for, prints and writes the
    /// report.
    pub fn main(&self) -> ExitCode {
        let options = Options::parse();
        if !options.common.bench {
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
        let folder = if options.thin_lto {
            "peers/thin-lto"
        } else {
            "peers"
        };
        let builds = Builds {
            directory: target_directory().join(folder),
            is_thin_lto: options.thin_lto,
        };
        let method = self.method(&builds)?;
        let built: Vec<_> = peers
            .into_iter()
            .filter_map(|peer| peers::build(peer, &builds))
            .collect();
        if built.is_empty() {
            return Err("none of the crates could be built".to_owned());
        }
        let run = Run::new();
        let figures = rounds::run(method.as_ref(), &built, &rows, options.rounds);

        let crates: Vec<Peer> = built.iter().map(|binary| binary.peer).collect();
        let rounds = format_args!("{} rounds", options.rounds);
        let remark = method.remark();
        let setting = report::Setting {
            text: run.setting(self.name, FEATURES, "", rounds)
                + &remark.map_or_else(String::new, |remark| format!("- {remark}\n")),
            against: self.against,
        };
        print!("{}", report::terminal(&setting, &crates, &rows, &figures));
        let report = report::markdown(&setting, &crates, &rows, &figures);
        let picture = self.picture.as_ref().map(|picture| {
            let file = format!("{}-{}.svg", self.page, picture.subject);
            (file, picture.diagram(&crates, &figures))
        });
        let on_page = match &picture {
            Some((file, diagram)) => format!("![{}]({file})\n\n{report}", diagram.title),
            None => report.clone(),
        };
        let destination = Destination {
            name: self.name,
            folder,
            page: self.page,
            block: self.block,
        };
        let report = format!("# {}\n\n{report}", self.title);
        let aims = report::aims(&setting, &crates, &rows, &figures);
        if let Some(aims) = aims.filter(|_| options.common.write_docs) {
            docs_directory()
                .and_then(|docs| write_block(&docs.join("aims.md"), self.name, &aims))
                .map_err(|error| format!("docs/aims.md: {error}"))?;
        }
        destination.write(
            &report,
            &on_page,
            &options.common,
            |directory| match &picture {
                Some((file, diagram)) => save(&directory.join(file), diagram.svg()),
                None => Ok(()),
            },
        )
    }

    fn method(&self, builds: &Builds) -> Result<Box<dyn Method>, String> {
        Ok(match self.loads {
            [] => Box::new(Alone),
            loads => Box::new(Generator::build(loads, builds)?),
        })
    }
}
