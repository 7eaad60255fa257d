//! Which descriptor is which open file of which node's disk.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use super::current::current;
use super::ids::NodeId;
use super::world::World;
use simulated_kernel::disk::{Disk, FileId, Result};

/// An open file of a node's disk, by one of its descriptors.
#[derive(Clone)]
pub(crate) struct SimulatedFile {
    world: Rc<World>,
    pub(super) node: NodeId,
    pub(super) id: FileId,
}

/// What `fd` is in the simulation on this thread, if that is a file of it.
pub(crate) fn file(fd: impl AsRawFd) -> Option<SimulatedFile> {
    let world = current()?;
    let (node, id) = world.file(fd.as_raw_fd())?;
    Some(SimulatedFile { world, node, id })
}

impl SimulatedFile {
    /// Calls `call` with the disk and the file.
    ///
    /// # Errors
    ///
    /// That of `call`; `EIO` of a node without power.
    pub(crate) fn with<T>(
        &self,
        call: impl FnOnce(&mut Disk, FileId) -> Result<T>,
    ) -> io::Result<T> {
        let called = self.world.with_disk(self.node, |disk| call(disk, self.id));
        called.map_err(io::Error::from_raw_os_error)
    }

    pub(crate) fn set_direct(&self) -> io::Result<()> {
        self.with(|disk, file| disk.set_flags(file, disk.flags(file)? | libc::O_DIRECT))
    }

    pub(crate) fn read_cached(&self, buf: &mut [u8], position: u64) -> io::Result<usize> {
        self.with(|disk, file| disk.read_cached(file, Some(position), buf))
    }

    pub(crate) fn truncate(&self, size: u64) -> io::Result<()> {
        self.with(|disk, file| disk.truncate(file, size))
    }

    /// Has a directory be read from its first name on.
    pub(crate) fn rewind(&self) -> io::Result<()> {
        self.with(|disk, file| disk.set_position(file, 0))
    }

    /// Copies up to `len` bytes to another one.
    ///
    /// # Errors
    ///
    /// `EXDEV` if that is on another disk.
    pub(crate) fn copy_range(
        &self,
        position: u64,
        to: BorrowedFd<'_>,
        to_position: u64,
        len: usize,
    ) -> io::Result<usize> {
        match file(to) {
            Some(to) if to.node == self.node => {
                self.with(|disk, from| disk.copy_range(from, position, to.id, to_position, len))
            }
            _ => Err(io::Error::from_raw_os_error(libc::EXDEV)),
        }
    }

    /// A further descriptor beside `fd`, which is one of the file.
    pub(crate) fn duplicate(&self, fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        self.world.may_open(self.node)?;
        let duplicate = self.world.of_host(fd.try_clone_to_owned())?;
        let number = duplicate.as_raw_fd();
        self.world.add_file(number, self.node, self.id);
        Ok(duplicate)
    }

    /// Opens `path` relative to the file, which is a directory.
    pub(crate) fn open(&self, path: &OsStr, flags: i32) -> io::Result<OwnedFd> {
        let opened = self.with(|disk, from| disk.open(Some(from), path.as_bytes(), flags, 0))?;
        (self.world).open_descriptor(self.node, opened, path.as_bytes())
    }
}
