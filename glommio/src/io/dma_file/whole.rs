//! What is done to a file as a whole, and to ranges of it without their data.

use std::os::fd::AsFd;
use std::path::Path;

use super::DmaFile;
use crate::io::Result;
use crate::io::stat::Stat;
use crate::stats::Counted;
use crate::sys::file;

impl DmaFile {
    /// Copies `bytes` bytes at `source_offset` of `source` to `offset` of this file, within the kernel, and
    /// returns how many were copied: fewer at the end of `source`, or if the kernel prefers to.
    /// Filesystems that can let both files share the bytes do so.
    ///
    /// # Errors
    ///
    /// What `copy_file_range(2)` gives; `EINVAL` for positions above 2⁶³ - 1.
    ///
    /// # Cancel safety
    ///
    /// Dropped before a blocking thread has begun it, nothing is copied. Later, it goes on to its
    /// end, for which the [`close`](Self::close) of either file waits.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::io::DmaFile;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// std::fs::write(&path, [7; 8192])?;
    /// let from = DmaFile::open(&path).await?;
    /// let to = DmaFile::create(path.with_extension("copy")).await?;
    /// let mut copied = 0;
    /// while copied < 8192 {
    ///     let (at, left) = (copied as u64, 8192 - copied);
    ///     copied += to.copy_file_range_aligned(&from, at, left, at).await?;
    /// }
    /// assert_eq!(std::fs::read(path.with_extension("copy"))?, [7; 8192]);
    /// from.close().await?;
    /// to.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn copy_file_range_aligned(
        &self,
        source: &DmaFile,
        source_offset: u64,
        bytes: usize,
        offset: u64,
    ) -> Result<usize> {
        let submitter = self.file.submitter();
        let copied = async {
            // Shares of its own: the call goes on if it is not awaited any more.
            let (from, to) = (source.file.descriptor(), self.file.descriptor());
            let copy = move || file::copy_range(from, source_offset, to, offset, bytes);
            submitter.blocking(copy).await
        };
        let copied = copied.await;
        let copied = self.file.named(copied, "Copying file range")?;
        submitter.count(Counted::Read, copied);
        submitter.count(Counted::Write, copied);
        Ok(copied)
    }

    /// Brings what was written to the device, without the attributes that reading it does not need.
    ///
    /// # Errors
    ///
    /// What `fdatasync(2)` gives. After `EIO` it is not known what of the data written before is on
    /// the device, and a second call may succeed all the same: write it again.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen, and has or has not when
    /// [`close`](Self::close) returns.
    pub async fn fdatasync(&self) -> Result<()> {
        self.file.fdatasync().await
    }

    /// As [`fdatasync`](Self::fdatasync), with all attributes.
    ///
    /// # Errors
    ///
    /// As [`fdatasync`](Self::fdatasync).
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen, and has or has not when
    /// [`close`](Self::close) returns.
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
    /// file.write_at(file.alloc_dma_buffer(4096), 0).await?;
    /// file.fdatasync().await?; // the data, and the size that reading it needs
    /// file.fsync().await?; // the time of the write and the like, too
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn fsync(&self) -> Result<()> {
        let synced = self.file.sync(false).await;
        self.file.named(synced, "Syncing")
    }

    /// Gives the space of `size` bytes at `offset` back to the filesystem: they read as zeros from
    /// then on. The size of the file stays.
    ///
    /// # Errors
    ///
    /// What `fallocate(2)` gives: `EOPNOTSUPP` where the filesystem cannot do it.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen, and has or has not when
    /// [`close`](Self::close) returns.
    pub async fn deallocate(&self, offset: u64, size: u64) -> Result<()> {
        self.file.deallocate(offset, size).await
    }

    /// Allocates space for the first `size` bytes of the file. What is there stays; a file that was
    /// shorter gets this size, filled with zeros, unless `keep_size`.
    ///
    /// # Errors
    ///
    /// What `fallocate(2)` gives: `EINVAL` for no bytes, `ENOSPC`, `EOPNOTSUPP` where the
    /// filesystem cannot do it.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen, and has or has not when
    /// [`close`](Self::close) returns.
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
    /// let _ = file.hint_extent_size(1 << 20).await; // only XFS takes the hint
    /// file.pre_allocate(1 << 20, true).await?;
    /// assert_eq!(file.file_size().await?, 0); // the space is there, the size stays
    /// file.truncate(8192).await?;
    /// file.deallocate(0, 4096).await?; // gives the first block back
    /// assert_eq!(file.stat().await?.file_size, 8192);
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn pre_allocate(&self, size: u64, keep_size: bool) -> Result<()> {
        self.file.pre_allocate(size, keep_size).await
    }

    /// Asks the filesystem to allocate the file in extents of `size` bytes. Returns 0.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`, `ENOTTY` or `EINVAL` from filesystems that have no such thing (it is one of
    /// XFS); `EINVAL` for more than 32 bits.
    ///
    /// # Cancel safety
    ///
    /// It never waits: the first poll does it.
    pub async fn hint_extent_size(&self, size: usize) -> Result<i32> {
        Ok(file::hint_extent_size(self.as_fd(), size)?)
    }

    /// Sets the size of the file: what is beyond it is dropped, and what is missing reads as zeros.
    ///
    /// # Errors
    ///
    /// What `ftruncate(2)` gives; `EINVAL` for sizes above 2⁶³ - 1.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen, and has or has not when
    /// [`close`](Self::close) returns.
    pub async fn truncate(&self, size: u64) -> Result<()> {
        self.file.truncate(size).await
    }

    /// Gives the file another path, in place of the file that may be there, and remembers it.
    ///
    /// # Errors
    ///
    /// What `rename(2)` gives. `InvalidData` if the path of this file is not known.
    ///
    /// # Panics
    ///
    /// Panics if a result of [`path`](Self::path) is still there in the end.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen; the path that is remembered is the old one.
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
    /// file.rename(path.with_extension("new")).await?;
    /// assert!(path.with_extension("new").exists());
    /// file.remove().await?;
    /// assert!(!path.with_extension("new").exists());
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn rename<P: AsRef<Path>>(&self, new_path: P) -> Result<()> {
        self.file.rename(new_path.as_ref()).await
    }

    /// Removes the file at the path by which this one was opened. The handle stays usable, and the
    /// file is there until the last who has it open closes it.
    ///
    /// # Errors
    ///
    /// What `unlink(2)` gives. `InvalidData` if the path of this file is not known.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen; a call that a blocking thread has not begun
    /// does not.
    pub async fn remove(&self) -> Result<()> {
        self.file.remove().await
    }

    /// Gives the file a further path in the same filesystem, where nothing may be yet: in particular
    /// one that [`OpenOptions::tmpfile`](crate::io::OpenOptions::tmpfile) has made without a name and with
    /// [`tmpfile_linkable`](crate::io::OpenOptions::tmpfile_linkable), which appears complete at once. Its [`path`](Self::path) is this
    /// one from then on, if it had none.
    ///
    /// # Errors
    ///
    /// What `linkat(2)` gives, such as `EEXIST` and `EXDEV`; `ENOENT` for a file without a name that
    /// was made not to get one.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not happen; the path is not remembered.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::io::OpenOptions;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let mut options = OpenOptions::new();
    /// options.write(true).tmpfile(true).tmpfile_linkable(true);
    /// let file = options.dma_open(folder.path()).await?;
    /// file.write_all_at(file.alloc_dma_buffer(4096), 0).await?;
    /// file.fdatasync().await?;
    /// // From here on others see it, with all that is in it.
    /// file.link(folder.path().join("file")).await?;
    /// file.close().await?;
    /// assert_eq!(std::fs::read(folder.path().join("file"))?.len(), 4096);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn link<P: AsRef<Path>>(&self, path: P) -> Result<()> {
        self.file.link(path.as_ref()).await
    }

    /// The size of the file in bytes, whatever has become of its path.
    ///
    /// # Errors
    ///
    /// What `statx(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn file_size(&self) -> Result<u64> {
        Ok(self.stat().await?.file_size)
    }

    /// The size of the file and the like, whatever has become of its path.
    ///
    /// # Errors
    ///
    /// What `statx(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn stat(&self) -> Result<Stat> {
        self.file.stat().await
    }
}
