//! The submissions this crate sends.
//!
//! One borrows the memory that it points to: what the kernel writes is borrowed exclusively, what
//! it only reads is shared. Who pushes it sees to it that the borrow outlasts the operation
//! ([`Ring::push`]).
//!
//! [`Ring::push`]: super::Ring::push

use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::fd::RawFd;

use socket2::SockAddr;

use super::operation::{Operation, Transfer};
use crate::sys::file::Statx;

/// An [operation](Operation), which borrows what it points to for `'m`. Its `user_data` is 0 until it is
/// [given one](Self::with_user_data).
pub(crate) struct Submission<'m> {
    operation: Operation,
    user_data: u64,
    is_for_worker: bool,
    memory: PhantomData<&'m mut ()>,
}

/// The submission queue has no free entry: enter, then push again.
#[derive(Debug)]
pub(crate) struct QueueFull;

impl Submission<'static> {
    /// Does nothing and completes.
    #[cfg(any(feature = "bench", test))]
    pub(crate) fn nop() -> Self {
        Self::new(Operation::Nop)
    }

    /// Completes once with the ready `events` (`POLLIN`, ...) of `fd`.
    pub(crate) fn poll_once(fd: RawFd, events: u32) -> Self {
        let is_multi = false;
        Self::new(Operation::Poll {
            fd,
            events,
            is_multi,
        })
    }

    /// Completes each time that `fd` becomes ready, until a completion says that no more follow.
    pub(crate) fn poll_always(fd: RawFd, events: u32) -> Self {
        let is_multi = true;
        Self::new(Operation::Poll {
            fd,
            events,
            is_multi,
        })
    }

    /// Accepts one connection of `listener`; the result is a close-on-exec descriptor.
    pub(crate) fn accept(listener: RawFd) -> Self {
        Self::new(Operation::Accept { listener })
    }

    /// Closes `fd`.
    pub(crate) fn close(fd: RawFd) -> Self {
        Self::new(Operation::Close { fd })
    }

    /// Brings what was written to `fd` to its device; `data_only` leaves out what is only said
    /// about the file.
    pub(crate) fn sync(fd: RawFd, data_only: bool) -> Self {
        Self::new(Operation::Sync { fd, data_only })
    }

    /// Allocates or frees `length` bytes of `fd` from `offset` on, by the `mode` of `fallocate(2)`.
    pub(crate) fn allocate(fd: RawFd, mode: libc::c_int, offset: u64, length: u64) -> Self {
        Self::new(Operation::Allocate {
            fd,
            mode,
            offset,
            length,
        })
    }

    /// Moves up to `length` bytes from byte `position` of the file `from` to the pipe `to`.
    pub(crate) fn splice(from: RawFd, position: u64, to: RawFd, length: u32) -> Self {
        Self::new(Operation::Splice {
            from,
            position,
            to,
            length,
        })
    }

    /// Sets the size of the file `fd`.
    pub(crate) fn truncate(fd: RawFd, size: u64) -> Self {
        Self::new(Operation::Truncate { fd, size })
    }

    /// Asks the kernel to give up the submission known as `target`. A hint: it may still succeed.
    pub(crate) fn cancel(target: u64) -> Self {
        Self::new(Operation::Cancel { target })
    }
}

impl<'m> Submission<'m> {
    fn new(operation: Operation) -> Self {
        Submission {
            operation,
            user_data: 0,
            is_for_worker: false,
            memory: PhantomData,
        }
    }

    /// Connects `socket` to `address`.
    pub(crate) fn connect(socket: RawFd, address: &'m SockAddr) -> Self {
        Self::new(Operation::Connect {
            socket,
            address: address.as_ptr().cast(),
            length: address.len(),
        })
    }

    /// Opens the file at `path`, relative to the directory `directory`, or to the working directory
    /// if that is `AT_FDCWD`. A file that is created has the permissions `mode`, less the
    /// process's mask.
    pub(crate) fn open(
        directory: RawFd,
        path: &'m CStr,
        flags: libc::c_int,
        mode: libc::mode_t,
    ) -> Self {
        let path = path.as_ptr();
        Self::new(Operation::Open {
            directory,
            path,
            flags,
            mode,
        })
    }

    /// Reads into `buffer` from byte `offset` of the file, or from where the file stands
    /// ([`CURRENT_POSITION`]). Of a buffer that is longer than the kernel reads at once, the
    /// beginning.
    pub(crate) fn read(fd: RawFd, buffer: &'m mut [u8], offset: u64) -> Self {
        let (memory, bytes) = (buffer.as_mut_ptr(), buffer.len());
        Self::new(Operation::Read(transfer(fd, memory, bytes, offset)))
    }

