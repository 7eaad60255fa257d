//! What all open files have in common: the descriptor, who else has it, the path, and what is done
//! to the file as a whole.

use std::cell::{Ref, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use super::closing::Closing;
use super::error::{enhanced, needs_path};
use super::limits::Limits;
use super::stat::Stat;
use super::submit::{Submitter, close_later};
use super::{Result, paths};
use crate::error::{GlommioError, ResourceType};
use crate::memory::DmaBuffer;
use crate::panic;
use crate::reactor::op::{Allocate, Open, StatxOf, Sync, Truncate};
use crate::reactor::{OpHandle, budget};
use crate::stats::Counted;
use crate::sys::block_device::BlockDevice;
use crate::sys::descriptor::{Descriptor, FdGuard};
use crate::sys::file::{self, DirectIo, Filesystem, Statx};

/// A descriptor with what is known of its file. Shared by the clones of a file, on any thread;
/// closed with the last of them, or the last operation.
#[derive(Debug)]
pub(super) struct SharedFile {
    fd: Descriptor,
    /// 0 if nothing is known of the file.
    pub(super) inode: u64,
    pub(super) device: (u32, u32),
    /// The device that the data is on.
    disk: (u32, u32),
    filesystem: Filesystem,
    direct_io: DirectIo,
    /// It was switched to direct I/O.
    is_direct: bool,
    /// For direct I/O.
    pub(super) limits: Limits,
    /// Whether it is locked, shared with those who have another descriptor of the same open file: the
    /// kernel would let them change the lock's kind, and the first that unlocks it unlocks it for all.
    pub(super) is_locked: Arc<AtomicBool>,
}

impl SharedFile {
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Another descriptor of the same open file.
    pub(super) fn duplicate(&self) -> io::Result<Arc<SharedFile>> {
        Ok(Arc::new(SharedFile {
            fd: Descriptor::new(file::duplicate(self.as_fd())?),
            inode: self.inode,
            device: self.device,
            disk: self.disk,
            filesystem: self.filesystem,
            direct_io: self.direct_io,
            is_direct: self.is_direct,
            limits: self.limits,
            is_locked: Arc::clone(&self.is_locked),
        }))
    }

    /// Whether it is known to be the same file.
    pub(super) fn is_same(&self, other: &SharedFile) -> bool {
        let is_known = self.inode != 0 && (self.inode, self.device) == (other.inode, other.device);
        is_known || std::ptr::eq(self, other)
    }
}

/// An open file of one executor.
pub(super) struct OpenFile {
    /// `None` only once it is taken out of a file that is about to be dropped.
    shared: Option<Arc<SharedFile>>,
    path: RefCell<Option<PathBuf>>,
    submitter: Submitter,
}

const TAKEN: &str = "it is taken out only when the file is used up";

/// A request for the attributes of a file that is under way.
pub(super) type StatHandle = OpHandle<StatxOf>;

impl OpenFile {
    /// Opens the file at `path` in the current executor, with `flags` of `open(2)`.
    pub(super) async fn open(
        path: &Path,
        flags: libc::c_int,
        mode: libc::mode_t,
        op: &'static str,
    ) -> Result<Self> {
        let absolute = paths::absolute(path);
        Self::open_at(None, path, &absolute, flags, mode, op).await
    }

    /// Opens the file at `relative` in the directory `directory`, which is at `path`.
    pub(super) async fn open_at(
        directory: Option<Descriptor>,
        relative: &Path,
        path: &Path,
        flags: libc::c_int,
        mode: libc::mode_t,
        op: &'static str,
    ) -> Result<Self> {
        let named = match directory {
            None => relative,
            Some(_) => path,
        };
        let failed = |error| enhanced(error, op, Some(named), None);
        let submitter = Submitter::current();
        let open = Open {
            directory: directory.map(FdGuard::from),
            path: file::c_path(relative).map_err(failed)?,
            flags,
            mode,
        };
        let opened = submitter
            .start_counted(open, Counted::Open)
            .map_err(failed)?;
        let fd = opened.await.map_err(failed)?;
        let statx = Statx::now(fd.as_fd()).map_err(failed)?;
        let filesystem = Filesystem::of(fd.as_fd(), &statx);
        // The path of a file without a name is that of a directory, which is not to be removed in
        // its place.
        let has_path = flags & libc::O_TMPFILE != libc::O_TMPFILE;
        Ok(OpenFile {
            shared: Some(Arc::new(SharedFile {
                fd: Descriptor::new(fd),
                inode: statx.inode(),
                device: statx.device(),
                disk: statx.disk(),
                filesystem,
                direct_io: statx.direct_io(),
                is_direct: false,
                limits: Limits::of_device(BlockDevice::PLAINEST),
                is_locked: Arc::default(),
            })),
            path: RefCell::new(has_path.then(|| path.to_path_buf())),
            submitter,
        })
    }

    /// A file of the current executor that is open already.
    pub(super) fn of_shared(shared: Arc<SharedFile>, path: Option<PathBuf>) -> Self {
        OpenFile {
            shared: Some(shared),
            path: RefCell::new(path),
            submitter: Submitter::current(),
        }
    }

    /// The file `fd`, of which nothing is known but which one it is.
    pub(super) fn of_unknown(fd: OwnedFd) -> Self {
        let statx = Statx::now(fd.as_fd()).unwrap_or_else(|_| Statx::zeroed());
        let shared = SharedFile {
            fd: Descriptor::new(fd),
            inode: statx.inode(),
            device: statx.device(),
            disk: (0, 0),
            filesystem: Filesystem::Other,
            direct_io: DirectIo::Unknown,
            is_direct: false,
            limits: Limits::of_device(BlockDevice::PLAINEST),
            is_locked: Arc::default(),
        };
        Self::of_shared(Arc::new(shared), None)
    }

    /// Switches a file of which there is no clone to direct I/O, if there is such a thing for it.
    pub(super) fn make_direct(&mut self) -> io::Result<()> {
        let path = &self.path;
        let shared = self.shared.as_mut().and_then(Arc::get_mut);
        let shared = shared.expect("a file that was just opened has no clone");
        let (major, minor) = shared.disk;
        shared.limits = Limits::of_device(BlockDevice::of(major, minor));
        // Some kernels take the flag for a tmpfs, and some refuse it.
        if shared.filesystem == Filesystem::InMemory {
            return Ok(());
        }
        let switched = match shared.direct_io {
            DirectIo::Unsupported => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            DirectIo::Unknown
                if shared.filesystem == Filesystem::Overlay
                    && file::refuses_direct(shared.as_fd()) =>
            {
                Err(io::Error::from_raw_os_error(libc::EINVAL))
            }
            DirectIo::AlignedTo(_) | DirectIo::Unknown => file::set_direct(shared.as_fd()),
        };
        match switched {
            Ok(()) => {
                shared.is_direct = true;
                if let DirectIo::AlignedTo(alignment) = shared.direct_io {
                    shared.limits.align_to(alignment.into());
                }
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                tracing::warn!(
                    "{:?} has no direct I/O: it is read and written through the page cache",
                    path.borrow()
                );
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn shared(&self) -> &Arc<SharedFile> {
        self.shared.as_ref().expect(TAKEN)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.shared().fd.as_raw_fd()
    }

    /// For an operation of the ring: a share in the descriptor.
    pub(super) fn hold(&self) -> FdGuard {
        self.descriptor().into()
    }

    /// A share in the descriptor.
    pub(super) fn descriptor(&self) -> Descriptor {
        self.shared().fd.clone()
    }

    /// Whether it was switched to direct I/O.
    pub(super) fn is_direct(&self) -> bool {
        self.shared().is_direct
    }

    /// Whether the ring knows the memory of `buffer`, which is for a transfer of `bytes` bytes.
    pub(super) fn is_registered(&self, buffer: &DmaBuffer, bytes: usize) -> bool {
        self.is_direct() && bytes > 0 && self.submitter.is_registered(buffer)
    }

    pub(super) fn submitter(&self) -> &Submitter {
        &self.submitter
    }

    pub(super) fn path(&self) -> Option<Ref<'_, Path>> {
        Ref::filter_map(self.path.borrow(), |path| path.as_deref()).ok()
    }

    pub(super) fn to_path(&self) -> Option<PathBuf> {
        self.path.borrow().clone()
    }

    /// The error of `op` on this file.
    pub(super) fn error(&self, source: io::Error, op: &'static str) -> GlommioError<()> {
        enhanced(source, op, self.path.borrow().as_deref(), Some(self.fd()))
    }

    /// As [`error`](Self::error), of a result.
    pub(super) fn named<T>(&self, result: io::Result<T>, op: &'static str) -> Result<T> {
        result.map_err(|source| self.error(source, op))
    }

    /// Its attributes, by the descriptor: whatever has become of the path.
    pub(super) async fn stat(&self) -> Result<Stat> {
        budget::consume().await;
        let statx = self.statx().await;
        let statx = self.named(statx, "getting file metadata")?;
        Ok(Stat::of(&statx))
    }

    pub(super) async fn statx(&self) -> io::Result<Statx> {
        match self.statx_now() {
            Some(statx) => statx,
            None => Ok(*self.start_statx()?.await?),
        }
    }

    /// The attributes, where no server has to be asked.
    fn statx_now(&self) -> Option<io::Result<Statx>> {
        let shared = self.shared();
        let is_local = matches!(shared.filesystem, Filesystem::InMemory | Filesystem::Local);
        is_local.then(|| Statx::now(shared.as_fd()))
    }

    /// The size, where no server has to be asked.
    pub(super) fn size_now(&self) -> Option<u64> {
        self.statx_now()?.ok().map(|statx| statx.size())
    }

    /// The size as this machine knows it. A server may know better.
    pub(super) fn known_size(&self) -> Option<u64> {
        let statx = Statx::now(self.shared().as_fd());
        statx.ok().map(|statx| statx.size())
    }

    fn start_statx(&self) -> io::Result<StatHandle> {
        self.submitter.start(StatxOf {
            fd: self.hold(),
            statx: Box::new(Statx::zeroed()),
        })
    }

    /// The size of the file, for use in poll functions, which keep what is under way in `handle`.
    pub(super) fn poll_size(
        &self,
        handle: &mut Option<StatHandle>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<u64>> {
        let statx = match (self.statx_now(), handle.take()) {
            (Some(statx), _) => statx.map(|statx| statx.size()),
            (None, started) => {
                let started = match started {
                    Some(started) => Ok(started),
                    None => self.start_statx(),
                };
                match started {
                    Ok(mut started) => match Pin::new(&mut started).poll(cx) {
                        Poll::Ready(statx) => statx.map(|statx| statx.size()),
                        Poll::Pending => {
                            *handle = Some(started);
                            return Poll::Pending;
                        }
                    },
                    Err(error) => Err(error),
                }
            }
        };
        Poll::Ready(self.named(statx, "getting file metadata"))
    }

    pub(super) async fn sync(&self, data_only: bool) -> io::Result<()> {
        budget::consume().await;
        self.start_sync(data_only)?.await
    }

    pub(super) fn start_sync(&self, data_only: bool) -> io::Result<OpHandle<Sync>> {
        let fd = self.hold();
        self.submitter.start(Sync { fd, data_only })
    }

    pub(super) async fn fdatasync(&self) -> Result<()> {
        let synced = self.sync(true).await;
        self.named(synced, "Syncing")
    }

    pub(super) async fn deallocate(&self, offset: u64, len: u64) -> Result<()> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let freed = self.allocate(mode, offset, len).await;
        self.named(freed, "Deallocate range")
    }

    pub(super) async fn pre_allocate(&self, len: u64, keep_size: bool) -> Result<()> {
        let mode = if keep_size {
            libc::FALLOC_FL_KEEP_SIZE
        } else {
            0
        };
        let allocated = self.allocate(mode, 0, len).await;
        self.named(allocated, "Pre-allocate space")
    }

    async fn allocate(&self, mode: libc::c_int, offset: u64, len: u64) -> io::Result<()> {
        budget::consume().await;
        let fd = self.hold();
        let op = Allocate {
            fd,
            mode,
            offset,
            len,
        };
        self.submitter.start(op)?.await
    }

    pub(super) async fn truncate(&self, size: u64) -> Result<()> {
        let truncated = self.set_size(size).await;
        self.named(truncated, "Truncating")
    }

    async fn set_size(&self, size: u64) -> io::Result<()> {
        budget::consume().await;
        file::offset(size)?;
        let fd = self.hold();
        self.submitter.start(Truncate { fd, size })?.await
    }

    pub(super) async fn rename(&self, to: &Path) -> Result<()> {
        budget::consume().await;
        let Some(from) = self.to_path() else {
            return needs_path("rename", self.fd());
        };
        let to = paths::absolute(to);
        paths::rename_with(&self.submitter, &from, &to).await?;
        *self.path.borrow_mut() = Some(to);
        Ok(())
    }

    pub(super) async fn remove(&self) -> Result<()> {
        budget::consume().await;
        let Some(path) = self.to_path() else {
            return needs_path("remove", self.fd());
        };
        let removed = paths::remove_with(&self.submitter, &path).await;
        self.named(removed, "Removing")
    }

    /// Gives it a further path, which is remembered if it had none.
    pub(super) async fn link(&self, path: &Path) -> Result<()> {
        budget::consume().await;
        let path = paths::absolute(path);
        let linked = paths::link_open_with(&self.submitter, self.descriptor(), &path).await;
        linked.map_err(|error| enhanced(error, "Linking", Some(&path), Some(self.fd())))?;
        if self.path().is_none() {
            *self.path.borrow_mut() = Some(path);
        }
        Ok(())
    }

    /// Closes it, once what was given up is over. `CanNotBeClosed` if a clone is left, which stays
    /// open.
    pub(super) async fn close(self) -> Result<()> {
        budget::consume().await;
        let mut closing = self.start_close();
        poll_fn(|cx| closing.poll(cx)).await
    }

    /// Starts to close it. Goes on though nothing waits for the end.
    pub(super) fn start_close(mut self) -> Closing {
        let shared = self.shared.take().expect(TAKEN);
        let path = self.path.take();
        let Some(SharedFile { fd, .. }) = Arc::into_inner(shared) else {
            let path = path.unwrap_or_default().display().to_string();
            return Closing::refused(GlommioError::CanNotBeClosed(
                ResourceType::File(path),
                "Another clone of this file exists somewhere - cannot close fd",
            ));
        };
        Closing::begin(fd, self.submitter.clone(), path)
    }

    /// The file without weak handles, if there is no other clone.
    pub(super) fn try_take_last_clone(mut self) -> std::result::Result<Self, Self> {
        let shared = self.shared.take().expect(TAKEN);
        let taken = Arc::try_unwrap(shared);
        let is_last = taken.is_ok();
        self.shared = Some(taken.map_or_else(|shared| shared, Arc::new));
        if is_last { Ok(self) } else { Err(self) }
    }

    /// Takes it apart, open.
    pub(super) fn into_parts(mut self) -> (Arc<SharedFile>, Option<PathBuf>) {
        let shared = self.shared.take().expect(TAKEN);
        (shared, self.path.take())
    }
}

/// Another handle of the same descriptor.
impl Clone for OpenFile {
    fn clone(&self) -> Self {
        OpenFile {
            shared: Some(Arc::clone(self.shared())),
            path: RefCell::new(self.to_path()),
            submitter: self.submitter.clone(),
        }
    }
}

/// Closes the file in the background, if this is the last handle of it; on the spot where no
/// executor runs.
impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(SharedFile { fd, .. }) = self.shared.take().and_then(Arc::into_inner) else {
            return;
        };
        panic::log(|| {
            tracing::debug!(
                "a file was dropped without being closed, which is done in the background: fd {}, path {:?}",
                fd.as_raw_fd(),
                self.path.borrow()
            );
        });
        let path = self.path.take();
        match fd.into_sole() {
            Ok(fd) => close_later(fd, path),
            Err(used) => {
                used.on_close(|fd| close_later(fd, path));
                self.submitter.let_go();
            }
        }
    }
}

impl_debug! { OpenFile, it:
    fd: it.shared().fd.as_raw_fd(), path: it.path.borrow(), inode: it.shared().inode,
    device: it.shared().device
}
