//! The process that the user starts: it starts itself again as the worker that does the soak, and
//! supervises it.
//!
//! ```text
//!   terminal ◀──────────────────── stdout, stderr ──────────────── worker
//!      │ Ctrl-C                                                     ▲  │
//!      ▼                          wire: stalls, interrupts          │  │ wire: record
//!   monitor ────────────────────────────────────────────────────────┘  │
//!      │  ◀────────────────────────────────────────────────────────────┘
//!      └──▶ --json, --report, exit status
//! ```
//!
//! What this buys: a worker that crashes or hangs is a verdict and not a silence, and the whole
//! process can be stopped and continued to see what its timers make of it, without a shell
//! noticing.

mod monitor;
mod outputs;
mod programs;
mod signals;
mod stalls;
pub(crate) mod wire;
pub(crate) mod worker;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use tempfile::TempDir;

use self::monitor::{Ended, Job};
use self::outputs::Outputs;
use self::programs::Program;
use self::signals::Signals;
use self::stalls::Stalls;
use crate::check::probe::Workload;
use crate::options::Options;
use crate::print::print_line;
use crate::record::{Outcome, Record};
use crate::report;
use crate::workload::files::directory;

/// Runs what the command line asks for, in one worker or in two, one after the other.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (outputs, programs, files_in) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(told) => {
            eprintln!("soak: {told}");
            return Ok(ExitCode::from(REFUSED));
        }
    };
    let mut signals = Signals::block()?;
    let seed = options.seed();
    let mut records = Vec::new();
    let mut outcome = Outcome::Pass;
    for (index, program) in programs.iter().enumerate() {
        if programs.len() > 1 {
            let (number, of) = (index + 1, programs.len());
            print_line!("run {number} of {of}: {}\n", program.name());
        }
        let record = match job(options, program, seed, &files_in, records.first())
            .supervise(&mut signals)?
        {
            Ended::Judged(record) => Some(*record),
            Ended::Died(how, record) => {
                print_line!("\n  ! {how}\nverdict: FAIL");
                record.map(|record| *record)
            }
            Ended::AtOnce => return Ok(ExitCode::from(INTERRUPTED)),
        };
        let record = record.map(|record| Record {
            name: program.name(),
            ..record
        });
        outcome = outcome.max(
            record
                .as_ref()
                .map_or(Outcome::Fail, |record| record.outcome),
        );
        records.extend(record);
        if signals.is_interrupted() {
            break;
        }
        if programs.len() > 1 {
            print_line!("");
        }
    }
    if programs.len() > 1 {
        show_both(&records, outcome);
    }
    if !records.is_empty() {
        outputs.write(&records, programs.len() > 1)?;
    }
    Ok(ExitCode::from(match outcome {
        Outcome::Pass => 0,
        Outcome::Fail => 1,
        Outcome::Inconclusive => INCONCLUSIVE,
    }))
}

/// What can be known to be wrong is said before anything runs.
fn prepare(options: &Options) -> Result<(Outputs, Vec<Program>, Option<TempDir>), String> {
    let outputs = Outputs::open(options)?;
    let has_files = options.workloads().into_iter().any(Workload::has_files);
    let files_in = has_files
        .then(|| directory::make(options.files_in.as_deref()))
        .transpose()
        .map_err(|error| match &options.files_in {
            Some(place) => format!("--files-in {}: {error}", place.display()),
            None => format!("no directory can be made for files: {error}; name one, --files-in"),
        })?;
    let programs = match options.compared() {
        Some(compared) => programs::both(&compared)?.into(),
        None => vec![Program::ours()?],
    };
    Ok((outputs, programs, files_in))
}

/// The arguments of this process, for a worker.
fn job(
    options: &Options,
    program: &Program,
    seed: u64,
    files_in: &Option<TempDir>,
    before: Option<&Record>,
) -> Job {
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    arguments.push(format!("--worker={seed}").into());
    if let Some(directory) = files_in {
        arguments.push("--files-made-in".into());
        arguments.push(directory.path().into());
    }
    if let Some(before) = before {
        // Measured anew it would differ, and with it the load.
        arguments.push(format!("--slowness={}", before.machine.slowness).into());
    }
    let is_stalled = options.workloads().contains(&Workload::Idle);
    Job {
        program: program.path.clone(),
        driver: program.driver,
        arguments,
        duration: options.duration,
        stalls: is_stalled.then(|| Stalls::new(seed, options.duration)),
        grace: options.grace,
    }
}

/// The end of a comparison, with one verdict on both.
fn show_both(records: &[Record], outcome: Outcome) {
    match records {
        [first, second] => print_line!("{}", report::compared(first, second)),
        _ => print_line!("\nnot compared: there are no two runs to compare"),
    }
    print_line!("\nverdict: {}", outcome.word());
}

/// The exit status if nothing was run, because the command line makes no sense here.
const REFUSED: u8 = 2;

/// The exit status if no promise was broken and not all of them could be judged.
const INCONCLUSIVE: u8 = 3;

/// The exit status after the second interrupt, as if the first had killed us.
const INTERRUPTED: u8 = 130;
