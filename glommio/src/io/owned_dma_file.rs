//! Files on their way from one executor to another, and handles that keep none open.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use super::Result;
use super::error::enhanced;
use super::open_file::SharedFile;

/// An open file without an executor, which can be sent to another thread.
///
/// Made from a [`DmaFile`](super::DmaFile), and made into one again in an executor. Dropping the
/// last clone closes the file, on the spot.
///
/// # Examples
///
/// ```
/// use glommio::LocalExecutorBuilder;
/// use glommio::io::{DmaFile, OwnedDmaFile};
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, "content")?;
/// let file = OwnedDmaFile::from(DmaFile::open(&path).await?);
/// let other = LocalExecutorBuilder::default().spawn(|| async move {
///     let file = DmaFile::from(file);
///     let size = file.file_size().await?;
///     file.close().await?;
///     Ok::<_, glommio::GlommioError<()>>(size)
/// })?;
/// assert_eq!(other.join()??, 7);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct OwnedDmaFile {
    shared: Arc<SharedFile>,
    path: Option<PathBuf>,
}

impl OwnedDmaFile {
    pub(super) fn of(shared: Arc<SharedFile>, path: Option<PathBuf>) -> Self {
        OwnedDmaFile { shared, path }
    }

    pub(super) fn into_parts(self) -> (Arc<SharedFile>, Option<PathBuf>) {
        (self.shared, self.path)
    }

    /// Another descriptor of the same open file, with the same flags. Each of the two is closed by
    /// itself.
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives, such as `EMFILE`.
    pub fn dup(&self) -> Result<Self> {
        let shared = self
            .shared
            .duplicate()
            .map_err(|error| enhanced(error, "Duplicating", self.path(), Some(self.as_raw_fd())))?;
        Ok(OwnedDmaFile {
            shared,
            path: self.path.clone(),
        })
    }

    /// The path by which the file was opened.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// As [`DmaFile::inode`](super::DmaFile::inode).
    pub fn inode(&self) -> u64 {
        self.shared.inode
    }

    /// As [`DmaFile::dev_major`](super::DmaFile::dev_major).
    pub fn dev_major(&self) -> u32 {
        self.shared.device.0
    }

    /// As [`DmaFile::dev_minor`](super::DmaFile::dev_minor).
    pub fn dev_minor(&self) -> u32 {
        self.shared.device.1
    }

    /// As [`DmaFile::alignment`](super::DmaFile::alignment).
    pub fn alignment(&self) -> u64 {
        self.shared.limits.alignment
    }

    /// How many clones there are, this one included, on all threads.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::io::{DmaFile, OwnedDmaFile};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let file = OwnedDmaFile::from(DmaFile::create(&path).await?);
    /// println!("inode {} on {}:{}", file.inode(), file.dev_major(), file.dev_minor());
    /// println!("{:?} moves blocks of {} bytes", file.path(), file.alignment());
    /// let duplicate = file.dup()?; // a descriptor of its own
    /// let weak = file.downgrade(); // does not keep the file open
    /// assert_eq!((file.strong_count(), weak.strong_count()), (1, 1));
    /// assert_eq!(weak.upgrade().map(|it| it.inode()), Some(duplicate.inode()));
    /// drop(file);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn strong_count(&self) -> usize {
        Arc::strong_count(&self.shared)
    }

    /// A handle that does not keep the file open.
    pub fn downgrade(&self) -> WeakDmaFile {
        WeakDmaFile::new_of(&self.shared, self.path.clone())
    }
}

impl AsRawFd for OwnedDmaFile {
    fn as_raw_fd(&self) -> RawFd {
        self.shared.as_fd().as_raw_fd()
    }
}

impl AsFd for OwnedDmaFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }
}

/// A handle on a file that does not keep it open, and can be sent to another thread.
///
/// What it says of the file it says also when that is closed.
#[derive(Clone, Debug, Default)]
pub struct WeakDmaFile {
    shared: Weak<SharedFile>,
    path: Option<PathBuf>,
    inode: u64,
    device: (u32, u32),
    alignment: u64,
}

impl WeakDmaFile {
    /// One of no file.
    pub fn new() -> Self {
        WeakDmaFile::default()
    }

    pub(super) fn new_of(shared: &Arc<SharedFile>, path: Option<PathBuf>) -> Self {
        WeakDmaFile {
            shared: Arc::downgrade(shared),
            path,
            inode: shared.inode,
            device: shared.device,
            alignment: shared.limits.alignment,
        }
    }

    /// The file, if it is still open.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::io::{DmaFile, OwnedDmaFile, WeakDmaFile};
    ///
    /// assert!(WeakDmaFile::new().upgrade().is_none(), "of no file");
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let file = OwnedDmaFile::from(DmaFile::create(&path).await?);
    /// let weak = file.downgrade();
    /// assert_eq!(weak.path(), file.path());
    /// assert_eq!((weak.inode(), weak.alignment()), (file.inode(), file.alignment()));
    /// assert_eq!((weak.dev_major(), weak.dev_minor()), (file.dev_major(), file.dev_minor()));
    /// assert_eq!(weak.strong_count(), 1);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn upgrade(&self) -> Option<OwnedDmaFile> {
        Some(OwnedDmaFile {
            shared: self.shared.upgrade()?,
            path: self.path.clone(),
        })
    }

    /// How many keep the file open.
    pub fn strong_count(&self) -> usize {
        self.shared.strong_count()
    }

    /// The path by which the file was opened.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// As [`DmaFile::inode`](super::DmaFile::inode); 0 of no file.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// As [`DmaFile::dev_major`](super::DmaFile::dev_major); 0 of no file.
    pub fn dev_major(&self) -> u32 {
        self.device.0
    }

    /// As [`DmaFile::dev_minor`](super::DmaFile::dev_minor); 0 of no file.
    pub fn dev_minor(&self) -> u32 {
        self.device.1
    }

    /// As [`DmaFile::alignment`](super::DmaFile::alignment); 0 of no file.
    pub fn alignment(&self) -> u64 {
        self.alignment
    }
}
