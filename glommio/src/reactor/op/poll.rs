//! Waiting until a descriptor is ready.

use std::io;
use std::os::fd::RawFd;

use super::{FromOutcome, Op, SinkOp};
use crate::ring::{Outcome, Submission};

/// Completes with the ready events when one of `events` (`POLLIN`, ...) holds for `fd`.
#[derive(Debug)]
pub(crate) struct PollOnce {
    pub(crate) fd: RawFd,
    pub(crate) events: libc::c_short,
}

/// Completes with the ready events each time that one of `events` comes to hold for `fd`.
#[derive(Debug)]
pub(crate) struct PollMany {
    pub(crate) fd: RawFd,
    pub(crate) events: libc::c_short,
}

impl Op for PollOnce {
    type Output = u32;

    const WAITS_FOR_DEVICE: bool = false;

    const PLAIN: Option<fn(&Self) -> Submission<'static>> = Some(SinkOp::submission);

    fn submission(&mut self) -> Submission<'_> {
        SinkOp::submission(self)
    }

    fn complete(self, outcome: Outcome) -> io::Result<u32> {
        FromOutcome::from_outcome(outcome)
    }
}

impl SinkOp for PollOnce {
    type Item = io::Result<u32>;

    fn submission(&self) -> Submission<'static> {
        Submission::poll_once(self.fd, mask(self.events))
    }
}

impl SinkOp for PollMany {
    type Item = io::Result<u32>;

    fn submission(&self) -> Submission<'static> {
        Submission::poll_always(self.fd, mask(self.events))
    }
}

fn mask(events: libc::c_short) -> u32 {
    u32::from(events.cast_unsigned())
}
