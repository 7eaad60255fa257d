//! The file system of this machine, in a folder of its own.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{self, AtFlags, FallocateFlags, FcntlArg, OFlag};
use nix::sys::stat::{self, FileStat, Mode};
use nix::sys::uio;
use nix::unistd::{self, UnlinkatFlags, Whence};
use tempfile::TempDir;

use super::system::{Outcome, Step, System, aligned};
use super::*;

pub(super) struct Real {
    _folder: TempDir,
    base: OwnedFd,
    files: BTreeMap<usize, OwnedFd>,
    buf: Vec<u8>,
}

impl Real {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("there is a temporary folder");
        let path = folder.path().join("base");
        stat::mkdirat(fcntl::AT_FDCWD, &path, Mode::S_IRWXU).expect("it is ours");
        let base = fcntl::open(&path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
        Real {
            _folder: folder,
            base: base.expect("it was just made"),
            files: BTreeMap::new(),
            buf: vec![0; 1 << 20],
        }
    }

    /// Whether there is direct I/O of sectors of 512 bytes, as in the simulation.
    pub(super) fn has_direct_io(&mut self) -> bool {
        let flags = CREATE | libc::O_DIRECT;
        let steps = [
            Step::Open(99, None, "direct".into(), flags),
            Step::Write(99, Some(0), 512, 1),
            Step::Close(99),
            Step::Unlink("direct".into()),
        ];
        steps.iter().all(|step| self.take(step).is_ok())
    }

    fn at(&self, number: &Option<usize>) -> Option<BorrowedFd<'_>> {
        match number {
            Some(number) => self.files.get(number).map(AsFd::as_fd),
            None => Some(self.base.as_fd()),
        }
    }

    fn try_take(&mut self, step: &Step) -> nix::Result<Outcome> {
        let base = self.base.as_fd();
        macro_rules! file {
            ($number:expr) => {
                match self.files.get($number) {
                    Some(file) => file.as_fd(),
                    None => return Ok(Outcome::Skipped),
                }
            };
        }
        match step {
            Step::Open(number, from, path, flags) => {
                let Some(from) = self.at(from) else {
                    return Ok(Outcome::Skipped);
                };
                let flags = OFlag::from_bits_retain(*flags) | OFlag::O_CLOEXEC;
                let opened = fcntl::openat(from, &path[..], flags, Mode::from_bits_retain(0o600))?;
                self.files.insert(*number, opened);
            }
            Step::Close(number) => {
                file!(number);
                self.files.remove(number);
            }
            Step::Read(number, offset, len) => {
                let buf = aligned(&mut self.buf, *len);
                let read = match offset {
                    Some(offset) => uio::pread(file!(number), buf, offset.cast_signed())?,
                    None => unistd::read(file!(number), buf)?,
                };
                return Ok(Outcome::Bytes(buf[..read].to_vec()));
            }
            Step::Write(number, offset, len, value) => {
                let buf = aligned(&mut self.buf, *len);
                buf.fill(*value);
                return Ok(Outcome::Count(match offset {
                    Some(offset) => uio::pwrite(file!(number), buf, offset.cast_signed())?,
                    None => unistd::write(file!(number), buf)?,
                }));
            }
            Step::Truncate(number, size) => unistd::ftruncate(file!(number), size.cast_signed())?,
            Step::Allocate(number, mode, offset, len) => {
                let mode = FallocateFlags::from_bits_retain(*mode);
                let (offset, len) = (offset.cast_signed(), len.cast_signed());
                fcntl::fallocate(file!(number), mode, offset, len)?;
            }
            Step::Copy(from, from_offset, to, to_offset, len) => {
                let (mut at, mut to_at) = (from_offset.cast_signed(), to_offset.cast_signed());
                let (from, to) = (file!(from), file!(to));
                let copied =
                    fcntl::copy_file_range(from, Some(&mut at), to, Some(&mut to_at), *len)?;
                return Ok(Outcome::Count(copied));
            }
            Step::Sync(number) => unistd::fdatasync(file!(number))?,
            Step::Seek(number, position) => {
                unistd::lseek(file!(number), position.cast_signed(), Whence::SeekSet)?;
            }
            Step::Stat(number) => return Ok(stated(stat::fstat(file!(number))?)),
            Step::StatAt(path, follows) => {
                let flags = match follows {
                    true => AtFlags::empty(),
                    false => AtFlags::AT_SYMLINK_NOFOLLOW,
                };
                return Ok(stated(stat::fstatat(base, &path[..], flags)?));
            }
            Step::SetDirect(number, is_direct) => {
                let file = file!(number);
                let flags = OFlag::from_bits_retain(fcntl::fcntl(file, FcntlArg::F_GETFL)?);
                let direct = if *is_direct {
                    OFlag::O_DIRECT
                } else {
                    OFlag::empty()
                };
                fcntl::fcntl(file, FcntlArg::F_SETFL((flags - OFlag::O_DIRECT) | direct))?;
            }
            Step::Lock(number, lock) => {
                use fcntl::FlockArg::{LockExclusiveNonblock, LockSharedNonblock, Unlock};
                let operation = match lock {
                    Some(Lock::Shared) => LockSharedNonblock,
                    Some(Lock::Exclusive) => LockExclusiveNonblock,
                    None => Unlock,
                };
                #[expect(deprecated, reason = "the new one owns the file")]
                fcntl::flock(file!(number).as_raw_fd(), operation)?;
            }
            Step::MakeDirectory(path) => stat::mkdirat(base, &path[..], Mode::S_IRWXU)?,
            Step::RemoveDirectory(path) => {
                unistd::unlinkat(base, &path[..], UnlinkatFlags::RemoveDir)?;
            }
            Step::Unlink(path) => unistd::unlinkat(base, &path[..], UnlinkatFlags::NoRemoveDir)?,
            Step::Rename(from, to) => fcntl::renameat(base, &from[..], base, &to[..])?,
            Step::Link(from, to) => {
                unistd::linkat(base, &from[..], base, &to[..], AtFlags::empty())?;
            }
            Step::LinkOpen(number, to) => {
                let name = format!("/proc/self/fd/{}", file!(number).as_raw_fd());
                let name = CString::new(name).expect("there is no NUL byte in it");
                unistd::linkat(base, &name[..], base, &to[..], AtFlags::AT_SYMLINK_FOLLOW)?;
            }
            Step::Symlink(target, path) => unistd::symlinkat(&target[..], base, &path[..])?,
            Step::MakeSocket(path) => {
                let mode = Mode::from_bits_retain(0o755);
                stat::mknodat(base, &path[..], stat::SFlag::S_IFSOCK, mode, 0)?;
            }
            Step::ReadLink(path) => {
                let target = fcntl::readlinkat(base, &path[..])?;
                return Ok(Outcome::Bytes(target.into_encoded_bytes()));
            }
            Step::List(number) => return list(file!(number)),
        }
        Ok(Outcome::Done)
    }
}

