//! Compares this repository's timer queues with each other and with published ones, in one process.
//!
//! ```text
//! cargo bench -p benches --bench timers --features peers -- [--rounds 15] [--rows churn] [--queues classic,staged]
//!     [--write-docs]
//! ```
//!
//! Each round runs every case on every queue, one queue after the other, and the queues change
//! places from round to round, so that a disturbance of the machine hits all of them alike. A
//! figure is the median of its rounds; what counts is its ratio to the classic queue's. Without the
//! feature `peers` only our own queues and the slab that is their floor take part.
//!
//! The report goes to the terminal and, with the spread of each figure and the diagrams, to
//! `target/timers/`; with `--write-docs` also to `docs/timers.md`.

use std::process::ExitCode;
use std::time::Instant;
use std::{fs, io};

use benches::command::{FEATURES, command};
use clap::Parser;
use support::machine;
use support::output::{docs_directory, exit_code, target_directory, write_figures};

mod cases;
mod clock;
mod columns;
#[path = "../../../glommio/tests/common/counting.rs"]
mod counting;
mod exactness;
mod figures;
mod measure;
mod model;
#[cfg(feature = "peers")]
mod peers;
mod report;
mod rounds;
mod rows;

use columns::Column;
use report::Findings;

/// Compares timer queues.
#[derive(Debug, Parser)]
struct Options {
    /// How often each case runs on each queue; less often where it takes long.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only rows whose name or title contains this, and what comes with them; `exactness` for
    /// those tables alone.
    #[arg(long, default_value = "")]
    rows: String,
    /// Only queues whose name begins like one of these.
    #[arg(long, value_delimiter = ',')]
    queues: Vec<String>,
    /// Random operations of the comparison with a sorted map.
    #[arg(long, default_value_t = 10_000_000)]
    operations: u64,
    /// Write to docs/ too.
    #[arg(long)]
    write_docs: bool,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        try_out();
        return ExitCode::SUCCESS;
    }
    exit_code(run(&options))
}

fn run(options: &Options) -> io::Result<()> {
    let columns = chosen(&options.queues);
    let groups = rows::chosen(&options.rows);
    let asks_exactness = "exactness".contains(options.rows.as_str());
    if columns.is_empty() || (groups.is_empty() && !asks_exactness) {
        return Err(io::Error::other("no such queue or row; see --help"));
    }
    let begin = Instant::now();
    let load = machine::load();
    let samples = rounds::run(&columns, &groups, options.rounds as usize);
    let mut exactness = Vec::new();
    let mut agreement = None;
    if asks_exactness {
        let observed = columns
            .iter()
            .filter_map(|column| Some((column.name, column.observe?())));
        exactness.extend(observed);
        agreement = Some(model::run(options.operations));
    }
    let findings = Findings {
        setting: format!(
            "- `{}`\n- {}; {:.2} cycles of the time stamp counter per ns\n- load average {load} before, {} after; {} rounds in {:.1} min",
            command("timers", FEATURES),
            machine::describe(),
            1.0 / clock::ns_per_cycle(),
            machine::load(),
            options.rounds,
            begin.elapsed().as_secs_f64() / 60.0,
        ),
        columns: &columns,
        groups: &groups,
        samples,
        exactness,
        agreement,
    };

    let figures = findings.figures();
    println!("{figures}");
    let directory = target_directory().join("timers");
    fs::create_dir_all(&directory)?;
    let file = directory.join("timers.md");
    let text = format!(
        "# Timer queues compared\n\n{figures}\n{}",
        findings.spreads()
    );
    fs::write(&file, text)?;
    findings.draw(&directory)?;
    println!("with spreads: {}", file.display());
    if options.write_docs {
        let docs = docs_directory()?;
        write_figures(&docs.join("timers.md"), &figures)?;
        findings.draw(&docs)?;
        println!("written to {}", docs.display());
    }
    Ok(())
}

/// Runs the small cases once, as `cargo test` wants of a bench.
fn try_out() {
    let mut groups = rows::all();
    groups.retain(|group| group.case.is_small());
    rounds::run(&columns(), &groups, 1);
    model::run(100_000);
}

fn columns() -> Vec<Column> {
    #[cfg(feature = "peers")]
    return columns::all(peers::columns());
    #[cfg(not(feature = "peers"))]
    columns::all([])
}

/// The columns whose names begin like one of `names`; all of them if there is none.
fn chosen(names: &[String]) -> Vec<Column> {
    let mut columns = columns();
    columns.retain(|column| {
        names.is_empty()
            || names
                .iter()
                .any(|name| column.name.starts_with(name.as_str()))
    });
    columns
}
