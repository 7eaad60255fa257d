//! The soak test: runs glommio under load and checks what it promises while it runs.
//!
//! ```text
//!   main thread ──── starts, samples once a second, judges ────┐
//!                                                              │ reads
//!   executors (one thread each)                                ▼
//!     broker ◀── loopback TCP ──▶ clients        one `Station` per executor:
//!     re-entrancy                                ledger, gauges, lateness
//!
//!   noise thread: a plain sleep loop, what this machine does to everybody's timers
//! ```
//!
//! Every timer an executor arms is also entered into a sorted map of our own ([`model`]); every
//! firing, cancellation and re-arming is held against that map, so a timer that is early, late, lost,
//! doubled or struck by somebody else's cancellation shows up as a violation with its numbers. Bounds
//! in time are relative to what the noise thread sees, so that a slow or busy machine does not fail.
//!
//! The exit status is 0 if every invariant held, 1 if one did not, 2 for a wrong command line.

#![forbid(unsafe_code)]

mod control;
mod fault;
mod invariants;
mod lag;
mod meaning;
mod memory;
mod model;
mod noise;
mod options;
mod peak;
mod process;
mod progress;
mod record;
mod report;
mod resources;
mod ring_events;
mod rng;
mod run;
mod sampler;
mod station;
mod verdict;
mod watch;
mod words;
mod workload;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use std::slice;

use clap::Parser;

use crate::options::Options;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every invariant held.
fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let record = run::soak(options)?;
    if let Some(path) = &options.json {
        let file =
            File::create(path).map_err(|error| format!("--json {}: {error}", path.display()))?;
        serde_json::to_writer(BufWriter::new(file), &record)?;
    }
    let records = slice::from_ref(&record);
    if let Some(path) = &options.report {
        report::write(path, records)
            .map_err(|error| format!("--report {}: {error}", path.display()))?;
    }
    if let Some(dir) = &options.pictures {
        report::write_pictures(dir, records)
            .map_err(|error| format!("--pictures {}: {error}", dir.display()))?;
    }
    Ok(record.has_passed)
}
