//! The directory of a log and its files: those of the system or, in this crate's own tests, of a
//! disk in memory that loses what was not synced.
//!
//! Files are written in whole units of 4 KiB. A name is durable once the directory was synced.

use std::cell::RefCell;
use std::ops::Deref;
use std::path::{Path, PathBuf};
#[cfg(test)]
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_lite::StreamExt;
use glommio::GlommioError;
use glommio::io::{AdvisoryLockGuard, Directory, DmaFile, EntryKind, OpenOptions, ReadResult};
use glommio::timer::sleep;

use super::error::Error;
use super::format::{MANIFEST, UNIT, is_log_file};
#[cfg(test)]
use super::simulation;

type Result<T> = std::result::Result<T, Error>;

/// How long the lock of a process that was killed may take to go.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The directory of one log, and its lock.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    place: Place,
    is_read_only: bool,
}

#[derive(Debug)]
enum Place {
    System {
        directory: Directory,
        /// Held until everything that writes has ended.
        lock: RefCell<Option<AdvisoryLockGuard>>,
    },
    #[cfg(test)]
    Simulated(Rc<simulation::Disk>),
}

impl Folder {
    /// Opens the directory, or creates it, and locks it.
    pub async fn open(path: &Path) -> Result<Self> {
        let folder = Self::of(path, create_directory(path).await?, false);
        // Before a file is opened: that of a named pipe would wait for another end.
        folder.names().await?;
        let locked = lock(path).await?;
        match &folder.place {
            Place::System { lock, .. } => lock.replace(Some(locked)),
            #[cfg(test)]
            Place::Simulated(_) => None,
        };
        Ok(folder)
    }

    /// Opens the directory, which is not changed, and which another process may change.
    pub async fn open_read_only(path: &Path) -> Result<Self> {
        let opened = Directory::open(path).await;
        let directory = opened.map_err(|error| Error::io("open", path)(error.into()))?;
        Ok(Self::of(path, directory, true))
    }

    fn of(path: &Path, directory: Directory, is_read_only: bool) -> Self {
        let lock = RefCell::default();
        Self {
            path: path.to_owned(),
            place: Place::System { directory, lock },
            is_read_only,
        }
    }

    #[cfg(test)]
    pub fn simulated(disk: Rc<simulation::Disk>) -> Self {
        Self {
            path: PathBuf::from("simulated"),
            place: Place::Simulated(disk),
            is_read_only: false,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets others open it.
    pub async fn unlock(&self) -> Result<()> {
        match &self.place {
            Place::System { lock, .. } => {
                let lock = lock.take();
                if let Some(lock) = lock {
                    let unlocked = lock.unlock().await;
                    unlocked.map_err(|error| Error::io("unlock", &self.path)(error.into()))?;
                }
                Ok(())
            }
            #[cfg(test)]
            Place::Simulated(_) => Ok(()),
        }
    }

    /// The names of its files, after a look at whether those of a log are files.
    pub async fn names(&self) -> Result<Vec<String>> {
        match &self.place {
            Place::System { directory, .. } => {
                let failed = |error: GlommioError<()>| Error::io("list", &self.path)(error.into());
                let mut entries = directory.read_dir().map_err(failed)?;
                let mut names = Vec::new();
                while let Some(entry) = entries.next().await {
                    let entry = entry.map_err(failed)?;
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
            #[cfg(test)]
            Place::Simulated(disk) => disk.names().await.map_err(Error::io("list", &self.path)),
        }
    }

    /// A new file, in the place of one of the same name.
    pub async fn create(&self, name: &str) -> Result<File> {
        // A file of its own: a write that a process before began, and that is still under way, must
        // not reach it.
        self.remove(name).await?;
        self.open_file(name, true).await
    }

    pub async fn open_existing(&self, name: &str) -> Result<File> {
        self.open_file(name, false).await
    }

    async fn open_file(&self, name: &str, is_new: bool) -> Result<File> {
        let path = self.path.join(name);
        let operation = if is_new { "create" } else { "open" };
        let content = match &self.place {
            Place::System { .. } => {
                let mut options = OpenOptions::new();
                options.read(true);
                if !self.is_read_only {
                    options.write(true).create_new(is_new);
                }
                let opened = options.dma_open(&path).await;
                let file = opened.map_err(|error| Error::io(operation, &path)(error.into()))?;
                Content::System(file)
            }
            #[cfg(test)]
            Place::Simulated(disk) => {
                let opened = disk.open(name, is_new).await;
                let inode = opened.map_err(Error::io(operation, &path))?;
                Content::Simulated(Rc::clone(disk), inode)
            }
        };
        Ok(File { path, content })
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
        match &self.place {
            Place::System { .. } => glommio::io::rename(&path, self.path.join(to))
                .await
                .map_err(|error| Error::io("rename", &path)(error.into())),
            #[cfg(test)]
            Place::Simulated(disk) => {
                let renamed = disk.rename(from, to).await;
                renamed.map_err(Error::io("rename", &path))
            }
        }
    }

    /// Removes a file, if it is there.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        let removed = match &self.place {
            Place::System { .. } => glommio::io::remove(&path)
                .await
                .map_err(std::io::Error::from),
            #[cfg(test)]
            Place::Simulated(disk) => disk.remove(name).await,
        };
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io("remove", &path)),
        }
    }

