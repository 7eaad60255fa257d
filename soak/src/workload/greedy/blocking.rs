//! A blocking call of a second, and a call of the library's own beside it, which is not to wait for
//! it.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use futures_lite::StreamExt;
use glommio::io::Directory;
use glommio::timer::sleep;
use glommio::{GlommioError, executor, spawn_local};

use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::measure::process;

/// Round after round, until the run drains.
pub(super) async fn run(checker: Rc<Checker>, directory: PathBuf) -> Result<(), GlommioError<()>> {
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
