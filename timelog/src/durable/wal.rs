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
use super::format::{BlockHead, UNIT, WAL_MAGIC, file_head};
pub(super) use super::wal_files::{Closed, NEXT_NAME, Next, name, number_of};

/// The file that is written to.
pub(super) struct Wal {
    file: File,
    number: u64,
    salt: u64,
    blocks: u32,
    position: u64,
}

impl Wal {
    /// Begins a file with the operation `first`.
    pub async fn begin(
        core: &Core,
        mut file: File,
        number: u64,
        first: u64,
    ) -> Result<Self, Error> {
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
        })
    }

    /// Makes a group durable.
    pub async fn write(&mut self, core: &Core, group: &Taken) -> Result<(), Error> {
        let block = |salt, number| {
            let operations = group.operations;
            BlockHead::block(salt, number, group.first, operations, &group.payload)
        };
        let mut bytes = block(self.salt, self.blocks);
        let is_full = self.position + bytes.len() as u64 > core.config.limits.wal_file_bytes;
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
                bytes = block(self.salt, self.blocks);
            }
            core.checkpoint_bell.ring();
        }
        self.file.write(&bytes, self.position).await?;
        self.file.sync().await?;
        self.position += bytes.len() as u64;
        self.blocks += 1;
        Ok(())
    }

    pub async fn close(self) -> Result<(), Error> {
        self.file.close().await
    }
}

/// Makes a file ready to become the next one. `None` if the log is closed meanwhile.
pub(super) async fn prepare(core: &Core) -> Result<Option<File>, Error> {
    const CHUNK: u64 = 256 << 10;
    let file = core.folder.create(NEXT_NAME).await?;
    let end = core.config.limits.wal_file_bytes / UNIT as u64 * UNIT as u64;
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
