//! What all open files have in common: the descriptor, who else has it, the path, and what is done
//! to the file as a whole.

use std::cell::{Ref, RefCell};
use std::future::poll_fn;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{fmt, io};

use super::error::{enhanced, needs_path};
use super::lock_state::LockState;
use super::stat::Stat;
use super::submit::Submitter;
use super::{Result, paths};
use crate::error::{GlommioError, ResourceType};
use crate::panic;
use crate::planted::planted;
use crate::reactor::OpHandle;
use crate::reactor::op::{Allocate, Close, Open, StatxOf, Sync, Truncate};
use crate::ring::Feature;
use crate::stats::Counted;
use crate::sys::block_device::BlockDevice;
use crate::sys::file::{self, DirectIo, Filesystem, Statx};

/// A descriptor with what is known of its file. Shared by the clones of a file, on any thread;
/// closed with the last of them.
#[derive(Debug)]
pub(super) struct Shared {
    fd: OwnedFd,
    /// 0 if nothing is known of the file.
    pub(super) inode: u64,
    pub(super) device: (u32, u32),
    filesystem: Filesystem,
    direct_io: DirectIo,
    /// For direct I/O.
    pub(super) limits: Limits,
    /// Shared with those who have another descriptor of the same open file.
    pub(super) lock: Arc<LockState>,
}

/// What direct I/O on a file has to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// A power of two.
    pub(super) alignment: u64,
    pub(super) max_request_bytes: usize,
    pub(super) max_segment_bytes: usize,
}

impl Shared {
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Another descriptor of the same open file.
    pub(super) fn duplicate(&self) -> io::Result<Arc<Shared>> {
        Ok(Arc::new(Shared {
            fd: file::duplicate(self.as_fd())?,
            inode: self.inode,
            device: self.device,
            filesystem: self.filesystem,
            direct_io: self.direct_io,
            limits: self.limits,
            lock: Arc::clone(&self.lock),
        }))
    }

    /// Whether it is known to be the same file.
    pub(super) fn is_same(&self, other: &Shared) -> bool {
        self.inode == other.inode && self.device == other.device
    }
}

/// An open file of one executor.
pub(super) struct OpenFile {
    /// `None` only once it is taken out of a file that is about to be dropped.
    shared: Option<Arc<Shared>>,
    path: RefCell<Option<PathBuf>>,
    submitter: Submitter,
}

const TAKEN: &str = "it is taken out only when the file is used up";

/// A request for the attributes of a file that is under way.
pub(super) type StatHandle = OpHandle<StatxOf>;

/// A close that is under way.
pub(super) enum Closing {
    InKernel {
        close: OpHandle<Close>,
        /// For what an error says.
        path: Option<PathBuf>,
        number: RawFd,
    },
    /// With the result, until it is taken.
    Done(Option<Result<()>>),
}

impl Closing {
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let result = match self {
            Closing::Done(result) => result.take().unwrap_or(Ok(())),
            Closing::InKernel {
                close,
                path,
                number,
            } => ready!(Pin::new(close).poll(cx))
                .map_err(|error| enhanced(error, "Closing", path.as_deref(), Some(*number))),
        };
        *self = Closing::Done(None);
        Poll::Ready(result)
    }
}

impl OpenFile {
    /// Opens the file at `path` in the current executor, with `flags` of `open(2)`.
    pub(super) async fn open(
        path: &Path,
        flags: libc::c_int,
        mode: libc::mode_t,
        op: &'static str,
    ) -> Result<Self> {
        let absolute = paths::absolute(path);
        Self::open_at(libc::AT_FDCWD, path, &absolute, flags, mode, op).await
    }

