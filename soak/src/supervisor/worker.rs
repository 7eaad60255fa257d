//! The worker's end of the [wire]: it receives from the monitor, and does not outlive it.

use std::io::{self, Read, stdin};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{process, thread};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use crate::check::control::Control;
use crate::supervisor::wire::{self, Lines, ToMonitor, ToWorker};

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
        let listener = Listener {
            wire: self.wire.try_clone()?,
            is_interrupted: Arc::clone(&self.is_interrupted),
            control: Arc::clone(control),
            clock: Clock::now()?,
        };
        thread::Builder::new()
            .name("soak-wire".to_owned())
            .spawn(move || {
                let how = listener.listen();
                // The end of the stream, and nothing else, ends this thread while the process
                // lives: should the kernel not have told of the monitor's death,
                // because it came before we asked.
                eprintln!("soak: the monitor is gone ({how:?})");
                process::exit(1);
            })?;
        Ok(())
    }

    /// Whether the run is to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, message: &ToMonitor) -> io::Result<()> {
        wire::send(&self.wire, message)
    }
}

struct Listener {
    wire: UnixStream,
    is_interrupted: Arc<AtomicBool>,
    control: Arc<Control>,
    clock: Clock,
}

impl Listener {
    fn listen(mut self) -> io::Result<()> {
        let mut lines = Lines::default();
        let mut piece = [0; 1024];
        loop {
            let length = self.wire.read(&mut piece)?;
            if length == 0 {
                return Ok(());
            }
            for message in lines.messages(&piece[..length])? {
                match message {
                    ToWorker::Stall { from_ns, to_ns } => {
                        let (from, to) = (self.clock.instant(from_ns), self.clock.instant(to_ns));
                        self.control.stalls.note(from, to + arrears(to - from));
                    }
                    ToWorker::Interrupt => self.is_interrupted.store(true, Ordering::Relaxed),
                }
            }
        }
    }
}

/// What came due during a stall is worked off after it, all at once. How long that may take depends
/// on how busy the executors are: as long again, if they are half of the time.
fn arrears(stall: Duration) -> Duration {
    stall.min(ARREARS_MAX)
}

/// A pause of hours, by Ctrl-Z, puts off many timers, but not for hours.
const ARREARS_MAX: Duration = Duration::from_millis(500);

/// One moment by both clocks. They are the same clock, but `Instant` does not show its number.
#[derive(Clone, Copy, Debug)]
struct Clock {
    at: Instant,
    ns: u64,
}

impl Clock {
    fn now() -> io::Result<Self> {
        Ok(Clock {
            at: Instant::now(),
            ns: wire::monotonic_ns()?,
        })
    }

    fn instant(self, ns: u64) -> Instant {
        let since = Duration::from_nanos(ns.saturating_sub(self.ns));
        let before = Duration::from_nanos(self.ns.saturating_sub(ns));
        self.at + since - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_before_and_after_the_reading() {
        let clock = Clock {
            at: Instant::now() + Duration::from_secs(10),
            ns: 5_000,
        };
        assert_eq!(clock.instant(5_000), clock.at);
        assert_eq!(clock.instant(5_700), clock.at + Duration::from_nanos(700));
        assert_eq!(clock.instant(4_000), clock.at - Duration::from_nanos(1_000));
    }
}
