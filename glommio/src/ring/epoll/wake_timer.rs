//! The end of a sleep.
//!
//! Epoll's own time limits are late: by the slack of the thread, or by a thousandth of the wait if that is
//! more (`epoll_pwait2`, too, which older kernels and some sandboxes lack). A timer descriptor is as exact as
//! io_uring's timeouts, and one that stands for the same moment already takes no call. Where a sandbox has
//! none, epoll's limit is all there is, in whole milliseconds.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::sys::epoll::EpollTimeout;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::error::is_missing;
use crate::ring::wait::ClockAnchor;

/// See the module.
pub(super) struct WakeTimer {
    descriptor: Option<TimerFd>,
    anchor: ClockAnchor,
    stands_at: Cell<Option<Instant>>,
}

impl WakeTimer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let made = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(io::Error::from);
        Ok(WakeTimer {
            descriptor: match made {
                Err(error) if is_missing(&error) => None,
                made => Some(made?),
            },
            anchor: ClockAnchor::new(),
            stands_at: Cell::new(None),
        })
    }

    /// Readable from the moment on that it was set to.
    pub(super) fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }

    /// The limit of a wait that is to last until `end`, by the clock `now`: none if this ends it. `end` has not
    /// come when it is set for it the first time.
    pub(super) fn set(&self, end: Instant, now: Instant) -> io::Result<EpollTimeout> {
        let Some(descriptor) = &self.descriptor else {
            let left = (end - now).as_nanos().div_ceil(1_000_000);
            // Too long a wait ends before its time, and is waited for again.
            return Ok(left.try_into().unwrap_or(EpollTimeout::MAX));
        };
        if self.stands_at.get() == Some(end) {
            return Ok(EpollTimeout::NONE);
        }
        // If it cannot be counted, it is as good as never.
        if let Some(moment) = self.anchor.moment_at(end) {
            let expiration = Expiration::OneShot(TimeSpec::from_duration(moment));
            let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
            descriptor.set(expiration, flags)?;
            self.stands_at.set(Some(end));
        }
        Ok(EpollTimeout::NONE)
    }

    /// It stands for no moment any more. Where the sandbox's timers and its clock differ, the moment may not
    /// have come.
    pub(super) fn has_gone_off(&self) {
        self.stands_at.set(None);
    }

    #[cfg(test)]
    pub(super) fn descriptor(&self) -> &TimerFd {
        self.descriptor.as_ref().expect("Linux has it")
    }
}
