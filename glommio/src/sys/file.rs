//! System calls on open files: those that return at once, and those that the blocking pool makes.

#![allow(unsafe_code)]

pub(crate) mod entries;
pub(crate) mod older;
pub(crate) mod removal;
#[cfg(feature = "simulation")]
mod simulated;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::Permissions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::statfs::{FsType, fstatfs};

use super::door::door;
use super::nowait;
use crate::error::is_missing;

/// What the kernel says of a file, and the memory that it says it in.
pub(crate) struct Statx(libc::statx);

impl Statx {
    /// Asked for with each call. A kernel that does not know the last two (6.1, 6.8) leaves them
    /// out.
    pub(crate) const MASK: u32 =
        libc::STATX_BASIC_STATS | libc::STATX_DIOALIGN | STATX_MNT_ID_UNIQUE;

    pub(crate) fn zeroed() -> Self {
        // SAFETY: the structure consists of integers, for which zero is a value.
        Statx(unsafe { MaybeUninit::zeroed().assume_init() })
    }

    /// Where the kernel writes to.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut libc::statx {
        &raw mut self.0
    }

    /// The attributes of `fd` as this machine knows them: never asks a server.
    pub(crate) fn now(fd: BorrowedFd<'_>) -> io::Result<Self> {
        door!(file(fd).statx());
        let mut statx = Statx::zeroed();
        // SAFETY: the path is a string, and the kernel writes one `statx` to the last argument.
        // Both live until the call returns.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_statx,
                fd.as_raw_fd(),
                c"".as_ptr(),
                libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC,
                Self::MASK,
                statx.as_mut_ptr(),
            )
        };
        match failed {
            0 => Ok(statx),
            _ => match io::Error::last_os_error() {
                error if is_missing(&error) => {
                    let (fd, flags) = (fd.as_raw_fd(), libc::AT_EMPTY_PATH);
                    // SAFETY: as above.
                    unsafe { older::statx(fd, c"".as_ptr(), flags, statx.as_mut_ptr()) }
                        .map(|()| statx)
                }
                error => Err(error),
            },
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.0.stx_size
    }

    pub(crate) fn allocated_bytes(&self) -> u64 {
        // In units of 512 bytes, whatever the device.
        self.0.stx_blocks.saturating_mul(512)
    }

    pub(crate) fn block_bytes(&self) -> u32 {
        self.0.stx_blksize
    }

    pub(crate) fn inode(&self) -> u64 {
        self.0.stx_ino
    }

    pub(crate) fn device(&self) -> (u32, u32) {
        (self.0.stx_dev_major, self.0.stx_dev_minor)
    }

    /// The device that its data is on: itself, if it is one.
    pub(crate) fn disk(&self) -> (u32, u32) {
        if self.is_block_device() {
            (self.0.stx_rdev_major, self.0.stx_rdev_minor)
        } else {
            self.device()
        }
    }

    pub(crate) fn is_regular(&self) -> bool {
        self.kind() == libc::S_IFREG
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == libc::S_IFDIR
    }

    fn is_block_device(&self) -> bool {
        self.kind() == libc::S_IFBLK
    }

    fn kind(&self) -> libc::mode_t {
        libc::mode_t::from(self.0.stx_mode) & libc::S_IFMT
    }

    /// The mount that it is on, by a number that no other mount ever has.
    fn mount(&self) -> Option<u64> {
        let is_known = self.0.stx_mask & STATX_MNT_ID_UNIQUE != 0;
        is_known.then_some(self.0.stx_mnt_id)
    }

    /// To what direct I/O has to be aligned.
    pub(crate) fn direct_io(&self) -> DirectIo {
        if self.0.stx_mask & libc::STATX_DIOALIGN == 0 {
            return DirectIo::Unknown;
        }
        match self.0.stx_dio_offset_align.max(self.0.stx_dio_mem_align) {
            0 => DirectIo::Unsupported,
            alignment => DirectIo::AlignedTo(alignment),
        }
    }
}

/// As in `linux/stat.h`; not in all C libraries.
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// What the kernel says of direct I/O on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirectIo {
    /// Nothing.
    Unknown,
    Unsupported,
    /// Positions, lengths and addresses are multiples of this many bytes.
    AlignedTo(u32),
}

/// How a filesystem behaves, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filesystem {
    /// Its files are in memory: direct I/O has no meaning there.
    InMemory,
    /// On a disk of this machine: attributes of open files are in memory.
    Local,
    /// Its files are those of other filesystems: what they can do is theirs.
    Overlay,
    /// It may have to ask a server, or nothing is known of it.
    Other,
}

