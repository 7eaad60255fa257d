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
use super::sizes::{SLOWNESS, Sizes};
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
