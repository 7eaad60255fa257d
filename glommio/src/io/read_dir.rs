//! What is in a directory.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::Result;
use super::directory::Directory;
use super::error::enhanced;
use super::submit::Submitter;
use crate::reactor::budget;
use crate::sys::file;
use crate::sys::file::entries::{self, Entries, Entry};

/// A name in a directory.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use futures_lite::StreamExt;
/// use glommio::io::{Directory, EntryKind};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("file");
/// std::fs::write(&path, "data")?;
/// let directory = Directory::open(folder.path()).await?;
/// let mut entries = directory.read_dir()?;
/// while let Some(entry) = entries.next().await {
///     let entry = entry?;
///     assert_eq!(entry.file_name(), "file");
///     assert!(matches!(entry.kind(), Some(EntryKind::File) | None));
///     println!("inode {}", entry.inode());
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
    /// What is being looked through.
    block: Entries,
    next: Next,
}

/// Where further names come from.
enum Next {
    /// The directory that nothing was read of yet.
    Unread(OwnedFd),
    Reading(Pin<Box<dyn Future<Output = io::Result<Block>>>>),
    /// As soon as it was asked for: the executor is gone.
    Read(io::Result<Block>),
    Ended,
}

/// What one call on a blocking thread brings.
struct Block {
    entries: Entries,
    /// The directory, if there may be more in it.
    directory: Option<OwnedFd>,
}

impl Directory {
    /// The names in the directory, but for `.` and `..`, from the first one on. Read on a blocking
    /// thread, many at a time, and one block ahead of the task that looks through them.
    ///
    /// Names that are added or removed meanwhile may or may not be among them.
    ///
    /// # Errors
    ///
    /// What duplicating the descriptor gives, such as `EMFILE`. Errors of reading are items of the
    /// stream, which ends with them.
    pub fn read_dir(&self) -> Result<ReadDir> {
        let file = self.file();
        let own = file.named(
            file::duplicate(file.shared().as_fd()),
            "Reading a directory",
        )?;
        Ok(ReadDir {
            submitter: file.submitter().clone(),
            path: file.to_path(),
            block: Entries::default(),
            next: Next::Unread(own),
        })
    }
}

impl ReadDir {
    /// Has the next block read by `read`, into the memory of one that was looked through.
    fn start(
        &mut self,
        entries: Entries,
        read: impl FnOnce(Entries) -> io::Result<Block> + Send + 'static,
    ) {
        let submitter = self.submitter.clone();
        let block = async move { submitter.blocking(move || read(entries)).await };
        self.next = Next::Reading(Box::pin(block));
    }

    /// Looks through `block` from now on. Meanwhile the one after it is read.
    fn take_in(&mut self, block: Block, cx: &mut Context<'_>) {
        let used = std::mem::replace(&mut self.block, block.entries);
        let Some(directory) = block.directory else {
            return;
        };
        self.start(used, move |entries| read(directory, entries));
        // A call begins when it is first polled.
        if let Next::Reading(reading) = &mut self.next
            && let Poll::Ready(ended) = reading.as_mut().poll(cx)
        {
            self.next = Next::Read(ended);
        }
    }
}

/// Reads what follows in `directory`. Blocks.
fn read(directory: OwnedFd, mut entries: Entries) -> io::Result<Block> {
    let has_more = entries.read(directory.as_fd())?;
    Ok(Block {
        entries,
        directory: has_more.then_some(directory),
    })
}

impl DirEntry {
    fn of(entry: Entry<'_>) -> Self {
        DirEntry {
            name: OsStr::from_bytes(entry.name).to_owned(),
            inode: entry.inode,
            kind: EntryKind::of(entry.kind),
        }
    }
}

impl EntryKind {
    fn of(kind: u8) -> Option<Self> {
        Some(match kind {
            libc::DT_FIFO => EntryKind::Fifo,
            libc::DT_CHR => EntryKind::CharacterDevice,
            libc::DT_DIR => EntryKind::Directory,
            libc::DT_BLK => EntryKind::BlockDevice,
            libc::DT_REG => EntryKind::File,
            libc::DT_LNK => EntryKind::Symlink,
            libc::DT_SOCK => EntryKind::Socket,
            _ => return None,
        })
    }
}

impl Stream for ReadDir {
    type Item = Result<DirEntry>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        budget::counted(cx, |cx| {
            loop {
                if let Some(entry) = this.block.next() {
                    return Poll::Ready(Some(Ok(DirEntry::of(entry))));
                }
                match std::mem::replace(&mut this.next, Next::Ended) {
                    Next::Ended => return Poll::Ready(None),
                    Next::Unread(own) => this.start(Entries::default(), move |entries| {
                        read(entries::open_anew(own.as_fd())?, entries)
                    }),
                    Next::Reading(mut reading) => match reading.as_mut().poll(cx) {
                        Poll::Ready(ended) => this.next = Next::Read(ended),
                        Poll::Pending => {
                            this.next = Next::Reading(reading);
                            return Poll::Pending;
                        }
                    },
                    Next::Read(Ok(block)) => this.take_in(block, cx),
                    Next::Read(Err(error)) => {
                        let op = "Reading a directory";
                        let error = enhanced(error, op, this.path.as_deref(), None);
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        })
    }
}

impl_debug! { ReadDir, it: path; .. }
