//! Opening: checkpoints are loaded, and what the write-ahead log has beyond them is done again.

use std::path::PathBuf;
use std::rc::Rc;

use super::checkpoint::{self, Head};
use super::config::Config;
use super::core::{Core, Shared};
use super::disk::{File, Folder, new_name};
use super::error::Error;
use super::format::{
    BlockHead, CHECKPOINT_MAGIC, MANIFEST, UNIT, WAL_MAGIC, is_log_file, is_of_log, parse_file_head,
};
use super::manifest::{Kind, Manifest, WalFile};
use super::replay::{Replay, missing};
use super::wal::{self, Wal};
use crate::Record;

/// What opening a log has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// The checkpoints that were loaded.
    pub checkpoints: usize,
    /// Their rows.
    pub checkpoint_rows: u64,
    /// The operations that were done again from the write-ahead log.
    pub replayed: u64,
    /// Where a group was begun and is not whole, as a crash leaves behind: a file, and an offset in
    /// bytes. None of it was confirmed, and it is cut off.
    pub torn: Option<(PathBuf, u64)>,
}

/// A log as it was found.
pub(super) struct Recovered<V> {
    pub shared: Rc<Shared<V>>,
    pub wal: Wal,
    pub found: Recovery,
}

/// `identity` is that of a log that must be there.
pub(super) async fn recover<V: Record>(
    folder: Folder,
    mut config: Config,
    identity: Option<u64>,
) -> Result<Recovered<V>, Error> {
    let names = folder.names().await?;
    let manifest = match Manifest::read(&folder).await? {
        Some(manifest) => manifest,
        None => begin::<V>(&folder, &names, &config, identity).await?,
    };
    if identity.is_some_and(|identity| identity != manifest.identity) {
        let path = folder.path().join(MANIFEST);
        return Err(Error::corrupt(&path, 0, "it is that of another log"));
    }
    if V::IS_RAW {
        config.memory.unit = manifest.kind.unit;
    }
    let loaded = load::<V>(&folder, manifest, &names, config.memory.clone()).await?;
    let Loaded {
        replay,
        mut manifest,
        found,
        ..
    } = loaded;
    for file in loaded.written {
        // What a process that was killed has written may not have reached the device.
        file.sync().await?;
    }
    if !loaded.leftovers.is_empty() {
        // Nor has the manifest that does not list them, if that process had just replaced it.
        folder.sync().await?;
    }
    for name in loaded.leftovers {
        folder.remove(&name).await?;
    }
    let next = match loaded.next {
        Some(next) => next,
        None => {
            let bytes = wal::first_bytes(config.wal_file_bytes);
            let number = manifest.next_number();
            let made = wal::make(&folder, manifest.identity, number, bytes, || false).await?;
            made.expect("it is not stopped")
        }
    };
    let listed = next.1;
    manifest.is_closed = false;
    let (applied, covered) = (replay.applied, manifest.covered());
    let stale = manifest.wals.clone().into_iter();
    let stale: Vec<_> = stale
        .filter(|it| it.end <= covered + 1 && *it != listed)
        .collect();
    manifest.wals.retain(|it| it.end > covered + 1);
    manifest.wals.push(listed);
    manifest.edition += 1;
    manifest.last = applied;
    manifest.write(&folder).await?;

    let core = Core::new(folder, config, manifest, applied);
    for file in stale {
        core.folder.remove(&file.name()).await?;
    }
    let wal = Wal::new(&core, next.0, listed);
    Ok(Recovered {
        shared: Shared::new(core, replay.into_mem()),
        wal,
        found,
    })
}

/// The manifest of a log that is made.
async fn begin<V: Record>(
    folder: &Folder,
    names: &[String],
    config: &Config,
    identity: Option<u64>,
) -> Result<Manifest, Error> {
    let path = folder.path().join(MANIFEST);
    if identity.is_some() || names.iter().any(|it| is_of_log(it)) {
        let what = "it is missing, and there was a log (before version 3 it had none)";
        return Err(Error::corrupt(&path, 0, what));
    }
    if V::IS_RAW {
        let what = "there is no log, and values of any type make none".to_owned();
        return Err(Error::Format { path, what });
    }
    let manifest = Manifest::new(Kind::of::<V>(config.memory.unit));
    manifest.write(folder).await?;
    Ok(manifest)
}

/// What the files of a log have.
pub(super) struct Loaded<V> {
    pub replay: Replay<V>,
    /// With the end of each file; those without an operation have 0.
    pub manifest: Manifest,
    pub found: Recovery,
    /// Files that were written to when the log was not closed.
    written: Vec<Rc<File>>,
    /// Files that the manifest does not list.
    leftovers: Vec<String>,
    /// One that was prepared when the log was closed.
    next: Option<(File, WalFile)>,
}

