//! The signals that a user or a script sends to a run, read by the monitor's loop like any other
//! input.
//!
//! They are blocked in the monitor and, as it inherits the mask, in the worker: whichever process
//! they are sent to, the monitor alone acts on them, and tells the worker over the wire. One Ctrl-C
//! goes to both processes, and `timeout` signals first its child and then the whole group, so the
//! same request comes several times within a moment.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The blocked signals.
#[derive(Debug)]
pub(crate) struct Signals {
    pending: SignalFd,
    interrupted_at: Option<Instant>,
}

/// What a user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The run is to end early, with the verdict on what ran.
    End,
    /// It is to end now.
    EndAtOnce,
    /// Ctrl-Z: it is to stand still until it is continued.
    Pause,
}

impl Signals {
    /// From here on the signals go nowhere else, in this thread and all that it starts.
    pub(crate) fn block() -> io::Result<Self> {
        let mask = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGTSTP]);
        mask.thread_block()?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Signals {
            pending: SignalFd::with_flags(&mask, flags)?,
            interrupted_at: None,
        })
    }

    /// The next request. A signal that only repeats the last one is ignored.
    pub(crate) fn next_request(&mut self) -> io::Result<Option<Request>> {
        while let Some(signal) = self.pending.read_signal()? {
            let request = if signal.ssi_signo == Signal::SIGTSTP as u32 {
                Some(Request::Pause)
            } else {
                self.interrupt(Instant::now())
            };
            if request.is_some() {
                return Ok(request);
            }
        }
        Ok(None)
    }

    /// Whether the run was interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted_at.is_some()
    }

    fn interrupt(&mut self, now: Instant) -> Option<Request> {
        match self.interrupted_at {
            None => {
                self.interrupted_at = Some(now);
                Some(Request::End)
            }
            Some(first) => (now.duration_since(first) >= REPEATS_FOR).then_some(Request::EndAtOnce),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pending.as_fd()
    }
}

/// Later than this another interrupt is a request of its own.
const REPEATS_FOR: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_close_together_are_one_request() {
        let mut signals = Signals {
            pending: SignalFd::new(&SigSet::empty()).expect("a descriptor can be had"),
            interrupted_at: None,
        };
        let (first, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(signals.interrupt(first), Some(Request::End));
        assert_eq!(signals.interrupt(first), None);
        assert_eq!(signals.interrupt(first + ms(999)), None);
        assert_eq!(
            signals.interrupt(first + ms(1_000)),
            Some(Request::EndAtOnce)
        );
    }
}
