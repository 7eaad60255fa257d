//! Moving data from a file to a pipe.

use std::io;
use std::os::fd::AsRawFd;

use super::Op;
use crate::ring::{Outcome, Submission};
use crate::sys::descriptor::{Descriptor, FdGuard};

/// Moves up to `bytes` bytes from byte `position` of the file to the pipe, which has room for them.
/// The output is how many there were.
#[derive(Debug)]
pub(crate) struct FillPipe {
    pub(crate) file: FdGuard,
    pub(crate) position: u64,
    pub(crate) pipe: Descriptor,
    pub(crate) bytes: u32,
}

impl Op for FillPipe {
    type Output = usize;

    fn submission(&mut self) -> Submission<'_> {
        let (file, pipe) = (self.file.as_raw_fd(), self.pipe.as_raw_fd());
        Submission::splice(file, self.position, pipe, self.bytes)
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.file.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<usize> {
        Ok(outcome.result()? as usize)
    }
}
