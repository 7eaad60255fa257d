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

/// Operations of which there is no more to know than that they have succeeded: the [feature](Op::FEATURE) that
/// each needs, what it submits, and what it [releases](Op::release).
macro_rules! ops {
    ($(
        $Op:ident $([$Feature:ident])?:
        |$it:ident| $submission:expr
        $(, releases $descriptor:expr)?;
    )*) => {$(
        impl Op for $Op {
            type Output = ();

            $(const FEATURE: Option<Feature> = Some(Feature::$Feature);)?

            fn submission(&mut self) -> Submission<'_> {
                let $it = self;
                $submission
            }

            $(fn release(&mut self) -> Option<Descriptor> {
                let $it = self;
                $descriptor
            })?

            fn complete(self, outcome: Outcome) -> io::Result<()> {
                outcome.result().map(drop)
            }
        }
    )*};
}

ops! {
    Sync: |it| Submission::sync(it.fd.as_raw_fd(), it.data_only), releases it.fd.release();
    Allocate: |it| Submission::allocate(it.fd.as_raw_fd(), it.mode, it.offset, it.len),
        releases it.fd.release();
    Truncate [Truncate]: |it| Submission::truncate(it.fd.as_raw_fd(), it.size),
        releases it.fd.release();
    Rename [Paths]: |it| Submission::rename(&it.from, &it.to);
    Unlink [Paths]: |it| {
        Submission::unlink(&it.path, if it.is_directory { libc::AT_REMOVEDIR } else { 0 })
    };
    HardLink [Links]: |it| {
        let directory = it.open.as_ref().map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
        Submission::hard_link(directory, &it.from, &it.to, it.flags)
    }, releases it.open.as_mut()?.release();
    Symlink [Links]: |it| Submission::symlink(&it.target, &it.link);
    MakeDirectory [MakeDirectory]: |it| Submission::make_directory(&it.path, it.mode);
}
