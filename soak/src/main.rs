//! The soak test: runs glommio under load and checks what it promises while it runs.
//!
//! ```text
//!   monitor (the process that the user starts)
//!     starts ──▶ worker, stops and continues it, outlives it: exit status, --json, --report
//!
//!   worker
//!     main thread ──── starts, samples once a second, judges ────┐
//!                                                                │ reads
//!     executors (one thread each)                                ▼
//!       broker ◀── loopback TCP ──▶ clients        one `ExecutorStats` per executor:
//!       re-entrancy, idle, ...                     ledger, gauges, lateness
//!
//!     noise thread: a plain sleep loop, what this machine does to all timers
//!     wire thread:  is told by the monitor when the process was stopped
//! ```
//!
//! Every timer a workload arms is also entered into a sorted map of our own ([`check::model`]);
//! every firing, cancellation and re-arming is held against that map, so a timer that is early,
//! late, lost, doubled or cancelled with another one shows up as a violation with its numbers. How
//! late timers are is judged in the seconds in which the machine was quiet, against what the noise
//! thread suffered in them ([`check::timeliness`]).

#![forbid(unsafe_code)]

mod check;
mod clock;
mod counters;
mod counts;
mod map;
mod measure;
mod options;
mod print;
mod record;
mod report;
mod run;
mod sampler;
#[cfg(feature = "simulation")]
mod simulate;
mod supervisor;
mod timer_queue;
mod workload;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

use crate::options::Options;
use crate::supervisor::worker::{ToMonitor, Worker};
use crate::workload::files::appender;

fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match &options.append_to {
        Some(file) => appender::run(file, options.seed(), options.record_bytes),
        None if options.serve_survival => workload::survival::service::serve(),
        #[cfg(feature = "simulation")]
        None if options.simulate => simulate::run(&options),
        #[cfg(not(feature = "simulation"))]
        None if options.simulate => {
            Err("`--simulate` takes a build with `--features simulation`".into())
        }
        None if options.worker.is_some() => work(&options),
        None => supervisor::run(&options),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("soak: {error}");
        ExitCode::FAILURE
    })
}

/// Does the soak, and tells the monitor what was measured.
fn work(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let worker = Worker::begin()?;
    let record = run::soak(options, &worker)?;
    worker.tell(&ToMonitor::Ended(Box::new(record)))?;
    Ok(ExitCode::SUCCESS)
}
