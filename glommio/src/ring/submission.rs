//! The submissions this crate sends.
//!
//! One borrows the memory that it points to: what the kernel writes is borrowed exclusively, what it only
//! reads is shared. Who pushes it sees to it that the borrow outlasts the operation ([`Ring::push`]).
//!
//! [`Ring::push`]: super::Ring::push

#[cfg(test)]
use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::fd::RawFd;

use io_uring::{
    opcode, squeue,
    types::{Fd, TimeoutFlags},
};
use socket2::SockAddr;

/// A point in time or a duration as the kernel reads it.
pub(super) use io_uring::types::Timespec;

/// One submission queue entry, which borrows what it points to for `'m`. Its `user_data` is 0 until it is
/// [given one](Self::with_user_data).
pub(crate) struct Submission<'m> {
    entry: squeue::Entry,
    points_to_memory: bool,
    memory: PhantomData<&'m mut ()>,
}

impl Submission<'static> {
    /// Does nothing and completes.
    #[cfg(any(feature = "bench", test))]
    pub(crate) fn nop() -> Self {
        Self::new(opcode::Nop::new().build())
    }

    /// Completes once with the ready `events` (`POLLIN`, ...) of `fd`.
    pub(crate) fn poll_once(fd: RawFd, events: u32) -> Self {
        Self::new(opcode::PollAdd::new(Fd(fd), events).build())
    }

    /// Completes each time that `fd` becomes ready, until a completion says that no more follow.
    pub(crate) fn poll_always(fd: RawFd, events: u32) -> Self {
        Self::new(opcode::PollAdd::new(Fd(fd), events).multi(true).build())
    }

    /// Accepts one connection of the listener `fd`; the result is a close-on-exec descriptor.
    pub(crate) fn accept(fd: RawFd) -> Self {
        let entry = opcode::Accept::new(Fd(fd), std::ptr::null_mut(), std::ptr::null_mut())
            .flags(libc::SOCK_CLOEXEC)
            .build();
        Self::new(entry)
    }

    /// Accepts connections of the listener `fd` as they come, each with a completion as that of
    /// [`accept`](Self::accept), until one says that no more follow.
    pub(crate) fn accept_many(fd: RawFd) -> Self {
        let entry = opcode::AcceptMulti::new(Fd(fd))
            .flags(libc::SOCK_CLOEXEC)
            .build();
        Self::new(entry)
    }

    /// Closes `fd`.
    #[cfg(test)]
    pub(crate) fn close(fd: RawFd) -> Self {
        Self::new(opcode::Close::new(Fd(fd)).build())
    }

    /// Completes at the monotonic time `when`, or after it unless `is_absolute`. The kernel reads `when` when it
    /// takes this; the pointer is to stay valid until then.
    pub(super) fn timeout(when: *const Timespec, is_absolute: bool) -> Self {
        let entry = opcode::Timeout::new(when)
            .flags(timeout_flags(is_absolute))
            .build();
        Self::with_memory(entry)
    }

    /// Moves the timeout known as `target` to `when`, as [`timeout`](Self::timeout) has it. Completes with an error
    /// if `target` has fired already.
    pub(super) fn timeout_move(target: u64, when: *const Timespec, is_absolute: bool) -> Self {
        let entry = opcode::TimeoutUpdate::new(target, when)
            .flags(timeout_flags(is_absolute))
            .build();
        Self::with_memory(entry)
    }

    /// Removes the timeout known as `target`, which then completes with `ECANCELED`.
    pub(super) fn timeout_remove(target: u64) -> Self {
        Self::new(opcode::TimeoutRemove::new(target).build())
    }

    /// Asks the kernel to give up the submission known as `target`. A hint: it may still succeed.
    pub(crate) fn cancel(target: u64) -> Self {
        Self::new(opcode::AsyncCancel::new(target).build())
    }

    fn new(entry: squeue::Entry) -> Self {
        Submission {
            entry,
            points_to_memory: false,
            memory: PhantomData,
        }
    }
}

impl<'m> Submission<'m> {
    /// Connects `fd` to `address`.
    pub(crate) fn connect(fd: RawFd, address: &'m SockAddr) -> Self {
        let entry = opcode::Connect::new(Fd(fd), address.as_ptr().cast(), address.len()).build();
        Self::with_memory(entry)
    }

    /// Opens the file at `path`, relative to the working directory. A file that is created has the permissions
    /// `mode`, less the process's mask.
    #[cfg(test)]
    pub(crate) fn open(path: &'m CStr, flags: libc::c_int, mode: libc::mode_t) -> Self {
        let entry = opcode::OpenAt::new(Fd(libc::AT_FDCWD), path.as_ptr())
            .flags(flags)
            .mode(mode)
            .build();
        Self::with_memory(entry)
    }

    /// Reads into `buffer` from byte `offset` of the file, or from where the file stands ([`CURRENT_POSITION`]).
    /// Of a buffer that is longer than the kernel reads at once, the beginning.
    #[cfg(test)]
    pub(crate) fn read(fd: RawFd, buffer: &'m mut [u8], offset: u64) -> Self {
        let entry = opcode::Read::new(Fd(fd), buffer.as_mut_ptr(), transfer_bytes(buffer))
            .offset(offset)
            .build();
        Self::with_memory(entry)
    }

    /// Writes `buffer` to byte `offset` of the file, or to where the file stands ([`CURRENT_POSITION`]).
    /// Of a buffer that is longer than the kernel writes at once, the beginning.
    #[cfg(test)]
    pub(crate) fn write(fd: RawFd, buffer: &'m [u8], offset: u64) -> Self {
        let entry = opcode::Write::new(Fd(fd), buffer.as_ptr(), transfer_bytes(buffer))
            .offset(offset)
            .build();
        Self::with_memory(entry)
    }

    /// The same submission, whose completions carry `user_data`.
    pub(crate) fn with_user_data(mut self, user_data: u64) -> Self {
        self.entry.set_user_data(user_data);
        self
    }

    /// Whether the kernel reads or writes memory of ours on behalf of this submission.
    pub(super) fn points_to_memory(&self) -> bool {
        self.points_to_memory
    }

    pub(super) fn entry(&self) -> &squeue::Entry {
        &self.entry
    }

    fn with_memory(entry: squeue::Entry) -> Self {
        Submission {
            entry,
            points_to_memory: true,
            memory: PhantomData,
        }
    }
}

fn timeout_flags(is_absolute: bool) -> TimeoutFlags {
    if is_absolute {
        TimeoutFlags::ABS
    } else {
        TimeoutFlags::empty()
    }
}

/// How much of `buffer` goes into one read or write: the kernel moves no more than this at once.
#[cfg(test)]
fn transfer_bytes(buffer: &[u8]) -> u32 {
    const MOST: usize = 0x7fff_f000;
    buffer.len().min(MOST) as u32
}

/// The offset that stands for the file's own position.
#[cfg(test)]
pub(crate) const CURRENT_POSITION: u64 = u64::MAX;
