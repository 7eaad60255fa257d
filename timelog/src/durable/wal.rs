//! The write-ahead log: files of blocks, of which one is written at a time.
//!
//! A file gets its name, `wal-<number>`, when its header is durable, which has the number of the
//! first operation in it. The next file begins when all blocks before are durable, so the numbers
//! tell whether something is missing. Each opening begins a file: it bounds the one before, so that
//! what a crash has left at its end stays cut off, even if the device should finish a write later.

use std::hash::{BuildHasher, RandomState};

use glommio::executor;

use super::commit::Taken;
use super::core::Core;
use super::disk::File;
use super::error::Error;
use super::format::{BlockHead, UNIT, WAL_MAGIC, file_head, round_up};
pub(super) use super::wal_files::{Closed, NEXT_NAME, Next, name, number_of};

/// The file that is written to.
pub(super) struct Wal {
    file: File,
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
            file,
            number,
            salt,
            blocks: 0,
            position: UNIT as u64,
            prepared,
        })
    }

    /// Makes a group durable.
    pub async fn write(&mut self, core: &Core, group: &mut Taken) -> Result<(), Error> {
        let length = round_up(group.block.len()) as u64;
        let is_full = self.position + length > self.prepared;
        if is_full && self.blocks > 0 {
            let next = core.next_wal.take();
            // While there is none, the file grows.
            if let Next::Ready(file) = next {
                core.next_wal.replace(Next::Beginning);
                let next = Self::begin(core, file, self.number + 1, group.first).await?;
                let before = std::mem::replace(self, next);
                core.closed.borrow_mut().push(Closed {
                    number: before.number,
                    end: group.first,
                });
                before.file.close().await?;
            }
            core.checkpoint_bell.ring();
        }
        let (first, operations) = (group.first, group.operations);
        BlockHead::seal(&mut group.block, self.salt, self.blocks, first, operations);
        self.file.write(&group.block, self.position).await?;
        self.file.sync().await?;
        self.position += length;
        self.blocks += 1;
        Ok(())
    }

    pub async fn close(self) -> Result<(), Error> {
        self.file.close().await
    }
}

/// How much of the first file is prepared: no more than opening a log should wait for.
pub(super) fn first_bytes(core: &Core) -> u64 {
    (core.config.limits.wal_file_bytes / 128).max(2 * UNIT as u64)
}

/// Makes a file of so many bytes ready to become the next one. `None` if the log is closed meanwhile.
pub(super) async fn prepare(core: &Core, bytes: u64) -> Result<Option<File>, Error> {
    const CHUNK: u64 = 256 << 10;
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

/// Makes a file that a checkpoint covers ready to become the next one, or removes it.
pub(super) async fn retire(core: &Core, number: u64) -> Result<(), Error> {
    if !core.lacks_next_wal() {
        return core.folder.remove(&name(number)).await;
    }
    core.folder.rename(&name(number), NEXT_NAME).await?;
    // Under its old name its new header would be taken for damage.
    core.folder.sync().await?;
    let file = core.folder.open_existing(NEXT_NAME).await?;
    if file.size().await? + (UNIT as u64) > core.config.limits.wal_file_bytes {
        core.next_wal.replace(Next::Ready(file));
    }
    Ok(())
}
