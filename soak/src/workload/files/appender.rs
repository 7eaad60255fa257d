//! The process that is killed: it recovers a file, then appends records to it for as long as it
//! lives.
//!
//! To its parent it says how many records it found, then after each `fdatasync` how many are safe:
//! a number a line. It says so *after* the sync, so that what was said must be there, whatever
//! happens next.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use glommio::io::{BufferedFile, DmaFile, OpenOptions, ReadResult};
use glommio::timer::sleep;
use glommio::{GlommioError, LocalExecutorBuilder, Placement, Task, spawn_local};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use support::generator::{Draw, Rng, stream};

use super::records::Records;
use crate::clock;

/// What the process is started with.
#[derive(Clone, Debug, Args)]
pub(crate) struct Order {
    /// Append records to this file until killed, for the process that has started this one.
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) append_to: Option<PathBuf>,

    /// Length of a record.
    #[arg(long, hide = true, default_value_t = 4096)]
    record_bytes: usize,
}

impl Order {
    /// Runs until killed, or for a minute: its parent is gone then.
    pub(crate) fn follow(&self, path: &Path, seed: u64) -> Result<ExitCode, Box<dyn Error>> {
        set_pdeathsig(Signal::SIGKILL)?;
        let (path, bytes) = (path.to_owned(), self.record_bytes);
        let records = Records { seed, bytes };
        let appending = LocalExecutorBuilder::new(Placement::Unbound)
            .name("soak-append")
            .spawn(move || async move {
                let log = Log::open(&path, records).await?;
                append(log, records, tell).await
            })?;
        appending.join()??;
        Ok(ExitCode::SUCCESS)
    }
}

/// Tells how many records are there, then how many are safe.
pub(super) async fn append(
    log: Log,
    records: Records,
    mut tell: impl FnMut(u64) -> std::io::Result<()>,
) -> Result<(), GlommioError<()>> {
    let mut rng = stream(records.seed, u64::MAX);
    let mut count = log.recover(records).await?;
    tell(count)?;
    let began = clock::now();
    while clock::since(began) < LIFE_MAX {
        let group = rng.u64(1..=GROUP_MAX);
        log.append(records, count, group, &mut rng).await?;
        log.file.fdatasync().await?;
        count += group;
        tell(count)?;
        sleep(rng.uniform(Duration::ZERO, PAUSE_MAX)).await;
    }
    Ok(())
}

fn tell(count: u64) -> std::io::Result<()> {
    let mut parent = stdout().lock();
    writeln!(parent, "{count}")?;
    parent.flush()
}

/// The file. Records whose length fits it are written past the page cache.
pub(super) struct Log {
    file: Rc<File>,
}

enum File {
    Direct(DmaFile),
    Buffered(BufferedFile),
}

impl Log {
    pub(super) async fn open(path: &Path, records: Records) -> Result<Log, GlommioError<()>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let direct = options.dma_open(path).await?;
        let file = if (records.bytes as u64).is_multiple_of(direct.alignment()) {
            File::Direct(direct)
        } else {
            direct.close().await?;
            File::Buffered(options.buffered_open(path).await?)
        };
        let file = Rc::new(file);
        Ok(Log { file })
    }

    /// Counts the whole records, and cuts off what follows.
    async fn recover(&self, records: Records) -> Result<u64, GlommioError<()>> {
        let mut count = 0;
        loop {
            let position = count * records.bytes as u64;
            let read = self.file.read_at(position, records.bytes * 16).await?;
            let whole = records.count_whole(count, &read);
            count += whole;
            if whole < 16 {
                self.file.truncate(count * records.bytes as u64).await?;
                return Ok(count);
            }
        }
    }

    /// Writes `group` records from number `first` on, all at once: as so many writes, or as one.
    async fn append(
        &self,
        records: Records,
        first: u64,
        group: u64,
        rng: &mut Rng,
    ) -> Result<(), GlommioError<()>> {
        let writes = if rng.chance(1, 2) { group } else { 1 };
        let each = group / writes;
        let writes: Vec<Task<_>> = (0..writes)
            .map(|write| {
                let (file, first) = (Rc::clone(&self.file), first + write * each);
                spawn_local(async move { file.write(records, first, each).await })
            })
            .collect();
        for write in writes {
            write.await?;
        }
        Ok(())
    }
}

impl File {
    async fn write(
        &self,
        records: Records,
        first: u64,
        count: u64,
    ) -> Result<(), GlommioError<()>> {
        let bytes = records.bytes * count as usize;
        let position = first * records.bytes as u64;
        let fill = |place: &mut [u8]| {
            for (place, number) in place.chunks_exact_mut(records.bytes).zip(first..) {
                records.make(number, place);
            }
        };
        let written = match self {
            File::Direct(file) => {
                let mut buffer = file.alloc_dma_buffer(bytes);
                fill(buffer.as_bytes_mut());
                file.write_at(buffer, position).await?
            }
            File::Buffered(file) => {
                let mut buffer = vec![0; bytes];
                fill(&mut buffer);
                file.write_at(buffer, position).await?
            }
        };
        if written == bytes {
            Ok(())
        } else {
            // The device is full: what was acknowledged is there all the same.
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull).into())
        }
    }

    async fn read_at(&self, position: u64, bytes: usize) -> Result<ReadResult, GlommioError<()>> {
        match self {
            File::Direct(file) => file.read_at(position, bytes).await,
            File::Buffered(file) => file.read_at(position, bytes).await,
        }
    }

    async fn truncate(&self, bytes: u64) -> Result<(), GlommioError<()>> {
        match self {
            File::Direct(file) => file.truncate(bytes).await,
            File::Buffered(file) => file.truncate(bytes).await,
        }
    }

    async fn fdatasync(&self) -> Result<(), GlommioError<()>> {
        match self {
            File::Direct(file) => file.fdatasync().await,
            File::Buffered(file) => file.fdatasync().await,
        }
    }
}

/// Records between two syncs.
const GROUP_MAX: u64 = 8;

/// Between two groups: the disk and the processor are there for others, too.
const PAUSE_MAX: Duration = Duration::from_millis(10);

const LIFE_MAX: Duration = Duration::from_secs(60);
