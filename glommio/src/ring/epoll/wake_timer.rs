//! The end of a sleep.
//!
//! Epoll's own time limits are late: by the slack of the thread, or by a thousandth of the wait if that is
//! more (`epoll_pwait2`, too). A timer descriptor is as exact as io_uring's timeouts, and one that stands for the
//! same moment already takes no call. It is made for the first sleep with an end. Where a sandbox has none, or
//! while none is left, epoll's limit is all there is, in whole milliseconds.

use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use nix::sys::epoll::EpollTimeout;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::interest::{Interests, Own};
use crate::error::is_missing;
use crate::ring::wait::ClockAnchor;

/// See the module.
pub(super) struct WakeTimer {
    /// Readable from the moment on that it was set to. `None` where there are none.
    descriptor: OnceCell<Option<TimerFd>>,
    anchor: ClockAnchor,
    stands_at: Cell<Option<Instant>>,
}

impl WakeTimer {
    pub(super) fn new() -> Self {
        WakeTimer {
            descriptor: OnceCell::new(),
            anchor: ClockAnchor::new(),
            stands_at: Cell::new(None),
        }
    }

    fn descriptor(&self, interests: &Interests) -> Option<&TimerFd> {
        if self.descriptor.get().is_none() {
            let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
            let made = match TimerFd::new(ClockId::CLOCK_MONOTONIC, flags) {
                Err(error) if is_missing(&error.into()) => None,
                // Without one, the next sleep tries again.
                made => Some(made.ok()?),
            };
            if let Some(made) = &made {
                interests.watch_own(Own::Timer, made.as_fd()).ok()?;
            }
            self.descriptor.set(made).expect("it was not set before");
        }
        self.descriptor.get()?.as_ref()
    }

    /// The limit of a wait that is to last until `end`, by the clock `now`: none if this ends it. `end` has not
    /// come when it is set for it the first time.
    pub(super) fn set(
        &self,
        own: &Interests,
        end: Instant,
        now: Instant,
    ) -> io::Result<EpollTimeout> {
        let Some(descriptor) = self.descriptor(own) else {
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
    pub(super) fn made(&self) -> Option<&TimerFd> {
        self.descriptor.get()?.as_ref()
    }
}
