//! Which descriptor is which open file of which node's disk.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;

use super::current::current;
use super::disk::{Disk, FileId, Result, Stat};
use super::ids::NodeId;
use super::world::World;

/// An open file of a node's disk, by one of its descriptors.
#[derive(Clone)]
pub(crate) struct SimulatedFile {
    world: Rc<World>,
    pub(super) node: NodeId,
    pub(super) id: FileId,
}

/// What `fd` is in the simulation on this thread, if that is a file of it.
pub(crate) fn file(fd: RawFd) -> Option<SimulatedFile> {
    let world = current()?;
    let (node, id) = world.file(fd)?;
    Some(SimulatedFile { world, node, id })
}

/// Calls `call` with the disk of the node whose code runs; `None` outside of a simulation.
pub(crate) fn with_disk<T>(call: impl FnOnce(&mut Disk) -> Result<T>) -> Option<io::Result<T>> {
    let world = current()?;
    let node = world.here()?;
    Some(
        world
            .with_disk(node, call)
            .map_err(io::Error::from_raw_os_error),
    )
}

/// Opens `path` on the disk of the node whose code runs; `None` outside of a simulation.
pub(crate) fn open(path: &[u8], flags: i32) -> Option<io::Result<OwnedFd>> {
    let world = current()?;
    let node = world.here()?;
    let opened = world.with_disk(node, |disk| disk.open(None, path, flags, 0));
    let opened = opened.map_err(io::Error::from_raw_os_error);
    Some(opened.and_then(|file| world.open_descriptor(node, file)))
}

/// The descriptor `fd` is about to be closed: so is what it is in the simulation on this thread.
pub(crate) fn closing(fd: RawFd) {
    if let Some(world) = current() {
        world.forget(fd);
    }
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

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        self.with(|disk, file| disk.stat(file))
    }

    /// Copies up to `len` bytes to another one.
    ///
    /// # Errors
    ///
    /// `EXDEV` if that is on another disk.
    pub(crate) fn copy(
        &self,
        offset: u64,
        to: &SimulatedFile,
        to_offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        if self.node != to.node {
            return Err(io::Error::from_raw_os_error(libc::EXDEV));
        }
        self.with(|disk, from| disk.copy_range(from, offset, to.id, to_offset, len))
    }

    /// See [`World::may_open`].
    pub(crate) fn may_open(&self) -> io::Result<()> {
        self.world.may_open(self.node)
    }

    /// `fd` is a further descriptor of the file.
    pub(crate) fn is_also(&self, fd: RawFd) {
        self.world.add_file(fd, self.node, self.id);
    }

    /// Opens `path` relative to the file, which is a directory.
    pub(crate) fn open(&self, path: &[u8], flags: i32) -> io::Result<OwnedFd> {
        let opened = self.with(|disk, from| disk.open(Some(from), path, flags, 0))?;
        self.world.open_descriptor(self.node, opened)
    }
}
