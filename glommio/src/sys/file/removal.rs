//! Removing what is in a directory, by its descriptor: whatever becomes of its path meanwhile, what
//! is removed is in this one.

#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstatat};
use nix::unistd::{UnlinkatFlags, Whence, lseek, unlinkat};

use super::entries::Entries;
use crate::sys::door::door;

/// What became of a block of names.
pub(crate) struct Removed {
    /// Those of directories, which are left.
    pub(crate) directories: Vec<OsString>,
    /// There may be more names in the directory.
    pub(crate) has_more: bool,
}

/// A name that could not be removed; or the names could not be read.
pub(crate) struct Failed {
    pub(crate) error: io::Error,
    pub(crate) name: Option<OsString>,
}

/// Opens the directory `name` in `parent`, or in the working directory, unless it is a symbolic
/// link. May wait.
pub(crate) fn open_directory(parent: Option<BorrowedFd<'_>>, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    match parent {
        Some(parent) => door!(file(parent).open(name, flags.bits())),
        None => door!(node().open(name, flags.bits())),
    }
    let parent = parent.unwrap_or(AT_FDCWD);
    let opened = openat(parent, name, flags, Mode::empty())?;
    // gVisor follows a link for `O_DIRECTORY`, whatever `O_NOFOLLOW` says.
    let named = fstatat(parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    match named.st_mode & libc::S_IFMT {
        libc::S_IFLNK => Err(Errno::ENOTDIR.into()),
        _ => Ok(opened),
    }
}

/// Reads a block of names from where `directory` stands, and removes those that are of no
/// directory. May wait.
pub(crate) fn remove_block(
    directory: BorrowedFd<'_>,
    block: &mut Entries,
) -> Result<Removed, Failed> {
    let has_more = block
        .read(directory)
        .map_err(|error| Failed { error, name: None })?;
    let mut directories = Vec::new();
    while let Some(entry) = block.next() {
        let name = OsStr::from_bytes(entry.name);
        let removed = match entry.kind {
            libc::DT_DIR => Err(Errno::EISDIR),
            _ => unlink(directory, name, UnlinkatFlags::NoRemoveDir),
        };
        match removed {
            // Another one may have been faster.
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(Errno::EISDIR) => directories.push(name.to_owned()),
            Err(error) => {
                return Err(Failed {
                    error: error.into(),
                    name: Some(name.to_owned()),
                });
            }
        }
    }
    Ok(Removed {
        directories,
        has_more,
    })
}

/// Removes the empty directory `name` in `parent`. May wait.
pub(crate) fn remove_directory(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    Ok(unlink(parent, name, UnlinkatFlags::RemoveDir)?)
}

fn unlink(parent: BorrowedFd<'_>, name: &OsStr, flags: UnlinkatFlags) -> nix::Result<()> {
    door!(file(parent).unlink(name, flags));
    unlinkat(parent, name, flags)
}

/// Has the names be read from the first one on.
pub(crate) fn rewind(directory: BorrowedFd<'_>) -> io::Result<()> {
    door!(file(directory).rewind());
    lseek(directory, 0, Whence::SeekSet)?;
    Ok(())
}
