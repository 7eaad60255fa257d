//! What an operation is, for the trace.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::RawFd;

use super::SimulatedRing;
use crate::ring::operation::{Operation, Path};
use crate::simulated::{Described, Named};

impl SimulatedRing {
    /// What an operation that has not ended does, and to what.
    pub(super) fn described(&self, operation: Operation) -> Described {
        // SAFETY: `push` promises that paths stay where they are until the completion.
        let path = |path: Path| Named::Path(unsafe { CStr::from_ptr(path) }.to_bytes().into());
        let of = |fd: RawFd| self.world.named(fd);
        let (what, of, bytes) = match operation {
            Operation::Nop | Operation::Cancel { .. } => ("nothing", Named::Nothing, None),
            Operation::Poll { fd, .. } => ("poll", of(fd), None),
            Operation::Accept { listener } => ("accept", of(listener), None),
            Operation::Connect { socket, .. } => ("connect", of(socket), None),
            Operation::Read(it) => ("read", of(it.fd), Some(it.length.into())),
            Operation::Write(it) => ("write", of(it.fd), Some(it.length.into())),
            Operation::Splice { from, length, .. } => ("splice", of(from), Some(length.into())),
            Operation::Sync { fd, .. } => ("sync", of(fd), None),
            Operation::Allocate { fd, length, .. } => ("allocate", of(fd), Some(length)),
            Operation::Truncate { fd, size } => ("truncate", of(fd), Some(size)),
            Operation::Open { path: it, .. } => ("open", path(it), None),
            Operation::Close { fd } => ("close", of(fd), None),
            Operation::Statx { path: it, .. } => ("stat", path(it), None),
            Operation::Rename { from, .. } => ("rename", path(from), None),
            Operation::Unlink { path: it, .. } => ("remove", path(it), None),
            Operation::MakeDirectory { path: it, .. } => ("make directory", path(it), None),
            Operation::Symlink { link, .. } => ("link", path(link), None),
            Operation::Link { to, .. } => ("link", path(to), None),
        };
        Described { what, of, bytes }
    }
}
