//! Moving data from a file to a socket through a pipe, without it passing through memory of ours.

#![allow(unsafe_code)]

use std::io::{self, PipeReader};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};

use super::descriptor::Descriptor;
use super::door::{door, may_open};
use super::fork_detect::Origin;

/// A file that [`TcpStream::send_file`](crate::net::TcpStream::send_file) can send: a
/// [`BufferedFile`](crate::io::BufferedFile) or a [`DmaFile`](crate::io::DmaFile). No other type
/// implements it.
pub trait SpliceSource: Source {
    /// Its descriptor.
    fn splice_fd(&self) -> RawFd;

    /// What the offset in the file has to be a multiple of, in bytes: 1 for files that are read
    /// through the page cache.
    fn splice_offset_alignment(&self) -> u64;
}

/// What the crate alone implements.
pub trait Source {
    /// A share in the descriptor, for operations.
    fn descriptor(&self) -> Descriptor;
}

/// A pipe between a file and a socket.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) reader: PipeReader,
    /// Shared with the operation that fills the pipe.
    pub(crate) writer: Descriptor,
    /// How much it holds at once.
    pub(crate) capacity: usize,
}

impl Pipe {
    /// An empty one, of `bytes` bytes if the process may have as much.
    ///
    /// # Errors
    ///
    /// What `pipe2(2)` gives, such as `EMFILE`.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        may_open()?;
        let (reader, writer) = io::pipe()?;
        let wanted = i32::try_from(bytes).unwrap_or(i32::MAX);
        let resized = fcntl(&reader, FcntlArg::F_SETPIPE_SZ(wanted));
        // Beyond the user's limit, it stays as it was.
        let capacity = resized.or_else(|_| fcntl(&reader, FcntlArg::F_GETPIPE_SZ))?;
        Ok(Pipe {
            reader,
            writer: Descriptor::new(OwnedFd::from(writer)),
            capacity: capacity as usize,
        })
    }

    /// Moves up to `bytes` bytes, which are in the pipe, to `socket`, for which a call that would
    /// block fails. `has_more` says that others follow at once. Raises no `SIGPIPE`.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if the socket takes nothing now; else what `send(2)` gives.
    pub(crate) fn drain(
        &self,
        socket: BorrowedFd<'_>,
        bytes: usize,
        has_more: bool,
    ) -> io::Result<usize> {
        door!(socket(socket).drain_pipe((&self.reader, self.writer.as_fd(), self.capacity), bytes));
        let mut flags = SpliceFFlags::SPLICE_F_NONBLOCK;
        flags.set(SpliceFFlags::SPLICE_F_MORE, has_more);
        let moved = without_sigpipe(|| {
            let moved = splice(&self.reader, None, socket, None, bytes, flags);
            moved.map_err(io::Error::from)
        })?;
        match moved {
            // Nothing else has the writing end, and the bytes are there.
            0 => Err(io::ErrorKind::WriteZero.into()),
            _ => Ok(moved),
        }
    }
}

/// Calls that would block on the open file fail, until this is dropped.
#[derive(Debug)]
pub(crate) struct Nonblocking {
    /// Another descriptor of it, if that was not so before, and the process that changed it.
    changed: Option<(OwnedFd, Origin)>,
}

impl Nonblocking {
    /// # Errors
    ///
    /// What `fcntl(2)` gives, such as `EMFILE`.
    pub(crate) fn set(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
        if flags.contains(OFlag::O_NONBLOCK) {
            return Ok(Nonblocking { changed: None });
        }
        let own = (fd.try_clone_to_owned()?, Origin::here()?);
        fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
        Ok(Nonblocking { changed: Some(own) })
    }
}

