//! The end of a sleep.
//!
//! Epoll's own time limits are late: by the slack of the thread, or by a thousandth of the wait if that is
//! more (`epoll_pwait2`, too, which older kernels and some sandboxes lack). A timer descriptor is as exact as
//! io_uring's timeouts, and one that stands for the same moment already takes no call.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::ring::wait::ClockAnchor;

/// See the module.
pub(super) struct WakeTimer {
    descriptor: TimerFd,
    anchor: ClockAnchor,
    stands_at: Cell<Option<Instant>>,
}

impl WakeTimer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        Ok(WakeTimer {
            descriptor: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            anchor: ClockAnchor::new(),
            stands_at: Cell::new(None),
        })
    }

    /// Readable from the moment on that it was set to.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// `end` has not come when it is set for it the first time.
    pub(super) fn set(&self, end: Instant) -> io::Result<()> {
        if self.stands_at.get() == Some(end) {
            return Ok(());
        }
        // If it cannot be counted, it is as good as never.
        if let Some(moment) = self.anchor.moment_at(end) {
            let expiration = Expiration::OneShot(TimeSpec::from_duration(moment));
            let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
            self.descriptor.set(expiration, flags)?;
            self.stands_at.set(Some(end));
        }
        Ok(())
    }
}