    /// Writes `buffer` to byte `offset` of the file, or to where the file stands
    /// ([`CURRENT_POSITION`]). Of a buffer that is longer than the kernel writes at once, the
    /// beginning.
    pub(crate) fn write(fd: RawFd, buffer: &'m [u8], offset: u64) -> Self {
        let (memory, bytes) = (buffer.as_ptr().cast_mut(), buffer.len());
        Self::new(Operation::Write(transfer(fd, memory, bytes, offset)))
    }

    /// Asks for the attributes of the file at `path`, relative to the directory `directory`; with
    /// `AT_EMPTY_PATH` among the `flags` of `statx(2)` and no path, for those of `directory`
    /// itself.
    pub(crate) fn statx(
        directory: RawFd,
        path: &'m CStr,
        flags: libc::c_int,
        statx: &'m mut Statx,
    ) -> Self {
        let (path, statx) = (path.as_ptr(), statx.as_mut_ptr());
        Self::new(Operation::Statx {
            directory,
            path,
            flags,
            statx,
        })
    }

    /// Gives the file at `from` the path `to`, both relative to the working directory.
    pub(crate) fn rename(from: &'m CStr, to: &'m CStr) -> Self {
        let (from, to) = (from.as_ptr(), to.as_ptr());
        Self::new(Operation::Rename { from, to })
    }

    /// Removes `path`, relative to the working directory, from its file; or, with `AT_REMOVEDIR`
    /// among the `flags` of `unlinkat(2)`, the empty directory.
    pub(crate) fn unlink(path: &'m CStr, flags: libc::c_int) -> Self {
        let path = path.as_ptr();
        Self::new(Operation::Unlink { path, flags })
    }

    /// Gives the file at `from`, relative to the directory `directory`, the further path `to`,
    /// relative to the working directory, by the `flags` of `linkat(2)`.
    pub(crate) fn hard_link(
        directory: RawFd,
        from: &'m CStr,
        to: &'m CStr,
        flags: libc::c_int,
    ) -> Self {
        let (from, to) = (from.as_ptr(), to.as_ptr());
        Self::new(Operation::Link {
            directory,
            from,
            to,
            flags,
        })
    }

    /// Makes a symbolic link to `target` at `link`, relative to the working directory.
    pub(crate) fn symlink(target: &'m CStr, link: &'m CStr) -> Self {
        let (target, link) = (target.as_ptr(), link.as_ptr());
        Self::new(Operation::Symlink { target, link })
    }

    /// Makes a directory at `path`, relative to the working directory, with the permissions `mode`,
    /// less the process's mask.
    pub(crate) fn make_directory(path: &'m CStr, mode: libc::mode_t) -> Self {
        let path = path.as_ptr();
        Self::new(Operation::MakeDirectory { path, mode })
    }

    /// Whether the memory that is read or written is [registered](super::Ring::register).
    pub(crate) fn in_registered_memory(mut self, is_registered: bool) -> Self {
        if let Operation::Read(it) | Operation::Write(it) = &mut self.operation {
            it.is_registered = is_registered;
        }
        self
    }

    /// Has a worker of the kernel do it from the beginning: what takes long without
    /// waiting for anything, such as copying, takes no time of this thread then.
    pub(crate) fn on_worker(mut self) -> Self {
        self.is_for_worker = true;
        self
    }

    /// Its completions carry `user_data`.
    pub(crate) fn with_user_data(mut self, user_data: u64) -> Self {
        self.user_data = user_data;
        self
    }

    pub(super) fn operation(&self) -> Operation {
        self.operation
    }

    pub(super) fn user_data(&self) -> u64 {
        self.user_data
    }

    pub(super) fn is_for_worker(&self) -> bool {
        self.is_for_worker
    }
}

/// The kernel moves no more at once.
fn transfer(fd: RawFd, memory: *mut u8, bytes: usize, offset: u64) -> Transfer {
    const MOST: usize = 0x7fff_f000;
    Transfer {
        fd,
        memory,
        length: bytes.min(MOST) as u32,
        position: Some(offset).filter(|it| *it != CURRENT_POSITION),
        is_registered: false,
    }
}

/// The offset that stands for the file's own position.
pub(crate) const CURRENT_POSITION: u64 = u64::MAX;
