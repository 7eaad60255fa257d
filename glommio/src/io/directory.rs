//! Directories.

use std::cell::Ref;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Component, Path, PathBuf};

use super::dma_file::DmaFile;
use super::error::enhanced;
use super::open_file::OpenFile;
use super::submit::Submitter;
use super::{Result, paths};
use crate::reactor::budget;
use crate::sys::door::needs_kernel;

/// An open directory: creates and opens files in it, and brings the names of new ones to the
/// device.
///
/// # Examples
///
/// ```
/// use futures_lite::StreamExt;
/// use glommio::io::Directory;
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// let directory = Directory::create(folder.path().join("logs")).await?;
/// directory.create_file("today").await?.close().await?;
/// // From here on the file is there after a crash, too.
/// directory.sync().await?;
/// assert_eq!(directory.sync_read_dir()?.count(), 1);
/// assert!(directory.read_dir()?.next().await.expect("a name")?.file_name() == "today");
/// directory.close().await?;
///
/// let logs = Directory::open(folder.path().join("logs")).await?;
/// logs.try_clone()?.open_file("today").await?.close().await?;
/// logs.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Directory {
    file: OpenFile,
}

impl Directory {
    /// Another descriptor of the same open directory. Each of the two is closed by itself.
    ///
    /// # Errors
    ///
    /// What `fcntl(2)` gives, such as `EMFILE`.
    pub fn try_clone(&self) -> Result<Directory> {
        let copy = self.file.shared().duplicate();
        let copy = self.file.named(copy, "Cloning directory")?;
        Ok(Directory {
            file: OpenFile::of_shared(copy, self.file.to_path()),
        })
    }

    /// Opens the directory at `path`.
    ///
    /// # Errors
    ///
    /// What `open(2)` gives, such as `ENOENT`, or `ENOTDIR` for a file.
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// Nothing stays open when it is dropped.
    pub async fn open<P: AsRef<Path>>(path: P) -> Result<Directory> {
        budget::consume().await;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let file = OpenFile::open(path.as_ref(), flags, 0, "Opening directory").await?;
        Ok(Directory { file })
    }

    /// Opens the file `path`, one name, in this directory, for reading alone, as [`DmaFile::open`].
    ///
    /// # Errors
    ///
    /// `InvalidInput` for more than one name, for none, and for `.` and `..`; else as there.
    ///
    /// # Cancel safety
    ///
    /// Nothing stays open when it is dropped.
    pub async fn open_file<P: AsRef<Path>>(&self, path: P) -> Result<DmaFile> {
        self.file_here(path.as_ref(), libc::O_RDONLY, "Opening")
            .await
    }

    /// Makes a directory at `path`, whose parent must be there, and opens it. One that is there is
    /// opened.
    ///
    /// # Errors
    ///
    /// What `mkdir(2)` and `open(2)` give, such as `ENOENT`, or `ENOTDIR` if there is a file.
    ///
    /// # Panics
    ///
    /// Panics outside an executor.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not have made the directory. Nothing stays open.
    pub async fn create<P: AsRef<Path>>(path: P) -> Result<Directory> {
        let path = path.as_ref();
        let made = paths::make_directory_with(&Submitter::begin().await, path).await;
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            let op = "Synchronously creating directory";
            return Err(enhanced(error, op, Some(path), None));
        }
        Self::open(path).await
    }

    /// Creates the file `path`, one name, in this directory, or empties it if it is there, for
    /// writing alone, as [`DmaFile::create`].
    ///
    /// # Errors
    ///
    /// As [`open_file`](Self::open_file).
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle, it may or may not have created or emptied the file. Nothing stays
    /// open.
    pub async fn create_file<P: AsRef<Path>>(&self, path: P) -> Result<DmaFile> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
        self.file_here(path.as_ref(), flags, "Creating").await
    }

    /// By the descriptor: the directory may have got another path.
    async fn file_here(
        &self,
        name: &Path,
        flags: libc::c_int,
        op: &'static str,
    ) -> Result<DmaFile> {
        budget::consume().await;
        let mut components = name.components();
        let (Some(Component::Normal(name)), None) = (components.next(), components.next()) else {
            let message = "Path cannot contain directories";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message).into());
        };
        let path = self.file.to_path().unwrap_or_default().join(name);
        let flags = flags | libc::O_CLOEXEC;
        let (here, name) = (Some(self.file.descriptor()), Path::new(name));
        let file = OpenFile::open_at(here, name, &path, flags, 0o666, op).await?;
        DmaFile::of(file, op)
    }

    /// What is in the directory at the path of this one. Blocks the thread, as the name says.
    ///
    /// # Errors
    ///
    /// As [`std::fs::read_dir`]. Kind `Unsupported` in a simulation.
    pub fn sync_read_dir(&self) -> Result<std::fs::ReadDir> {
        let path: PathBuf = self.file.to_path().unwrap_or_default();
        let read = needs_kernel("a directory of the standard library");
        self.file.named(
            read.and_then(|()| std::fs::read_dir(path)),
            "Reading a directory",
        )
    }

    /// Brings the names in the directory to the device: what was created, renamed and removed in
    /// it.
    ///
    /// # Errors
    ///
    /// What `fsync(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// It may or may not happen when it is dropped.
    pub async fn sync(&self) -> Result<()> {
        Ok(self.file.sync(false).await?)
    }

    pub(super) fn file(&self) -> &OpenFile {
        &self.file
    }

    /// Closes the directory, once the operations on it whose futures were dropped are over.
    ///
    /// # Errors
    ///
    /// What `close(2)` gives; it is closed all the same.
    ///
    /// # Cancel safety
    ///
    /// The directory is closed when it is dropped.
    pub async fn close(self) -> Result<()> {
        self.file.close().await
    }

    /// The path by which the directory was opened, from the root on.
    pub fn path(&self) -> Option<Ref<'_, Path>> {
        self.file.path()
    }
}

impl AsRawFd for Directory {
    fn as_raw_fd(&self) -> RawFd {
        self.file.fd()
    }
}