    /// Opens the file at `relative` in the directory `directory`, which is at `path`.
    pub(super) async fn open_at(
        directory: RawFd,
        relative: &Path,
        path: &Path,
        flags: libc::c_int,
        mode: libc::mode_t,
        op: &'static str,
    ) -> Result<Self> {
        let named = match directory {
            libc::AT_FDCWD => relative,
            _ => path,
        };
        let failed = |error| enhanced(error, op, Some(named), None);
        let submitter = Submitter::current();
        let open = Open {
            directory,
            path: file::c_path(relative).map_err(failed)?,
            flags,
            mode,
        };
        let opened = submitter
            .start_counted(open, Counted::Open)
            .map_err(failed)?;
        let fd = opened.await.map_err(failed)?;
        let statx = Statx::now(fd.as_fd()).map_err(failed)?;
        let filesystem = Filesystem::of(fd.as_fd()).map_err(failed)?;
        // The path of a file without a name is that of a directory, which is not to be removed in
        // its place.
        let has_path = flags & libc::O_TMPFILE != libc::O_TMPFILE;
        Ok(OpenFile {
            shared: Some(Arc::new(Shared {
                fd,
                inode: statx.inode(),
                device: statx.device(),
                filesystem,
                direct_io: statx.direct_io(),
                limits: Limits::of_device(BlockDevice::PLAINEST),
                lock: Arc::default(),
            })),
            path: RefCell::new(has_path.then(|| path.to_path_buf())),
            submitter,
        })
    }

    /// A file of the current executor that is open already.
    pub(super) fn of_shared(shared: Arc<Shared>, path: Option<PathBuf>) -> Self {
        OpenFile {
            shared: Some(shared),
            path: RefCell::new(path),
            submitter: Submitter::current(),
        }
    }

    /// The file `fd`, of which nothing is known.
    pub(super) fn of_unknown(fd: OwnedFd) -> Self {
        let shared = Shared {
            fd,
            inode: 0,
            device: (0, 0),
            filesystem: Filesystem::Other,
            direct_io: DirectIo::Unknown,
            limits: Limits::of_device(BlockDevice::PLAINEST),
            lock: Arc::default(),
        };
        Self::of_shared(Arc::new(shared), None)
    }

