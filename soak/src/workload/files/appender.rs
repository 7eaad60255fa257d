//! The process that is killed: it recovers a file, then appends records to it for as long as it
//! lives.
//!
//! To its parent it says how many records it found, then after each `fdatasync` how many are safe:
//! a number a line. It says so *after* the sync, so that what was said must be there, whatever
//! happens next.

use std::error::Error;
use std::process::ExitCode;

use glommio::{LocalExecutorBuilder, Placement};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

use super::file::{File, Result};
use crate::print::tell;
use crate::workload::prelude::*;

/// Appends until killed, or for a minute: its parent is gone then.
pub(crate) fn run(
    path: &Path,
    seed: u64,
    bytes: usize,
) -> std::result::Result<ExitCode, Box<dyn Error>> {
    set_pdeathsig(Signal::SIGKILL)?;
    let (path, records) = (path.to_owned(), Records { seed, bytes });
    let appending = LocalExecutorBuilder::new(Placement::Unbound)
        .name("soak-append")
        .spawn(move || async move { append(&path, records, tell::<u64>).await })?;
    appending.join()??;
    Ok(ExitCode::SUCCESS)
}

/// Tells how many records are there, then how many are safe.
pub(super) async fn append(
    path: &Path,
    records: Records,
    mut tell: impl FnMut(u64) -> std::io::Result<()>,
) -> Result<()> {
    let file = Rc::new(File::open(path, records.bytes.is_multiple_of(PAGE)).await?);
    let mut rng = stream(records.seed, u64::MAX);
    let mut count = recover(&file, records).await?;
    tell(count)?;
    let began = clock::now();
    while clock::since(began) < LIFE_MAX {
        let group = rng.u64(1..=GROUP_MAX);
        // All at once: as so many writes, or as one.
        let writes = if rng.chance(1, 2) { group } else { 1 };
        let each = group / writes;
        let writes = (0..writes).map(|write| {
            let (file, first) = (Rc::clone(&file), count + write * each);
            spawn_local(async move { write_records(&file, records, first, each).await })
        });
        for write in writes.collect::<Vec<_>>() {
            write.await?;
        }
        file.fdatasync().await?;
        count += group;
        tell(count)?;
        sleep(rng.uniform(Duration::ZERO, PAUSE_MAX)).await;
    }
    Ok(())
}

/// Counts the whole records, and cuts off what follows.
async fn recover(file: &File, records: Records) -> Result<u64> {
    let mut count = 0;
    loop {
        let position = count * records.bytes as u64;
        let read = file.read_at(position, records.bytes * 16).await?;
        let whole = records.count_whole(count, &read);
        count += whole;
        if whole < 16 {
            file.truncate(count * records.bytes as u64).await?;
            return Ok(count);
        }
    }
}

async fn write_records(file: &File, records: Records, first: u64, count: u64) -> Result<()> {
    let mut data = vec![0; records.bytes * count as usize];
    for (place, number) in data.chunks_exact_mut(records.bytes).zip(first..) {
        records.make(number, place);
    }
    let bytes = data.len();
    match file.write_at(data, first * records.bytes as u64).await? {
        written if written == bytes => Ok(()),
        // The device is full: what was acknowledged is there all the same.
        _ => Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into()),
    }
}

/// Records of this length are written past the page cache.
const PAGE: usize = 4096;

/// Records between two syncs.
const GROUP_MAX: u64 = 8;

/// Between two groups: the disk and the processor are there for others, too.
const PAUSE_MAX: Duration = Duration::from_millis(10);

const LIFE_MAX: Duration = Duration::from_secs(60);

/// The records of one file. Each is as long as the others, and all of it follows from its number: one that is half written, or in
/// the place of another, is found by making it again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records {
    pub(super) seed: u64,
    /// Of each.
    pub(super) bytes: usize,
}

impl Records {
    /// Makes the record of that number in `place`, which is as long as it.
    pub(super) fn make(self, number: u64, place: &mut [u8]) {
        stream(self.seed, number).fill(place);
    }

    /// How many whole records there are at the beginning of `file`, where the first one of `file`
    /// has that number.
    pub(super) fn count_whole(self, first: u64, file: &[u8]) -> u64 {
        let mut expected = vec![0; self.bytes];
        let whole = file.chunks_exact(self.bytes).zip(first..);
        let whole = whole.take_while(|&(found, number)| {
            self.make(number, &mut expected);
            found == expected
        });
        whole.count() as u64
    }
}
