//! Operations as the system calls that do the same, for a thread that may block.

#![allow(unsafe_code)]

use std::io;

use io_uring::opcode;
use libc::c_long;

use super::entry::Entry;
use super::submission::{CURRENT_POSITION, Submission};

/// A system call that does what an operation does.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    number: c_long,
    arguments: [c_long; 6],
    /// That in the file, for a call which has it in memory.
    position: u64,
}

/// `IORING_FSYNC_DATASYNC`
const DATA_ONLY: u32 = 1;

impl Call {
    /// That of `submission`, if there is one.
    pub(crate) fn of(submission: &Submission<'_>) -> Option<Call> {
        if cfg!(not(target_pointer_width = "64")) {
            // Positions are two arguments there.
            return None;
        }
        let entry = Entry::of(submission);
        let (fd, flags) = (entry.fd as c_long, entry.operation_flags as c_long);
        let (address, length) = (entry.address as c_long, entry.length as c_long);
        let offset = entry.offset as c_long;
        let at_current = entry.offset == CURRENT_POSITION;
        // The fields are as io_uring_enter(2) has them.
        let (number, arguments) = match entry.opcode {
            opcode::OpenAt::CODE => (libc::SYS_openat, [fd, address, flags, length, 0, 0]),
            opcode::Read::CODE if at_current => (libc::SYS_read, [fd, address, length, 0, 0, 0]),
            opcode::Read::CODE | opcode::ReadFixed::CODE => {
                (libc::SYS_pread64, [fd, address, length, offset, 0, 0])
            }
            opcode::Write::CODE if at_current => (libc::SYS_write, [fd, address, length, 0, 0, 0]),
            opcode::Write::CODE | opcode::WriteFixed::CODE => {
                (libc::SYS_pwrite64, [fd, address, length, offset, 0, 0])
            }
            opcode::Statx::CODE => (libc::SYS_statx, [fd, address, flags, length, offset, 0]),
            opcode::Fsync::CODE if entry.operation_flags & DATA_ONLY != 0 => {
                (libc::SYS_fdatasync, [fd, 0, 0, 0, 0, 0])
            }
            opcode::Fsync::CODE => (libc::SYS_fsync, [fd, 0, 0, 0, 0, 0]),
            opcode::Fallocate::CODE => (libc::SYS_fallocate, [fd, length, offset, address, 0, 0]),
            opcode::Ftruncate::CODE => (libc::SYS_ftruncate, [fd, offset, 0, 0, 0, 0]),
            opcode::RenameAt::CODE => {
                (libc::SYS_renameat2, [fd, address, length, offset, flags, 0])
            }
            opcode::UnlinkAt::CODE => (libc::SYS_unlinkat, [fd, address, flags, 0, 0, 0]),
            opcode::LinkAt::CODE => (libc::SYS_linkat, [fd, address, length, offset, flags, 0]),
            opcode::SymlinkAt::CODE => (libc::SYS_symlinkat, [address, fd, offset, 0, 0, 0]),
            opcode::MkDirAt::CODE => (libc::SYS_mkdirat, [fd, address, length, 0, 0, 0]),
            opcode::Splice::CODE => {
                let from = entry.splice_fd as c_long;
                (libc::SYS_splice, [from, 0, fd, 0, length, flags])
            }
            _ => return None,
        };
        Some(Call {
            number,
            arguments,
            position: entry.address,
        })
    }

    /// What the kernel says: the result, or a negated errno. Blocks.
    ///
    /// # Safety
    ///
    /// What the submission points to is there until this returns, and nothing else looks at what
    /// is written.
    pub(crate) unsafe fn make(self) -> i32 {
        let mut position = self.position;
        let [one, mut two, three, four, five, six] = self.arguments;
        if self.number == libc::SYS_splice {
            two = (&raw mut position) as c_long;
        }
        loop {
            // SAFETY: the arguments are those of the call (`of`). What they point to is there, by the
            // caller's promise, and the position is until the call returns.
            let result = unsafe { libc::syscall(self.number, one, two, three, four, five, six) };
            if result >= 0 {
                // Descriptors are that small, and so is the length of each transfer.
                return result as i32;
            }
            let errno = io::Error::last_os_error().raw_os_error();
            if errno != Some(libc::EINTR) {
                return -errno.unwrap_or(libc::EIO);
            }
        }
    }
}