    /// Makes names durable.
    pub async fn sync(&self) -> Result<()> {
        let synced = match &self.place {
            Place::System { directory, .. } => directory.sync().await.map_err(Into::into),
            #[cfg(test)]
            Place::Simulated(disk) => disk.sync_names().await,
        };
        synced.map_err(Error::io("sync", &self.path))
    }
}

/// Of a file that is to become another one.
pub(super) fn new_name(name: &str) -> String {
    format!("{name}.new")
}

/// Opens a directory, or creates it, and makes its name durable.
pub(super) async fn create_directory(path: &Path) -> Result<Directory> {
    let opened = Directory::create(path).await;
    let directory = opened.map_err(|error| Error::io("open", path)(error.into()))?;
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty());
    let parent_path = parent.unwrap_or(Path::new("."));
    let synced = async {
        let parent = Directory::open(parent_path).await?;
        parent.sync().await?;
        parent.close().await
    };
    (synced.await).map_err(|error| Error::io("sync", parent_path)(error.into()))?;
    Ok(directory)
}

async fn lock(folder: &Path) -> Result<AdvisoryLockGuard> {
    let path = folder.join("LOCK");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    let opened = options.dma_open(&path).await;
    let file = opened.map_err(|error| Error::io("create", &path)(error.into()))?;
    let start = Instant::now();
    loop {
        match file.try_lock_exclusive().await {
            Ok(guard) => return Ok(guard),
            Err(glommio::GlommioError::WouldBlock(_)) if start.elapsed() < LOCK_PATIENCE => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(glommio::GlommioError::WouldBlock(_)) => {
                let path = folder.to_owned();
                return Err(Error::Locked { path });
            }
            Err(error) => return Err(Error::io("lock", &path)(error.into())),
        }
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    System(DmaFile),
    #[cfg(test)]
    Simulated(Rc<simulation::Disk>, simulation::Inode),
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
        let size = match &self.content {
            Content::System(file) => file.file_size().await.map_err(Into::into),
            #[cfg(test)]
            Content::Simulated(disk, inode) => disk.size(*inode).await,
        };
        size.map_err(Error::io("look at", &self.path))
    }

    /// Writes all of `bytes`, whole units.
    pub async fn write(&self, bytes: &[u8], position: u64) -> Result<()> {
        debug_assert!(
            bytes.len().is_multiple_of(UNIT) && position.is_multiple_of(UNIT as u64),
            "only whole units are written"
        );
        let written = match &self.content {
            Content::System(file) => {
                let mut buffer = file.alloc_dma_buffer(bytes.len());
                buffer.as_bytes_mut()[..bytes.len()].copy_from_slice(bytes);
                file.write_all_at(buffer, position)
                    .await
                    .map_err(Into::into)
            }
            #[cfg(test)]
            Content::Simulated(disk, inode) => disk.write(*inode, bytes, position).await,
        };
        written.map_err(Error::io("write", &self.path))
    }

    /// Reads as much as there is of `length` bytes.
    pub async fn read(&self, position: u64, length: usize) -> Result<Bytes> {
        let read = match &self.content {
            Content::System(file) => match file.read_at(position, length).await {
                Ok(read) => Ok(Bytes::System(read)),
                Err(error) => Err(error.into()),
            },
            #[cfg(test)]
            Content::Simulated(disk, inode) => {
                let read = disk.read(*inode, position, length).await;
                read.map(Bytes::Simulated)
            }
        };
        read.map_err(Error::io("read", &self.path))
    }

    /// Makes what was written durable.
    pub async fn sync(&self) -> Result<()> {
        let synced = match &self.content {
            Content::System(file) => file.fdatasync().await.map_err(Into::into),
            #[cfg(test)]
            Content::Simulated(disk, inode) => disk.sync(*inode).await,
        };
        synced.map_err(Error::io("sync", &self.path))
    }

    /// Closes it once all that was given up is over.
    pub async fn close(self) -> Result<()> {
        match self.content {
            Content::System(file) => file
                .close()
                .await
                .map_err(|error| Error::io("close", &self.path)(error.into())),
            #[cfg(test)]
            Content::Simulated(..) => Ok(()),
        }
    }
}

/// What was read.
#[derive(Debug)]
pub(super) enum Bytes {
    System(ReadResult),
    #[cfg(test)]
    Simulated(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::System(read) => read,
            #[cfg(test)]
            Bytes::Simulated(bytes) => bytes,
        }
    }
}
