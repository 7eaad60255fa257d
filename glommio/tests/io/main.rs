//! Files, through the public API. Each test runs executors of its own, on files in folders of its
//! own: on the disk of the temporary folder, which may have direct I/O, and on a tmpfs, which has
//! none.

use std::fmt::Display;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, OFlag, fallocate};
use nix::sys::stat::Mode;
use tempfile::TempDir;

#[macro_use(run_test)]
extern crate glommio_macros;
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

use common::run as run_plain;

use crate::common::prelude::*;

type Result<T = ()> = std::result::Result<T, GlommioError<()>>;

/// Runs a test on an executor of its own.
fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    run_plain(test).expect("the test's operations succeed")
}

/// As [`run`], in a process of its own.
fn run_in_child(test: impl AsyncFnOnce() -> Result) {
    in_child(|| run(test()));
}

/// Runs a test on the disk, and in memory if there is a place.
fn in_each_folder(test: impl AsyncFn(TempDir) -> Result) {
    run(async {
        for folder in folders() {
            test(folder).await?;
        }
        Ok(())
    });
}

/// As [`in_each_folder`], with the path of a file that is not there yet.
fn in_each_place(test: impl AsyncFn(PathBuf) -> Result) {
    in_each_folder(async |folder| {
        let (_folder, path) = place_in(folder);
        test(path).await
    });
}

/// As [`run`], with a [`folder`].
fn in_folder(test: impl AsyncFnOnce(TempDir) -> Result) {
    run(test(folder()));
}

/// As [`run`], with a [`place`].
fn in_place(test: impl AsyncFnOnce(PathBuf) -> Result) {
    let (_folder, path) = place();
    run(test(path));
}

/// A folder on the disk.
fn folder() -> TempDir {
    tempfile::tempdir().expect("the disk has room")
}

/// The path of a file that is not there yet, in a folder on the disk.
fn place() -> (TempDir, PathBuf) {
    place_in(folder())
}

/// As [`place`], in each of `folders`.
fn places(folders: Vec<TempDir>) -> impl Iterator<Item = (TempDir, PathBuf)> {
    folders.into_iter().map(place_in)
}

fn place_in(folder: TempDir) -> (TempDir, PathBuf) {
    let path = folder.path().join("file");
    (folder, path)
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

/// Polls `future` until so many of its writes have come back from the kernel, of which it does not
/// know yet.
async fn written<F: Future + Unpin>(writes: u64, future: &mut F) {
    let mut seen = 0;
    while seen < writes {
        // It may wait for other things before it writes, such as what a server says of the file.
        assert!(poll_once(&mut *future).await.is_none());
        sleep(Duration::from_millis(1)).await;
        seen += glommio::executor().io_stats().all_rings().file_writes().0;
    }
}

/// Those of the folders on whose filesystems `call` works, as it does not on those of some sandboxes.
fn able<T>(
    folders: Vec<TempDir>,
    what: &str,
    call: impl Fn(&Path) -> nix::Result<T>,
) -> Vec<TempDir> {
    let is_able = |folder: &TempDir| {
        let result = call(folder.path());
        let is_able = !matches!(result, Err(Errno::EOPNOTSUPP | Errno::EISDIR));
        if !is_able {
            skipped(format_args!("no {what} in {}", folder.path().display()));
        }
        is_able
    };
    folders.into_iter().filter(is_able).collect()
}

/// Those of the folders that may have files without a name.
fn with_unnamed_files(folders: Vec<TempDir>) -> Vec<TempDir> {
    let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY;
    able(folders, "O_TMPFILE", |folder| {
        nix::fcntl::open(folder, flags, Mode::S_IRUSR)
    })
}

/// Those of the folders whose files may have space that they do not use, and holes.
fn with_space_to_manage(folders: Vec<TempDir>) -> Vec<TempDir> {
    let flags = FallocateFlags::FALLOC_FL_KEEP_SIZE | FallocateFlags::FALLOC_FL_PUNCH_HOLE;
    able(folders, "holes", |folder| {
        let file = tempfile::tempfile_in(folder).expect("the disk has room");
        fallocate(file, flags, 0, 4096)
    })
}

/// Makes this thread and those that it starts another user to the filesystem, or root again. Where
/// there is no such call, says that the test is left out.
fn becomes(user: u32) -> bool {
    // SAFETY: the call takes a number, and concerns this thread.
    unsafe { libc::setfsuid(user) };
    // SAFETY: as above. No user has this number, so that the call only tells which one it is.
    let is_now = unsafe { libc::setfsuid(u32::MAX) };
    let became = is_now.cast_unsigned() == user;
    if !became {
        skipped("there is no setfsuid(2)");
    }
    became
}

/// A folder of each kind that there is.
fn folders() -> Vec<TempDir> {
    folder_in_memory().into_iter().chain([folder()]).collect()
}

/// What a writer that was closed says.
#[track_caller]
fn assert_closed<T: std::fmt::Debug>(result: io::Result<T>) {
    let error = result.expect_err("it is closed");
    assert_eq!(error.kind(), io::ErrorKind::Other);
    let inner = error.into_inner().expect("it says more").to_string();
    assert!(
        inner.starts_with("Bad file descriptor (os error 9)"),
        "{inner}"
    );
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
