//! What a submission asks for, in words.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;

use io_uring::opcode;

use super::entry::Entry;
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
        let entry = Entry::of(submission);
        let name = match entry.opcode {
            opcode::PollAdd::CODE if entry.operation_flags & POLLOUT != 0 => "room to write to",
            opcode::PollAdd::CODE => "events of",
            opcode::Accept::CODE => "a connection of",
            opcode::Connect::CODE => "connecting",
            opcode::Close::CODE => "closing",
            opcode::Read::CODE | opcode::ReadFixed::CODE => "reading",
            opcode::Write::CODE | opcode::WriteFixed::CODE => "writing",
            opcode::Fsync::CODE => "syncing",
            opcode::Fallocate::CODE => "allocating space of",
            opcode::Ftruncate::CODE => "truncating",
            opcode::Splice::CODE => "splicing to",
            opcode::OpenAt::CODE => "opening",
            opcode::Statx::CODE => "looking at",
            opcode::RenameAt::CODE => "renaming",
            opcode::UnlinkAt::CODE => "removing",
            opcode::LinkAt::CODE | opcode::SymlinkAt::CODE => "linking",
            opcode::MkDirAt::CODE => "making the directory",
            _ => "an operation on",
        };
        let has_path = matches!(
            entry.opcode,
            opcode::OpenAt::CODE
                | opcode::Statx::CODE
                | opcode::RenameAt::CODE
                | opcode::UnlinkAt::CODE
                | opcode::LinkAt::CODE
                | opcode::MkDirAt::CODE
        );
        let path = has_path.then(|| {
            let path = std::ptr::with_exposed_provenance(entry.address as usize);
            // SAFETY: the address of these operations is that of a path, which the submission borrows.
            Box::<CStr>::from(unsafe { CStr::from_ptr(path) })
        });
        // An empty one stands for the descriptor.
        let path = path.filter(|it| !it.is_empty());
        Asked {
            name,
            fd: entry.fd,
            path,
        }
    }
}

const POLLOUT: u32 = libc::POLLOUT as u32;
