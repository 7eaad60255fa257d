//! What is done to a file as a whole, and to ranges of it without their data.

use std::os::fd::AsFd;
use std::path::Path;

use super::DmaFile;
use crate::io::Result;
use crate::io::methods::file_methods;
use crate::reactor::budget;
use crate::stats::Counted;
use crate::sys::file;

impl DmaFile {
    file_methods!(DmaFile, dma_open);

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
        budget::consume().await;
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

    /// As [`fdatasync`](Self::fdatasync), with all attributes.
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
    /// let _ = file.hint_extent_size(1 << 20).await; // only XFS takes the hint
    /// file.fsync().await?; // the time of the write and the like, too
    /// file.rename(path.with_extension("new")).await?;
    /// assert!(path.with_extension("new").exists());
    /// file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn fsync(&self) -> Result<()> {
        let synced = self.file.sync(false).await;
        self.file.named(synced, "Syncing")
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
    /// Nothing has happened: the poll that does it is ready.
    pub async fn hint_extent_size(&self, size: usize) -> Result<i32> {
        budget::consume().await;
        Ok(file::hint_extent_size(self.as_fd(), size)?)
    }

    /// Gives the file another path, and remembers it. Replaces a file that may be there.
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
    pub async fn rename<P: AsRef<Path>>(&self, new_path: P) -> Result<()> {
        self.file.rename(new_path.as_ref()).await
    }
}
