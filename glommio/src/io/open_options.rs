//! How a file is to be opened.

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use super::Result;
use super::error::errno;
use super::open_file::OpenFile;
use crate::reactor::budget;

/// How a file is opened: for what, and whether it is created.
///
/// The methods are those of [`std::fs::OpenOptions`], which open a file at the end as a
/// [`DmaFile`](super::DmaFile) or a [`BufferedFile`](super::BufferedFile).
///
/// # Examples
///
/// ```
/// use glommio::io::OpenOptions;
///
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// let mut options = OpenOptions::new();
/// options.read(true).write(true).create(true);
/// let file = options.buffered_open(&path).await?;
/// file.write_at(b"hello".to_vec(), 0).await?;
/// file.close().await?;
///
/// let file = options.dma_open(&path).await?; // past the page cache
/// assert_eq!(&*file.read_at(0, 5).await?, b"hello");
/// file.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    mode: libc::mode_t,
    custom_flags: libc::c_int,
    create: bool,
    create_new: bool,
    read: bool,
    tmpfile: bool,
    tmpfile_linkable: bool,
    write: bool,
    truncate: bool,
    append: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// Nothing is allowed and nothing created; a file that is created later has the mode `0o666`,
    /// less the process's mask.
    pub fn new() -> Self {
        OpenOptions {
            mode: 0o666,
            custom_flags: 0,
            create: false,
            create_new: false,
            read: false,
            tmpfile: false,
            tmpfile_linkable: false,
            write: false,
            truncate: false,
            append: false,
        }
    }

    /// Whether the file is created if there is none. Needs write access.
    pub fn create(&mut self, yes: bool) -> &mut Self {
        self.create = yes;
        self
    }

    /// The permissions of a file that is created, before the process's mask is taken off.
    pub fn mode(&mut self, mode: libc::mode_t) -> &mut Self {
        self.mode = mode;
        self
    }

    /// Whether the file can be written.
    pub fn write(&mut self, yes: bool) -> &mut Self {
        self.write = yes;
        self
    }

    /// Whether what is in the file is dropped when it is opened. Needs write access.
    pub fn truncate(&mut self, yes: bool) -> &mut Self {
        self.truncate = yes;
        self
    }

    /// Whether the file can be read.
    pub fn read(&mut self, yes: bool) -> &mut Self {
        self.read = yes;
        self
    }

    /// Further flags of `open(2)`. Those that say whether the file is read or written are left out.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::io::OpenOptions;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("file");
    /// let log = OpenOptions::new()
    ///     .create_new(true) // an error if it exists
    ///     .mode(0o600)
    ///     .write(true)
    ///     .append(true)
    ///     .custom_flags(libc::O_NOATIME)
    ///     .buffered_open(&path)
    ///     .await?;
    /// log.close().await?;
    ///
    /// let data = OpenOptions::new().read(true).write(true).truncate(true).dma_open(&path).await?;
    /// data.close().await?;
    ///
    /// // Without a name, and gone when it is closed.
    /// let mut options = OpenOptions::new();
    /// options.read(true).write(true).tmpfile(true).tmpfile_linkable(false);
    /// options.dma_open(folder.path()).await?.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.custom_flags = flags;
        self
    }

    /// Whether the file is created, and must not be there before; `create` and `truncate` do not
    /// matter then. Needs write access.
    pub fn create_new(&mut self, yes: bool) -> &mut Self {
        self.create_new = yes;
        self
    }

    /// Whether the file can be written, at its end alone.
    ///
    /// **The kernel then ignores the position of each write** and appends. That of `write_at` means
    /// nothing, and the writing streams, which count from the beginning, take a wrong view of the
    /// file. The flag belongs to the open file: duplicates of the descriptor have it, too.
    pub fn append(&mut self, yes: bool) -> &mut Self {
        self.append = yes;
        self
    }

    /// Whether a file that [`tmpfile`](Self::tmpfile) creates may be given a name later:
    /// [`DmaFile::link`](super::DmaFile::link), [`BufferedFile::link`](super::BufferedFile::link).
    pub fn tmpfile_linkable(&mut self, yes: bool) -> &mut Self {
        self.tmpfile_linkable = yes;
        self
    }

    /// Whether the path is that of a directory, in whose filesystem a file without a name is
    /// created, gone with its last descriptor. `create_new`, `create` and `truncate` do not
    /// matter then. Needs write access.
    pub fn tmpfile(&mut self, yes: bool) -> &mut Self {
        self.tmpfile = yes;
        self
    }

    /// Opens the file with all flags but `without`.
    pub(super) async fn open(&self, path: &Path, without: libc::c_int) -> Result<OpenFile> {
        budget::consume().await;
        let flags = self.flags()? & !without;
        OpenFile::open(path, flags, self.mode, self.op()).await
    }

    /// What an error says was attempted.
    pub(super) fn op(&self) -> &'static str {
        if self.create || self.create_new || self.tmpfile {
            "Creating"
        } else {
            "Opening"
        }
    }

    /// The flags of `open(2)`.
    fn flags(&self) -> io::Result<libc::c_int> {
        let access = match (self.read, self.write, self.append) {
            (true, false, false) => libc::O_RDONLY,
            (false, true, false) => libc::O_WRONLY,
            (true, true, false) => libc::O_RDWR,
            (false, _, true) => libc::O_WRONLY | libc::O_APPEND,
            (true, _, true) => libc::O_RDWR | libc::O_APPEND,
            (false, false, false) => return Err(errno(libc::EINVAL)),
        };
        let makes_new = self.create_new || self.tmpfile;
        let is_written = self.write || self.append;
        if !is_written && (self.truncate || self.create || makes_new)
            || self.append && self.truncate && !makes_new
        {
            return Err(errno(libc::EINVAL));
        }
        let creation = match (self.tmpfile, self.tmpfile_linkable, self.create_new) {
            (true, true, _) => libc::O_TMPFILE,
            (true, false, _) => libc::O_TMPFILE | libc::O_EXCL,
            (false, _, true) => libc::O_CREAT | libc::O_EXCL,
            (false, _, false) => {
                let create = if self.create { libc::O_CREAT } else { 0 };
                let truncate = if self.truncate { libc::O_TRUNC } else { 0 };
                create | truncate
            }
        };
        let custom = self.custom_flags & !libc::O_ACCMODE;
        Ok(access | creation | custom | libc::O_CLOEXEC)
    }
}
