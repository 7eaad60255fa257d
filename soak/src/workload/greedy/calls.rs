//! Calls of which there is much to do, or that take long, and what is to go on beside them.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;

use futures_lite::StreamExt;
use glommio::io::{BufferedFile, Directory, DmaFile, DmaStreamWriterBuilder};
use glommio::net::lookup_host;
use glommio::timer::sleep_until;

use super::turns::{SLOWNESS, Sizes, Turns};
use crate::workload::prelude::*;

/// A blocking call of a second, and a call of the library's own beside it, which is not to wait for it: round after round, until
/// the run drains.
pub(super) async fn list_beside_a_blocking_call(
    checker: Rc<Checker>,
    directory: PathBuf,
) -> Result<(), GlommioError<()>> {
    while !checker.control.is_draining() {
        let (has_begun, is_listed) = (Flag::default(), Flag::default());
        let call = {
            let (control, has_begun) = (Arc::clone(&checker.control), Arc::clone(&has_begun));
            let is_listed = Arc::clone(&is_listed);
            spawn_local(executor().spawn_blocking(move || {
                has_begun.store(true, Ordering::Release);
                let is_listed = || is_listed.load(Ordering::Acquire);
                // In naps, since time for which the process is stopped does not count.
                for nap in 0..NAPS_MAX {
                    let is_over = nap >= NAPS && is_listed();
                    if is_over || control.is_draining() {
                        return true;
                    }
                    thread::sleep(NAP);
                }
                is_listed()
            }))
        };
        while !has_begun.load(Ordering::Acquire) {
            sleep(LOOK_EVERY).await;
        }
        let found = list(&directory, || {}).await;
        is_listed.store(true, Ordering::Release);
        checker.holds(Invariant::Turns, call.await, || {
            "a directory was listed behind a blocking call, and not beside it".to_owned()
        });
        found?;
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Calls `found` for each name.
pub(super) async fn list(path: &Path, found: impl Fn()) -> Result<(), GlommioError<()>> {
    // With that of the listing.
    process::hold_descriptors(2);
    let directory = Directory::open(path).await?;
    let mut names = directory.read_dir()?;
    while let Some(entry) = names.next().await {
        entry?;
        found();
    }
    drop(names);
    directory.close().await?;
    process::hold_descriptors(-2);
    Ok(())
}

type Flag = Arc<AtomicBool>;

const NAP: Duration = Duration::from_millis(20);
/// A second,
const NAPS: usize = 50;
/// and ten: by then the listing would have waited for the call to end.
const NAPS_MAX: usize = 500;
const PAUSE: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Awaits that are ready at once, each in a loop that does nothing else: round after round, until the run drains.
pub(super) async fn run_ready(
    checker: Rc<Checker>,
    turns: Rc<Turns>,
    sizes: Sizes,
) -> Result<(), GlommioError<()>> {
    macro_rules! each {
        ($ready:expr) => {
            for _ in 0..EACH {
                $ready;
                turns.operation();
            }
        };
    }
    while !checker.control.is_draining() {
        sleep(sizes.every * 5).await;
        each!(spawn_local(async {}).await);
        each!(spawn_local(async {}).detach().await);
        each!(spawn_local(async {}).cancel().await);
        each!(drop(lookup_host("127.0.0.1:80").await?));
        let due = clock::now();
        each!(sleep_until(due).await);
    }
    Ok(())
}

/// Enough to hold an executor for longer than a slice.
const EACH: usize = 40_000 / SLOWNESS;

/// A writer that never pauses, and a flush beside it, which is to end all the same: round after round, until the run drains.
pub(super) async fn flush_beside_a_writer(
    checker: Rc<Checker>,
    turns: Rc<Turns>,
    path: PathBuf,
    sizes: Sizes,
) -> Result<(), GlommioError<()>> {
    while !checker.control.is_draining() {
        process::hold_descriptors(1);
        let file = DmaFile::create(&path).await?;
        let writer = DmaStreamWriterBuilder::new(file)
            .with_buffer_size(BUFFER)
            .with_write_behind(WRITE_BEHIND)
            .with_sync_on_close_disabled(true)
            .build();
        let is_flushed = Cell::new(false);
        let writing = async {
            let mut written = 0;
            while !is_flushed.get() && written < MOST {
                (&writer).write_all(&[7; PIECE]).await?;
                written += PIECE as u64;
                turns.operation();
            }
            add(&checker.stats.gauges.file_bytes_written, written);
            Ok(())
        };
        let flushing = async {
            for _ in 0..FLUSHES {
                sleep(Duration::from_micros(200)).await;
                let before = writer.current_pos();
                let flushed = (&writer).flush().await;
                let accepted = writer.current_pos() - before;
                let too_much = accepted.saturating_sub(ACCEPTED_MAX);
                checker.check(Invariant::Turns, too_much / PIECE as u64, || {
                    format!("{accepted} bytes were accepted while a flush waited")
                });
                flushed?;
            }
            is_flushed.set(true);
            Ok(())
        };
        let (written, flushed): (std::io::Result<()>, std::io::Result<()>) =
            zip(writing, flushing).await;
        written.and(flushed)?;
        (&writer).close().await?;
        process::hold_descriptors(-1);
        sleep(sizes.every * 2).await;
    }
    Ok(())
}

const PIECE: usize = 4 << 10;
const BUFFER: usize = 64 << 10;
const WRITE_BEHIND: usize = 2;
const FLUSHES: usize = 4;

/// The writer ends here, whatever the flushes do.
const MOST: u64 = 16 << 20;

/// What fills the buffers, with what is written in the poll in which the flush begins: 32 pieces, once
/// the slice of the task is over. One that does not keep writes waiting sees all of [`MOST`].
const ACCEPTED_MAX: u64 = MOST / 16;

/// A read of hundreds of megabytes from the page cache, and the list of a long directory: round after round, until the run drains.
pub(super) async fn make_long_calls(
    checker: Rc<Checker>,
    turns: Rc<Turns>,
    within: PathBuf,
    sizes: Sizes,
) -> Result<(), GlommioError<()>> {
    let (path, directory) = (within.join("long"), within.join("names"));
    process::hold_memory(1);
    let takes = {
        let (path, directory) = (path.clone(), directory.clone());
        executor().spawn_blocking(move || {
            make_names(&directory)?;
            // Without optimisation a read computes for what its pieces cost by themselves.
            let is_read = !cfg!(debug_assertions) && process::is_thread_time_exact();
            is_read.then(|| make_long(&path)).transpose()
        })
    };
    let takes = takes.await?;
    process::hold_memory(-1);
    while !checker.control.is_draining() {
        sleep(sizes.every * 5).await;
        process::hold_memory(1);
        if let Some(takes) = takes {
            read_long(&checker, &turns, &path, takes).await?;
        }
        for _ in 0..LISTS {
            list(&directory, || turns.operation()).await?;
        }
        process::hold_memory(-1);
    }
    Ok(())
}

async fn read_long(
    checker: &Checker,
    turns: &Turns,
    path: &Path,
    takes: Duration,
) -> Result<(), GlommioError<()>> {
    process::hold_descriptors(1);
    let file = BufferedFile::open(path).await?;
    turns.take_longest_stretch();
    let read = file.read_at(0, LONG).await?;
    let computed = turns.take_longest_stretch();
    // A thread that copies it all computes for as long as it takes.
    checker.holds(Invariant::LongCalls, computed <= takes / 2, || {
        format!("a thread computed for {computed:?} during a read, which takes {takes:?} to copy")
    });
    assert_eq!(read.len(), LONG, "it is as long");
    drop(read);
    file.close().await?;
    process::hold_descriptors(-1);
    Ok(())
}

fn make_names(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory)?;
    for name in 0..NAMES {
        symlink(
            "to",
            directory.join(format!("a-name-of-some-length-{name}")),
        )?;
    }
    Ok(())
}

/// Makes the file, and tells how long a thread computes to copy it out of the page cache. Blocks.
fn make_long(path: &Path) -> io::Result<Duration> {
    // It takes no place on the disk.
    File::create(path)?.set_len(LONG as u64)?;
    let mut bytes = vec![0; 1 << 20];
    let mut copy = || {
        let mut file = File::open(path)?;
        let before = process::thread_time();
        while file.read(&mut bytes)? > 0 {}
        io::Result::Ok(process::thread_time() - before)
    };
    // The first may have to bring it there.
    Ok(copy()?.min(copy()?))
}

const LONG: usize = 192 << 20;
const NAMES: usize = 5_000 / SLOWNESS;
const LISTS: usize = 10;
