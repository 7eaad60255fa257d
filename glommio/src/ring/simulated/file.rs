//! Operations on files: what is asked of the disk, with the memory that they point to.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::slice;

use io_uring::opcode;

use super::{InFlight, SimulatedRing, What};
use crate::ring::entry::Entry;
use crate::simulated::NodeId;
use crate::simulated::disk::{FileId, Operation, Result};
use crate::sys::file::Statx;

/// The offset that stands for the file's own position.
const CURRENT: u64 = u64::MAX;

impl SimulatedRing {
    /// Begins an operation on a file, which takes some time.
    ///
    /// # Errors
    ///
    /// If it has failed at once.
    pub(super) fn begin_file(&self, entry: Entry) -> Result<InFlight> {
        let (kind, bytes) = match entry.opcode {
            opcode::Read::CODE | opcode::ReadFixed::CODE | opcode::Splice::CODE => {
                (Operation::Read, entry.length)
            }
            opcode::Write::CODE | opcode::WriteFixed::CODE => (Operation::Write, entry.length),
            opcode::Fsync::CODE => (Operation::Sync, 0),
            opcode::OpenAt::CODE
            | opcode::Close::CODE
            | opcode::Fallocate::CODE
            | opcode::Ftruncate::CODE
            | opcode::Statx::CODE
            | opcode::RenameAt::CODE
            | opcode::UnlinkAt::CODE
            | opcode::MkDirAt::CODE
            | opcode::SymlinkAt::CODE
            | opcode::LinkAt::CODE => (Operation::Metadata, 0),
            _ => return Err(libc::EINVAL),
        };
        let node = self.node();
        let sync = match entry.opcode {
            opcode::Fsync::CODE => {
                let file = self.file(entry.fd)?.1;
                Some(self.world.with_disk(node, |disk| disk.begin_sync(file))?)
            }
            _ => None,
        };
        let after = self
            .world
            .with_disk(node, |disk| Ok(disk.duration_of(kind, bytes.into())))?;
        let planned = self.world.plan_operation(self.id, entry.user_data, after);
        let what = match sync {
            Some(sync) => What::Sync(planned, sync),
            None => What::Disk(planned),
        };
        Ok(InFlight { entry, what })
    }

    /// Does what an operation is to do. Returns its result as the kernel gives it.
    pub(super) fn perform(&self, in_flight: InFlight) -> i32 {
        let InFlight { entry, what } = in_flight;
        let done = match what {
            What::Sync(_, sync) => {
                let ended = self
                    .world
                    .with_disk(self.node(), |disk| disk.end_sync(sync));
                ended.map(|()| 0)
            }
            _ => self.perform_entry(&entry),
        };
        done.unwrap_or_else(|errno| -errno)
    }

    /// Does what an operation in flight changes on the disk, of a write maybe only some sectors from its
    /// beginning on. What the power cut leaves of that is the disk's to say; of a sync it says so already.
    pub(super) fn perform_unseen(&self, mut entry: Entry) {
        match entry.opcode {
            opcode::Write::CODE | opcode::WriteFixed::CODE => {
                let sector = self.world.with_disk(self.node(), |disk| Ok(disk.torn_at()));
                if let Ok(Some(sector)) = sector {
                    let sectors = entry.length.div_ceil(sector);
                    let written = self.world.draw(|rng| match rng.bool() {
                        true => sectors,
                        false => rng.u32(..=sectors),
                    });
                    entry.length = entry.length.min(written.saturating_mul(sector));
                }
            }
            opcode::OpenAt::CODE => {
                // It may make a file. What is open is closed by the power cut.
                if let Ok(from) = self.directory(entry.fd) {
                    // SAFETY: as in `perform_entry`.
                    let path = unsafe { path(entry.address) };
                    let flags = entry.operation_flags as i32;
                    let _ = self.world.with_disk(self.node(), |disk| {
                        disk.open(from, path, flags, entry.length)
                    });
                }
                return;
            }
            opcode::Fallocate::CODE
            | opcode::Ftruncate::CODE
            | opcode::RenameAt::CODE
            | opcode::UnlinkAt::CODE
            | opcode::MkDirAt::CODE
            | opcode::SymlinkAt::CODE
            | opcode::LinkAt::CODE => {}
            // Reads change nothing, and descriptors are closed with their owner.
            _ => return,
        }
        // No one is told how it has ended.
        let _ = self.perform_entry(&entry);
    }

