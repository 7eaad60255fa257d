//! What a file of a simulation answers in the words of the kernel.

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::UnlinkatFlags;

use super::{Flock, Statx};
use crate::simulated::SimulatedFile;
use simulated_kernel::disk::{Lock, Stat};

impl SimulatedFile {
    pub(super) fn statx(&self) -> io::Result<Statx> {
        Ok(Statx::simulated(&self.with(|disk, file| disk.stat(file))?))
    }

    pub(super) fn flock(&self, lock: Flock) -> io::Result<()> {
        let lock = match lock {
            Flock::Shared => Some(Lock::Shared),
            Flock::Exclusive => Some(Lock::Exclusive),
            Flock::Unlocked => None,
        };
        self.with(|disk, file| disk.lock(file, lock))
    }

    pub(super) fn unlink(&self, name: &OsStr, flags: UnlinkatFlags) -> nix::Result<()> {
        let removed = self.with(|disk, from| match flags {
            UnlinkatFlags::RemoveDir => disk.remove_directory(Some(from), name.as_bytes()),
            UnlinkatFlags::NoRemoveDir => disk.unlink(Some(from), name.as_bytes()),
        });
        removed.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Appends entries as the kernel writes them, as many as there is room for. Returns how many bytes they take.
    pub(super) fn read_entries(&self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let before = bytes.len();
        let room = bytes.capacity() - before;
        for entry in self.with(|disk, file| disk.read_directory(file, room))? {
            let begin = bytes.len();
            bytes.extend_from_slice(&entry.ino.to_ne_bytes());
            bytes.extend_from_slice(&entry.cookie.to_ne_bytes());
            let length = u16::try_from(entry.record_bytes()).expect("names are short");
            bytes.extend_from_slice(&length.to_ne_bytes());
            bytes.push(entry.kind);
            bytes.extend_from_slice(&entry.name);
            bytes.resize(begin + entry.record_bytes(), 0);
        }
        Ok(bytes.len() - before)
    }
}

impl Statx {
    /// Of a file on a simulated disk.
    pub(crate) fn simulated(stat: &Stat) -> Self {
        let time = |since_epoch: Duration| {
            let mut time = Statx::zeroed().0.stx_mtime;
            time.tv_sec = since_epoch.as_secs().cast_signed();
            time.tv_nsec = since_epoch.subsec_nanos();
            time
        };
        let mut statx = Statx::zeroed().0;
        statx.stx_mask = libc::STATX_BASIC_STATS | libc::STATX_BTIME | libc::STATX_DIOALIGN;
        statx.stx_ino = stat.ino;
        // The kind and the permissions have sixteen bits.
        statx.stx_mode = stat.mode as u16;
        statx.stx_nlink = stat.links;
        statx.stx_size = stat.size;
        statx.stx_blocks = stat.blocks;
        statx.stx_blksize = stat.block_bytes;
        statx.stx_dio_offset_align = stat.direct_offset_alignment;
        statx.stx_dio_mem_align = stat.direct_memory_alignment;
        statx.stx_atime = time(stat.accessed);
        statx.stx_mtime = time(stat.modified);
        statx.stx_ctime = time(stat.changed);
        statx.stx_btime = time(stat.born);
        // No device of this machine.
        statx.stx_dev_major = u32::MAX;
        Statx(statx)
    }
}
