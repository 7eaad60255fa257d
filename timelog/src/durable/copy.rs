//! Logs that are read without being opened, and logs that are made of what was read.

use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::time::Duration;

use glommio::timer::sleep;

use super::checkpoint::{self, Content};
use super::disk::Folder;
use super::error::Error;
use super::format::{MANIFEST, is_of_log};
use super::manifest::{Kind, Manifest};
use super::recover::{Recovery, load};
use crate::{Record, Seq, Snapshot, TimeUnit, Ts};

/// How often a log is read again that is written to meanwhile: a file was removed between the look at
/// the manifest and the look at the file, or a block was half there. The manifest tells the former.
const ATTEMPTS: usize = 100;
const ATTEMPTS_OF_EDITION: usize = 4;

/// What a directory says of the log in it. See [`info`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The type of its values, by [`Record::type_name`].
    pub type_name: String,
    /// The bytes of a value.
    pub value_bytes: usize,
    /// The unit of its timestamps.
    pub unit: TimeUnit,
    /// A number that no other log has.
    pub identity: u64,
    /// How often the manifest was replaced.
    pub edition: u64,
    /// An operation that was durable then: the last one, if the log is closed.
    pub last: Seq,
    /// Whether it was closed.
    pub is_closed: bool,
    /// Rows in checkpoints. Some of them may be deleted.
    pub checkpoint_rows: u64,
    /// Its files, with the bytes that they must have at least.
    pub files: Vec<(String, u64)>,
    /// The number of shards, 0 if it is a log without. Their logs are in the directories `shard-0`,
    /// `shard-1` and so on.
    pub shards: usize,
}

/// Reads the manifest of a log, which may be open.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Format`], [`Error::Io`]; also if there is no log.
pub async fn info(path: impl AsRef<Path>) -> Result<Info, Error> {
    let manifest = manifest_of(&Folder::open_read_only(path.as_ref()).await?).await?;
    let checkpoints = manifest.checkpoints.iter().map(|it| it.bytes);
    let wals = manifest.wals.iter().map(|it| it.bytes);
    Ok(Info {
        files: manifest.names().zip(checkpoints.chain(wals)).collect(),
        checkpoint_rows: manifest.checkpoints.iter().map(|it| it.rows).sum(),
        type_name: manifest.kind.type_name,
        value_bytes: manifest.kind.record_bytes,
        unit: manifest.kind.unit,
        identity: manifest.identity,
        edition: manifest.edition,
        last: Seq(manifest.last),
        is_closed: manifest.is_closed,
        shards: manifest.shards.len(),
    })
}

async fn manifest_of(folder: &Folder) -> Result<Manifest, Error> {
    let name = folder.path().join(MANIFEST);
    let manifest = Manifest::read(folder).await?;
    manifest.ok_or_else(|| Error::io("open", &name)(ErrorKind::NotFound.into()))
}

/// Reads a log without opening it: nothing is changed, and another process may have it open. The
/// snapshot has all that was durable when this was called, and may have more.
///
/// # Errors
/// [`Error::Corrupt`] and [`Error::Format`], as [`Log::open`](super::Log::open); [`Error::Io`], also
/// if there is no log.
///
/// # Panics
/// Outside of an executor.
pub async fn read<V: Record>(path: impl AsRef<Path>) -> Result<(Snapshot<V>, Recovery), Error> {
    let folder = &Folder::open_read_only(path.as_ref()).await?;
    let (mut attempts, mut attempts_of_edition) = (0, 0);
    loop {
        let manifest = manifest_of(folder).await?;
        let edition = manifest.edition;
        let is_closed = manifest.is_closed;
        let error = match read_once(folder, manifest).await {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let is_same = manifest_of(folder).await?.edition == edition;
        attempts += 1;
        attempts_of_edition = if is_same { attempts_of_edition + 1 } else { 0 };
        if is_same && is_closed
            || attempts_of_edition == ATTEMPTS_OF_EDITION
            || attempts == ATTEMPTS
        {
            return Err(error);
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn read_once<V: Record>(
    folder: &Folder,
    manifest: Manifest,
) -> Result<(Snapshot<V>, Recovery), Error> {
    let names = folder.names().await?;
    let config = crate::Config::default().unit(manifest.kind.unit);
    let loaded = load::<V>(folder, manifest, &names, config).await?;
    Ok((loaded.replay.into_mem().snapshot(), loaded.found))
}

/// Whether a directory has no log, also none that was cut short.
pub(super) async fn check_empty(folder: &Folder) -> Result<(), Error> {
    if folder.names().await?.iter().any(|it| is_of_log(it)) {
        let error = IoError::new(ErrorKind::AlreadyExists, "there is one");
        return Err(Error::io("write a log to", folder.path())(error));
    }
    Ok(())
}

/// Writes a log of one checkpoint, which is closed, to a directory that has none, and gives its identity.
pub(super) async fn write<V: Record>(
    folder: &Folder,
    kind: Kind,
    snapshot: &Snapshot<V>,
    to: Seq,
    floor: Option<Ts>,
) -> Result<u64, Error> {
    check_empty(folder).await?;
    let mut manifest = Manifest::new(kind);
    if to.0 > 0 {
        let content = Content {
            from: 0,
            to: to.0,
            snapshot,
            deletes: Vec::new(),
            floor,
        };
        let written = checkpoint::write(folder, &manifest, content, || false).await?;
        manifest.checkpoints.extend(written);
    }
    (manifest.last, manifest.is_closed) = (to.0, true);
    manifest.write(folder).await?;
    Ok(manifest.identity)
}