    /// Switches a file of which there is no clone to direct I/O, if there is such a thing for it.
    pub(super) fn make_direct(&mut self) -> io::Result<()> {
        let path = &self.path;
        let shared = self.shared.as_mut().and_then(Arc::get_mut);
        let shared = shared.expect("a file that was just opened has no clone");
        let (major, minor) = shared.device;
        shared.limits = Limits::of_device(BlockDevice::of(major, minor));
        // Some kernels take the flag for a tmpfs, and some refuse it.
        if shared.filesystem == Filesystem::InMemory {
            return Ok(());
        }
        let switched = match shared.direct_io {
            DirectIo::Unsupported => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            DirectIo::AlignedTo(_) | DirectIo::Unknown => file::set_direct(shared.as_fd()),
        };
        match switched {
            Ok(()) => {
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

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.shared.as_ref().expect(TAKEN)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.shared().fd.as_raw_fd()
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
        let statx = self.statx().await;
        let statx = self.named(statx, "getting file metadata")?;
        Ok(Stat::of(&statx))
    }

    async fn statx(&self) -> io::Result<Statx> {
        match self.statx_now() {
            Some(statx) => statx,
            None => Ok(*self.start_statx()?.await?),
        }
    }

    /// The attributes, where no server has to be asked.
    fn statx_now(&self) -> Option<io::Result<Statx>> {
        let shared = self.shared();
        let is_local = shared.filesystem != Filesystem::Other;
        is_local.then(|| Statx::now(shared.as_fd()))
    }

    /// The size, where no server has to be asked.
    pub(super) fn size_now(&self) -> Option<u64> {
        self.statx_now()?.ok().map(|statx| statx.size())
    }

    fn start_statx(&self) -> io::Result<StatHandle> {
        self.submitter.start(StatxOf {
            fd: self.fd(),
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
        self.start_sync(data_only)?.await
    }

    pub(super) fn start_sync(&self, data_only: bool) -> io::Result<OpHandle<Sync>> {
        let fd = self.fd();
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
        let mode = match keep_size {
            true => libc::FALLOC_FL_KEEP_SIZE,
            false => 0,
        };
        let allocated = self.allocate(mode, 0, len).await;
        self.named(allocated, "Pre-allocate space")
    }

    async fn allocate(&self, mode: libc::c_int, offset: u64, len: u64) -> io::Result<()> {
        let fd = self.fd();
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
        file::offset(size)?;
        if planted!("lost_truncate", one in 5) {
            return Ok(());
        }
        if self.submitter.has(Feature::Truncate) {
            let fd = self.fd();
            return self.submitter.start(Truncate { fd, size })?.await;
        }
        // A descriptor of its own: the call goes on if it is not awaited any more, and the file may
        // be closed.
        let own = file::duplicate(self.shared().as_fd())?;
        self.submitter
            .blocking(move || file::truncate(own, size))
            .await
    }

    pub(super) async fn rename(&self, to: &Path) -> Result<()> {
        let Some(from) = self.to_path() else {
            return needs_path("rename", self.fd());
        };
        let to = paths::absolute(to);
        paths::rename_with(&self.submitter, &from, &to).await?;
        *self.path.borrow_mut() = Some(to);
        Ok(())
    }

    pub(super) async fn remove(&self) -> Result<()> {
        let Some(path) = self.to_path() else {
            return needs_path("remove", self.fd());
        };
        let removed = paths::remove_with(&self.submitter, &path).await;
        self.named(removed, "Removing")
    }

    /// Closes it. `CanNotBeClosed` if a clone is left, which stays open.
    pub(super) async fn close(self) -> Result<()> {
        let mut closing = self.start_close();
        poll_fn(|cx| closing.poll(cx)).await
    }

    /// Starts to close it. Goes on though nothing waits for the end.
    pub(super) fn start_close(mut self) -> Closing {
        let shared = self.shared.take().expect(TAKEN);
        let path = self.path.take();
        let Some(Shared { fd, .. }) = Arc::into_inner(shared) else {
            let path = path.unwrap_or_default().display().to_string();
            return Closing::Done(Some(Err(GlommioError::CanNotBeClosed(
                ResourceType::File(path),
                "Another clone of this file exists somewhere - cannot close fd",
            ))));
        };
        let number = fd.as_raw_fd();
        match self.submitter.start_counted(Close { fd }, Counted::Close) {
            Ok(close) => Closing::InKernel {
                close,
                path,
                number,
            },
            // The executor is gone; the operation was dropped, which has closed the descriptor.
            Err(_) => Closing::Done(Some(Ok(()))),
        }
    }

    /// The file without weak handles, if there is no other clone.
    pub(super) fn try_take_last_clone(mut self) -> std::result::Result<Self, Self> {
        let shared = self.shared.take().expect(TAKEN);
        let taken = Arc::try_unwrap(shared);
        let is_last = taken.is_ok();
        self.shared = Some(taken.map_or_else(|shared| shared, Arc::new));
        match is_last {
            true => Ok(self),
            false => Err(self),
        }
    }

    /// Takes it apart, open.
    pub(super) fn into_parts(mut self) -> (Arc<Shared>, Option<PathBuf>) {
        let shared = self.shared.take().expect(TAKEN);
        (shared, self.path.take())
    }
}

impl Limits {
    fn of_device(device: BlockDevice) -> Self {
        Limits {
            alignment: device
                .logical_block_bytes
                .max(BlockDevice::PLAINEST.logical_block_bytes),
            max_request_bytes: device.max_request_bytes,
            max_segment_bytes: device.max_segment_bytes,
        }
    }

    /// What the kernel says of the file goes before what it says of the device.
    fn align_to(&mut self, bytes: u64) {
        if bytes.is_power_of_two() {
            self.alignment = bytes.max(BlockDevice::PLAINEST.logical_block_bytes);
        }
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

/// Closes the file in the background, if this is the last handle of it.
impl Drop for OpenFile {
    fn drop(&mut self) {
        let Some(Shared { fd, .. }) = self.shared.take().and_then(Arc::into_inner) else {
            return;
        };
        panic::log(|| {
            tracing::debug!(
                "a file was dropped without being closed, which is done in the background: fd {}, path {:?}",
                fd.as_raw_fd(),
                self.path.borrow()
            );
        });
        self.submitter.close_later(fd);
    }
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        f.debug_struct("OpenFile")
            .field("fd", &shared.fd.as_raw_fd())
            .field("path", &self.path.borrow())
            .field("inode", &shared.inode)
            .field("device", &shared.device)
            .finish()
    }
}
