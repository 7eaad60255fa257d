//! Compares this repository's glommio with the published runtimes, on the same workloads.
//!
//! ```text
//! cargo bench -p benches --bench runtime --features peers -- [--rounds 5] [--rows tcp] [--crates ours,glommio]
//! ```
//!
//! The workloads are compiled once per crate from one source, in `benches/peers`, a workspace of its own with
//! its own lock file. This driver builds those binaries, then runs them in turn: for each round and each case
//! every crate gets a fresh process, and the crates change places from round to round, so that a disturbance
//! of the machine hits all of them alike. A figure is the median of its rounds; what counts is its ratio to
//! glommio 0.9.0 in the same run.
//!
//! The report goes to the terminal and, with the spread of each figure, to `target/peers/runtime.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;

mod machine;
mod peers;
mod report;
mod rounds;
mod rows;

use peers::Peer;
use rows::Row;

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

fn main() -> ExitCode {
    let options = Options::parse();
    let peers = match Peer::chosen(&options.crates) {
        Ok(peers) => peers,
        Err(unknown) => {
            return fail(&format!(
                "there is no crate `{unknown}` to compare; see --help"
            ));
        }
    };
    let rows: Vec<&Row> = rows::ALL
        .iter()
        .filter(|row| row.matches(&options.rows))
        .collect();
    if rows.is_empty() {
        return fail(&format!(
            "no row is called anything like `{}`",
            options.rows
        ));
    }

    let begin = Instant::now();
    let directory = output_directory();
    let built: Vec<_> = peers
        .into_iter()
        .filter_map(|peer| peers::build(peer, &directory))
        .collect();
    if built.is_empty() {
        return fail("none of the crates could be built");
    }
    let load_before = machine::load();
    let figures = rounds::run(&built, &rows, options.rounds);

    let crates: Vec<Peer> = built.iter().map(|binary| binary.peer).collect();
    let setting = report::Setting {
        machine: machine::describe(),
        load: format!(
            "load average {load_before} before, {} after",
            machine::load()
        ),
        rounds: options.rounds,
        minutes: begin.elapsed().as_secs_f64() / 60.0,
    };
    print!("{}", report::terminal(&setting, &crates, &rows, &figures));
    let file = directory.join("runtime.md");
    if let Err(error) = std::fs::write(&file, report::markdown(&setting, &crates, &rows, &figures))
    {
        return fail(&format!("cannot write {}: {error}", file.display()));
    }
    println!("\nwith spreads: {}", file.display());
    ExitCode::SUCCESS
}

fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::FAILURE
}

/// `target/peers`, wherever the target directory is: Cargo tells benchmarks of a folder in it.
fn output_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers")
}
