//! The command line.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::builder::ArgPredicate;
use clap::{Parser, ValueEnum};

use crate::check::invariants::Invariant;
use crate::check::probe::Workload;
use crate::timer_queue::VERSION;

/// Soaks glommio under load and judges what it promises.
///
/// The exit status is 0 if every promise held, 1 if one was broken, 2 for a command line that makes
/// no sense here, and 3 if nothing was broken but the machine was too noisy to judge how late
/// timers were.
#[derive(Debug, Parser)]
#[command(name = "soak", version = VERSION, about)]
pub(crate) struct Options {
    /// How long to run: `500ms`, `30s`, `5m`, `1h 30m`.
    #[arg(
        long,
        default_value = "5m",
        default_value_if("simulate", ArgPredicate::IsPresent, "10s"),
        value_parser = parse_duration
    )]
    pub(crate) duration: Duration,

    /// Seed of every random choice. Default: from the clock, and printed.
    #[arg(long)]
    pub(crate) seed: Option<u64>,

    /// How many times the default number of timers and messages to keep in flight.
    #[arg(
        long,
        default_value = "1",
        default_value_if("simulate", ArgPredicate::IsPresent, "0.02"),
        value_parser = parse_load
    )]
    pub(crate) load: f64,

    /// What to run, one or several separated by commas. Default: all of them at once.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) workload: Vec<Workload>,

    /// Where the workload `files` writes, on the disk that is to be tried. Default: the first of
    /// the directory for temporary files (TMPDIR) and that of this program that has direct I/O.
    #[arg(long, value_name = "DIR")]
    pub(crate) files_in: Option<PathBuf>,

    /// End as soon as this row of the verdict has a violation.
    #[arg(long, hide = true, value_name = "ROW", value_parser = parse_row)]
    pub(crate) until_broken: Option<Invariant>,

    /// Run in a simulation, in one thread and in simulated time, each seed for the duration (10s unless
    /// that is said) and with the load (0.02 unless that is said). Takes the feature `simulation`.
    #[arg(long)]
    pub(crate) simulate: bool,

    /// How many seeds to simulate, from `--seed` (0 unless that is said) on.
    #[arg(long, default_value_t = 200, requires = "simulate")]
    #[cfg_attr(not(feature = "simulation"), allow(dead_code))]
    pub(crate) seeds: u64,

    /// Write everything that was measured to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a page with plots to this file. It needs no network to be read.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// Write each plot of the page to an SVG file in this directory.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) pictures: Option<PathBuf>,

    /// Run the soak twice, with the timing wheel and with the ordered map, and show the two side
    /// by side. The program with the other timer queue is built by cargo, unless its PATH is
    /// given. `--compare=epoll` runs this program on io_uring and on epoll instead.
    #[arg(long, value_name = "PATH|epoll", num_args = 0..=1, require_equals = true)]
    pub(crate) compare: Option<Option<PathBuf>>,

    /// Do the work with this seed, for the process that supervises it.
    #[arg(long, hide = true, value_name = "SEED")]
    pub(crate) worker: Option<u64>,

    /// The directory that was made for the files, if there are to be any.
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) files_made_in: Option<PathBuf>,

    /// Append records to this file until killed, for the process that has started this one.
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) append_to: Option<PathBuf>,

    /// Length of a record.
    #[arg(long, hide = true, default_value_t = 4096)]
    pub(crate) record_bytes: usize,

    /// Be the service of the workload `survival`, for the process that has started this one.
    #[arg(long, hide = true)]
    pub(crate) serve_survival: bool,

    /// How many times slower than the reference machine this one is, if it was measured before.
    #[arg(long, hide = true)]
    pub(crate) slowness: Option<f64>,

    /// How long after its time a run may take to end before it is killed.
    #[arg(long, hide = true, default_value = "3m", value_parser = parse_duration)]
    pub(crate) grace: Duration,
}

impl Options {
    /// The seed asked for, else one from the clock.
    pub(crate) fn seed(&self) -> u64 {
        self.worker.or(self.seed).unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(1, |since| since.subsec_nanos().into())
        })
    }

    /// What is to run, each once, in the order in which they are started.
    pub(crate) fn workloads(&self) -> Vec<Workload> {
        let asked = &self.workload;
        let all = Workload::value_variants().iter().copied();
        all.filter(|it| asked.is_empty() || asked.contains(it))
            .collect()
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("a run of no length checks nothing".to_owned()),
        Ok(duration) if duration > DURATION_MAX => Err("longer than a year".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}, such as `500ms`, `30s`, `5m` or `2h`")),
    }
}

fn parse_row(text: &str) -> Result<Invariant, String> {
    let mut rows = Invariant::ALL.into_iter();
    rows.find(|row| row.label() == text)
        .ok_or_else(|| "no row that is checked while the run goes on".to_owned())
}

fn parse_load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if (0.001..=100.0).contains(&load) => Ok(load),
        Ok(_) => Err("outside 0.001 to 100".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

const DURATION_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