impl System for Real {
    fn take(&mut self, step: &Step) -> Result<Outcome> {
        self.try_take(step).map_err(|errno| errno as i32)
    }
}

/// Whether temporary files are on an ext4, whose ways the simulation has where filesystems differ.
pub(super) fn is_ext4() -> bool {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    let kind = nix::sys::statfs::statfs(folder.path()).expect("it is there");
    kind.filesystem_type() == nix::sys::statfs::EXT4_SUPER_MAGIC
}

/// By another open file: a name in `/proc` leads to a directory also if it was removed.
fn list(directory: BorrowedFd<'_>) -> nix::Result<Outcome> {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::FileTypeExt;

    let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(0));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(errno)? {
        let entry = entry.map_err(errno)?;
        let kind = entry.file_type().map_err(errno)?;
        let kind = match kind {
            _ if kind.is_dir() => libc::DT_DIR,
            _ if kind.is_symlink() => libc::DT_LNK,
            _ if kind.is_socket() => libc::DT_SOCK,
            _ => libc::DT_REG,
        };
        names.push((entry.file_name().into_vec(), kind));
    }
    names.sort();
    Ok(Outcome::Names(names))
}

fn stated(stat: FileStat) -> Outcome {
    let is_directory = stat.st_mode & libc::S_IFMT == libc::S_IFDIR;
    let size = if is_directory {
        0
    } else {
        stat.st_size.cast_unsigned()
    };
    Outcome::Stat(
        stat.st_mode,
        u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        size,
    )
}
