//! Operations on files: what is asked of the disk, with the memory that they point to.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::slice;

use super::{Asked, InFlight, SimulatedRing, What};
use crate::ring::operation::{Operation, Path};
use crate::simulated::{Moment, NodeId, Time};
use crate::sys::file::Statx;
use simulated_kernel::disk::{self, FileId, Result};

impl SimulatedRing {
    /// Begins an operation on a file, which takes some time.
    ///
    /// # Errors
    ///
    /// If it has failed at once.
    pub(super) fn begin_file(&self, asked: Asked) -> Result<InFlight> {
        let (kind, bytes) = match asked.operation {
            Operation::Read(it) => (disk::Operation::Read, it.length),
            Operation::Splice { length, .. } => (disk::Operation::Read, length),
            Operation::Write(it) => (disk::Operation::Write, it.length),
            Operation::Sync { .. } => (disk::Operation::Sync, 0),
            _ => (disk::Operation::Metadata, 0),
        };
        let node = self.node();
        let sync = match asked.operation {
            Operation::Sync { fd, .. } => {
                let file = self.file(fd)?.1;
                Some(self.world.with_disk(node, |disk| disk.begin_sync(file))?)
            }
            _ => None,
        };
        let after = self
            .world
            .with_disk(node, |disk| Ok(disk.duration_of(kind, bytes.into())))?;
        let planned = self.world.plan_operation(self.id, asked.user_data, after);
        match kind {
            disk::Operation::Sync => self.world.moments().add(node, Moment::Syncing, after),
            disk::Operation::Write => self.world.moments().add(node, Moment::Writing, after),
            _ => {}
        }
        let what = match sync {
            Some(sync) => What::Sync(planned, sync),
            None => What::Disk(planned),
        };
        Ok(InFlight { asked, what })
    }

    /// Does what an operation is to do. Returns its result as the kernel gives it.
    pub(super) fn perform(&self, in_flight: InFlight) -> i32 {
        let InFlight { asked, what } = in_flight;
        let done = match what {
            What::Sync(_, sync) => {
                let ended = self
                    .world
                    .with_disk(self.node(), |disk| disk.end_sync(sync));
                ended.map(|()| 0)
            }
            _ => self.perform_operation(asked.operation),
        };
        match asked.operation {
            Operation::Sync { .. } if done.is_ok() => self.note_done(Moment::Synced),
            Operation::Rename { .. } if done.is_ok() => self.note_done(Moment::Renamed),
            _ => {}
        }
        done.unwrap_or_else(|errno| -errno)
    }

    fn note_done(&self, moment: Moment) {
        (self.world.moments()).add(self.node(), moment, Time::ZERO);
    }

    /// Does what an operation in flight changes on the disk, of a write maybe only some sectors from its
    /// beginning on. What the power cut leaves of that is the disk's to say; of a sync it says so already.
    pub(super) fn perform_unseen(&self, mut operation: Operation) {
        match &mut operation {
            Operation::Write(it) => {
                let sector = self.world.with_disk(self.node(), |disk| Ok(disk.torn_at()));
                if let Ok(Some(sector)) = sector {
                    let sectors = it.length.div_ceil(sector);
                    let written = self.world.draw(|rng| match rng.bool() {
                        true => sectors,
                        false => rng.u32(..=sectors),
                    });
                    it.length = it.length.min(written.saturating_mul(sector));
                }
            }
            Operation::Open {
                directory,
                path,
                flags,
                mode,
            } => {
                // It may make a file. What is open is closed by the power cut.
                if let Ok(from) = self.directory(*directory) {
                    // SAFETY: as in `perform_operation`.
                    let path = unsafe { bytes(*path) };
                    let _ = self
                        .world
                        .with_disk(self.node(), |disk| disk.open(from, path, *flags, *mode));
                }
                return;
            }
            Operation::Allocate { .. }
            | Operation::Truncate { .. }
            | Operation::Rename { .. }
            | Operation::Unlink { .. }
            | Operation::MakeDirectory { .. }
            | Operation::Symlink { .. }
            | Operation::Link { .. } => {}
            // Reads change nothing, and descriptors are closed with their owner.
            _ => return,
        }
        // No one is told how it has ended.
        let _ = self.perform_operation(operation);
    }

