//! Calls that do not block, made when epoll says that they have something to do. Results are as the kernel's
//! ring gives them: a number, or a negated errno.

#![allow(unsafe_code)]

use std::os::fd::{BorrowedFd, RawFd};

use libc::c_int;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::ring::operation::{Operation, Transfer};
use crate::sys::nowait;

/// A read or a write of what has no positions.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Read(Transfer),
    Write(Transfer),
}

impl Stream {
    /// `operation`, if it reads or writes: where its file stands, whatever position it has.
    pub(super) fn of(operation: Operation) -> Option<Self> {
        let at_current = |it| Transfer {
            position: None,
            ..it
        };
        match operation {
            Operation::Read(it) => Some(Stream::Read(at_current(it))),
            Operation::Write(it) => Some(Stream::Write(at_current(it))),
            _ => None,
        }
    }

    pub(super) fn fd_and_events(self) -> (RawFd, u32) {
        match self {
            Stream::Read(it) => (it.fd, libc::POLLIN as u32),
            Stream::Write(it) => (it.fd, libc::POLLOUT as u32),
        }
    }

    pub(super) fn operation(self) -> Operation {
        match self {
            Stream::Read(it) => Operation::Read(it),
            Stream::Write(it) => Operation::Write(it),
        }
    }
}

/// Sets whether calls may block. Whether they might before.
pub(super) fn set_blocking(fd: RawFd, blocks: bool) -> Result<bool, Errno> {
    // SAFETY: that of an operation in flight, which keeps it open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    let did_block = !flags.contains(OFlag::O_NONBLOCK);
    if did_block != blocks {
        fcntl(fd, FcntlArg::F_SETFL(flags ^ OFlag::O_NONBLOCK))?;
    }
    Ok(did_block)
}

/// A connection. The listener is in non-blocking mode.
pub(super) fn accept(listener: RawFd) -> i32 {
    let none = std::ptr::null_mut();
    // SAFETY: the address is not asked for.
    result(unsafe { libc::accept4(listener, none, none.cast(), libc::SOCK_CLOEXEC) })
}

/// Begins to connect. Whether the socket was in blocking mode, if it is to be waited for; else the result.
///
/// # Safety
///
/// The address is there.
pub(super) unsafe fn begin_connect(
    socket: RawFd,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> Result<bool, i32> {
    let was_blocking = set_blocking(socket, false).map_err(|errno| -(errno as i32))?;
    // SAFETY: promised by the caller.
    let connected = result(unsafe { libc::connect(socket, address, length) });
    if connected == -libc::EINPROGRESS {
        return Ok(was_blocking);
    }
    restore(socket, was_blocking);
    Err(connected)
}

/// The socket has become writable.
pub(super) fn end_connect(socket: RawFd, was_blocking: bool) -> i32 {
    let mut error: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_ERROR);
    let place = (&raw mut error).cast();
    // SAFETY: the kernel writes one number, whose size it is told.
    let asked = result(unsafe { libc::getsockopt(socket, level, name, place, &mut length) });
    restore(socket, was_blocking);
    if asked < 0 { asked } else { -error }
}

fn restore(socket: RawFd, was_blocking: bool) {
    if was_blocking {
        let _ = set_blocking(socket, true);
    }
}

/// Reads or writes what it can without waiting; `EOPNOTSUPP` where that cannot be asked.
///
/// # Safety
///
/// The memory is there, and nothing else looks at what is written.
pub(super) unsafe fn transfer_now(stream: Stream) -> i32 {
    const AT_CURRENT: libc::off_t = -1;
    if !nowait::is_heeded() {
        return -libc::EOPNOTSUPP;
    }
    let (Stream::Read(it) | Stream::Write(it)) = stream;
    let slice = libc::iovec {
        iov_base: it.memory.cast(),
        iov_len: it.length as usize,
    };
    let flags = libc::RWF_NOWAIT;
    // SAFETY: promised by the caller; one slice is passed.
    let moved = unsafe {
        match stream {
            Stream::Read(_) => libc::preadv2(it.fd, &slice, 1, AT_CURRENT, flags),
            Stream::Write(_) => libc::pwritev2(it.fd, &slice, 1, AT_CURRENT, flags),
        }
    };
    // No more than was asked for, which has 32 bits; or -1.
    result(moved as c_int)
}

fn result(returned: c_int) -> i32 {
    if returned < 0 {
        -(Errno::last() as i32)
    } else {
        returned
    }
}
