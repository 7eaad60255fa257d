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
mod programs;
pub(crate) mod worker;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use support::output::OutputFile;
use tempfile::TempDir;

use self::monitor::{Ended, Job, Monitor, Stalls};
use self::programs::Program;
use crate::check::probe::Workload;
use crate::options::Options;
use crate::print::print_line;
use crate::record::{Outcome, Record};
use crate::report;
use crate::workload::files::directory;

/// Runs what the command line asks for, in one worker or in two, one after the other.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (mut outputs, files_in, programs) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(told) => {
            eprintln!("soak: {told}");
            return Ok(ExitCode::from(REFUSED));
        }
    };
    let mut monitor = Monitor::start()?;
    let seed = options.seed();
    let is_comparison = programs.len() > 1;
    let (mut records, mut outcome) = (Vec::<Record>::new(), Outcome::Pass);
    for (index, program) in programs.iter().enumerate() {
        if is_comparison {
            let (number, of) = (index + 1, programs.len());
            print_line!("run {number} of {of}: {}\n", program.name);
        }
        let job = job(options, program, seed, &files_in, records.first());
        let record = match monitor.supervise(job)? {
            Ended::Judged(record) => Some(record),
            Ended::Died(how, record) => {
                print_line!("\n  ! {how}\nverdict: FAIL");
                record
            }
            Ended::AtOnce => return Ok(ExitCode::from(INTERRUPTED)),
        };
        outcome = outcome.max(record.as_ref().map_or(Outcome::Fail, |it| it.outcome));
        records.extend(record.map(|record| Record {
            name: program.name.clone(),
            ..*record
        }));
        if monitor.is_interrupted() {
            break;
        }
        if is_comparison {
            print_line!("");
        }
    }
    if is_comparison {
        match <&[Record; 2]>::try_from(&records[..]) {
            Ok(both) => print_line!("{}", report::compared(both)),
            Err(_) => print_line!("\nnot compared: there are no two runs to compare"),
        }
        print_line!("\nverdict: {}", outcome.word());
    }
    if !records.is_empty() {
        outputs.write(options, &records)?;
    }
    Ok(ExitCode::from(match outcome {
        Outcome::NotExercised | Outcome::Pass => 0,
        Outcome::Fail => 1,
        Outcome::Inconclusive => INCONCLUSIVE,
    }))
}

/// Files and programs. What can be known to be wrong is said before anything runs.
fn prepare(options: &Options) -> Result<(Outputs, Option<TempDir>, Vec<Program>), String> {
    let outputs = Outputs::open(options)?;
    let has_files = options.workloads().into_iter().any(Workload::has_files);
    let files_in = has_files
        .then(|| directory::make(options.files_in.as_deref()))
        .transpose()
        .map_err(|error| match &options.files_in {
            Some(place) => told("--files-in", place, &error),
            None => format!("no directory can be made for files: {error}; name one, --files-in"),
        })?;
    Ok((outputs, files_in, programs::all(options)?))
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

/// The files that were asked for, opened before the run: one that cannot be written should not be reported after five
/// minutes only.
struct Outputs {
    json: Option<OutputFile>,
    report: Option<OutputFile>,
}

impl Outputs {
    fn open(options: &Options) -> Result<Self, String> {
        let open = |name, path: Option<&Path>| {
            let open = |path| OutputFile::open(path).map_err(|error| told(name, path, &error));
            path.map(open).transpose()
        };
        Ok(Outputs {
            json: open("--json", options.json.as_deref())?,
            report: open("--report", options.report.as_deref())?,
        })
    }

    /// Writes `records`: to JSON as an array if they are to be compared, else the only one by itself.
    fn write(&mut self, options: &Options, records: &[Record]) -> Result<(), String> {
        if let Some(json) = &mut self.json {
            let text = match records {
                [record] if options.compare.is_none() => serde_json::to_string(record),
                records => serde_json::to_string(records),
            };
            let text = text.expect("it is plain data") + "\n";
            let written = json.write(|file| file.write_all(text.as_bytes()));
            written.map_err(|error| told("--json", json.path(), &error))?;
        }
        if let Some(page) = &mut self.report {
            let written = page.write(|file| file.write_all(report::page(records).as_bytes()));
            written.map_err(|error| told("--report", page.path(), &error))?;
        }
        if let Some(directory) = &options.pictures {
            let written = report::write_pictures(directory, records);
            written.map_err(|error| told("--pictures", directory, &error))?;
        }
        Ok(())
    }
}

fn told(name: &str, path: &Path, error: &io::Error) -> String {
    format!("{name} {}: {error}", path.display())
}

/// The exit status if nothing was run, because the command line makes no sense here.
const REFUSED: u8 = 2;

/// The exit status if no promise was broken and not all of them could be judged.
const INCONCLUSIVE: u8 = 3;

/// The exit status after the second interrupt, as if the first had killed us.
const INTERRUPTED: u8 = 130;
