//! Operations as the system calls that do the same, for a thread that may block.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use libc::c_long;

use super::operation::{Operation, Path, Transfer};
use super::submission::Submission;
use crate::sys::file::{Statx, older};

/// A system call that does what an operation does.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    number: c_long,
    arguments: [c_long; 6],
    /// That in the file, for a call which has it in memory.
    position: i64,
}

impl Call {
    /// That of `submission`, if there is one.
    pub(crate) fn of(submission: &Submission<'_>) -> Option<Call> {
        Call::that_does(submission.operation())
    }

    /// That of `operation`; none of what is waited for, or is about other operations.
    pub(super) fn that_does(operation: Operation) -> Option<Call> {
        if cfg!(not(target_pointer_width = "64")) {
            // Positions are two arguments there.
            return None;
        }
        let mut from_position = 0;
        let (number, arguments) = match operation {
            Operation::Nop
            | Operation::Poll { .. }
            | Operation::Accept { .. }
            | Operation::Connect { .. }
            | Operation::Cancel { .. } => return None,
            Operation::Read(it) => transfer(it, libc::SYS_read, libc::SYS_pread64),
            Operation::Write(it) => transfer(it, libc::SYS_write, libc::SYS_pwrite64),
            Operation::Splice {
                from,
                position,
                to,
                length,
            } => {
                from_position = position.cast_signed();
                (
                    libc::SYS_splice,
                    [from.into(), 0, to.into(), 0, length.into(), 0],
                )
            }
            Operation::Sync { fd, data_only } => {
                let number = match data_only {
                    true => libc::SYS_fdatasync,
                    false => libc::SYS_fsync,
                };
                (number, [fd.into(), 0, 0, 0, 0, 0])
            }
            Operation::Allocate {
                fd,
                mode,
                offset,
                length,
            } => {
                let (offset, length) = (offset as c_long, length as c_long);
                (
                    libc::SYS_fallocate,
                    [fd.into(), mode.into(), offset, length, 0, 0],
                )
            }
            Operation::Truncate { fd, size } => {
                (libc::SYS_ftruncate, [fd.into(), size as c_long, 0, 0, 0, 0])
            }
            Operation::Open {
                directory,
                path,
                flags,
                mode,
            } => (
                libc::SYS_openat,
                at(directory, path, [flags.into(), mode.into()]),
            ),
            Operation::Close { fd } => (libc::SYS_close, [fd.into(), 0, 0, 0, 0, 0]),
            Operation::Statx {
                directory,
                path,
                flags,
                statx,
            } => {
                let (path, mask) = (path as c_long, Statx::MASK.into());
                (
                    libc::SYS_statx,
                    [
                        directory.into(),
                        path,
                        flags.into(),
                        mask,
                        statx as c_long,
                        0,
                    ],
                )
            }
            Operation::Rename { from, to } => (libc::SYS_renameat2, from_to((HERE, from), to, 0)),
            Operation::Unlink { path, flags } => {
                (libc::SYS_unlinkat, at(HERE, path, [flags.into(), 0]))
            }
            Operation::MakeDirectory { path, mode } => {
                (libc::SYS_mkdirat, at(HERE, path, [mode.into(), 0]))
            }
            Operation::Symlink { target, link } => (
                libc::SYS_symlinkat,
                [target as c_long, HERE.into(), link as c_long, 0, 0, 0],
            ),
            Operation::Link {
                directory,
                from,
                to,
                flags,
            } => (
                libc::SYS_linkat,
                from_to((directory, from), to, flags.into()),
            ),
        };
        Some(Call {
            number,
            arguments,
            position: from_position,
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
            // SAFETY: the arguments are those of the call (`that_does`). What they point to is there, by
            // the caller's promise, and the position is until the call returns.
            let result = unsafe { libc::syscall(self.number, one, two, three, four, five, six) };
            if result >= 0 {
                // Descriptors are that small, and so is the length of each transfer.
                return result as i32;
            }
            match io::Error::last_os_error().raw_os_error() {
                // The number may be another's by now: it is closed, whatever the error.
                Some(libc::EINTR) if self.number != libc::SYS_close => {}
                Some(libc::ENOSYS | libc::EPERM) if self.number == libc::SYS_statx => {
                    let (directory, flags) = (one as RawFd, three as i32);
                    // SAFETY: as above: the path is a string, and there is room for the answer.
                    let answered = unsafe { older::statx(directory, two as _, flags, five as _) };
                    let errno = |error: io::Error| -error.raw_os_error().unwrap_or(libc::EIO);
                    return answered.map_or_else(errno, |()| 0);
                }
                errno => return -errno.unwrap_or(libc::EIO),
            }
        }
    }
}

/// The working directory.
const HERE: RawFd = libc::AT_FDCWD;

fn at(directory: RawFd, path: Path, rest: [c_long; 2]) -> [c_long; 6] {
    [directory.into(), path as c_long, rest[0], rest[1], 0, 0]
}

fn from_to((directory, from): (RawFd, Path), to: Path, flags: c_long) -> [c_long; 6] {
    let (from, to) = (from as c_long, to as c_long);
    [directory.into(), from, HERE.into(), to, flags, 0]
}

/// The call, which is another one where the position is that of the file.
fn transfer(it: Transfer, at_current: c_long, at_position: c_long) -> (c_long, [c_long; 6]) {
    let (fd, memory, length) = (it.fd.into(), it.memory as c_long, it.length.into());
    match it.position {
        None => (at_current, [fd, memory, length, 0, 0, 0]),
        Some(position) => (at_position, [fd, memory, length, position as c_long, 0, 0]),
    }
}
