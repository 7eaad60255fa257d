//! Operations to test with, of either kind.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::sys::eventfd::EventFd;

use super::super::op::{OnDrop, Op, SinkOp};
use super::super::{PollMany, PollOnce};
use crate::ring::{CURRENT_POSITION, Outcome, Submission};

/// Nothing: a trip through the ring. Its result is 0.
pub(super) struct Nop;

impl Op for Nop {
    type Output = u32;

    fn submission(&mut self) -> Submission<'_> {
        Submission::nop()
    }

    fn complete(self, outcome: Outcome) -> io::Result<u32> {
        outcome.result()
    }
}

impl SinkOp for Nop {
    type Item = io::Result<u32>;

    fn submission(&self) -> Submission<'static> {
        Submission::nop()
    }
}

/// Completes once `eventfd` was written to.
pub(super) fn readable(eventfd: &EventFd) -> PollOnce {
    PollOnce {
        fd: eventfd.as_raw_fd(),
        events: libc::POLLIN,
    }
}

/// Completes each time that `eventfd` is written to.
pub(super) fn watch(eventfd: &EventFd) -> PollMany {
    PollMany {
        fd: eventfd.as_raw_fd(),
        events: libc::POLLIN,
    }
}

/// Reads from where the file stands.
pub(super) struct Read {
    pub(super) fd: RawFd,
    pub(super) buffer: Vec<u8>,
}

pub(super) fn read(fd: RawFd, bytes: usize) -> Read {
    Read {
        fd,
        buffer: vec![0; bytes],
    }
}

impl Op for Read {
    type Output = Vec<u8>;

    fn submission(&mut self) -> Submission<'_> {
        Submission::read(self.fd, &mut self.buffer, CURRENT_POSITION)
    }

    fn complete(mut self, outcome: Outcome) -> io::Result<Vec<u8>> {
        self.buffer.truncate(outcome.result()? as usize);
        Ok(self.buffer)
    }
}

/// Writes to where the file stands.
pub(super) struct Write {
    fd: RawFd,
    buffer: Vec<u8>,
}

pub(super) fn write(fd: RawFd, bytes: usize) -> Write {
    Write {
        fd,
        buffer: vec![1; bytes],
    }
}

impl Op for Write {
    type Output = u32;

    fn submission(&mut self) -> Submission<'_> {
        Submission::write(self.fd, &self.buffer, CURRENT_POSITION)
    }

    fn complete(self, outcome: Outcome) -> io::Result<u32> {
        outcome.result()
    }
}

/// Closes a descriptor, whatever becomes of the handle.
pub(super) struct Close {
    pub(super) fd: RawFd,
}

impl Op for Close {
    type Output = ();

    const ON_DROP: OnDrop = OnDrop::Finish;

    fn submission(&mut self) -> Submission<'_> {
        Submission::close(self.fd)
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}