/// Loads a log, and changes nothing.
pub(super) async fn load<V: Record>(
    folder: &Folder,
    mut manifest: Manifest,
    names: &[String],
    config: crate::Config,
) -> Result<Loaded<V>, Error> {
    manifest.check::<V>(config.unit, folder.path())?;
    manifest.check_alone(folder.path())?;
    let leftovers = leftovers(folder, &manifest, names).await?;
    let mut replay = Replay::<V>::new(config, &manifest.kind, 0, false)?;
    let mut found = Recovery::default();
    for it in &manifest.checkpoints {
        let (name, size) = (&it.name(), it.bytes);
        let opened = open_listed(folder, &manifest, name, CHECKPOINT_MAGIC, it.salt, size);
        let (file, numbers) = opened.await?;
        if it.from != replay.applied {
            let what = format!(
                "it begins after operation {}, not after {}",
                it.from, replay.applied
            );
            return Err(Error::corrupt(file.path(), 32, what));
        }
        checkpoint::load(Rc::new(file), Head::new(numbers), &mut replay).await?;
        found.checkpoints += 1;
        found.checkpoint_rows += it.rows;
    }
    let covered = replay.applied;

    let mut files = Vec::new();
    for it in &manifest.wals {
        let (name, size) = (&it.name(), it.bytes);
        let opened = open_listed::<2>(folder, &manifest, name, WAL_MAGIC, it.salt, size);
        let (file, _) = opened.await?;
        let first = match it.end {
            0 => first_operation(&file, it.salt).await?,
            _ => None,
        };
        files.push((file, first));
    }
    // The first operation of the file after each: all before it were durable when it was begun.
    let begun = files.iter().skip(1).map(|(_, first)| *first);
    let begun: Vec<_> = begun.chain([None]).collect();
    let mut written = Vec::new();
    let mut next = None;
    let mut end_found = None;
    for (index, (file, first)) in files.into_iter().enumerate() {
        let WalFile { salt, end, .. } = manifest.wals[index];
        if end == 0 && manifest.is_closed {
            if first.is_some() {
                return Err(older(folder, &manifest.wals[index].name()));
            }
            next = Some((file, manifest.wals[index]));
            continue;
        }
        let file = Rc::new(file);
        let end = Some(end).filter(|end| *end > 0).or(begun[index]);
        let before = replay.applied;
        let wal_end = replay.wal(Rc::clone(&file), salt, end).await?;
        if wal_end.is_torn {
            found.torn = Some((file.path().to_owned(), wal_end.offset));
        }
        if end.is_none() && (replay.applied > before || end_found.is_none()) {
            end_found = Some((file.path().to_owned(), wal_end.offset));
        }
        let has_some = replay.applied > before;
        manifest.wals[index].end = if has_some { replay.applied + 1 } else { 0 };
        if end.is_none() {
            written.push(file);
        }
    }
    if replay.applied < manifest.last {
        let (path, offset) = end_found.unwrap_or((folder.path().join(MANIFEST), 0));
        let (from, to) = (replay.applied + 1, manifest.last + 1);
        return Err(missing(&path, offset, from, to));
    }
    found.replayed = replay.applied - covered;
    Ok(Loaded {
        replay,
        manifest,
        found,
        written,
        leftovers,
        next,
    })
}

/// Opens a file that the manifest lists, with the numbers of its header, the first of which is the salt.
async fn open_listed<const N: usize>(
    folder: &Folder,
    manifest: &Manifest,
    name: &str,
    magic: u64,
    salt: u64,
    bytes: u64,
) -> Result<(File, [u64; N]), Error> {
    let path = folder.path().join(name);
    let file = match folder.open_existing(name).await {
        Err(error) if error.is_not_found() => {
            return Err(Error::corrupt(&path, 0, "it is missing"));
        }
        opened => opened?,
    };
    let found = file.size().await?;
    if found < bytes {
        let what = format!("it has {found} bytes, the manifest says {bytes}");
        return Err(Error::corrupt(&path, found, what));
    }
    let head = file.read(0, UNIT).await?;
    let numbers: Option<[u64; N]> = parse_file_head(&head, magic, manifest.identity, &path)?;
    let Some(numbers) = numbers else {
        return Err(Error::corrupt(&path, 0, "the checksum of the header"));
    };
    if numbers[0] != salt {
        let what = "it is not the one that the manifest lists, but one of another time";
        return Err(Error::corrupt(&path, 24, what));
    }
    Ok((file, numbers))
}

/// The first operation of the first block of a file, if that was begun.
async fn first_operation(file: &File, salt: u64) -> Result<Option<u64>, Error> {
    let bytes = file.read(UNIT as u64, UNIT).await?;
    let head = BlockHead::parse(&bytes, salt).filter(|head| head.number == 0);
    Ok(head.map(|head| head.first))
}

fn older(folder: &Folder, file: &str) -> Error {
    let what = format!("it is older than {file}");
    Error::corrupt(&folder.path().join(MANIFEST), 0, what)
}

/// The files that the manifest does not list: what was being made, or was about to be removed, when a
/// process ended. An error if they are anything else.
async fn leftovers(
    folder: &Folder,
    manifest: &Manifest,
    names: &[String],
) -> Result<Vec<String>, Error> {
    let listed: Vec<_> = manifest.names().collect();
    let mut leftovers = Vec::new();
    for name in names {
        if *name == new_name(MANIFEST) {
            leftovers.push(name.clone());
        }
        if !is_log_file(name) || listed.contains(name) {
            continue;
        }
        leftovers.push(name.clone());
        let file = match folder.open_existing(name).await {
            // Removed since it was seen, beside a reader.
            Err(error) if error.is_not_found() => continue,
            opened => opened?,
        };
        let (path, identity) = (file.path(), manifest.identity);
        let head = file.read(0, UNIT).await?;
        parse_file_head::<1>(&head, CHECKPOINT_MAGIC, identity, path)?;
        if let Some([salt, number]) = parse_file_head(&head, WAL_MAGIC, identity, path)? {
            // It has its name from its header, and is used when it is listed.
            let used = WalFile {
                number,
                salt,
                bytes: 0,
                end: 0,
            };
            let is_next = used.name() == *name && number >= manifest.next_number();
            if is_next && first_operation(&file, salt).await?.is_some() {
                return Err(older(folder, name));
            }
        }
        drop(head);
        file.close().await?;
    }
    Ok(leftovers)
}
