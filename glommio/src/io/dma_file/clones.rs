//! Several handles of one open file: clones, weak ones, ones on other threads, and locks.

use std::sync::Arc;

use super::DmaFile;
use crate::io::Result;
use crate::io::lock::{self, AdvisoryLockGuard};
use crate::io::open_file::OpenFile;
use crate::io::owned_dma_file::{OwnedDmaFile, WeakDmaFile};
use crate::reactor::budget;
use crate::sys::file::Flock;

impl DmaFile {
    /// How many clones there are, this one included, on all threads.
    pub fn strong_count(&self) -> usize {
        Arc::strong_count(self.file.shared())
    }

    /// A handle that does not keep the file open.
    pub fn downgrade(&self) -> WeakDmaFile {
        WeakDmaFile::new_of(self.file.shared(), self.file.to_path())
    }

    /// The file, if there is no other clone of it and no lock on it. Weak handles do not lead to it
    /// any more then.
    ///
    /// # Errors
    ///
    /// The file, if there is another clone.
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
    /// let (other, weak) = (file.clone(), file.downgrade());
    /// assert_eq!(file.strong_count(), 2);
    /// let file = file.try_take_last_clone().expect_err("`other` is there");
    /// drop(other);
    /// let file = file.try_take_last_clone().expect("it is the last one");
    /// assert!(weak.upgrade().is_none());
    /// let lock = file.try_lock_exclusive().await?;
    /// let unlocked = file.try_take_last_clone_unlocking_guard(lock).await;
    /// unlocked.expect("neither has a clone").close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn try_take_last_clone(self) -> std::result::Result<Self, Box<Self>> {
        let DmaFile { reads, file } = self;
        match file.try_take_last_clone() {
            Ok(file) => Ok(DmaFile { reads, file }),
            Err(file) => Err(Box::new(DmaFile { reads, file })),
        }
    }

    /// As [`try_take_last_clone`](Self::try_take_last_clone), of a file whose lock is `guard`,
    /// which is given up.
    ///
    /// # Errors
    ///
    /// Both, if there is another clone of either.
    ///
    /// # Panics
    ///
    /// Panics if `guard` is of another file.
    ///
    /// # Cancel safety
    ///
    /// The file and the lock are dropped with it.
    pub async fn try_take_last_clone_unlocking_guard(
        self,
        guard: AdvisoryLockGuard,
    ) -> std::result::Result<Self, (Self, AdvisoryLockGuard)> {
        assert!(
            guard.is_of(self.file.shared()),
            "the guard is that of a lock on another file"
        );
        budget::consume().await;
        // The guard has one of the clones.
        if self.strong_count() > 2 {
            return Err((self, guard));
        }
        let guard = match guard.try_take_last_clone() {
            Ok(guard) => guard,
            Err(guard) => return Err((self, guard)),
        };
        drop(guard);
        // A weak handle on another thread may have come to life meanwhile; then the file is not the
        // last clone, as if it had done so a moment later.
        Ok(self.try_take_last_clone().unwrap_or_else(|file| *file))
    }

    /// Locks the file against those who want to lock it exclusively, without waiting for them.
    ///
    /// The lock is advisory (`flock(2)`): it is for those who ask for it. It belongs to the open
    /// file, so that clones and [duplicates](Self::dup) have it together, and have one at a
    /// time.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if another one has locked the file, or this open file is locked already.
    ///
    /// # Cancel safety
    ///
    /// No lock is left when it is dropped.
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
    /// let other = DmaFile::open(&path).await?;
    /// assert!(other.try_lock_shared().await.is_err());
    /// lock.unlock().await?;
    /// let _lock = other.try_lock_shared().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn try_lock_shared(&self) -> Result<AdvisoryLockGuard> {
        lock::acquire(&self.file, Flock::Shared).await
    }

    /// Locks the file against all others who want to lock it, without waiting for them. As
    /// [`try_lock_shared`](Self::try_lock_shared) otherwise.
    ///
    /// # Errors
    ///
    /// As [`try_lock_shared`](Self::try_lock_shared).
    ///
    /// # Cancel safety
    ///
    /// No lock is left when it is dropped.
    pub async fn try_lock_exclusive(&self) -> Result<AdvisoryLockGuard> {
        lock::acquire(&self.file, Flock::Exclusive).await
    }
}

/// Closes nothing. Reads are not shared with those of others any more.
impl From<DmaFile> for OwnedDmaFile {
    fn from(file: DmaFile) -> Self {
        let DmaFile { reads, file } = file;
        drop(reads);
        let (shared, path) = file.into_parts();
        OwnedDmaFile::of(shared, path)
    }
}

/// The file belongs to the executor of this thread from then on.
///
/// # Panics
///
/// Panics outside an executor.
impl From<OwnedDmaFile> for DmaFile {
    fn from(file: OwnedDmaFile) -> Self {
        let (shared, path) = file.into_parts();
        DmaFile::of_open(OpenFile::of_shared(shared, path))
    }
}
