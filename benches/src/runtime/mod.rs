//! Compares this repository's glommio with the published runtimes, on the same workloads.
//!
//! The workloads are compiled once per crate from one source, in `benches/peers`, a workspace of its own with
//! its own lock file. This driver builds those binaries, then runs them in turn: for each round and each case
//! every crate gets a fresh process, and the crates change places from round to round, so that a disturbance
//! of the machine hits all of them alike. A figure is the median of its rounds; what counts is its ratio to
//! glommio 0.9.0 in the same run.
//!
//! The report goes to the terminal and, with the spread of each figure, to a file in `target/peers`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

mod peers;
mod report;
mod rounds;
pub mod rows;

use crate::machine;
use crate::outcome::exit_code;
use peers::Peer;
use rows::Row;

/// One table: what is measured, and where the report goes.
#[derive(Debug)]
pub struct Comparison {
    /// The heading of the report.
    pub title: &'static str,
    /// The report is `<name>.md`.
    pub name: &'static str,
    /// The rows, in the order of the table.
    pub rows: &'static [Row],
    /// What Cargo calls `CARGO_TARGET_TMPDIR`: binaries and reports go to the folder `peers` beside it.
    pub target_tmpdir: &'static str,
}

/// Compares glommio with the published runtimes.
#[derive(Debug, Parser)]
struct Options {
    /// How often each case runs on each crate.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only rows whose name or title contains this.
    #[arg(long, default_value = "")]
    rows: String,
    /// Only these crates: ours (timing wheel), classic (ours with the ordered map), glommio (0.9.0), ng, tokio,
    /// monoio.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "ours,classic,glommio,ng,tokio,monoio"
    )]
    crates: Vec<String>,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Comparison {
    /// The `main` of a bench: measures what the command line asks for, prints and writes the report.
    pub fn main(&self) -> ExitCode {
        exit_code(self.run(&Options::parse()))
    }

    fn run(&self, options: &Options) -> Result<(), String> {
        let peers = Peer::chosen(&options.crates)
            .map_err(|unknown| format!("there is no crate `{unknown}` to compare; see --help"))?;
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.matches(&options.rows))
            .collect();
        if rows.is_empty() {
            return Err(format!("no row is called anything like `{}`", options.rows));
        }

        let begin = Instant::now();
        let directory = Path::new(self.target_tmpdir).with_file_name("peers");
        let built: Vec<_> = peers
            .into_iter()
            .filter_map(|peer| peers::build(peer, &directory))
            .collect();
        if built.is_empty() {
            return Err("none of the crates could be built".to_owned());
        }
        let load_before = machine::load();
        let figures = rounds::run(&built, &rows, options.rounds);

        let crates: Vec<Peer> = built.iter().map(|binary| binary.peer).collect();
        let setting = report::Setting {
            title: self.title,
            machine: machine::describe(),
            load: format!(
                "load average {load_before} before, {} after",
                machine::load()
            ),
            rounds: options.rounds,
            minutes: begin.elapsed().as_secs_f64() / 60.0,
        };
        print!("{}", report::terminal(&setting, &crates, &rows, &figures));
        let file = directory.join(self.name).with_extension("md");
        let report = report::markdown(&setting, &crates, &rows, &figures);
        std::fs::write(&file, report)
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        println!("\nwith spreads: {}", file.display());
        Ok(())
    }
}
