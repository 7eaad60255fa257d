//! Opening and closing files, and moving data between them and memory.

use std::any::Any;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::rc::Rc;

use super::{FromOutcome, OnDrop, Op};
use crate::memory::DmaBuffer;
use crate::panic;
use crate::ring::{Outcome, Submission};
use crate::sys::descriptor::{self, Descriptor, FdGuard};

/// Opens or creates the file at `path`, relative to `directory`, or to the working directory. The
/// descriptor is the output, and so closed if nothing takes it.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) directory: Option<FdGuard>,
    pub(crate) path: CString,
    pub(crate) flags: libc::c_int,
    pub(crate) mode: libc::mode_t,
}

/// Closes a descriptor, whether or not the result is awaited. Dropped before the kernel has it, it
/// closes on the spot.
#[derive(Debug)]
pub(crate) struct Close {
    /// Until the kernel has closed it.
    fd: Option<OwnedFd>,
    path: Option<PathBuf>,
}

/// What became of a [`Close`]. An error that is not looked at is logged.
#[derive(Debug)]
pub(crate) struct Closed {
    error: Option<io::Error>,
    number: RawFd,
    path: Option<PathBuf>,
}

/// Reads from byte `position` of the file, or from where the file stands if that is
/// [`CURRENT_POSITION`], into `buffer` from its byte `start` on. The output is the buffer as long
/// as it was, also after an error, and how many bytes were read.
#[derive(Debug)]
pub(crate) struct Read<F = FdGuard> {
    pub(crate) fd: F,
    pub(crate) buffer: DmaBuffer,
    pub(crate) start: usize,
    pub(crate) position: u64,
    /// Whether the memory is known to the ring, for the reactor has
    /// [said so](super::super::Reactor::is_registered).
    pub(crate) is_registered: bool,
}

/// The position of reads that begin where the file stands.
pub(crate) use crate::ring::CURRENT_POSITION;

/// No read or write moves more at once. The kernel's own limit is two gigabytes less a page, of
/// whatever size; what is cut into pieces of this size stays aligned.
pub(crate) const MAX_TRANSFER_BYTES: usize = 1 << 30;

/// No thread of an executor copies more at once, or looks up the pages of more for a device: of what
/// is in memory a second takes some gigabytes. A longer read or write is done by a worker of the
/// kernel.
pub(crate) const INLINE_BYTES: usize = 1 << 20;

/// Writes `bytes` from the one at `start` on to byte `position` of the file. The memory comes back
/// also if that fails.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) fd: FdGuard,
    pub(crate) bytes: Bytes,
    pub(crate) start: usize,
    pub(crate) position: u64,
    /// Whether the memory is known to the ring, for the reactor has
    /// [said so](super::super::Reactor::is_registered).
    pub(crate) is_registered: bool,
}

/// Memory that is written from: nothing changes it meanwhile.
#[derive(Debug)]
pub(crate) enum Bytes {
    Dma(DmaBuffer),
    /// With something that is dropped when the kernel is done with the memory, or will not get it.
    Guarded(
        DmaBuffer,
        #[expect(dead_code, reason = "held for its destructor")] Rc<dyn Any>,
    ),
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

/// `transfer`, of so many bytes, by whom it is to be done.
fn routed(bytes: usize, transfer: Submission<'_>) -> Submission<'_> {
    if bytes > INLINE_BYTES {
        transfer.on_worker()
    } else {
        transfer
    }
}

impl Bytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Dma(buffer) | Bytes::Guarded(buffer, _) => buffer.as_bytes(),
            Bytes::Shared(buffer) => buffer.as_bytes(),
            Bytes::Vec(bytes) => bytes,
        }
    }

    /// The buffer, if it is one.
    pub(crate) fn as_dma(&self) -> Option<&DmaBuffer> {
        match self {
            Bytes::Dma(buffer) | Bytes::Guarded(buffer, _) => Some(buffer),
            Bytes::Shared(buffer) => Some(buffer),
            Bytes::Vec(_) => None,
        }
    }
}

impl Op for Open {
    type Output = OwnedFd;

    fn submission(&mut self) -> Submission<'_> {
        let directory = self.directory.as_ref();
        let directory = directory.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
        Submission::open(directory, &self.path, self.flags, self.mode)
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.directory.as_mut()?.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<OwnedFd> {
        FromOutcome::from_outcome(outcome)
    }
}

impl Close {
    /// Of the file at `path`, which is for the log.
    pub(crate) fn new(fd: OwnedFd, path: Option<PathBuf>) -> Self {
        Close { fd: Some(fd), path }
    }

    fn fd(&self) -> &OwnedFd {
        self.fd.as_ref().expect("it is taken out at the end")
    }

    fn ended(&mut self, number: RawFd, result: io::Result<()>) -> Closed {
        Closed {
            error: result.err(),
            number,
            path: self.path.take(),
        }
    }
}

