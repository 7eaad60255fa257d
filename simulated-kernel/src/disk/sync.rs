//! Making durable what was written.

use std::ops::Range;

use super::content::Snapshot;
use super::inode::{Ino, Node};
use super::open_file::FileId;
use super::state::{Disk, Result};

/// A sync that has begun.
#[derive(Debug)]
#[must_use = "nothing is durable until it ends"]
pub struct PendingSync {
    file: FileId,
    what: What,
}

#[derive(Debug)]
enum What {
    Data(Snapshot),
    /// Of a directory, before the operation on names with this number.
    Names(Ino, u64),
}

impl Disk {
    /// Begins a sync: what is written from now on is not part of it.
    ///
    /// # Errors
    ///
    /// `EBADF` if it is not open, or by `O_PATH` only.
    pub fn begin_sync(&mut self, file: FileId) -> Result<PendingSync> {
        self.begin_sync_of(file, 0..u64::MAX)
    }

    /// Ends a sync. The file stays open until then.
    ///
    /// # Errors
    ///
    /// `EIO` if it fails by chance; `EBADF` if the file was closed, and then nothing is durable.
    pub fn end_sync(&mut self, pending: PendingSync) -> Result<()> {
        let PendingSync { file, what } = pending;
        let ino = self.usable(file)?.ino;
        let has_failed = self.happens(self.settings.errors.sync);
        match what {
            What::Names(..) if has_failed => return Err(libc::EIO),
            What::Names(directory, until) => {
                let operations = self.names.take(directory, until);
                self.commit(operations);
            }
            What::Data(snapshot) if has_failed => {
                let mut rng = self.rng.fork();
                let inode = self.inode_mut(ino);
                inode.failed_syncs += 1;
                if let Node::File(content) = &mut inode.node {
                    content.fail_sync(snapshot, &mut rng);
                }
            }
            What::Data(snapshot) => self.content_mut(ino)?.end_sync(snapshot),
        }
        // Each open file hears of a failure once, whichever it was that has met it.
        let failed_syncs = self.inode(ino).failed_syncs;
        let open = self.open.get_mut(&file).ok_or(libc::EBADF)?;
        match std::mem::replace(&mut open.seen_failed_syncs, failed_syncs) == failed_syncs {
            true => Ok(()),
            false => Err(libc::EIO),
        }
    }

    /// Makes durable the pages of a file that were just written.
    pub(super) fn sync_range(&mut self, file: FileId, pages: Range<u64>) -> Result<()> {
        let pending = self.begin_sync_of(file, pages)?;
        self.end_sync(pending)
    }

    fn begin_sync_of(&mut self, file: FileId, pages: Range<u64>) -> Result<PendingSync> {
        let ino = self.usable(file)?.ino;
        let until = self.names.next();
        let what = match &mut self.inode_mut(ino).node {
            Node::File(content) => What::Data(content.begin_sync(pages)),
            _ => What::Names(ino, until),
        };
        Ok(PendingSync { file, what })
    }
}
