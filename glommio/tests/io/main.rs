//! Files, through the public API. Each test runs executors of its own, on files in folders of its
//! own: on the disk of the temporary folder, which may have direct I/O, and on a tmpfs, which has
//! none.

use std::fmt::Display;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use futures_lite::future::poll_once;
use glommio::timer::sleep;
use glommio::{GlommioError, LocalExecutor};
use tempfile::TempDir;

#[path = "../common/mod.rs"]
mod common;

mod budget;
mod buffered;
mod bulk;
mod clones;
mod directory;
mod dma;
mod dma_streams;
mod dma_writer;
mod dropped;
mod fairness;
mod faulty;
mod forked;
mod immutable;
mod limits;
mod locks;
mod long;
mod long_calls;
mod mounts;
mod names;
mod no_workers;
mod open;
mod pollable_fd;
mod random_files;
mod random_streams;
mod reuse;
mod statistics;
mod stdin;
mod streams;
mod without_features;

use common::skipped::skipped;
use common::watchdog;

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

/// Runs a test on an executor of its own.
fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    let _watchdog = watchdog();
    LocalExecutor::default()
        .run(test)
        .expect("the test's operations succeed")
}

/// A folder on the disk.
fn folder() -> TempDir {
    tempfile::tempdir().expect("the disk has room")
}

/// A folder on a tmpfs, if there is one.
fn folder_in_memory() -> Option<TempDir> {
    let folder = tempfile::tempdir_in("/dev/shm");
    folder
        .inspect_err(|error| left_out(format_args!("/dev/shm cannot be written: {error}")))
        .ok()
}

/// Says that what needs a filesystem or a device of its own is left out, as the machine has none:
/// of the current test, or all of it. Fails it if `GLOMMIO_TEST_MOUNTS` says `required`.
#[track_caller]
fn left_out(reason: impl Display) {
    const NEEDED: &str = "needed are the capability SYS_ADMIN (root; --privileged of a container), loop devices, \
                          `mount`, `losetup`, `mkfs.ext4`, a tmpfs at /dev/shm, and a TMPDIR with direct I/O";
    let is_required = std::env::var_os("GLOMMIO_TEST_MOUNTS").is_some_and(|it| it == "required");
    assert!(
        !is_required,
        "GLOMMIO_TEST_MOUNTS=required, but {reason}; {NEEDED}"
    );
    skipped(format_args!("{reason}; {NEEDED}"));
}

/// A folder of each kind that there is.
fn folders() -> Vec<TempDir> {
    folder_in_memory().into_iter().chain([folder()]).collect()
}

/// Bytes that differ from those elsewhere in the file.
fn pattern(start: usize, len: usize) -> Vec<u8> {
    (start..start + len)
        .map(|at| (at ^ (at >> 8).wrapping_mul(31) ^ (at >> 16)) as u8)
        .collect()
}

/// A file of so many bytes of the pattern.
fn filled(path: &Path, len: usize) {
    std::fs::write(path, pattern(0, len)).expect("the disk has room");
}

/// Polls `future` until it has asked the kernel and found nothing, or is done, and drops it in that
/// state.
async fn give_up<F: Future>(future: F, polls: u64) {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll_once(&mut future).await.is_some() {
            return;
        }
        sleep(Duration::from_micros(50)).await;
    }
}

/// What was attempted, and on what path, of the error of a file.
#[track_caller]
fn told<T: std::fmt::Debug>(
    result: Result<T>,
) -> (&'static str, Option<std::path::PathBuf>, Option<i32>) {
    let error = result.expect_err("this was to fail");
    let errno = error.raw_os_error();
    match error {
        GlommioError::EnhancedIoError { op, path, .. } => (op, path, errno),
        other => panic!("not an error of a file: {other:?}"),
    }
}

/// The number of a plain system error.
#[track_caller]
fn plain<T: std::fmt::Debug>(result: Result<T>) -> io::Error {
    match result.expect_err("this was to fail") {
        GlommioError::IoError(error) => error,
        other => panic!("not a plain error: {other:?}"),
    }
}

/// As `mem::forget`, where a leak sanitizer sees that it is meant.
fn forget<T>(value: T) {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = std::ptr::from_mut(Box::leak(Box::new(value))).expose_provenance();
    FORGOTTEN
        .lock()
        .expect("pushing does not panic")
        .push(address);
}
