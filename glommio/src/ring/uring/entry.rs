//! Submissions as the kernel reads them.

#![forbid(unsafe_code)]

use std::ptr;

use io_uring::types::{Fd, FsyncFlags};
use io_uring::{opcode, squeue};

use crate::ring::Submission;
use crate::ring::operation::Operation;
use crate::ring::submission::CURRENT_POSITION;
use crate::sys::file::Statx;

/// The one piece of memory that is registered.
const REGISTERED: u16 = 0;

/// The working directory.
const HERE: Fd = Fd(libc::AT_FDCWD);

pub(super) fn entry_of(submission: &Submission<'_>) -> squeue::Entry {
    let entry = match submission.operation() {
        Operation::Nop => opcode::Nop::new().build(),
        Operation::Poll {
            fd,
            events,
            is_multi,
        } => opcode::PollAdd::new(Fd(fd), events).multi(is_multi).build(),
        Operation::Accept { listener } => {
            opcode::Accept::new(Fd(listener), ptr::null_mut(), ptr::null_mut())
                .flags(libc::SOCK_CLOEXEC)
                .build()
        }
        Operation::Connect {
            socket,
            address,
            length,
        } => opcode::Connect::new(Fd(socket), address, length).build(),
        Operation::Cancel { target } => opcode::AsyncCancel::new(target).build(),
        Operation::Read(it) if it.is_registered => {
            opcode::ReadFixed::new(Fd(it.fd), it.memory, it.length, REGISTERED)
                .offset(it.position.unwrap_or(CURRENT_POSITION))
                .build()
        }
        Operation::Read(it) => opcode::Read::new(Fd(it.fd), it.memory, it.length)
            .offset(it.position.unwrap_or(CURRENT_POSITION))
            .build(),
        Operation::Write(it) if it.is_registered => {
            opcode::WriteFixed::new(Fd(it.fd), it.memory, it.length, REGISTERED)
                .offset(it.position.unwrap_or(CURRENT_POSITION))
                .build()
        }
        Operation::Write(it) => opcode::Write::new(Fd(it.fd), it.memory, it.length)
            .offset(it.position.unwrap_or(CURRENT_POSITION))
            .build(),
        // The position of a pipe is said to be -1.
        Operation::Splice {
            from,
            position,
            to,
            length,
        } => opcode::Splice::new(Fd(from), position.cast_signed(), Fd(to), -1, length).build(),
        Operation::Sync { fd, data_only } => {
            let flags = match data_only {
                true => FsyncFlags::DATASYNC,
                false => FsyncFlags::empty(),
            };
            opcode::Fsync::new(Fd(fd)).flags(flags).build()
        }
        Operation::Allocate {
            fd,
            mode,
            offset,
            length,
        } => opcode::Fallocate::new(Fd(fd), length)
            .offset(offset)
            .mode(mode)
            .build(),
        Operation::Truncate { fd, size } => opcode::Ftruncate::new(Fd(fd), size).build(),
        Operation::Open {
            directory,
            path,
            flags,
            mode,
        } => opcode::OpenAt::new(Fd(directory), path)
            .flags(flags)
            .mode(mode)
            .build(),
        Operation::Close { fd } => opcode::Close::new(Fd(fd)).build(),
        Operation::Statx {
            directory,
            path,
            flags,
            statx,
        } => opcode::Statx::new(Fd(directory), path, statx.cast())
            .flags(flags)
            .mask(Statx::MASK)
            .build(),
        Operation::Rename { from, to } => opcode::RenameAt::new(HERE, from, HERE, to).build(),
        Operation::Unlink { path, flags } => opcode::UnlinkAt::new(HERE, path).flags(flags).build(),
        Operation::MakeDirectory { path, mode } => {
            opcode::MkDirAt::new(HERE, path).mode(mode).build()
        }
        Operation::Symlink { target, link } => opcode::SymlinkAt::new(HERE, target, link).build(),
        Operation::Link {
            directory,
            from,
            to,
            flags,
        } => opcode::LinkAt::new(Fd(directory), from, HERE, to)
            .flags(flags)
            .build(),
    };
    let entry = match submission.is_for_worker() {
        true => entry.flags(squeue::Flags::ASYNC),
        false => entry,
    };
    entry.user_data(submission.user_data())
}
