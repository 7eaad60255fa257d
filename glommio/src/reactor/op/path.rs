//! What is done to files as a whole, by descriptor and by path.

use std::ffi::CString;
use std::io;
use std::os::fd::AsRawFd;

use super::Op;
use crate::ring::{Feature, Outcome, Submission};
use crate::sys::descriptor::{Descriptor, FdGuard};
use crate::sys::file::Statx;

/// The attributes of an open file.
pub(crate) struct StatxOf {
    pub(crate) fd: FdGuard,
    /// Boxed for its size.
    pub(crate) statx: Box<Statx>,
}

/// The attributes of the file at a path.
pub(crate) struct StatxAt {
    pub(crate) path: CString,
    /// Boxed for its size.
    pub(crate) statx: Box<Statx>,
}

/// Brings what was written to a file to its device.
#[derive(Debug)]
pub(crate) struct Sync {
    pub(crate) fd: FdGuard,
    /// Without what is only said about it, such as the time of the last change.
    pub(crate) data_only: bool,
}

/// Allocates or frees the space of a range, by the `mode` of `fallocate(2)`.
#[derive(Debug)]
pub(crate) struct Allocate {
    pub(crate) fd: FdGuard,
    pub(crate) mode: libc::c_int,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// Sets the size of a file.
#[derive(Debug)]
pub(crate) struct Truncate {
    pub(crate) fd: FdGuard,
    pub(crate) size: u64,
}

/// Gives a file another path.
#[derive(Debug)]
pub(crate) struct Rename {
    pub(crate) from: CString,
    pub(crate) to: CString,
}

/// Removes a path of a file, or an empty directory.
#[derive(Debug)]
pub(crate) struct Unlink {
    pub(crate) path: CString,
    pub(crate) is_directory: bool,
}

/// Gives a file a further path.
#[derive(Debug)]
pub(crate) struct HardLink {
    /// If it is an open one: then `from` may be empty, or name the descriptor.
    pub(crate) open: Option<FdGuard>,
    pub(crate) from: CString,
    pub(crate) to: CString,
    /// Of `linkat(2)`.
    pub(crate) flags: libc::c_int,
}

/// Makes a symbolic link.
#[derive(Debug)]
pub(crate) struct Symlink {
    pub(crate) target: CString,
    pub(crate) link: CString,
}

/// Makes a directory.
#[derive(Debug)]
pub(crate) struct MakeDirectory {
    pub(crate) path: CString,
    pub(crate) mode: libc::mode_t,
}

impl Op for StatxOf {
    type Output = Box<Statx>;

    fn submission(&mut self) -> Submission<'_> {
        Submission::statx(
            self.fd.as_raw_fd(),
            c"",
            libc::AT_EMPTY_PATH,
            &mut self.statx,
        )
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.fd.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<Box<Statx>> {
        outcome.result()?;
        Ok(self.statx)
    }
}

impl Op for StatxAt {
    type Output = Box<Statx>;

    fn submission(&mut self) -> Submission<'_> {
        Submission::statx(libc::AT_FDCWD, &self.path, 0, &mut self.statx)
    }

    fn complete(self, outcome: Outcome) -> io::Result<Box<Statx>> {
        outcome.result()?;
        Ok(self.statx)
    }
}

impl Op for Sync {
    type Output = ();

    fn submission(&mut self) -> Submission<'_> {
        Submission::sync(self.fd.as_raw_fd(), self.data_only)
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.fd.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for Allocate {
    type Output = ();

    fn submission(&mut self) -> Submission<'_> {
        Submission::allocate(self.fd.as_raw_fd(), self.mode, self.offset, self.len)
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.fd.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for Truncate {
    type Output = ();

    const FEATURE: Option<Feature> = Some(Feature::Truncate);

    fn submission(&mut self) -> Submission<'_> {
        Submission::truncate(self.fd.as_raw_fd(), self.size)
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.fd.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for Rename {
    type Output = ();

    const FEATURE: Option<Feature> = Some(Feature::Paths);

    fn submission(&mut self) -> Submission<'_> {
        Submission::rename(&self.from, &self.to)
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for Unlink {
    type Output = ();

    const FEATURE: Option<Feature> = Some(Feature::Paths);

    fn submission(&mut self) -> Submission<'_> {
        let flags = if self.is_directory {
            libc::AT_REMOVEDIR
        } else {
            0
        };
        Submission::unlink(&self.path, flags)
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for HardLink {
    type Output = ();

    const FEATURE: Option<Feature> = Some(Feature::Links);

    fn submission(&mut self) -> Submission<'_> {
        let directory = self.open.as_ref();
        let directory = directory.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
        Submission::hard_link(directory, &self.from, &self.to, self.flags)
    }

    fn release(&mut self) -> Option<Descriptor> {
        self.open.as_mut()?.release()
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for Symlink {
    type Output = ();

    const FEATURE: Option<Feature> = Some(Feature::Links);

    fn submission(&mut self) -> Submission<'_> {
        Submission::symlink(&self.target, &self.link)
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}

impl Op for MakeDirectory {
    type Output = ();

    const FEATURE: Option<Feature> = Some(Feature::MakeDirectory);

    fn submission(&mut self) -> Submission<'_> {
        Submission::make_directory(&self.path, self.mode)
    }

    fn complete(self, outcome: Outcome) -> io::Result<()> {
        outcome.result().map(drop)
    }
}
