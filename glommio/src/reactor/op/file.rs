//! Opening and closing files, and moving data between them and memory.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use super::{FromOutcome, OnDrop, Op};
use crate::memory::DmaBuffer;
use crate::ring::{Outcome, Submission};

/// Opens or creates the file at `path`, relative to `directory` (a descriptor, or `AT_FDCWD`). The
/// descriptor is the output, and so closed if nothing takes it.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) directory: RawFd,
    pub(crate) path: CString,
    pub(crate) flags: libc::c_int,
    pub(crate) mode: libc::mode_t,
}

/// Closes a descriptor, whether or not the result is awaited.
#[derive(Debug)]
pub(crate) struct Close {
    pub(crate) fd: OwnedFd,
}

/// Reads from byte `position` of the file, or from where the file stands if that is
/// [`CURRENT_POSITION`], into `buffer` from its byte `start` on. The output is the buffer as long
/// as it was, and how many bytes were read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) fd: RawFd,
    pub(crate) buffer: DmaBuffer,
    pub(crate) start: usize,
    pub(crate) position: u64,
}

/// The position of reads that begin where the file stands.
pub(crate) use crate::ring::CURRENT_POSITION;

/// Writes `bytes` from the one at `start` on to byte `position` of the file. The memory comes back
/// also if that fails.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) fd: RawFd,
    pub(crate) bytes: Bytes,
    pub(crate) start: usize,
    pub(crate) position: u64,
}

/// Memory that is written from: nothing changes it meanwhile.
#[derive(Debug)]
pub(crate) enum Bytes {
    Dma(DmaBuffer),
    Shared(Rc<DmaBuffer>),
    Vec(Vec<u8>),
}

/// What became of a [`Write`].
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) bytes: Bytes,
    /// How many were written; may be fewer than were given.
    pub(crate) count: io::Result<usize>,
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Dma(buffer) => buffer.as_bytes(),
            Bytes::Shared(buffer) => buffer.as_bytes(),
            Bytes::Vec(bytes) => bytes,
        }
    }
}

impl Op for Open {
    type Output = OwnedFd;

    fn submission(&mut self) -> Submission<'_> {
        Submission::open(self.directory, &self.path, self.flags, self.mode)
    }

    fn complete(self, outcome: Outcome) -> io::Result<OwnedFd> {
        FromOutcome::from_outcome(outcome)
    }
}

impl Op for Close {
    type Output = ();

    const ON_DROP: OnDrop = OnDrop::Finish;

    fn submission(&mut self) -> Submission<'_> {
        Submission::close(self.fd.as_raw_fd())
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        let closed = outcome.result().map(drop);
        // What the kernel was made to give up before it began is still open. Whatever else it says,
        // the number is not ours any more.
        let is_open = closed
            .as_ref()
            .is_err_and(|error| error.raw_os_error() == Some(libc::ECANCELED));
        if !is_open {
            let _closed = self.fd.into_raw_fd();
        }
        closed
    }
}

impl Op for Read {
    type Output = (DmaBuffer, usize);

    fn submission(&mut self) -> Submission<'_> {
        let buffer = &mut self.buffer.as_bytes_mut()[self.start..];
        Submission::read(self.fd, buffer, self.position)
    }

    fn complete(self, outcome: Outcome) -> io::Result<(DmaBuffer, usize)> {
        Ok((self.buffer, outcome.result()? as usize))
    }
}

impl Op for Write {
    type Output = Written;

    fn submission(&mut self) -> Submission<'_> {
        Submission::write(self.fd, &self.bytes.as_slice()[self.start..], self.position)
    }

    fn complete(self, outcome: Outcome) -> io::Result<Written> {
        Ok(Written {
            bytes: self.bytes,
            count: outcome.result().map(|bytes| bytes as usize),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, Read as _, pipe};
    use std::os::fd::FromRawFd;

    use super::*;

    /// Whether the other end of the pipe is closed.
    fn has_ended(reader: &mut PipeReader) -> bool {
        nix::fcntl::fcntl(
            &*reader,
            nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK),
        )
        .expect("it is open");
        reader.read(&mut [0]).is_ok_and(|read| read == 0)
    }

    #[test]
    fn a_close_that_never_began_is_made_up_for() {
        let (mut reader, writer) = pipe().expect("descriptors are free");
        let close = Close { fd: writer.into() };
        assert!(close.complete(Outcome::of(-libc::ECANCELED)).is_err());
        assert!(has_ended(&mut reader));
    }

    #[test]
    fn what_the_kernel_has_closed_is_not_closed_again() {
        for raw in [0, -libc::EIO, -libc::EINTR] {
            let (mut reader, writer) = pipe().expect("descriptors are free");
            let fd = OwnedFd::from(writer);
            let number = fd.as_raw_fd();
            assert_eq!(Close { fd }.complete(Outcome::of(raw)).is_ok(), raw == 0);
            assert!(!has_ended(&mut reader), "the kernel was not really asked");
            #[allow(unsafe_code, reason = "the test leaks no descriptor")]
            // SAFETY: it was not closed, as was just seen, and nothing else owns it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }

    #[test]
    fn memory_comes_back_after_an_error_of_a_write() {
        let write = Write {
            fd: -1,
            bytes: Bytes::Vec(vec![1, 2, 3]),
            start: 1,
            position: 0,
        };
        let Written { bytes, count } = write.complete(Outcome::of(-libc::ENOSPC)).expect("both");
        assert_eq!(bytes.as_slice(), [1, 2, 3]);
        let error = count.expect_err("the device is full");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
}
