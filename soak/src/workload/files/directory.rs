//! Where the files lie: on a disk, if there is one.

use std::env;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use nix::libc::O_DIRECT;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tempfile::TempDir;

use crate::workload::prelude::*;

/// Makes a directory of our own in `asked`, or where one would put files that are to be tried: the
/// first place that has direct I/O, else the first that can be written. It goes when it is dropped.
pub(crate) fn make(asked: Option<&Path>) -> io::Result<TempDir> {
    let make_in = |place: &Path| tempfile::Builder::new().prefix("soak-").tempdir_in(place);
    if let Some(place) = asked {
        return make_in(place);
    }
    let mut fallback = Err(io::Error::from(io::ErrorKind::NotFound));
    for place in places() {
        match make_in(&place) {
            Ok(made) if has_direct_io(made.path()) => return Ok(made),
            made if fallback.is_err() => fallback = made,
            _ => {}
        }
    }
    fallback
}

/// Temporary files may be in memory; what cargo builds is on a disk as a rule.
fn places() -> impl Iterator<Item = PathBuf> {
    let program = env::current_exe().ok();
    let beside = program.and_then(|program| Some(program.parent()?.to_owned()));
    [env::temp_dir()].into_iter().chain(beside)
}

/// Whether files in `directory` can be read and written past the page cache.
pub(crate) fn has_direct_io(directory: &Path) -> bool {
    // A tmpfs has no device. Some kernels take the flag there, and some refuse it.
    let is_in_memory = statfs(directory).is_ok_and(|it| it.filesystem_type() == TMPFS_MAGIC);
    let path = directory.join("direct");
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(O_DIRECT)
        .open(&path);
    // A filesystem may refuse the flag and make the file all the same.
    let _ = std::fs::remove_file(&path);
    opened.is_ok() && !is_in_memory
}
