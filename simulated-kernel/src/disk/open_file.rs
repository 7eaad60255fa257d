//! What is known of an open file.

use super::inode::Ino;

/// An open file description: what one `open` made, whatever number of descriptors there are of it.
/// None is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(super) u64);

#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) ino: Ino,
    /// As given to `open`, less those that concern the opening alone.
    pub(super) flags: i32,
    /// Of a directory: behind which cookie it stands.
    pub(super) position: u64,
    pub(super) lock: Option<Lock>,
    /// Which failed sync of the file it has heard of.
    pub(super) seen_failed_syncs: u64,
}

/// A lock of an open file (`flock(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// `LOCK_SH`
    Shared,
    /// `LOCK_EX`
    Exclusive,
}

impl OpenFile {
    fn has(&self, flag: i32) -> bool {
        self.flags & flag == flag
    }

    pub(super) fn is_path(&self) -> bool {
        self.has(libc::O_PATH)
    }

    pub(super) fn is_readable(&self) -> bool {
        !self.is_path() && matches!(self.flags & libc::O_ACCMODE, libc::O_RDONLY | libc::O_RDWR)
    }

    pub(super) fn is_writable(&self) -> bool {
        !self.is_path() && matches!(self.flags & libc::O_ACCMODE, libc::O_WRONLY | libc::O_RDWR)
    }

    pub(super) fn is_direct(&self) -> bool {
        self.has(libc::O_DIRECT)
    }

    pub(super) fn is_append(&self) -> bool {
        self.has(libc::O_APPEND)
    }

    pub(super) fn is_synchronous(&self) -> bool {
        self.has(libc::O_DSYNC)
    }
}
