//! What can be read of a damaged log.

use std::cmp::Reverse;
use std::path::Path;
use std::rc::Rc;

use super::checkpoint::{Head, page_at};
use super::copy::write;
use super::disk::{File, Folder};
use super::error::Error;
use super::format::{
    BLOCK_HEAD, BlockHead, CHECKPOINT_MAGIC, MANIFEST, UNIT, WAL_MAGIC, is_log_file,
    parse_file_head, u64_at,
};
use super::manifest::{Kind, Manifest};
use super::read_ahead::ReadAhead;
use super::replay::{Replay, missing};
use crate::{Record, Seq, Snapshot, TimeUnit, Ts};

/// What could be read of a damaged log. See [`salvage`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Salvaged<V> {
    /// The rows.
    pub snapshot: Snapshot<V>,
    /// What is lost, each with a file and an offset.
    pub losses: Vec<Error>,
    /// The last operation that was found.
    pub last: Seq,
    kind: Kind,
    floor: Option<Ts>,
}

impl<V: Record> Salvaged<V> {
    /// Writes the rows to a directory that has no log yet, as a log that can be opened.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub async fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let folder = Folder::open(path.as_ref()).await?;
        let kind = self.kind.clone();
        let written = write(&folder, kind, &self.snapshot, self.last, self.floor).await;
        folder.unlock().await?;
        written.map(|_| ())
    }
}

/// Reads what can be read of a log that [`Error::Corrupt`] was found in, and changes nothing.
///
/// Pages of checkpoints and groups of operations whose checksums are right are taken, and all others
/// are left out; so a row may be there whose delete was lost, and the other way round. Without a
/// manifest the files are taken that the directory has, and timestamps for nanoseconds.
///
/// # Errors
/// [`Error::Io`]. [`Error::Format`], if the log has other values, or shards, each of which is a log; of
/// [`Raw`](crate::Raw), without a manifest. [`Error::Corrupt`], if there are shards without a manifest.
///
/// # Panics
/// Outside of an executor.
pub async fn salvage<V: Record>(path: impl AsRef<Path>) -> Result<Salvaged<V>, Error> {
    let folder = &Folder::open_read_only(path.as_ref()).await?;
    let mut losses = Vec::new();
    let manifest = match Manifest::read(folder).await {
        Ok(Some(manifest)) => {
            manifest.check::<V>(manifest.kind.unit, folder.path())?;
            manifest.check_alone(folder.path())?;
            Some(manifest)
        }
        Ok(None) => None,
        Err(error @ Error::Corrupt { .. }) if !V::IS_RAW => {
            losses.push(error);
            None
        }
        Err(error) => return Err(error),
    };
    let kind = match &manifest {
        Some(manifest) => manifest.kind.clone(),
        None => Kind::of::<V>(TimeUnit::Nanos),
    };
    let names = folder.names().await?;
    if manifest.is_none() && names.iter().any(|it| it.starts_with("shard-")) {
        let path = folder.path().join(MANIFEST);
        return Err(Error::corrupt(
            &path,
            0,
            "it is not whole, and there are shards",
        ));
    }
    let mut files: Vec<_> = match &manifest {
        Some(manifest) => manifest.names().collect(),
        None => names.iter().filter(|it| is_log_file(it)).cloned().collect(),
    };
    // Checkpoints first; of those that begin together the longest.
    files.sort_by_key(|name| {
        let mut parts = name.split('-').skip(1);
        let parts = (
            parts.next().map(str::to_owned),
            parts.next().map(str::to_owned),
        );
        (name.starts_with("wal"), parts.0, Reverse(parts.1))
    });
    let config = crate::Config::default().unit(kind.unit);
    let mut salvage = Salvage {
        replay: Replay::<V>::new(config, &kind, 0, false)?,
        manifest,
        losses,
    };
    for name in files {
        let opened = folder.open_existing(&name).await;
        let taken = match opened {
            Ok(file) => salvage.file(Rc::new(file)).await,
            Err(error) => Err(error),
        };
        salvage.losses.extend(taken.err());
    }
    let Salvage { replay, losses, .. } = salvage;
    let (last, floor) = (Seq(replay.applied), replay.floor);
    Ok(Salvaged {
        snapshot: replay.into_mem().snapshot(),
        losses,
        last,
        kind,
        floor,
    })
}

struct Salvage<V> {
    replay: Replay<V>,
    manifest: Option<Manifest>,
    losses: Vec<Error>,
}

