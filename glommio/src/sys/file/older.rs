//! What stands in for calls that a kernel lacks or a sandbox forbids, in the words of older ones.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, RawFd};

use libc::{c_char, c_int, off_t};
use nix::fcntl::{SpliceFFlags, splice};

/// `statx(2)` by `fstatat(2)`: what only the former knows, the time of birth and what direct I/O needs, is not
/// in the mask of the answer.
///
/// # Safety
///
/// `path` is a string, and `answer` a place for a `statx`.
pub(crate) unsafe fn statx(
    directory: RawFd,
    path: *const c_char,
    flags: c_int,
    answer: *mut libc::statx,
) -> io::Result<()> {
    const KNOWN: c_int = libc::AT_EMPTY_PATH | libc::AT_NO_AUTOMOUNT | libc::AT_SYMLINK_NOFOLLOW;
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path is a string by the caller's promise, and the kernel writes one `stat`.
    let failed = unsafe { libc::fstatat(directory, path, stat.as_mut_ptr(), flags & KNOWN) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: (1) zeros are a value of both, which consist of integers. (2) The answer has a place.
    let (stat, statx) = unsafe {
        answer.write_bytes(0, 1);
        (stat.assume_init(), &mut *answer)
    };
    let device = |number| (libc::major(number), libc::minor(number));
    statx.stx_mask = libc::STATX_BASIC_STATS;
    statx.stx_blksize = stat.st_blksize as u32;
    statx.stx_nlink = stat.st_nlink as u32;
    (statx.stx_uid, statx.stx_gid) = (stat.st_uid, stat.st_gid);
    // The kind and the permissions have sixteen bits.
    statx.stx_mode = stat.st_mode as u16;
    statx.stx_ino = stat.st_ino;
    statx.stx_size = stat.st_size as u64;
    statx.stx_blocks = stat.st_blocks as u64;
    (statx.stx_dev_major, statx.stx_dev_minor) = device(stat.st_dev);
    (statx.stx_rdev_major, statx.stx_rdev_minor) = device(stat.st_rdev);
    for (time, seconds, nanoseconds) in [
        (&mut statx.stx_atime, stat.st_atime, stat.st_atime_nsec),
        (&mut statx.stx_mtime, stat.st_mtime, stat.st_mtime_nsec),
        (&mut statx.stx_ctime, stat.st_ctime, stat.st_ctime_nsec),
    ] {
        time.tv_sec = seconds;
        time.tv_nsec = nanoseconds as u32;
    }
    Ok(())
}

/// `copy_file_range(2)` by a pipe, as the kernel itself does it where a filesystem has no better way. Less than
/// `len` only at the end of the file, or before an error.
pub(super) fn copy_range(
    from: impl AsFd,
    mut from_position: off_t,
    to: impl AsFd,
    mut to_position: off_t,
    len: usize,
) -> io::Result<usize> {
    let (reader, writer) = io::pipe()?;
    let plain = SpliceFFlags::empty();
    let (mut taken, mut copied) = (0, 0);
    let error = loop {
        let moved = if copied < taken {
            let left = taken - copied;
            splice(&reader, None, &to, Some(&mut to_position), left, plain)
                .inspect(|moved| copied += moved)
        } else {
            let left = len - taken;
            splice(&from, Some(&mut from_position), &writer, None, left, plain)
                .inspect(|moved| taken += moved)
        };
        match moved {
            Ok(0) => return Ok(copied),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    match copied {
        0 => Err(error.into()),
        _ => Ok(copied),
    }
}
