//! The directory of a log and its files.
//!
//! Files are written in whole units of 4 KiB. A name is durable once the directory was synced.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_lite::StreamExt;
use glommio::GlommioError;
use glommio::io::{AdvisoryLockGuard, Directory, DmaFile, EntryKind, OpenOptions, ReadResult};
use glommio::timer::sleep;

use super::error::Error;
use super::format::{MANIFEST, UNIT, is_log_file};

type Result<T> = std::result::Result<T, Error>;

/// How long the lock of a process that was killed may take to go, and how often it is looked for in that time.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_LOOKS: u32 = 100;

/// An error of glommio, as one of an operation on a file or directory.
fn failed(operation: &'static str, path: &Path) -> impl Fn(GlommioError<()>) -> Error {
    move |error| Error::io(operation, path)(error.into())
}

/// The directory of one log, and its lock.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    directory: Directory,
    /// Held until everything that writes has ended.
    lock: RefCell<Option<AdvisoryLockGuard>>,
    is_read_only: bool,
}

impl Folder {
    /// Opens the directory, or creates it, and locks it.
    pub async fn open(path: &Path) -> Result<Self> {
        let folder = Self::of(path, create_directory(path).await?, false);
        // Before a file is opened: that of a named pipe would wait for another end.
        folder.names().await?;
        folder.lock.replace(Some(lock(path).await?));
        Ok(folder)
    }

    /// Opens the directory, which is not changed, and which another process may change.
    pub async fn open_read_only(path: &Path) -> Result<Self> {
        let directory = Directory::open(path).await.map_err(failed("open", path))?;
        Ok(Self::of(path, directory, true))
    }