impl<V: Record> Salvage<V> {
    async fn file(&mut self, file: Rc<File>) -> Result<(), Error> {
        let (path, size) = (file.path().to_owned(), file.size().await?);
        let reader = ReadAhead::new(file, size, false);
        let head = reader.head().await?;
        // Of any log, if it is not known of which.
        let identity = match &self.manifest {
            Some(manifest) => manifest.identity,
            None if head.len() >= UNIT => u64_at(&head, 16),
            None => 0,
        };
        let is_wal = path
            .file_name()
            .is_some_and(|it| it.to_string_lossy().starts_with("wal"));
        if !is_wal {
            let numbers = parse_file_head(&head, CHECKPOINT_MAGIC, identity, &path)?;
            return self
                .checkpoint(reader, numbers.map(Head::new), &path, size)
                .await;
        }
        let numbers = parse_file_head::<2>(&head, WAL_MAGIC, identity, &path)?;
        let listed = self.manifest.iter().flat_map(|it| &it.wals);
        let mut listed = listed.filter(|it| path.ends_with(it.name()));
        let listed = listed.next().copied();
        let salt = numbers.map(|it| it[0]).or(listed.map(|it| it.salt));
        if numbers.is_none() {
            self.lose(&path, 0, "the checksum of the header");
        }
        let Some(salt) = salt else {
            return Ok(());
        };
        let end = listed.map(|it| it.end).filter(|end| *end > 0);
        self.wal(reader, salt, end, &path, size).await
    }

    async fn checkpoint(
        &mut self,
        mut reader: ReadAhead,
        head: Option<Head>,
        path: &Path,
        size: u64,
    ) -> Result<(), Error> {
        if head.is_none() {
            self.lose(path, 0, "the checksum of the header");
        }
        if head.is_some_and(|head| head.to <= self.replay.applied) {
            return Ok(());
        }
        let (mut offset, mut to) = (UNIT as u64, self.replay.applied);
        let (mut pages, mut is_lost) = (0, false);
        while offset < size {
            let kind = self.replay.kind.clone();
            let page = page_at::<V>(&mut reader, offset, &kind).await?;
            let page = page.filter(|page| head.is_none_or(|head| page.to == head.to));
            let Some(page) = page else {
                if !is_lost {
                    self.lose(path, offset, "the checksum of a page");
                }
                is_lost = true;
                offset += UNIT as u64;
                continue;
            };
            is_lost = false;
            pages += 1;
            to = page.to;
            offset += page.len() as u64;
            page.add_to(&mut self.replay).await?;
        }
        if let Some(head) = head {
            to = head.to;
            if pages < head.pages && self.losses.is_empty() {
                let what = format!("{} of {} pages are missing", head.pages - pages, head.pages);
                self.lose(path, size, what);
            }
            if let Some(floor) = head.floor {
                self.replay.raise_floor(floor);
            }
        }
        self.replay.applied = to;
        Ok(())
    }

    async fn wal(
        &mut self,
        mut reader: ReadAhead,
        salt: u64,
        end: Option<u64>,
        path: &Path,
        size: u64,
    ) -> Result<(), Error> {
        let bound = end.unwrap_or(u64::MAX);
        let mut offset = UNIT as u64;
        while offset < size {
            let head = BlockHead::parse(reader.at(offset, UNIT).await?, salt);
            let head = head.filter(|head| head.first < bound);
            let Some(head) = head else {
                offset += UNIT as u64;
                continue;
            };
            let bytes = reader.at(offset, head.len()).await?;
            let payload = bytes.get(BLOCK_HEAD..BLOCK_HEAD + head.payload_bytes as usize);
            let payload = payload.filter(|it| crc32fast::hash(it) == head.payload_checksum);
            let Some(payload) = payload else {
                self.lose(path, offset, "the checksum of a group");
                offset += UNIT as u64;
                continue;
            };
            self.pass_to(head.first, path, offset);
            let done = self.replay.block(&head, payload, bound, (path, offset));
            done.await?;
            offset += head.len() as u64;
        }
        self.pass_to(end.unwrap_or(0), path, offset);
        Ok(())
    }

    fn lose(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        self.losses.push(Error::corrupt(path, offset, what));
    }

    /// Goes on with the operation `first`: those before it that are not done are lost.
    fn pass_to(&mut self, first: u64, path: &Path, offset: u64) {
        let next = self.replay.applied + 1;
        if first > next {
            self.losses.push(missing(path, offset, next, first));
            self.replay.applied = first - 1;
        }
    }
}
