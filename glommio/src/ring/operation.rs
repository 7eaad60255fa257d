//! What a submission asks for, read from its 64 bytes as the kernel reads them: for the rings that are not
//! the kernel's. A new operation is a new variant, and does not compile until each of them has an answer.
//!
//! Timeouts are not among them: a ring takes these by [methods of their own](super::Ring::push_timeout).

use std::os::fd::RawFd;

use io_uring::opcode;

use super::entry::Entry;
use super::submission::{CURRENT_POSITION, Submission};

/// See the module. The memory that it points to is as [`Ring::push`](super::Ring::push) promises.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Nop,
    Poll {
        fd: RawFd,
        events: u32,
        is_multi: bool,
    },
    Accept {
        listener: RawFd,
    },
    Connect {
        socket: RawFd,
        address: *const libc::sockaddr,
        length: libc::socklen_t,
    },
    Cancel {
        target: u64,
    },
    Read(Transfer),
    Write(Transfer),
    /// From a file to a pipe.
    Splice {
        from: RawFd,
        position: u64,
        to: RawFd,
        length: u32,
        flags: u32,
    },
    Sync {
        fd: RawFd,
        data_only: bool,
    },
    Allocate {
        fd: RawFd,
        mode: libc::c_int,
        offset: u64,
        length: u64,
    },
    Truncate {
        fd: RawFd,
        size: u64,
    },
    Open {
        directory: RawFd,
        path: Path,
        flags: libc::c_int,
        mode: libc::mode_t,
    },
    Close {
        fd: RawFd,
    },
    Statx {
        directory: RawFd,
        path: Path,
        flags: libc::c_int,
        mask: u32,
        statx: *mut libc::statx,
    },
    Rename {
        from: (RawFd, Path),
        to: (RawFd, Path),
        flags: u32,
    },
    Unlink {
        directory: RawFd,
        path: Path,
        flags: libc::c_int,
    },
    MakeDirectory {
        directory: RawFd,
        path: Path,
        mode: libc::mode_t,
    },
    Symlink {
        target: Path,
        directory: RawFd,
        link: Path,
    },
    Link {
        from: (RawFd, Path),
        to: (RawFd, Path),
        flags: libc::c_int,
    },
}

/// With a zero byte at its end.
pub(super) type Path = *const libc::c_char;

#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) fd: RawFd,
    /// Of a write, to be read only.
    pub(super) memory: *mut u8,
    pub(super) length: u32,
    /// None: where the file stands.
    pub(super) position: Option<u64>,
}

/// `IORING_FSYNC_DATASYNC`
const DATA_ONLY: u32 = 1;

/// `IORING_POLL_ADD_MULTI`
const MULTISHOT: u32 = 1;

impl Operation {
    // The fields are as io_uring_enter(2) has them.
    pub(super) fn of(submission: &Submission<'_>) -> Operation {
        let entry = Entry::of(submission);
        let (fd, flags) = (entry.fd, entry.operation_flags.cast_signed());
        let path = entry.address as Path;
        let other = (entry.length.cast_signed(), entry.offset as Path);
        match entry.opcode {
            opcode::Nop::CODE => Operation::Nop,
            opcode::PollAdd::CODE => Operation::Poll {
                fd,
                events: entry.operation_flags,
                is_multi: entry.length & MULTISHOT != 0,
            },
            opcode::Accept::CODE => Operation::Accept { listener: fd },
            opcode::Connect::CODE => Operation::Connect {
                socket: fd,
                address: entry.address as *const libc::sockaddr,
                length: entry.offset as libc::socklen_t,
            },
            opcode::AsyncCancel::CODE => Operation::Cancel {
                target: entry.address,
            },
            opcode::Read::CODE | opcode::ReadFixed::CODE => Operation::Read(Transfer::of(&entry)),
            opcode::Write::CODE | opcode::WriteFixed::CODE => {
                Operation::Write(Transfer::of(&entry))
            }
            opcode::Splice::CODE => Operation::Splice {
                from: entry.splice_fd,
                position: entry.address,
                to: fd,
                length: entry.length,
                flags: entry.operation_flags,
            },
            opcode::Fsync::CODE => Operation::Sync {
                fd,
                data_only: entry.operation_flags & DATA_ONLY != 0,
            },
            opcode::Fallocate::CODE => Operation::Allocate {
                fd,
                mode: entry.length.cast_signed(),
                offset: entry.offset,
                length: entry.address,
            },
            opcode::Ftruncate::CODE => Operation::Truncate {
                fd,
                size: entry.offset,
            },
            opcode::OpenAt::CODE => Operation::Open {
                directory: fd,
                path,
                flags,
                mode: entry.length,
            },
            opcode::Close::CODE => Operation::Close { fd },
            opcode::Statx::CODE => Operation::Statx {
                directory: fd,
                path,
                flags,
                mask: entry.length,
                statx: entry.offset as *mut libc::statx,
            },
            opcode::RenameAt::CODE => Operation::Rename {
                from: (fd, path),
                to: other,
                flags: entry.operation_flags,
            },
            opcode::UnlinkAt::CODE => Operation::Unlink {
                directory: fd,
                path,
                flags,
            },
            opcode::MkDirAt::CODE => Operation::MakeDirectory {
                directory: fd,
                path,
                mode: entry.length,
            },
            opcode::SymlinkAt::CODE => Operation::Symlink {
                target: path,
                directory: fd,
                link: other.1,
            },
            opcode::LinkAt::CODE => Operation::Link {
                from: (fd, path),
                to: other,
                flags,
            },
            other => unreachable!("no submission asks for operation {other}"),
        }
    }
}

impl Transfer {
    fn of(entry: &Entry) -> Self {
        Transfer {
            fd: entry.fd,
            memory: entry.address as *mut u8,
            length: entry.length,
            position: Some(entry.offset).filter(|it| *it != CURRENT_POSITION),
        }
    }
}