    fn perform_operation(&self, operation: Operation) -> Result<i32> {
        let world = &self.world;
        let disk = self.node();
        match operation {
            Operation::Read(it) => {
                let (node, file) = self.file(it.fd)?;
                // SAFETY: `push` promises that what the submission borrows, exclusively as it is
                // written to, stays where it is until the final completion, which comes after this.
                let buf = unsafe { slice::from_raw_parts_mut(it.memory, it.length as usize) };
                let count = world.with_disk(node, |disk| disk.read(file, it.position, buf))?;
                Ok(count as i32)
            }
            Operation::Write(it) => {
                let (node, file) = self.file(it.fd)?;
                // SAFETY: as above, borrowed for reading.
                let bytes =
                    unsafe { slice::from_raw_parts(it.memory.cast_const(), it.length as usize) };
                let count = world.with_disk(node, |disk| disk.write(file, it.position, bytes))?;
                Ok(count as i32)
            }
            Operation::Splice {
                from,
                position,
                to,
                length,
            } => {
                let (node, file) = self.file(from)?;
                let (offset, mut bytes) = (Some(position), vec![0; length as usize]);
                let count = world.with_disk(node, |disk| disk.read(file, offset, &mut bytes))?;
                // SAFETY: the operation holds the pipe open until the completion.
                let pipe = unsafe { BorrowedFd::borrow_raw(to) };
                // One of the kernel, which has room for them.
                let written = nix::unistd::write(pipe, &bytes[..count]);
                written
                    .map(|count| count as i32)
                    .map_err(|errno| errno as i32)
            }
            Operation::Open {
                directory,
                path,
                flags,
                mode,
            } => {
                let from = self.directory(directory)?;
                // SAFETY: `push` promises that the path stays where it is.
                let path = unsafe { bytes(path) };
                let file = world.with_disk(disk, |it| it.open(from, path, flags, mode))?;
                let opened = world.open_descriptor(disk, file, path);
                let opened = opened.map_err(|it| it.raw_os_error().unwrap_or(libc::EMFILE))?;
                Ok(opened.into_raw_fd())
            }
            Operation::Close { fd } => Ok(self.close(fd)),
            Operation::Allocate {
                fd,
                mode,
                offset,
                length,
            } => {
                let (node, file) = self.file(fd)?;
                world.with_disk(node, |it| it.allocate(file, mode, offset, length))?;
                Ok(0)
            }
            Operation::Truncate { fd, size } => {
                let (node, file) = self.file(fd)?;
                world.with_disk(node, |it| it.truncate(file, size))?;
                Ok(0)
            }
            Operation::Statx {
                directory,
                path,
                flags,
                statx,
            } => {
                // SAFETY: as above.
                let path = unsafe { bytes(path) };
                let stat = if path.is_empty() && flags & libc::AT_EMPTY_PATH != 0 {
                    let (node, file) = self.file(directory)?;
                    world.with_disk(node, |it| it.stat(file))?
                } else {
                    let from = self.directory(directory)?;
                    let follows = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
                    world.with_disk(disk, |it| it.stat_at(from, path, follows))?
                };
                // SAFETY: the submission borrows a `Statx` exclusively, as `push` promises until
                // the completion.
                unsafe { statx.cast::<Statx>().write(Statx::simulated(&stat)) };
                Ok(0)
            }
            Operation::Rename { from, to } => {
                // SAFETY: as above.
                let (from, to) = unsafe { (bytes(from), bytes(to)) };
                world.with_disk(disk, |it| it.rename(None, from, None, to))?;
                Ok(0)
            }
            Operation::Unlink { path, flags } => {
                // SAFETY: as above.
                let path = unsafe { bytes(path) };
                world.with_disk(disk, |it| match flags & libc::AT_REMOVEDIR {
                    0 => it.unlink(None, path),
                    _ => it.remove_directory(None, path),
                })?;
                Ok(0)
            }
            Operation::MakeDirectory { path, mode } => {
                // SAFETY: as above.
                let path = unsafe { bytes(path) };
                world.with_disk(disk, |it| it.make_directory(None, path, mode))?;
                Ok(0)
            }
            Operation::Symlink { target, link } => {
                // SAFETY: as above.
                let (target, link) = unsafe { (bytes(target), bytes(link)) };
                world.with_disk(disk, |it| it.symlink(target, None, link))?;
                Ok(0)
            }
            Operation::Link {
                directory,
                from,
                to,
                flags,
            } => {
                // SAFETY: as above.
                let (old, new) = unsafe { (bytes(from), bytes(to)) };
                let fd = match old.strip_prefix(b"/proc/self/fd/") {
                    Some(number) => std::str::from_utf8(number)
                        .ok()
                        .and_then(|it| it.parse().ok()),
                    None => Some(directory).filter(|_| flags & libc::AT_EMPTY_PATH != 0),
                };
                if let Some(fd) = fd {
                    let (node, file) = self.file(fd)?;
                    world.with_disk(node, |it| it.link_open(file, None, new))?;
                } else {
                    let from = self.directory(directory)?;
                    world.with_disk(disk, |it| it.link(from, old, None, new))?;
                }
                Ok(0)
            }
            Operation::Nop
            | Operation::Cancel { .. }
            | Operation::Poll { .. }
            | Operation::Accept { .. }
            | Operation::Connect { .. }
            | Operation::Sync { .. } => unreachable!("it ends in another way"),
        }
    }

    /// Closes the descriptor, and what it stands for.
    pub(super) fn close(&self, fd: RawFd) -> i32 {
        self.world.forget(fd);
        // SAFETY: the submission of a close owns its descriptor, as the kernel has it: the caller
        // does not use the number any more.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
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
/// The string is there for as long as the result is used.
unsafe fn bytes<'a>(path: Path) -> &'a [u8] {
    // SAFETY: promised by the caller.
    unsafe { CStr::from_ptr(path) }.to_bytes()
}
