//! Calls of which there is much to do: a read of hundreds of megabytes from the page cache, and the list
//! of a long directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use glommio::io::BufferedFile;
use glommio::timer::sleep;
use glommio::{GlommioError, executor};

use super::blocking::list;
use super::sizes::Sizes;
use super::turns::Turns;
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::measure::process;

/// Round after round, until the run drains.
pub(super) async fn run(
    checker: Rc<Checker>,
    turns: Rc<Turns>,
    within: PathBuf,
    sizes: Sizes,
) -> Result<(), GlommioError<()>> {
    let (path, directory) = (within.join("long"), within.join("names"));
    process::hold_memory(1);
    let takes = {
        let (path, directory) = (path.clone(), directory.clone());
        executor().spawn_blocking(move || prepare(&path, &directory))
    };
    let takes = takes.await?;
    process::hold_memory(-1);
    let is_exact = process::is_thread_time_exact();
    while !checker.control.is_draining() {
        process::hold_memory(1);
        process::hold_descriptors(1);
        let file = BufferedFile::open(&path).await?;
        turns.take_longest_stretch();
        let read = file.read_at(0, LONG).await?;
        let computed = turns.take_longest_stretch();
        // A thread that copies it all computes for as long as it takes.
        let is_little = computed <= takes / 2 + FIXED || !is_exact;
        checker.holds(Invariant::LongCalls, is_little, || {
            format!(
                "a thread computed for {computed:?} during a read, which takes {takes:?} to copy"
            )
        });
        assert_eq!(read.len(), LONG, "it is as long");
        drop(read);
        file.close().await?;
        process::hold_descriptors(-1);
        for _ in 0..LISTS {
            list(&directory, || turns.operation()).await?;
        }
        process::hold_memory(-1);
        sleep(sizes.every * 5).await;
    }
    Ok(())
}

/// Makes both, and tells how long a thread computes to copy the file out of the page cache. Blocks.
fn prepare(path: &Path, directory: &Path) -> io::Result<Duration> {
    // It takes no place on the disk.
    File::create(path)?.set_len(LONG as u64)?;
    fs::create_dir(directory)?;
    for name in 0..NAMES {
        symlink(
            "to",
            directory.join(format!("a-name-of-some-length-{name}")),
        )?;
    }
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

const LONG: usize = (192 << 20) / SCALE;
const NAMES: usize = 5_000 / SCALE;
const LISTS: usize = 10;

/// A program that is not optimised would do little else, and hold the memory for most of the time.
const SCALE: usize = if cfg!(debug_assertions) { 8 } else { 1 };

/// What the pieces of a call cost by themselves.
const FIXED: Duration = Duration::from_millis(if cfg!(debug_assertions) { 50 } else { 0 });