impl Drop for Nonblocking {
    fn drop(&mut self) {
        let Some((fd, origin)) = &self.changed else {
            return;
        };
        // A forked child has the same open file, to which its parent still makes calls.
        if !origin.is_here() {
            return;
        }
        // It could be set, so it can be taken back.
        if let Ok(flags) = fcntl(fd, FcntlArg::F_GETFL) {
            let flags = OFlag::from_bits_retain(flags) - OFlag::O_NONBLOCK;
            let _ = fcntl(fd, FcntlArg::F_SETFL(flags));
        }
    }
}

/// Makes a call that may raise `SIGPIPE`, for which `splice(2)` has no flag, so that it gives
/// `EPIPE` and nothing else.
fn without_sigpipe<T>(call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut sigpipe = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut pending = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initializes the set, to which `sigaddset` then adds a valid signal.
    let sigpipe = unsafe {
        libc::sigemptyset(sigpipe.as_mut_ptr());
        libc::sigaddset(sigpipe.as_mut_ptr(), libc::SIGPIPE);
        sigpipe.assume_init()
    };
    // SAFETY: reads a set that is initialized, and writes to one of the right type; cannot fail.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const sigpipe, before.as_mut_ptr());
    }
    // SAFETY: `sigpending` initializes the set.
    let was_pending = unsafe {
        libc::sigpending(pending.as_mut_ptr());
        libc::sigismember(pending.as_ptr(), libc::SIGPIPE) == 1
    };
    let result = call();
    // Also after a success, if that was one in part.
    if !was_pending {
        let at_once = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the set and the time are initialized, and no information on the signal is asked
        // for.
        unsafe { libc::sigtimedwait(&raw const sigpipe, ptr::null_mut(), &raw const at_once) };
    }
    // SAFETY: `pthread_sigmask` has initialized the set above.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
    }
    result
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn is_nonblocking(fd: impl AsFd) -> bool {
        let flags = fcntl(fd, FcntlArg::F_GETFL).expect("it is open");
        OFlag::from_bits_retain(flags).contains(OFlag::O_NONBLOCK)
    }

    fn filled(bytes: &[u8]) -> Pipe {
        let pipe = Pipe::new(1 << 16).expect("descriptors are free");
        assert!(pipe.capacity >= 1 << 16);
        let writer = pipe.writer.as_fd().try_clone_to_owned();
        let mut writer = io::PipeWriter::from(writer.expect("a descriptor is free"));
        writer.write_all(bytes).expect("it holds them");
        pipe
    }

    fn drain_all(socket: &UnixStream, bytes: &[u8]) -> io::Result<()> {
        let pipe = filled(bytes);
        let mut left = bytes.len();
        while left > 0 {
            left -= pipe.drain(socket.as_fd(), left, false)?;
        }
        Ok(())
    }

    #[test]
    fn a_pipe_goes_into_a_socket_and_waits_for_nothing() {
        let (socket, mut peer) = UnixStream::pair().expect("descriptors are free");
        let pipe = filled(b"some data");
        {
            let _nonblocking = Nonblocking::set(socket.as_fd()).expect("it is open");
            assert!(is_nonblocking(&socket));
            assert_eq!(pipe.drain(socket.as_fd(), 4, true).expect("it is open"), 4);
            assert_eq!(pipe.drain(socket.as_fd(), 5, false).expect("it is open"), 5);
            // Until the buffer of the socket is full.
            let error = (0..1000).find_map(|_| drain_all(&socket, &[7; 1 << 16]).err());
            let error = error.expect("the buffer has an end");
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        }
        assert!(!is_nonblocking(&socket), "as it was");
        let mut read = [0; 9];
        peer.read_exact(&mut read).expect("it was written");
        assert_eq!(&read, b"some data");
    }

    #[test]
    fn a_socket_that_was_nonblocking_stays_so() {
        let (socket, _peer) = UnixStream::pair().expect("descriptors are free");
        socket.set_nonblocking(true).expect("it is open");
        drop(Nonblocking::set(socket.as_fd()));
        assert!(is_nonblocking(&socket));
    }
}
