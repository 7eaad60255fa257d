//! What the monitor and its worker say to each other, and the worker's end of it: a socket that is its standard input.
//!
//! A message is a line of JSON. When one end is gone, the other reads the end of the stream.

use std::io::{self, BufRead, BufReader, Write, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{process, thread};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::check::control::Control;
use crate::measure::nanos;
use crate::record::Record;

#[derive(Serialize, Deserialize)]
pub(super) enum ToWorker {
    /// The worker was stopped. In [`monotonic_ns`].
    Stall { from_ns: u64, to_ns: u64 },
    /// The run is to end early.
    Interrupt,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum ToMonitor {
    /// The executors run: what is known before they have.
    Began(Box<Record>),
    /// No more stalls from here on.
    Draining,
    /// All that was measured.
    Ended(Box<Record>),
}

/// The clock that all processes of a machine share.
pub(super) fn monotonic_ns() -> io::Result<u64> {
    Ok(nanos(clock_gettime(ClockId::CLOCK_MONOTONIC)?.into()))
}

/// This process, as the worker of a monitor.
#[derive(Debug)]
pub(crate) struct Worker {
    wire: UnixStream,
    is_interrupted: Arc<AtomicBool>,
}

impl Worker {
    /// From here on this process ends when its monitor does, also while it is stopped.
    pub(crate) fn begin() -> io::Result<Self> {
        set_pdeathsig(Signal::SIGKILL)?;
        let wire = UnixStream::from(stdin().as_fd().try_clone_to_owned()?);
        wire.peer_addr()
            .map_err(|_| io::Error::other("a worker is started by the soak, not by hand"))?;
        Ok(Worker {
            wire,
            is_interrupted: Arc::default(),
        })
    }

    /// Enters into `control`, from now on, when the process was stopped.
    pub(crate) fn listen(&self, control: &Arc<Control>) -> io::Result<()> {
        let (wire, control) = (self.wire.try_clone()?, Arc::clone(control));
        let is_interrupted = Arc::clone(&self.is_interrupted);
        let work = move || {
            let how = listen(wire, &control, &is_interrupted);
            // The end of the stream, and nothing else, ends this thread while the process lives: should the kernel not
            // have told of the monitor's death, because it came before we asked.
            eprintln!("soak: the monitor is gone ({how:?})");
            process::exit(1);
        };
        let thread = thread::Builder::new().name("soak-wire".to_owned());
        thread.spawn(work).map(drop)
    }

    /// Whether the run is to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, message: &ToMonitor) -> io::Result<()> {
        let line = serde_json::to_string(message)?;
        (&self.wire).write_all((line + "\n").as_bytes())
    }
}

fn listen(wire: UnixStream, control: &Control, is_interrupted: &AtomicBool) -> io::Result<()> {
    for line in BufReader::new(wire).lines() {
        match serde_json::from_str(&line?)? {
            ToWorker::Stall { from_ns, to_ns } => {
                let (now, now_ns) = (Instant::now(), monotonic_ns()?);
                let at = |ns: u64| now - Duration::from_nanos(now_ns.saturating_sub(ns));
                let (from, to) = (at(from_ns), at(to_ns));
                // What came due meanwhile is worked off afterwards, all at once. How long that may take depends on how busy
                // the executors are: as long again, if they are half of the time.
                control.stalls.note(from, to + (to - from).min(ARREARS_MAX));
            }
            ToWorker::Interrupt => is_interrupted.store(true, Ordering::Relaxed),
        }
    }
    Ok(())
}

/// Longer than it takes to work off what has come due in any stop.
const ARREARS_MAX: Duration = Duration::from_millis(500);
