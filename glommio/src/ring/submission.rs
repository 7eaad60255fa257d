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

/// A point in time or a duration as the kernel reads it.
pub(super) use io_uring::types::Timespec;
use io_uring::types::{Fd, FsyncFlags, TimeoutFlags};
use io_uring::{opcode, squeue};
use socket2::SockAddr;

use crate::sys::file::Statx;

/// One submission queue entry, which borrows what it points to for `'m`. Its `user_data` is 0 until
/// it is [given one](Self::with_user_data).
pub(crate) struct Submission<'m> {
    entry: squeue::Entry,
    points_to_memory: bool,
    memory: PhantomData<&'m mut ()>,
}

/// The submission queue has no free entry: enter, then push again.
#[derive(Debug)]
pub(crate) struct QueueFull;

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

    /// Closes `fd`.
    pub(crate) fn close(fd: RawFd) -> Self {
        Self::new(opcode::Close::new(Fd(fd)).build())
    }

    /// Brings what was written to `fd` to its device; `data_only` leaves out what is only said
    /// about the file.
    pub(crate) fn sync(fd: RawFd, data_only: bool) -> Self {
        let flags = if data_only {
            FsyncFlags::DATASYNC
        } else {
            FsyncFlags::empty()
        };
        Self::new(opcode::Fsync::new(Fd(fd)).flags(flags).build())
    }

    /// Allocates or frees `len` bytes of `fd` from `offset` on, by the `mode` of `fallocate(2)`.
    pub(crate) fn allocate(fd: RawFd, mode: libc::c_int, offset: u64, len: u64) -> Self {
        let entry = opcode::Fallocate::new(Fd(fd), len)
            .offset(offset)
            .mode(mode)
            .build();
        Self::new(entry)
    }

    /// Moves up to `bytes` bytes from byte `position` of the file `from` to the pipe `to`.
    pub(crate) fn splice(from: RawFd, position: u64, to: RawFd, bytes: u32) -> Self {
        // The position of a pipe is said to be -1.
        let entry = opcode::Splice::new(Fd(from), position.cast_signed(), Fd(to), -1, bytes);
        Self::new(entry.build())
    }

    /// Sets the size of the file `fd`.
    pub(crate) fn truncate(fd: RawFd, size: u64) -> Self {
        Self::new(opcode::Ftruncate::new(Fd(fd), size).build())
    }

    /// Completes at the monotonic time `when`, or after it unless `is_absolute`. The kernel reads
    /// `when` when it takes this; the pointer is to stay valid until then.
    pub(super) fn timeout(when: *const Timespec, is_absolute: bool) -> Self {
        let entry = opcode::Timeout::new(when)
            .flags(timeout_flags(is_absolute))
            .build();
        Self::with_memory(entry)
    }

    /// Moves the timeout known as `target` to `when`, as [`timeout`](Self::timeout) has it.
    /// Completes with an error if `target` has fired already.
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

    /// Opens the file at `path`, relative to the directory `directory`, or to the working directory
    /// if that is `AT_FDCWD`. A file that is created has the permissions `mode`, less the
    /// process's mask.
    pub(crate) fn open(
        directory: RawFd,
        path: &'m CStr,
        flags: libc::c_int,
        mode: libc::mode_t,
    ) -> Self {
        let entry = opcode::OpenAt::new(Fd(directory), path.as_ptr())
            .flags(flags)
            .mode(mode)
            .build();
        Self::with_memory(entry)
    }

    /// Reads into `buffer` from byte `offset` of the file, or from where the file stands
    /// ([`CURRENT_POSITION`]). Of a buffer that is longer than the kernel reads at once, the
    /// beginning.
    pub(crate) fn read(fd: RawFd, buffer: &'m mut [u8], offset: u64) -> Self {
        let entry = opcode::Read::new(Fd(fd), buffer.as_mut_ptr(), transfer_bytes(buffer))
            .offset(offset)
            .build();
        Self::with_memory(entry)
    }

    /// Writes `buffer` to byte `offset` of the file, or to where the file stands
    /// ([`CURRENT_POSITION`]). Of a buffer that is longer than the kernel writes at once, the
    /// beginning.
    pub(crate) fn write(fd: RawFd, buffer: &'m [u8], offset: u64) -> Self {
        let entry = opcode::Write::new(Fd(fd), buffer.as_ptr(), transfer_bytes(buffer))
            .offset(offset)
            .build();
        Self::with_memory(entry)
    }

    /// As [`read`](Self::read), into memory that is [registered](super::Ring::register).
    pub(crate) fn read_registered(fd: RawFd, buffer: &'m mut [u8], offset: u64) -> Self {
        let length = transfer_bytes(buffer);
        let entry = opcode::ReadFixed::new(Fd(fd), buffer.as_mut_ptr(), length, REGISTERED)
            .offset(offset)
            .build();
        Self::with_memory(entry)
    }

    /// As [`write`](Self::write), from memory that is [registered](super::Ring::register).
    pub(crate) fn write_registered(fd: RawFd, buffer: &'m [u8], offset: u64) -> Self {
        let length = transfer_bytes(buffer);
        let entry = opcode::WriteFixed::new(Fd(fd), buffer.as_ptr(), length, REGISTERED)
            .offset(offset)
            .build();
        Self::with_memory(entry)
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
        let entry = opcode::Statx::new(Fd(directory), path.as_ptr(), statx.as_mut_ptr().cast())
            .flags(flags)
            .mask(Statx::MASK)
            .build();
        Self::with_memory(entry)
    }

    /// Gives the file at `from` the path `to`, both relative to the working directory.
    pub(crate) fn rename(from: &'m CStr, to: &'m CStr) -> Self {
        let cwd = Fd(libc::AT_FDCWD);
        Self::with_memory(opcode::RenameAt::new(cwd, from.as_ptr(), cwd, to.as_ptr()).build())
    }

    /// Removes `path`, relative to the working directory, from its file; or, with `AT_REMOVEDIR`
    /// among the `flags` of `unlinkat(2)`, the empty directory.
    pub(crate) fn unlink(path: &'m CStr, flags: libc::c_int) -> Self {
        let entry = opcode::UnlinkAt::new(Fd(libc::AT_FDCWD), path.as_ptr())
            .flags(flags)
            .build();
        Self::with_memory(entry)
    }

    /// Gives the file at `from`, relative to the directory `directory`, the further path `to`,
    /// relative to the working directory, by the `flags` of `linkat(2)`.
    pub(crate) fn hard_link(
        directory: RawFd,
        from: &'m CStr,
        to: &'m CStr,
        flags: libc::c_int,
    ) -> Self {
        let cwd = Fd(libc::AT_FDCWD);
        let entry = opcode::LinkAt::new(Fd(directory), from.as_ptr(), cwd, to.as_ptr())
            .flags(flags)
            .build();
        Self::with_memory(entry)
    }

    /// Makes a symbolic link to `target` at `link`, relative to the working directory.
    pub(crate) fn symlink(target: &'m CStr, link: &'m CStr) -> Self {
        let cwd = Fd(libc::AT_FDCWD);
        let entry = opcode::SymlinkAt::new(cwd, target.as_ptr(), link.as_ptr()).build();
        Self::with_memory(entry)
    }

    /// Makes a directory at `path`, relative to the working directory, with the permissions `mode`,
    /// less the process's mask.
    pub(crate) fn make_directory(path: &'m CStr, mode: libc::mode_t) -> Self {
        let entry = opcode::MkDirAt::new(Fd(libc::AT_FDCWD), path.as_ptr())
            .mode(mode)
            .build();
        Self::with_memory(entry)
    }

    /// Has a worker of the kernel do it from the beginning: what takes long without
    /// waiting for anything, such as copying, takes no time of this thread then.
    pub(crate) fn on_worker(mut self) -> Self {
        self.entry = self.entry.flags(squeue::Flags::ASYNC);
        self
    }

    /// Its completions carry `user_data`.
    pub(crate) fn with_user_data(mut self, user_data: u64) -> Self {
        self.entry.set_user_data(user_data);
        self
    }

    pub(super) fn user_data(&self) -> u64 {
        self.entry.get_user_data()
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
fn transfer_bytes(buffer: &[u8]) -> u32 {
    const MOST: usize = 0x7fff_f000;
    buffer.len().min(MOST) as u32
}

/// The one piece of memory that is registered.
const REGISTERED: u16 = 0;

/// The offset that stands for the file's own position.
pub(crate) const CURRENT_POSITION: u64 = u64::MAX;
