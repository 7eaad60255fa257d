//! The process that the user starts: it starts itself again as the worker that does the soak, and
//! watches over it.
//!
//! ```text
//!   terminal ◀──────────────────── stdout, stderr ──────────────── worker
//!      │ Ctrl-C                                                     ▲  │
//!      ▼                          wire: stalls, interrupts          │  │ wire: record
//!   warden ─────────────────────────────────────────────────────────┘  │
//!      │  ◀────────────────────────────────────────────────────────────┘
//!      └──▶ --json, --report, exit status
//! ```
//!
//! What this buys: a worker that crashes or hangs is a verdict and not a silence, and the whole process
//! can be stopped and continued to see what its timers make of it, without a shell noticing.

mod outputs;
mod signals;
mod stalls;
mod warden;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use self::outputs::Outputs;
use self::signals::Signals;
use self::stalls::Stalls;
use self::warden::{Ended, Mission};
use crate::options::Options;
use crate::workload::Workload;

/// Runs what the command line asks for in a worker.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let outputs = match Outputs::open(options) {
        Ok(outputs) => outputs,
        Err(told) => {
            eprintln!("soak: {told}");
            return Ok(ExitCode::from(REFUSED));
        }
    };
    let mut signals = Signals::block()?;
    let mission = mission(options)?;
    let records = match mission.watch_over(&mut signals)? {
        Ended::Judged(record) => vec![*record],
        Ended::Died(how, record) => {
            println!("\n  ! {how}\nverdict: FAIL");
            record.map(|record| *record).into_iter().collect()
        }
        Ended::AtOnce => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let has_passed = !records.is_empty() && records.iter().all(|record| record.has_passed);
    if !records.is_empty() {
        outputs.write(&records, false)?;
    }
    Ok(if has_passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The arguments of this process, for a worker.
fn mission(options: &Options) -> Result<Mission, Box<dyn Error>> {
    let seed = options.seed();
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    arguments.push(format!("--worker={seed}").into());
    let is_stalled = options.workloads().contains(&Workload::Idle);
    Ok(Mission {
        program: env::current_exe()?,
        arguments,
        duration: options.duration,
        stalls: is_stalled.then(|| Stalls::new(seed, options.duration)),
        grace: options.grace,
    })
}

/// The exit status if nothing was run, because the command line makes no sense here.
const REFUSED: u8 = 2;

/// The exit status after the second interrupt, as if the first had killed us.
const INTERRUPTED: u8 = 130;
