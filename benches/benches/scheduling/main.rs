//! Measures how an executor shares its thread: by shares, by latency, with other threads, and
//! alone.
//!
//! ```text
//! cargo bench -p benches --bench scheduling -- [--windows 5] [--samples 3000] [--write-docs]
//! ```
//!
//! The report goes to the terminal and, with the diagram, to `target/scheduling/`; with
//! `--write-docs` also to `docs/scheduling.md`, which says what the figures mean.

use std::process::ExitCode;
use std::time::Duration;

use benches::run::{Common, Destination, Run};
use clap::Parser;
use support::output::exit_code;

mod busy;
mod crowd;
mod idle;
mod report;
mod shares;
mod starts;

use report::Findings;

/// Measures how an executor shares its thread.
#[derive(Debug, Parser)]
struct Options {
    /// One-second windows over which each split is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    windows: u32,
    /// Starts of each kind.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Seconds during which the idle executor is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    idle: u32,
    #[command(flatten)]
    common: Common,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.common.bench {
        try_out();
        return ExitCode::SUCCESS;
    }
    exit_code(run(&options))
}

fn run(options: &Options) -> Result<(), String> {
    let run = Run::new();
    let findings = measure(
        Duration::from_secs(1),
        options.windows as usize,
        options.samples as usize,
        Duration::from_secs(options.idle.into()),
    );
    let setting = run.setting("scheduling", "", "", "all");
    let figures = format!("{setting}\n{}", findings.figures());
    println!("{figures}");
    let report = format!("# Scheduling measured\n\n{figures}");
    let destination = Destination {
        name: "scheduling",
        folder: "scheduling",
        page: "scheduling",
        block: "figures",
    };
    destination.write(&report, &figures, &options.common, |directory| {
        findings.draw(directory)
    })
}

/// All of it, with windows of `window` each.
fn measure(window: Duration, windows: usize, samples: usize, idle: Duration) -> Findings {
    Findings {
        loop_length: busy::loop_length(),
        window,
        splits: shares::measure(window, windows),
        starts: starts::measure(samples),
        crowds: crowd::measure(window),
        idle: idle::measure(idle),
    }
}

/// Runs everything once and briefly, as `cargo test` wants of a bench.
fn try_out() {
    let findings = measure(Duration::from_millis(20), 1, 10, Duration::from_millis(20));
    assert!(!findings.figures().is_empty());
}