    fn of(path: &Path, directory: Directory, is_read_only: bool) -> Self {
        Self {
            path: path.to_owned(),
            directory,
            lock: RefCell::default(),
            is_read_only,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets others open it.
    pub async fn unlock(&self) -> Result<()> {
        let lock = self.lock.take();
        match lock {
            Some(lock) => lock.unlock().await.map_err(failed("unlock", &self.path)),
            None => Ok(()),
        }
    }

    /// The names of its files, after a look at whether those of a log are files.
    pub async fn names(&self) -> Result<Vec<String>> {
        let failed = failed("list", &self.path);
        let mut entries = self.directory.read_dir().map_err(&failed)?;
        let mut names = Vec::new();
        while let Some(entry) = entries.next().await {
            let entry = entry.map_err(&failed)?;
            let Some(name) = entry.file_name().to_str() else {
                continue;
            };
            let is_known = is_log_file(name) || ["LOCK", MANIFEST].contains(&name);
            if is_known && entry.kind().is_some_and(|kind| kind != EntryKind::File) {
                return Err(Error::corrupt(&self.path.join(name), 0, "it is no file"));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// A new file, in the place of one of the same name.
    pub async fn create(&self, name: &str) -> Result<File> {
        // A file of its own: a write that a process before began, and that is still under way, must
        // not reach it.
        self.remove(name).await?;
        self.open_file(name, true).await
    }

    /// A new file that is durable, if `write` has written all of it, which it tells. What is half made is
    /// removed, so that it takes no space; so it is the directory that an error names.
    pub async fn make(
        &self,
        name: &str,
        write: impl AsyncFnOnce(&File) -> Result<bool>,
    ) -> Result<Option<File>> {
        let file = self.create(name).await?;
        let mut made = write(&file).await;
        if let Ok(true) = made {
            made = file.sync().await.map(|()| true);
        }
        if let Ok(true) = made {
            return Ok(Some(file));
        }
        file.close().await?;
        self.remove(name).await?;
        made.map(|_| None)
            .map_err(|error| error.in_folder(&self.path))
    }

    pub async fn open_existing(&self, name: &str) -> Result<File> {
        self.open_file(name, false).await
    }

    async fn open_file(&self, name: &str, is_new: bool) -> Result<File> {
        let path = self.path.join(name);
        let operation = if is_new { "create" } else { "open" };
        let mut options = OpenOptions::new();
        options.read(true);
        if !self.is_read_only {
            options.write(true).create_new(is_new);
        }
        let file = options.dma_open(&path).await;
        let file = file.map_err(failed(operation, &path))?;
        Ok(File { path, file })
    }

    /// Writes what a file is to become, and makes it and all names so far durable.
    pub async fn stage(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let file = self.create(&new_name(name)).await?;
        file.write(bytes, 0).await?;
        file.sync().await?;
        file.close().await?;
        self.sync().await
    }

    /// Makes a file what was written for it. If this fails, it may be so or not.
    pub async fn publish(&self, name: &str) -> Result<()> {
        self.rename(&new_name(name), name).await?;
        self.sync().await
    }

    /// Gives a file another name, in the place of a file that has it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let path = self.path.join(from);
        let renamed = glommio::io::rename(&path, self.path.join(to)).await;
        renamed.map_err(failed("rename", &path))
    }

    /// Removes a file, if it is there.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        match glommio::io::remove(&path)
            .await
            .map_err(failed("remove", &path))
        {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed,
        }
    }

    /// Makes names durable.
    pub async fn sync(&self) -> Result<()> {
        self.directory
            .sync()
            .await
            .map_err(failed("sync", &self.path))
    }
}

/// Of a file that is to become another one.
pub(super) fn new_name(name: &str) -> String {
    format!("{name}.new")
}

/// Opens a directory, or creates it, and makes its name durable.
async fn create_directory(path: &Path) -> Result<Directory> {
    let directory = Directory::create(path)
        .await
        .map_err(failed("open", path))?;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    let parent_path = parent.unwrap_or(Path::new("."));
    let synced = async {
        let parent = Directory::open(parent_path).await?;
        parent.sync().await?;
        parent.close().await
    };
    synced.await.map_err(failed("sync", parent_path))?;
    Ok(directory)
}

async fn lock(folder: &Path) -> Result<AdvisoryLockGuard> {
    let path = folder.join("LOCK");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    let file = options.dma_open(&path).await;
    let file = file.map_err(failed("create", &path))?;
    for _ in 0..LOCK_LOOKS {
        match file.try_lock_exclusive().await {
            Err(GlommioError::WouldBlock(_)) => sleep(LOCK_PATIENCE / LOCK_LOOKS).await,
            locked => return locked.map_err(failed("lock", &path)),
        }
    }
    let path = folder.to_owned();
    Err(Error::Locked { path })
}

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    file: DmaFile,
}

impl File {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that it has another name.
    pub fn renamed(&mut self, path: PathBuf) {
        self.path = path;
    }

    pub async fn size(&self) -> Result<u64> {
        let size = self.file.file_size().await;
        size.map_err(failed("look at", &self.path))
    }

    /// Writes all of `bytes`, whole units.
    pub async fn write(&self, bytes: &[u8], position: u64) -> Result<()> {
        debug_assert!(
            bytes.len().is_multiple_of(UNIT) && position.is_multiple_of(UNIT as u64),
            "only whole units are written"
        );
        let mut buffer = self.file.alloc_dma_buffer(bytes.len());
        buffer.as_bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        let written = self.file.write_all_at(buffer, position).await;
        written.map_err(failed("write", &self.path))
    }

    /// Reads as much as there is of `length` bytes.
    pub async fn read(&self, position: u64, length: usize) -> Result<ReadResult> {
        let read = self.file.read_at(position, length).await;
        read.map_err(failed("read", &self.path))
    }

    /// Makes what was written durable.
    pub async fn sync(&self) -> Result<()> {
        let synced = self.file.fdatasync().await;
        synced.map_err(failed("sync", &self.path))
    }

    /// Closes it once all that was given up is over.
    pub async fn close(self) -> Result<()> {
        self.file.close().await.map_err(failed("close", &self.path))
    }
}
