//! The write-ahead log: files of blocks, one of which may be written while others before it are synced.
//!
//! A file is in the manifest, with a salt of its own, before the first block goes there. The next
//! file begins when all blocks before are durable, and its first block has the number of its first
//! operation: so the numbers tell whether something is missing. Each opening begins a file and writes
//! down where the one before ends, so that what a crash has left there stays cut off, even if the
//! device should finish a write later.
//!
//! A block says how many of the file were durable before it was written. So if it is there and an
//! older one is not, it is known whether a crash may have left them so.

use std::rc::Rc;

use glommio::executor;

use super::commit::Taken;
use super::core::Core;
use super::disk::{File, Folder};
use super::error::Error;
use super::format::{BlockHead, UNIT, WAL_MAGIC, file_head, round_up};
use super::manifest::{WalFile, unique};

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
    /// A file that is in the manifest and has no block yet.
    pub fn new(core: &Core, file: File, listed: WalFile) -> Self {
        Self {
            file: Rc::new(file),
            number: listed.number,
            salt: listed.salt,
            blocks: 0,
            position: UNIT as u64,
            // One that has grown is not to grow on.
            prepared: listed.bytes.min(core.config.wal_file_bytes),
        }
    }

    /// Whether the next file is to be begun before a block, and is ready. While it is
    /// not, this one grows.
    pub fn ends_before(&self, core: &Core, block_bytes: usize) -> bool {
        let is_full = self.position + round_up(block_bytes) as u64 > self.prepared;
        if !is_full || self.blocks == 0 {
            return false;
        }
        core.checkpoint_bell.ring();
        core.next_wal.borrow().is_some()
    }

    /// Begins the next file with the operation `first`. All before it must be durable.
    pub async fn begin_next(&mut self, core: &Core, first: u64) -> Result<(), Error> {
        let next = core.next_wal.take();
        let (file, listed) = next.expect("only a file that is ready is begun");
        let before = std::mem::replace(self, Self::new(core, file, listed));
        before.end(core, first).await
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

    /// Ends the file before the operation `next`. All before it must be durable.
    pub async fn end(self, core: &Core, next: u64) -> Result<(), Error> {
        {
            let mut manifest = core.manifest.borrow_mut();
            let mut wals = manifest.wals.iter_mut();
            let listed = wals.find(|it| it.number == self.number);
            let listed = listed.expect("it is not covered before it ends");
            listed.end = next;
            listed.bytes = listed.bytes.max(self.position);
        }
        match Rc::into_inner(self.file) {
            Some(file) => file.close().await,
            // A sync has failed and holds it still.
            None => Ok(()),
        }
    }
}

/// How much of the first file is prepared: no more than opening a log should wait for.
pub(super) fn first_bytes(wal_file_bytes: u64) -> u64 {
    (wal_file_bytes / 128).max(2 * UNIT as u64)
}

fn head(identity: u64, listed: &WalFile) -> Vec<u8> {
    file_head(WAL_MAGIC, identity, &[listed.salt, listed.number])
}

/// Makes a file of so many bytes. It has to be listed before it is used. `None` if it `is_stopped`.
pub(super) async fn make(
    folder: &Folder,
    identity: u64,
    number: u64,
    bytes: u64,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<(File, WalFile)>, Error> {
    // No more than is written without a delay for others.
    const CHUNK: u64 = 128 << 10;
    let listed = WalFile {
        number,
        salt: unique(),
        bytes: bytes / UNIT as u64 * UNIT as u64,
        end: 0,
    };
    let name = listed.name();
    let file = folder.make(&name, async |file| {
        let zeros = vec![0; CHUNK.min(listed.bytes) as usize];
        let mut position = 0;
        while position < listed.bytes {
            if is_stopped() {
                return Ok(false);
            }
            let length = (listed.bytes - position).min(CHUNK);
            file.write(&zeros[..length as usize], position).await?;
            position += length;
            executor().yield_task_queue_now().await;
        }
        file.write(&head(identity, &listed), 0).await?;
        Ok(true)
    });
    Ok(file.await?.map(|file| (file, listed)))
}

/// Makes the next file ready, unless the log is closed meanwhile.
pub(super) async fn prepare(core: &Core) -> Result<(), Error> {
    let (identity, number) = core.next_place();
    let bytes = core.config.wal_file_bytes;
    let is_closing = || core.is_closing.get();
    match make(&core.folder, identity, number, bytes, is_closing).await? {
        Some((file, listed)) => add(core, file, listed).await,
        None => Ok(()),
    }
}

async fn add(core: &Core, file: File, listed: WalFile) -> Result<(), Error> {
    core.change_manifest(|manifest| manifest.wals.push(listed))
        .await?;
    core.next_wal.replace(Some((file, listed)));
    Ok(())
}

/// Makes a file that is no longer listed the next one, or removes it. One that has grown, as no
/// other was ready, is not to take its space for ever.
pub(super) async fn retire(core: &Core, retired: WalFile) -> Result<(), Error> {
    let name = retired.name();
    if core.next_wal.borrow().is_some() {
        return core.folder.remove(&name).await;
    }
    let mut file = core.folder.open_existing(&name).await?;
    let wanted = core.config.wal_file_bytes;
    let bytes = file.size().await?;
    if bytes + (UNIT as u64) <= wanted || bytes > 2 * wanted {
        file.close().await?;
        return core.folder.remove(&name).await;
    }
    let (identity, number) = core.next_place();
    let listed = WalFile {
        number,
        salt: unique(),
        bytes,
        end: 0,
    };
    // Under its new name it has the header of the old one until it has its own: it is not taken for
    // a file of the log.
    core.folder.rename(&name, &listed.name()).await?;
    file.renamed(core.folder.path().join(listed.name()));
    file.write(&head(identity, &listed), 0).await?;
    file.sync().await?;
    add(core, file, listed).await
}
