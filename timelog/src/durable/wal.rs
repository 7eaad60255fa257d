//! The write-ahead log: files of blocks, one of which may be written while others before it are synced.
//!
//! A file gets its name, `wal-<number>`, when its header is durable, which has the number of the
//! first operation in it. The next file begins when all blocks before are durable, so the numbers
//! tell whether something is missing. Each opening begins a file: it bounds the one before, so that
//! what a crash has left at its end stays cut off, even if the device should finish a write later.
//!
//! A block says how many of the file were durable before it was written. So if it is there and an
//! older one is not, it is known whether a crash may have left them so.

use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use glommio::executor;

use super::commit::Taken;
use super::core::Core;
use super::disk::File;
use super::error::Error;
use super::format::{BLOCK_HEAD, BlockHead, UNIT, WAL_MAGIC, file_head, round_up};
pub(super) use super::wal_files::{Closed, NEXT_NAME, Next, name, number_of};

/// The file that is written to.
pub(super) struct Wal {
    file: Rc<File>,
    number: u64,
    salt: u64,
    blocks: u32,
    position: u64,
    /// How much of it was written before. The next file is begun rather than to go beyond.
    prepared: u64,
}

impl Wal {
    /// Begins a file with the operation `first`.
    pub async fn begin(
        core: &Core,
        mut file: File,
        number: u64,
        first: u64,
    ) -> Result<Self, Error> {
        // One that has grown is not to grow on.
        let prepared = file.size().await?.min(core.config.limits.wal_file_bytes);
        let salt = RandomState::new().hash_one(number);
        let head = file_head(WAL_MAGIC, core.kind, &[number, salt, first]);
        file.write(&head, 0).await?;
        file.sync().await?;
        core.folder.rename(NEXT_NAME, &name(number)).await?;
        core.folder.sync().await?;
        core.next_wal.replace(Next::Missing);
        file.renamed(core.folder.path().join(name(number)));
        Ok(Self {
            file: Rc::new(file),
            number,
            salt,
            blocks: 0,
            position: UNIT as u64,
            prepared,
        })
    }

    /// Whether the next file is to be begun before a block, and is ready. While it is
    /// not, this one grows.
    pub fn ends_before(&self, core: &Core, block_bytes: usize) -> bool {
        let is_full = self.position + round_up(block_bytes) as u64 > self.prepared;
        if !is_full || self.blocks == 0 {
            return false;
        }
        core.checkpoint_bell.ring();
        matches!(*core.next_wal.borrow(), Next::Ready(_))
    }

    /// Begins the next file with the operation `first`. All before it must be durable.
    pub async fn begin_next(&mut self, core: &Core, first: u64) -> Result<(), Error> {
        let Next::Ready(file) = core.next_wal.replace(Next::Beginning) else {
            unreachable!("only a file that is ready is begun");
        };
        let next = Self::begin(core, file, self.number + 1, first).await?;
        let before = std::mem::replace(self, next);
        let number = before.number;
        core.closed.borrow_mut().push(Closed { number, end: first });
        before.close().await
    }

    /// Writes a group, `in_flight` groups after those that are durable. It is not synced.
    pub async fn write(&mut self, group: &mut Taken, in_flight: usize) -> Result<(), Error> {
        let head = BlockHead {
            salt: self.salt,
            first: group.first,
            operations: group.operations,
            number: self.blocks,
            durable: self.blocks - in_flight as u32,
            ..BlockHead::default()
        };
        head.seal(&mut group.block);
        self.file.write(&group.block, self.position).await?;
        self.position += group.block.len() as u64;
        self.blocks += 1;
        Ok(())
    }

    pub fn file(&self) -> Rc<File> {
        Rc::clone(&self.file)
    }

    /// Ends the log before the operation `next`. All before it must be durable.
    ///
    /// A block without operations tells the next opening that none follows. Without it, as after a
    /// crash, that looks for one in the rest of the file.
    pub async fn end(self, next: u64) -> Result<(), Error> {
        if self.position < self.prepared {
            let head = BlockHead {
                salt: self.salt,
                first: next,
                number: self.blocks,
                durable: self.blocks,
                ..BlockHead::default()
            };
            let mut block = vec![0; BLOCK_HEAD];
            head.seal(&mut block);
            self.file.write(&block, self.position).await?;
        }
        self.close().await
    }

    async fn close(self) -> Result<(), Error> {
        match Rc::into_inner(self.file) {
            Some(file) => file.close().await,
            // A sync has failed and holds it still.
            None => Ok(()),
        }
    }
}

/// How much of the first file is prepared: no more than opening a log should wait for.
pub(super) fn first_bytes(core: &Core) -> u64 {
    (core.config.limits.wal_file_bytes / 128).max(2 * UNIT as u64)
}

/// Makes a file of so many bytes ready to become the next one. `None` if the log is closed meanwhile.
pub(super) async fn prepare(core: &Core, bytes: u64) -> Result<Option<File>, Error> {
    // No more than is written without a delay for others.
    const CHUNK: u64 = 128 << 10;
    let file = core.folder.create(NEXT_NAME).await?;
    let end = bytes / UNIT as u64 * UNIT as u64;
    let zeros = vec![0; CHUNK.min(end) as usize];
    let mut position = 0;
    while position < end {
        if core.is_closing.get() {
            file.close().await?;
            return Ok(None);
        }
        let length = (end - position).min(CHUNK);
        file.write(&zeros[..length as usize], position).await?;
        position += length;
        executor().yield_task_queue_now().await;
    }
    file.sync().await?;
    core.folder.sync().await?;
    Ok(Some(file))
}

/// Makes a file that a checkpoint covers ready to become the next one, or removes it. One that has
/// grown, as no other was ready, is not to take its space for ever.
pub(super) async fn retire(core: &Core, number: u64) -> Result<(), Error> {
    let name = name(number);
    if !core.lacks_next_wal() {
        return core.folder.remove(&name).await;
    }
    let mut file = core.folder.open_existing(&name).await?;
    let wanted = core.config.limits.wal_file_bytes;
    let size = file.size().await?;
    if size + (UNIT as u64) <= wanted || size > 2 * wanted {
        file.close().await?;
        return core.folder.remove(&name).await;
    }
    core.folder.rename(&name, NEXT_NAME).await?;
    // Under its old name its new header would be taken for damage.
    core.folder.sync().await?;
    file.renamed(core.folder.path().join(NEXT_NAME));
    core.next_wal.replace(Next::Ready(file));
    Ok(())
}