impl Drop for Close {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            let number = fd.as_raw_fd();
            drop(self.ended(number, descriptor::close(fd)));
        }
    }
}

impl Closed {
    /// The result, and what the file was.
    pub(crate) fn into_result(mut self) -> (io::Result<()>, Option<PathBuf>) {
        let result = self.error.take().map_or(Ok(()), Err);
        (result, self.path.take())
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let Some(error) = &self.error else { return };
        panic::log(|| {
            tracing::error!(
                "closing a file in the background failed, and data may be lost: {error}; fd {}, path {:?}",
                self.number,
                self.path
            );
        });
    }
}

impl Op for Close {
    type Output = Closed;

    const ON_DROP: OnDrop = OnDrop::Finish;

    fn submission(&mut self) -> Submission<'_> {
        Submission::close(self.fd().as_raw_fd())
    }

    /// Whatever the kernel says, the number is not ours any more. `ECANCELED`, too, may be what the
    /// filesystem has answered; a close that the kernel gives up before it begins is one of a
    /// thread that has ended.
    fn complete(mut self, outcome: Outcome) -> io::Result<Closed> {
        let fd = self.fd.take().expect("it is taken out at the end");
        let number = fd.into_raw_fd();
        Ok(self.ended(number, outcome.result().map(drop)))
    }
}

/// What can be read from.
pub(crate) trait Target: AsRawFd + 'static {
    /// As [`Op::WAITS_FOR_DEVICE`].
    const WAITS_FOR_DEVICE: bool = true;

    /// As [`Op::release`].
    fn release(&mut self) -> Option<Descriptor>;
}

impl Target for FdGuard {
    fn release(&mut self) -> Option<Descriptor> {
        FdGuard::release(self)
    }
}

/// It is never closed, and most often a terminal or a pipe.
impl Target for io::Stdin {
    const WAITS_FOR_DEVICE: bool = false;

    fn release(&mut self) -> Option<Descriptor> {
        None
    }
}

impl<F: Target> Op for Read<F> {
    type Output = (DmaBuffer, io::Result<usize>);

    const WAITS_FOR_DEVICE: bool = F::WAITS_FOR_DEVICE;

    fn submission(&mut self) -> Submission<'_> {
        let rest = &mut self.buffer.as_bytes_mut()[self.start..];
        let bytes = rest.len().min(MAX_TRANSFER_BYTES);
        let buffer = &mut rest[..bytes];
        let read = Submission::read(self.fd.as_raw_fd(), buffer, self.position);
        routed(bytes, read.in_registered_memory(self.is_registered))
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.fd.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<Self::Output> {
        let count = outcome.result().map(|bytes| bytes as usize);
        Ok((self.buffer, count))
    }
}

impl Op for Write {
    type Output = Written;

    fn submission(&mut self) -> Submission<'_> {
        let rest = &self.bytes.as_slice()[self.start..];
        let bytes = &rest[..rest.len().min(MAX_TRANSFER_BYTES)];
        let write = Submission::write(self.fd.as_raw_fd(), bytes, self.position);
        routed(bytes.len(), write.in_registered_memory(self.is_registered))
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.fd.release()
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
    fn a_close_that_the_kernel_never_got_closes() {
        let (mut reader, writer) = pipe().expect("descriptors are free");
        drop(Close::new(writer.into(), None));
        assert!(has_ended(&mut reader));
    }

    /// Not after `ECANCELED` either, which the flush of a FUSE filesystem may answer.
    #[test]
    fn what_the_kernel_has_closed_is_not_closed_again() {
        for raw in [0, -libc::EIO, -libc::EINTR, -libc::ECANCELED] {
            let (mut reader, writer) = pipe().expect("descriptors are free");
            let fd = OwnedFd::from(writer);
            let number = fd.as_raw_fd();
            let path = Some(PathBuf::from("the file"));
            let closed = Close::new(fd, path.clone()).complete(Outcome::of(raw));
            let (result, told) = closed.expect("the result is in it").into_result();
            assert_eq!(result.map_err(|it| it.raw_os_error()).is_ok(), raw == 0);
            assert_eq!(told, path);
            assert!(!has_ended(&mut reader), "the kernel was not really asked");
            #[allow(unsafe_code, reason = "the test leaks no descriptor")]
            // SAFETY: it was not closed, as was just seen, and nothing else owns it.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }

    #[test]
    fn memory_comes_back_after_an_error_of_a_write() {
        let (_, fd) = pipe().expect("descriptors are free");
        let write = Write {
            fd: Descriptor::new(fd.into()).into(),
            bytes: Bytes::Vec(vec![1, 2, 3]),
            start: 1,
            position: 0,
            is_registered: false,
        };
        let Written { bytes, count } = write.complete(Outcome::of(-libc::ENOSPC)).expect("both");
        assert_eq!(bytes.as_slice(), [1, 2, 3]);
        let error = count.expect_err("the device is full");
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
}
