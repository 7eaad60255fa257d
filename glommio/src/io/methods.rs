//! Methods that files have whether or not they go through the page cache, as a macro to be called
//! inside an `impl`. They only call [`OpenFile`](super::open_file::OpenFile).

/// What is done to a file as a whole.
macro_rules! file_methods {
    ($File:ident, $open:ident) => {
        /// Creates the file at `path`, or empties it if it is there, for writing alone.
        /// [`OpenOptions`](crate::io::OpenOptions) has the other ways.
        ///
        /// # Errors
        ///
        #[doc = concat!("As [`OpenOptions::", stringify!($open), "`](crate::io::OpenOptions::", stringify!($open), ").")]
        ///
        /// # Panics
        ///
        /// Panics outside an executor.
        ///
        /// # Cancel safety
        ///
        /// Dropped in the middle, it may or may not have created or emptied the file. Nothing stays open.
        pub async fn create<P: AsRef<std::path::Path>>(path: P) -> $crate::io::Result<$File> {
            let mut options = $crate::io::OpenOptions::new();
            options.write(true).create(true).truncate(true);
            options.$open(path).await
        }

        /// Opens the file at `path` for reading alone.
        ///
        /// # Errors
        ///
        #[doc = concat!("As [`OpenOptions::", stringify!($open), "`](crate::io::OpenOptions::", stringify!($open), ").")]
        ///
        /// # Panics
        ///
        /// Panics outside an executor.
        ///
        /// # Cancel safety
        ///
        /// Nothing stays open when it is dropped.
        pub async fn open<P: AsRef<std::path::Path>>(path: P) -> $crate::io::Result<$File> {
            $crate::io::OpenOptions::new().read(true).$open(path).await
        }

        /// Whether both are the same file on disk, by whichever paths or from whatever descriptors they
        /// were made.
        pub fn is_same(&self, other: &$File) -> bool {
            self.file.shared().is_same(other.file.shared())
        }

        /// The path by which the file was opened, from the root on, or the one that
        /// [`rename`](Self::rename) gave it. Files without a name have none.
        pub fn path(&self) -> Option<std::cell::Ref<'_, std::path::Path>> {
            self.file.path()
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
        pub async fn truncate(&self, size: u64) -> $crate::io::Result<()> {
            self.file.truncate(size).await
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
        #[doc = concat!("use glommio::io::", stringify!($File), ";")]
        ///
        /// # glommio::LocalExecutor::default().run(async {
        /// # let folder = tempfile::tempdir().unwrap();
        /// # let path = folder.path().join("file");
        #[doc = concat!("let file = ", stringify!($File), "::create(&path).await?;")]
        /// file.pre_allocate(1 << 20, true).await?;
        /// assert_eq!(file.file_size().await?, 0); // the space is there, the size stays
        /// file.truncate(8192).await?;
        /// file.deallocate(0, 4096).await?; // gives the first block back
        /// assert_eq!(file.stat().await?.file_size, 8192);
        /// file.close().await?;
        /// # Ok::<_, glommio::GlommioError<()>>(())
        /// # }).unwrap();
        /// ```
        pub async fn pre_allocate(&self, size: u64, keep_size: bool) -> $crate::io::Result<()> {
            self.file.pre_allocate(size, keep_size).await
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
        pub async fn fdatasync(&self) -> $crate::io::Result<()> {
            self.file.fdatasync().await
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
        pub async fn deallocate(&self, offset: u64, size: u64) -> $crate::io::Result<()> {
            self.file.deallocate(offset, size).await
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
        pub async fn remove(&self) -> $crate::io::Result<()> {
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
        pub async fn link<P: AsRef<std::path::Path>>(&self, path: P) -> $crate::io::Result<()> {
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
        pub async fn file_size(&self) -> $crate::io::Result<u64> {
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
        pub async fn stat(&self) -> $crate::io::Result<$crate::io::Stat> {
            self.file.stat().await
        }
    };
}
pub(super) use file_methods;
