//! Advisory locks on files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::Result;
use super::open_file::{OpenFile, SharedFile};
use super::submit::Submitter;
use crate::error::{GlommioError, ResourceType};
use crate::panic;
use crate::reactor::budget;
use crate::sys::file::{Flock, duplicate, flock};
use crate::sys::fork_detect::Origin;

/// The mark that an open file is locked, taken back when it is dropped.
#[derive(Debug)]
struct Taken(Arc<AtomicBool>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A lock that no task may wait for any more: given up when it is dropped.
struct Acquired {
    /// Of the same open file, and so of the same lock.
    fd: OwnedFd,
    origin: Origin,
    taken: Option<Taken>,
}

impl Drop for Acquired {
    fn drop(&mut self) {
        if self.taken.is_some() {
            unlock(self.fd.as_fd(), self.origin);
        }
    }
}

/// Locks `file`, without waiting for other holders.
pub(super) async fn acquire(file: &OpenFile, kind: Flock) -> Result<AdvisoryLockGuard> {
    budget::consume().await;
    let shared = Arc::clone(file.shared());
    if shared.is_locked.swap(true, Ordering::AcqRel) {
        return Err(would_block("this open file is locked already"));
    }
    let taken = Taken(Arc::clone(&shared.is_locked));
    // A descriptor of its own: the call goes on if it is not awaited any more, and the file may be
    // closed.
    let fd = file.named(duplicate(shared.as_fd()), "Locking")?;
    let origin = file.submitter().origin();
    let locked = file
        .submitter()
        .blocking(move || {
            flock(fd.as_fd(), kind)?;
            Ok(Acquired {
                fd,
                origin,
                taken: Some(taken),
            })
        })
        .await;
    match locked {
        Ok(mut acquired) => {
            let taken = acquired.taken.take();
            Ok(AdvisoryLockGuard(Arc::new(Held {
                shared,
                origin,
                taken,
            })))
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(would_block("another one has locked the file"))
        }
        Err(error) => Err(file.error(error, "Locking")),
    }
}

fn would_block(why: &str) -> GlommioError<()> {
    GlommioError::WouldBlock(ResourceType::File(why.to_owned()))
}

/// A lock as long as it is held.
#[derive(Debug)]
struct Held {
    shared: Arc<SharedFile>,
    origin: Origin,
    taken: Option<Taken>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.taken.is_some() {
            unlock(self.shared.as_fd(), self.origin);
        }
    }
}

/// Gives up a lock that the process `origin` took. A child that is forked from it has the same open
/// file, and with it the lock, but not the guard.
fn unlock(fd: BorrowedFd<'_>, origin: Origin) {
    if origin.is_here()
        && let Err(error) = flock(fd, Flock::Unlocked)
    {
        panic::log(|| tracing::error!("unlocking a file failed: {error}"));
    }
}

/// An advisory lock on a file. It is given up when the last clone is dropped, and keeps the file
/// open until then. A clone in a process that was forked since does not count: dropping it there
/// changes nothing.
///
/// From [`DmaFile::try_lock_shared`](super::DmaFile::try_lock_shared) and
/// [`DmaFile::try_lock_exclusive`](super::DmaFile::try_lock_exclusive).
///
/// # Examples
///
/// ```
/// use glommio::io::DmaFile;
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let file = DmaFile::create(&path).await?;
/// let lock = file.try_lock_exclusive().await?;
/// let (other, weak) = (lock.clone(), lock.downgrade());
/// let lock = lock.try_take_last_clone().expect_err("`other` is there");
/// drop(other);
/// let lock = lock.try_take_last_clone().expect("it is the last one");
/// assert!(weak.upgrade().is_none());
/// lock.unlock().await?;
/// file.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct AdvisoryLockGuard(Arc<Held>);

impl AdvisoryLockGuard {
    pub(super) fn is_of(&self, file: &Arc<SharedFile>) -> bool {
        Arc::ptr_eq(&self.0.shared, file)
    }

    /// Gives the lock up, and says whether that went well.
    ///
    /// # Errors
    ///
    /// `CanNotBeClosed` if there is another clone, which holds the lock from then on. Else what
    /// `flock(2)` gives.
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// The lock is given up when it is dropped.
    pub async fn unlock(self) -> Result<()> {
        let submitter = Submitter::begin().await;
        let Some(mut held) = Arc::into_inner(self.0) else {
            return Err(GlommioError::CanNotBeClosed(
                ResourceType::File("an advisory lock".to_owned()),
                "Another clone of this guard exists somewhere - cannot unlock the file",
            ));
        };
        let unlocked = submitter.blocking(move || {
            let unlocked = flock(held.shared.as_fd(), Flock::Unlocked);
            drop(held.taken.take());
            unlocked
        });
        Ok(unlocked.await?)
    }

    /// A handle that does not hold the lock.
    pub fn downgrade(&self) -> WeakAdvisoryLockGuard {
        WeakAdvisoryLockGuard(Arc::downgrade(&self.0))
    }

    /// The guard, if there is no other clone of it. Weak handles do not lead to it any more then.
    ///
    /// # Errors
    ///
    /// The guard, if there is another clone.
    pub fn try_take_last_clone(self) -> std::result::Result<Self, Self> {
        match Arc::try_unwrap(self.0) {
            Ok(held) => Ok(AdvisoryLockGuard(Arc::new(held))),
            Err(held) => Err(AdvisoryLockGuard(held)),
        }
    }
}

/// A handle on an advisory lock that does not hold it.
///
/// # Examples
///
/// ```
/// use glommio::io::{DmaFile, WeakAdvisoryLockGuard};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let mut handle = WeakAdvisoryLockGuard::new();
/// assert!(handle.upgrade().is_none());
/// let file = DmaFile::create(&path).await?;
/// let lock = file.try_lock_exclusive().await?;
/// handle = lock.downgrade();
/// assert!(handle.upgrade().is_some());
/// drop(lock);
/// assert!(handle.upgrade().is_none());
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct WeakAdvisoryLockGuard(Weak<Held>);

impl WeakAdvisoryLockGuard {
    /// One of no lock.
    pub fn new() -> Self {
        WeakAdvisoryLockGuard::default()
    }

    /// The lock, if it is still held.
    pub fn upgrade(&self) -> Option<AdvisoryLockGuard> {
        self.0.upgrade().map(AdvisoryLockGuard)
    }
}
