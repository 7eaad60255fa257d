//! What a submission asks for, in words.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;

use super::operation::{Operation, Path};
use super::submission::Submission;

/// An operation by its name, and what it is done to.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) fd: RawFd,
    pub(crate) path: Option<Box<CStr>>,
}

impl Asked {
    pub(crate) fn by(submission: &Submission<'_>) -> Self {
        let (name, fd) = match submission.operation() {
            Operation::Poll { fd, events, .. } if events & POLLOUT != 0 => ("room to write to", fd),
            Operation::Poll { fd, .. } => ("events of", fd),
            Operation::Accept { listener } => ("a connection of", listener),
            Operation::Connect { socket, .. } => ("connecting", socket),
            Operation::Close { fd } => ("closing", fd),
            Operation::Read(it) => ("reading", it.fd),
            Operation::Write(it) => ("writing", it.fd),
            Operation::Sync { fd, .. } => ("syncing", fd),
            Operation::Allocate { fd, .. } => ("allocating space of", fd),
            Operation::Truncate { fd, .. } => ("truncating", fd),
            Operation::Splice { to, .. } => ("splicing to", to),
            Operation::Open {
                directory, path, ..
            } => return Asked::of_path("opening", directory, path),
            Operation::Statx {
                directory, path, ..
            } => return Asked::of_path("looking at", directory, path),
            Operation::Rename { from, .. } => return Asked::of_path("renaming", HERE, from),
            Operation::Unlink { path, .. } => return Asked::of_path("removing", HERE, path),
            Operation::Link {
                directory, from, ..
            } => return Asked::of_path("linking", directory, from),
            Operation::Symlink { link, .. } => return Asked::of_path("linking", HERE, link),
            Operation::MakeDirectory { path, .. } => {
                return Asked::of_path("making the directory", HERE, path);
            }
            Operation::Nop | Operation::Cancel { .. } => ("an operation on", -1),
        };
        Asked {
            name,
            fd,
            path: None,
        }
    }

    fn of_path(name: &'static str, fd: RawFd, path: Path) -> Self {
        // SAFETY: the submission borrows the path, which ends with a zero byte.
        let path = unsafe { CStr::from_ptr(path) };
        // An empty one stands for the descriptor.
        let path = (!path.is_empty()).then(|| path.into());
        Asked { name, fd, path }
    }
}

/// The working directory.
const HERE: RawFd = libc::AT_FDCWD;

const POLLOUT: u32 = libc::POLLOUT as u32;
