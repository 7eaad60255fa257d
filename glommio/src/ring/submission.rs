//! The submissions this crate sends, each with the memory it points to, if any.

use std::os::fd::RawFd;

use io_uring::{
    opcode, squeue,
    types::{Fd, TimeoutFlags},
};

/// A point in time or a duration as the kernel reads it.
pub(super) use io_uring::types::Timespec;

/// One submission queue entry, complete with its `user_data`.
pub(crate) struct Submission {
    entry: squeue::Entry,
    points_to_memory: bool,
}

impl Submission {
    /// Does nothing and completes.
    #[cfg(any(feature = "bench", test))]
    pub(crate) fn nop(user_data: u64) -> Self {
        Self::new(opcode::Nop::new().build(), user_data)
    }

    /// Completes once with the ready `events` (`POLLIN`, ...) of `fd`.
    pub(crate) fn poll_once(fd: RawFd, events: u32, user_data: u64) -> Self {
        Self::new(opcode::PollAdd::new(Fd(fd), events).build(), user_data)
    }

    /// Completes each time that `fd` becomes ready, until a completion says that no more follow.
    pub(crate) fn poll_always(fd: RawFd, events: u32, user_data: u64) -> Self {
        let entry = opcode::PollAdd::new(Fd(fd), events).multi(true).build();
        Self::new(entry, user_data)
    }

    /// Accepts one connection of the listener `fd`; the result is a close-on-exec descriptor.
    pub(crate) fn accept(fd: RawFd, user_data: u64) -> Self {
        let entry = opcode::Accept::new(Fd(fd), std::ptr::null_mut(), std::ptr::null_mut())
            .flags(libc::SOCK_CLOEXEC)
            .build();
        Self::new(entry, user_data)
    }

    /// Accepts connections of the listener `fd` as they come, each with a completion as that of
    /// [`accept`](Self::accept), until one says that no more follow.
    pub(crate) fn accept_many(fd: RawFd, user_data: u64) -> Self {
        let entry = opcode::AcceptMulti::new(Fd(fd))
            .flags(libc::SOCK_CLOEXEC)
            .build();
        Self::new(entry, user_data)
    }

    /// Connects `fd` to the socket address of `address_bytes` bytes at `address`, which the kernel
    /// reads until the completion.
    pub(crate) fn connect(
        fd: RawFd,
        address: *const libc::sockaddr,
        address_bytes: libc::socklen_t,
        user_data: u64,
    ) -> Self {
        let entry = opcode::Connect::new(Fd(fd), address, address_bytes).build();
        Self::with_memory(entry, user_data)
    }

    /// Opens the file at `path`, a string that the kernel reads until the completion; what is created
    /// belongs to the user alone.
    #[cfg(test)]
    pub(crate) fn open(path: *const libc::c_char, flags: libc::c_int, user_data: u64) -> Self {
        let entry = opcode::OpenAt::new(Fd(libc::AT_FDCWD), path)
            .flags(flags)
            .mode(0o600)
            .build();
        Self::with_memory(entry, user_data)
    }

    /// Reads up to `bytes` bytes from where the file stands; the kernel writes to `buffer` until the
    /// completion.
    #[cfg(test)]
    pub(crate) fn read(fd: RawFd, buffer: *mut u8, bytes: u32, user_data: u64) -> Self {
        let entry = opcode::Read::new(Fd(fd), buffer, bytes)
            .offset(WHERE_IT_STANDS)
            .build();
        Self::with_memory(entry, user_data)
    }

    /// Writes up to `bytes` bytes to where the file stands; the kernel reads `buffer` until the completion.
    #[cfg(test)]
    pub(crate) fn write(fd: RawFd, buffer: *const u8, bytes: u32, user_data: u64) -> Self {
        let entry = opcode::Write::new(Fd(fd), buffer, bytes)
            .offset(WHERE_IT_STANDS)
            .build();
        Self::with_memory(entry, user_data)
    }

    /// Closes `fd`.
    #[cfg(test)]
    pub(crate) fn close(fd: RawFd, user_data: u64) -> Self {
        Self::new(opcode::Close::new(Fd(fd)).build(), user_data)
    }

    /// Completes at the monotonic time `when`, or after it unless `is_absolute`; it is read when this is
    /// submitted.
    pub(super) fn timeout(when: *const Timespec, is_absolute: bool, user_data: u64) -> Self {
        let entry = opcode::Timeout::new(when)
            .flags(timeout_flags(is_absolute))
            .build();
        Self::with_memory(entry, user_data)
    }

    /// Moves the timeout known as `target` to the monotonic time `when`, or after it unless `is_absolute`; it
    /// is read when this is submitted. Completes with an error if `target` has fired already.
    pub(super) fn timeout_move(
        target: u64,
        when: *const Timespec,
        is_absolute: bool,
        user_data: u64,
    ) -> Self {
        let entry = opcode::TimeoutUpdate::new(target, when)
            .flags(timeout_flags(is_absolute))
            .build();
        Self::with_memory(entry, user_data)
    }

    /// Removes the timeout known as `target`, which then completes with `ECANCELED`.
    pub(super) fn timeout_remove(target: u64, user_data: u64) -> Self {
        Self::new(opcode::TimeoutRemove::new(target).build(), user_data)
    }

    /// Asks the kernel to give up the submission known as `target`. A hint: it may still succeed.
    pub(crate) fn cancel(target: u64, user_data: u64) -> Self {
        Self::new(opcode::AsyncCancel::new(target).build(), user_data)
    }

    /// Whether the kernel reads or writes memory of ours on behalf of this submission.
    pub(super) fn points_to_memory(&self) -> bool {
        self.points_to_memory
    }

    pub(super) fn entry(&self) -> &squeue::Entry {
        &self.entry
    }

    fn new(entry: squeue::Entry, user_data: u64) -> Self {
        Submission {
            entry: entry.user_data(user_data),
            points_to_memory: false,
        }
    }

    fn with_memory(entry: squeue::Entry, user_data: u64) -> Self {
        Submission {
            entry: entry.user_data(user_data),
            points_to_memory: true,
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

/// The offset that stands for the file's own position.
#[cfg(test)]
const WHERE_IT_STANDS: u64 = u64::MAX;
