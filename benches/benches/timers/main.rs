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

use benches::run::{Common, Destination, FEATURES, Run};
use clap::Parser;
use support::output::exit_code;

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
mod queues;
mod report;
mod rounds;
mod rows;
mod workload;

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
    #[command(flatten)]
    common: Common,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.common.bench {
        try_out();
        return ExitCode::SUCCESS;
    }
    exit_code(measure(&options))
}

fn measure(options: &Options) -> Result<(), String> {
    let columns = chosen(&options.queues);
    let groups = rows::chosen(&options.rows);
    let asks_exactness = "exactness".contains(options.rows.as_str());
    if columns.is_empty() || (groups.is_empty() && !asks_exactness) {
        return Err("no such queue or row; see --help".to_owned());
    }
    let run = Run::new();
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
    let cycles = 1.0 / clock::ns_per_cycle();
    let findings = Findings {
        setting: run.setting(
            "timers",
            FEATURES,
            &format!("; {cycles:.2} cycles of the time stamp counter per ns"),
            format_args!("{} rounds", options.rounds),
        ),
        columns: &columns,
        groups: &groups,
        samples,
        exactness,
        agreement,
    };

    let figures = findings.figures();
    println!("{figures}");
    let report = format!(
        "# Timer queues compared\n\n{figures}\n{}",
        findings.spreads()
    );
    let destination = Destination {
        name: "timers",
        folder: "timers",
        page: "timers",
        block: "figures",
    };
    destination.write(&report, &figures, &options.common, |directory| {
        findings.draw(directory)
    })
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