/// One entry for each mount on which a file was opened.
static KNOWN: Mutex<BTreeMap<u64, Filesystem>> = Mutex::new(BTreeMap::new());

/// More are not remembered: a process that mounts again and again would fill its memory.
const MAX_KNOWN: usize = 256;

impl Filesystem {
    /// That of the file `fd`, whose attributes are `statx`. Asked for once for each mount, since
    /// the kernel may have to ask a server; before 6.8 each time. Where it does not say, nothing is known.
    pub(crate) fn of(fd: BorrowedFd<'_>, statx: &Statx) -> Self {
        door!(file(fd) => Filesystem::Local);
        // The name of a device is on a tmpfs as a rule. What is in it is not.
        if statx.is_block_device() {
            return Filesystem::Other;
        }
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let mount = statx.mount();
        if let Some(found) = mount.and_then(|mount| known().get(&mount).copied()) {
            return found;
        }
        let Ok(statfs) = fstatfs(fd) else {
            return Filesystem::Other;
        };
        let found = Self::of_type(statfs.filesystem_type());
        if let Some(mount) = mount {
            let mut known = known();
            if known.len() >= MAX_KNOWN {
                known.clear();
            }
            known.insert(mount, found);
        }
        found
    }

    fn of_type(kind: FsType) -> Self {
        // The type is 32 bits wide, in a field that may be wider and signed.
        match kind.0 as u32 {
            magic::TMPFS | magic::RAMFS => Filesystem::InMemory,
            magic::EXT4 | magic::XFS | magic::BTRFS | magic::F2FS => Filesystem::Local,
            magic::OVERLAY => Filesystem::Overlay,
            _ => Filesystem::Other,
        }
    }
}

/// Types of filesystems, as in `linux/magic.h`.
mod magic {
    pub(super) const TMPFS: u32 = 0x0102_1994;
    pub(super) const RAMFS: u32 = 0x8584_58F6;
    pub(super) const EXT4: u32 = 0xEF53;
    pub(super) const XFS: u32 = 0x5846_5342;
    pub(super) const BTRFS: u32 = 0x9123_683E;
    pub(super) const F2FS: u32 = 0xF2F5_2010;
    pub(super) const OVERLAY: u32 = 0x794C_7630;
}

/// Switches `fd` to direct I/O, and keeps its other flags.
pub(crate) fn set_direct(fd: BorrowedFd<'_>) -> io::Result<()> {
    door!(file(fd).set_direct());
    let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_DIRECT))?;
    Ok(())
}

/// Whether `fd`, a file on an overlay, is one of a filesystem without direct I/O. The overlay would
/// take the flag all the same, and refuse each read and write from then on.
pub(crate) fn refuses_direct(fd: BorrowedFd<'_>) -> bool {
    let Ok(flags) = fcntl(fd, FcntlArg::F_GETFL) else {
        return false;
    };
    let access = OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE;
    // It looks through to the file below when the flag is there from the beginning.
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = access | OFlag::O_DIRECT | OFlag::O_CLOEXEC;
    let opened = nix::fcntl::open(path.as_str(), flags, nix::sys::stat::Mode::empty());
    opened.is_err_and(|errno| errno == nix::errno::Errno::EINVAL)
}

/// Another descriptor of the same open file, which children do not inherit.
pub(crate) fn duplicate(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    door!(file(fd).duplicate(fd));
    fd.try_clone_to_owned()
}

