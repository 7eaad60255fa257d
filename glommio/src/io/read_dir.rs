//! What is in a directory.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};

use futures_core::Stream;
use nix::dir::{Dir, OwningIter, Type};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use super::Result;
use super::directory::Directory;
use super::error::enhanced;
use super::submit::Submitter;
use crate::sys::file;

/// Names that one call on a blocking thread brings.
const BATCH: usize = 1024;

/// A name in a directory.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use futures_lite::StreamExt;
/// use glommio::io::Directory;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, "data")?;
/// let directory = Directory::open(folder.path()).await?;
/// let mut entries = directory.read_dir()?;
/// while let Some(entry) = entries.next().await {
///     let entry = entry?;
///     assert_eq!(entry.file_name(), "file");
///     println!("inode {}: {:?}", entry.inode(), entry.kind());
/// }
/// # drop(entries);
/// directory.close().await?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    name: OsString,
    inode: u64,
    kind: Option<EntryKind>,
}

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device of blocks.
    BlockDevice,
    /// A device of characters.
    CharacterDevice,
    /// A named pipe.
    Fifo,
    /// A socket of the Unix domain.
    Socket,
}

impl DirEntry {
    /// The name, without the path of the directory.
    pub fn file_name(&self) -> &OsStr {
        &self.name
    }

    /// The number of the file in its filesystem.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// What it is. `None` where the filesystem does not say so here.
    pub fn kind(&self) -> Option<EntryKind> {
        self.kind
    }
}

/// The names in a directory, in no particular order. See [`Directory::read_dir`].
#[must_use = "streams do nothing unless they are polled"]
pub struct ReadDir {
    submitter: Submitter,
    path: Option<PathBuf>,
    names: VecDeque<DirEntry>,
    source: Source,
}

/// Where further names come from.
enum Source {
    Ready(Reader),
    Reading(Pin<Box<dyn Future<Output = io::Result<Batch>>>>),
    Ended,
}

/// The directory, as it is handed to and fro.
enum Reader {
    Unopened(OwnedFd),
    Open(OwningIter),
}

struct Batch {
    names: VecDeque<DirEntry>,
    /// If there may be more.
    reader: Option<Reader>,
}

impl Directory {
    /// The names in the directory, but for `.` and `..`, from the first one on. Read on a blocking
    /// thread, many at a time.
    ///
    /// Names that are added or removed meanwhile may or may not be among them.
    ///
    /// # Errors
    ///
    /// What duplicating the descriptor gives, such as `EMFILE`. Errors of reading are items of the
    /// stream, which ends with them.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::StreamExt;
    /// use glommio::io::{Directory, EntryKind};
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// std::fs::write(folder.path().join("file"), "content")?;
    /// let directory = Directory::open(folder.path()).await?;
    /// let mut names = directory.read_dir()?;
    /// while let Some(entry) = names.next().await {
    ///     let entry = entry?;
    ///     assert_eq!(entry.file_name(), "file");
    ///     assert!(matches!(entry.kind(), Some(EntryKind::File) | None));
    /// }
    /// directory.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn read_dir(&self) -> Result<ReadDir> {
        let file = self.file();
        let own = file.named(
            file::duplicate(file.shared().as_fd()),
            "Reading a directory",
        )?;
        Ok(ReadDir {
            submitter: file.submitter().clone(),
            path: file.to_path(),
            names: VecDeque::new(),
            source: Source::Ready(Reader::Unopened(own)),
        })
    }
}

impl Reader {
    /// Reads the next names. Blocks.
    fn read(self) -> io::Result<Batch> {
        let mut entries = match self {
            // Opened anew: where it stands is not shared with the descriptor that it was made from.
            Reader::Unopened(fd) => {
                let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
                Dir::openat(&fd, ".", flags, Mode::empty())?.into_iter()
            }
            Reader::Open(entries) => entries,
        };
        let mut names = VecDeque::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            names.push_back(DirEntry {
                name: OsStr::from_bytes(name).to_owned(),
                inode: entry.ino(),
                kind: entry.file_type().map(EntryKind::of),
            });
            if names.len() == BATCH {
                let reader = Some(Reader::Open(entries));
                return Ok(Batch { names, reader });
            }
        }
        Ok(Batch {
            names,
            reader: None,
        })
    }
}

impl EntryKind {
    fn of(kind: Type) -> Self {
        match kind {
            Type::Fifo => EntryKind::Fifo,
            Type::CharacterDevice => EntryKind::CharacterDevice,
            Type::Directory => EntryKind::Directory,
            Type::BlockDevice => EntryKind::BlockDevice,
            Type::File => EntryKind::File,
            Type::Symlink => EntryKind::Symlink,
            Type::Socket => EntryKind::Socket,
        }
    }
}

impl Stream for ReadDir {
    type Item = Result<DirEntry>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(name) = this.names.pop_front() {
                return Poll::Ready(Some(Ok(name)));
            }
            match std::mem::replace(&mut this.source, Source::Ended) {
                Source::Ended => return Poll::Ready(None),
                Source::Ready(reader) => {
                    let submitter = this.submitter.clone();
                    let batch = async move { submitter.blocking(|| reader.read()).await };
                    this.source = Source::Reading(Box::pin(batch));
                }
                Source::Reading(mut batch) => {
                    let Poll::Ready(ended) = batch.as_mut().poll(cx) else {
                        this.source = Source::Reading(batch);
                        return Poll::Pending;
                    };
                    let Batch { names, reader } = match ended {
                        Ok(batch) => batch,
                        Err(error) => {
                            let op = "Reading a directory";
                            let error = enhanced(error, op, this.path.as_deref(), None);
                            return Poll::Ready(Some(Err(error)));
                        }
                    };
                    this.names = names;
                    this.source = reader.map_or(Source::Ended, Source::Ready);
                }
            }
        }
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