    fn perform_entry(&self, entry: &Entry) -> Result<i32> {
        let offset = Some(entry.offset).filter(|offset| *offset != CURRENT);
        let flags = entry.operation_flags as i32;
        let world = &self.world;
        let disk = self.node();
        match entry.opcode {
            opcode::Read::CODE | opcode::ReadFixed::CODE => {
                let (node, file) = self.file(entry.fd)?;
                // SAFETY: `push` promises that what the submission borrows, exclusively as it is
                // written to, stays where it is until the final completion, which comes after this.
                let buf = unsafe {
                    slice::from_raw_parts_mut(entry.address as *mut u8, entry.length as usize)
                };
                let count = world.with_disk(node, |disk| disk.read(file, offset, buf))?;
                Ok(count as i32)
            }
            opcode::Write::CODE | opcode::WriteFixed::CODE => {
                let (node, file) = self.file(entry.fd)?;
                // SAFETY: as above, borrowed for reading.
                let bytes = unsafe {
                    slice::from_raw_parts(entry.address as *const u8, entry.length as usize)
                };
                let count = world.with_disk(node, |disk| disk.write(file, offset, bytes, false))?;
                Ok(count as i32)
            }
            opcode::Splice::CODE => {
                let (node, file) = self.file(entry.splice_fd)?;
                let (offset, mut bytes) = (Some(entry.address), vec![0; entry.length as usize]);
                let count = world.with_disk(node, |disk| disk.read(file, offset, &mut bytes))?;
                // SAFETY: the operation holds the pipe open until the completion.
                let pipe = unsafe { BorrowedFd::borrow_raw(entry.fd) };
                // One of the kernel, which has room for them.
                let written = nix::unistd::write(pipe, &bytes[..count]);
                written
                    .map(|count| count as i32)
                    .map_err(|errno| errno as i32)
            }
            opcode::OpenAt::CODE => {
                let from = self.directory(entry.fd)?;
                // SAFETY: `push` promises that the path stays where it is.
                let path = unsafe { path(entry.address) };
                let file = world.with_disk(disk, |it| it.open(from, path, flags, entry.length))?;
                let opened = world.open_descriptor(disk, file);
                let opened = opened.map_err(|it| it.raw_os_error().unwrap_or(libc::EMFILE))?;
                Ok(opened.into_raw_fd())
            }
            opcode::Close::CODE => Ok(self.close(entry)),
            opcode::Fallocate::CODE => {
                let (node, file) = self.file(entry.fd)?;
                let (mode, length) = (entry.length as i32, entry.address);
                world.with_disk(node, |it| it.allocate(file, mode, entry.offset, length))?;
                Ok(0)
            }
            opcode::Ftruncate::CODE => {
                let (node, file) = self.file(entry.fd)?;
                world.with_disk(node, |it| it.truncate(file, entry.offset))?;
                Ok(0)
            }
            opcode::Statx::CODE => {
                // SAFETY: as above.
                let path = unsafe { path(entry.address) };
                let stat = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
                    let (node, file) = self.file(entry.fd)?;
                    world.with_disk(node, |it| it.stat(file))?
                } else {
                    let from = self.directory(entry.fd)?;
                    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
                    world.with_disk(disk, |it| it.stat_at(from, path, follows))?
                };
                // SAFETY: the submission borrows a `Statx` exclusively, as `push` promises until
                // the completion.
                unsafe { (entry.offset as *mut Statx).write(Statx::simulated(&stat)) };
                Ok(0)
            }
            opcode::RenameAt::CODE => {
                let (from, to) = (
                    self.directory(entry.fd)?,
                    self.directory(entry.length as i32)?,
                );
                // SAFETY: as above.
                let (old, new) = unsafe { (path(entry.address), path(entry.offset)) };
                let flags = entry.operation_flags;
                world.with_disk(disk, |it| it.rename(from, old, to, new, flags))?;
                Ok(0)
            }
            opcode::UnlinkAt::CODE => {
                let from = self.directory(entry.fd)?;
                // SAFETY: as above.
                let path = unsafe { path(entry.address) };
                let removed = world.with_disk(disk, |it| match flags & libc::AT_REMOVEDIR {
                    0 => it.unlink(from, path),
                    _ => it.remove_directory(from, path),
                });
                match removed {
                    // The names of sockets are the network's.
                    Err(libc::ENOENT) => {
                        let unlinked = world.with_network(|it| it.unlink(disk.into(), path));
                        unlinked.map_err(|errno| errno.0)?;
                    }
                    removed => removed?,
                }
                Ok(0)
            }
            opcode::MkDirAt::CODE => {
                let from = self.directory(entry.fd)?;
                // SAFETY: as above.
                let path = unsafe { path(entry.address) };
                world.with_disk(disk, |it| it.make_directory(from, path, entry.length))?;
                Ok(0)
            }
            opcode::SymlinkAt::CODE => {
                let from = self.directory(entry.fd)?;
                // SAFETY: as above.
                let (target, link) = unsafe { (path(entry.address), path(entry.offset)) };
                world.with_disk(disk, |it| it.symlink(target, from, link))?;
                Ok(0)
            }
            opcode::LinkAt::CODE => {
                let to_from = self.directory(entry.length as i32)?;
                // SAFETY: as above.
                let (old, new) = unsafe { (path(entry.address), path(entry.offset)) };
                if old.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
                    let (node, file) = self.file(entry.fd)?;
                    world.with_disk(node, |it| it.link_open(file, to_from, new))?;
                } else {
                    let from = self.directory(entry.fd)?;
                    let follows = flags & libc::AT_SYMLINK_FOLLOW != 0;
                    world.with_disk(disk, |it| it.link(from, old, to_from, new, follows))?;
                }
                Ok(0)
            }
            _ => Err(libc::EINVAL),
        }
    }

    /// Closes the descriptor of `entry`, and what it stands for.
    pub(super) fn close(&self, entry: &Entry) -> i32 {
        self.world.forget(entry.fd);
        // SAFETY: the submission of a close owns its descriptor, as the kernel has it: the caller
        // does not use the number any more.
        drop(unsafe { OwnedFd::from_raw_fd(entry.fd) });
        0
    }

    fn node(&self) -> NodeId {
        self.world
            .node_of(self.id)
            .expect("the executor of a ring is one of a node")
    }

    fn file(&self, fd: i32) -> Result<(NodeId, FileId)> {
        self.world.file(fd).ok_or(libc::EBADF)
    }

    /// Where a relative path begins: at the root, where all nodes have their working directory.
    fn directory(&self, fd: i32) -> Result<Option<FileId>> {
        match fd {
            libc::AT_FDCWD => Ok(None),
            fd => Ok(Some(self.file(fd)?.1)),
        }
    }
}

/// # Safety
///
/// There is a string with a zero byte at its end at `address`, for as long as the result is used.
unsafe fn path<'a>(address: u64) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(address as *const libc::c_char) }.to_bytes()
}
