//! Opening: checkpoints are loaded, and what the write-ahead log has beyond them is done again.

use std::path::PathBuf;
use std::rc::Rc;

use super::Record;
use super::checkpoint::{self, Checkpoint, Stretch};
use super::config::Config;
use super::core::{Core, Shared};
use super::disk::Folder;
use super::error::Error;
use super::format::{Kind, UNIT, WAL_MAGIC, parse_file_head};
use super::replay::Replay;
use super::wal::{self, Closed, Wal};
use crate::Seq;

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
    pub checkpoints: Vec<Checkpoint>,
    /// The last operation that they cover.
    pub covered: u64,
    pub found: Recovery,
}

pub(super) async fn recover<V: Record>(
    folder: Folder,
    config: Config,
) -> Result<Recovered<V>, Error> {
    let kind = Kind {
        record_bytes: V::BYTES as u32,
        unit: config.memory.unit,
    };
    let names = folder.names().await?;
    let mut replay = Replay::<V>::new(config.memory.clone(), 0, false)?;
    let mut found = Recovery::default();

    let stretches = names.iter().filter_map(|name| Stretch::of_name(name));
    let mut stretches: Vec<_> = stretches.collect();
    let mut checkpoints = Vec::new();
    // The longest one from where the ones before end.
    while let Some(next) = stretches
        .iter()
        .filter(|it| it.from == replay.applied && it.to > it.from)
        .max()
    {
        let file = Rc::new(folder.open_existing(&next.name()).await?);
        let checkpoint = checkpoint::load(file, kind, *next, &mut replay).await?;
        found.checkpoint_rows += checkpoint.rows;
        checkpoints.push(checkpoint);
    }
    let covered = replay.applied;
    found.checkpoints = checkpoints.len();
    if let Some(beyond) = stretches.iter().filter(|it| it.to > covered).min() {
        let (first, last) = (covered + 1, beyond.from);
        let what = format!("the operations {first} to {last} are in no checkpoint");
        return Err(Error::corrupt(folder.path(), 0, what));
    }
    stretches.retain(|it| checkpoints.iter().all(|used| used.stretch != *it));

    let mut numbers: Vec<_> = (names.iter()).filter_map(|it| wal::number_of(it)).collect();
    numbers.sort_unstable();
    let mut closed = Vec::new();
    let mut stale_files = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let file = Rc::new(folder.open_existing(&wal::name(*number)).await?);
        let end = match numbers.get(index + 1) {
            Some(next) => Some(first_operation(&folder, kind, *next).await?),
            None => None,
        };
        if end.is_some_and(|end| end <= covered + 1) {
            stale_files.push(*number);
            continue;
        }
        let end_found = replay.wal(Rc::clone(&file), kind, end).await?;
        if end.is_none() {
            if end_found.is_torn {
                found.torn = Some((file.path().to_owned(), end_found.offset));
            }
            // What a process that was killed has written may not have reached the device.
            file.sync().await?;
        }
        let number = *number;
        let end = replay.applied + 1;
        if end <= covered + 1 {
            stale_files.push(number);
        } else {
            closed.push(Closed { number, end });
        }
    }
    found.replayed = replay.applied - covered;
    // The names that were found, before anything is removed.
    folder.sync().await?;

    let applied = replay.applied;
    replay.mem().set_seq(Seq(applied));
    let core = Core::new(folder, kind, config, applied);
    let next = match core.folder.open_existing(wal::NEXT_NAME).await {
        Ok(file) if file.size().await? + (UNIT as u64) > core.config.limits.wal_file_bytes => file,
        _ => {
            let prepared = wal::prepare(&core, wal::first_bytes(&core)).await?;
            prepared.expect("the log is not being closed")
        }
    };
    let number = numbers.last().map_or(1, |number| number + 1);
    let wal = Wal::begin(&core, next, number, applied + 1).await?;

    core.folder.remove(checkpoint::NEW_NAME).await?;
    for stretch in stretches {
        core.folder.remove(&stretch.name()).await?;
    }
    for number in stale_files {
        wal::retire(&core, number).await?;
    }
    core.closed.replace(closed);
    Ok(Recovered {
        shared: Shared::new(core, replay.into_mem()),
        wal,
        checkpoints,
        covered,
        found,
    })
}

/// The first operation of a file of the write-ahead log.
async fn first_operation(folder: &Folder, kind: Kind, number: u64) -> Result<u64, Error> {
    let file = folder.open_existing(&wal::name(number)).await?;
    let head = file.read(0, UNIT).await?;
    let [found, _, first] = parse_file_head(&head, WAL_MAGIC, kind, file.path())?;
    if found != number {
        let what = "it has the header of another file";
        return Err(Error::corrupt(file.path(), 24, what));
    }
    file.close().await?;
    Ok(first)
}