/// Reads what the page cache holds at `position` into `buf`, without waiting for a device. `EAGAIN`
/// if nothing of it is there, `EOPNOTSUPP` if that cannot be had.
pub(crate) fn read_cached(fd: RawFd, buf: &mut [u8], position: u64) -> io::Result<usize> {
    door!(file(fd).read_cached(buf, position));
    if !nowait::is_heeded() {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let slice = libc::iovec {
        iov_base: buf.as_mut_ptr().cast(),
        iov_len: buf.len(),
    };
    // SAFETY: the kernel writes no more than `buf.len()` bytes to `buf`, which is borrowed for the
    // call, as is the one slice. The position comes as its two halves, of which a 64-bit kernel
    // takes the first as a whole and ignores the second.
    let read = unsafe {
        libc::syscall(
            libc::SYS_preadv2,
            fd,
            &raw const slice,
            1 as libc::c_ulong,
            position as libc::c_ulong,
            (position >> 32) as libc::c_ulong,
            libc::RWF_NOWAIT,
        )
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Sets the size of a file. May wait.
pub(crate) fn truncate(fd: impl AsFd, size: u64) -> io::Result<()> {
    door!(file(fd.as_fd()).truncate(size));
    let size = offset(size)?;
    Ok(nix::unistd::ftruncate(fd, size)?)
}

/// Copies within the kernel, up to `len` bytes. May wait.
pub(crate) fn copy_range(
    from: impl AsFd,
    from_position: u64,
    to: impl AsFd,
    to_position: u64,
    len: usize,
) -> io::Result<usize> {
    door!(file(from.as_fd()).copy_range(from_position, to.as_fd(), to_position, len));
    let (mut from_position, mut to_position) = (offset(from_position)?, offset(to_position)?);
    let copied = nix::fcntl::copy_file_range(
        from.as_fd(),
        Some(&mut from_position),
        to.as_fd(),
        Some(&mut to_position),
        len,
    );
    match copied.map_err(io::Error::from) {
        Err(error) if is_missing(&error) => {
            older::copy_range(from, from_position, to, to_position, len)
        }
        copied => copied,
    }
}

/// A position as the kernel has it.
///
/// # Errors
///
/// `EINVAL` above 2⁶³ - 1.
pub(crate) fn offset(position: u64) -> io::Result<libc::off_t> {
    position
        .try_into()
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// `path` as the kernel takes it.
///
/// # Errors
///
/// `InvalidInput` if there is a NUL byte in it.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the path contains a NUL byte"))
}

/// The file that the symbolic link at `path` names. May wait.
pub(crate) fn read_link(path: &Path) -> io::Result<PathBuf> {
    door!(node().read_link(path));
    std::fs::read_link(path)
}

/// Whether there is a symbolic link at `path`. May wait.
pub(crate) fn is_link(path: &Path) -> io::Result<bool> {
    door!(node().is_link(path));
    Ok(std::fs::symlink_metadata(path)?.is_symlink())
}

/// Sets the permissions of the file at `path`. May wait.
pub(crate) fn set_permissions(path: &Path, permissions: Permissions) -> io::Result<()> {
    door!(node().set_permissions(path, permissions));
    std::fs::set_permissions(path, permissions)
}

/// Where relative paths begin.
pub(crate) fn working_directory() -> io::Result<PathBuf> {
    door!(current() => Ok(PathBuf::from("/")));
    std::env::current_dir()
}

/// An advisory lock on an open file (`flock(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flock {
    Shared,
    Exclusive,
    Unlocked,
}

/// Changes the lock that the open file behind `fd` holds, without waiting for another holder:
/// `EWOULDBLOCK` if there is one in the way.
pub(crate) fn flock(fd: BorrowedFd<'_>, lock: Flock) -> io::Result<()> {
    door!(file(fd).flock(lock));
    let operation = match lock {
        Flock::Shared => libc::LOCK_SH,
        Flock::Exclusive => libc::LOCK_EX,
        Flock::Unlocked => libc::LOCK_UN,
    };
    // SAFETY: the call takes no memory.
    match unsafe { libc::flock(fd.as_raw_fd(), operation | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct fsxattr` of `linux/fs.h`.
#[repr(C)]
struct FsXattr {
    xflags: u32,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    cow_extent_bytes: u32,
    padding: [u8; 8],
}

const FS_XFLAG_EXTSIZE: u32 = 0x800;

mod ioctls {
    use super::FsXattr;

    nix::ioctl_read!(get, b'X', 31, FsXattr);
    nix::ioctl_write_ptr!(set, b'X', 32, FsXattr);
}

/// Asks the filesystem to allocate `fd` in extents of `bytes` bytes.
pub(crate) fn hint_extent_size(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<i32> {
    door!(file(fd) => Ok(0));
    let extent_bytes =
        u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let mut attributes = MaybeUninit::<FsXattr>::zeroed();
    // SAFETY: the kernel writes one structure of this layout, and the memory lives until it
    // returns.
    unsafe { ioctls::get(fd.as_raw_fd(), attributes.as_mut_ptr()) }?;
    // SAFETY: zeroed before, and written by the kernel: it consists of integers.
    let mut attributes = unsafe { attributes.assume_init() };
    attributes.xflags |= FS_XFLAG_EXTSIZE;
    attributes.extent_bytes = extent_bytes;
    // SAFETY: the kernel reads one structure of this layout, which lives until it returns.
    Ok(unsafe { ioctls::set(fd.as_raw_fd(), &raw const attributes) }?)
}
