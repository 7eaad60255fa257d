//! What is done to files by their paths.

mod links;
mod trees;

use std::io;
use std::path::{Path, PathBuf};

pub(super) use links::link_open_with;
pub use links::{hard_link, read_link, set_permissions, symlink};
pub use trees::{create_dir_all, remove_dir, remove_dir_all};

use super::Result;
use super::stat::Stat;
use super::submit::Submitter;
use crate::reactor::op::{MakeDirectory, Rename, StatxAt, Unlink};
use crate::sys::file::{Statx, c_path, working_directory};

/// Gives the file at `old_path` the path `new_path`, and replaces a file that may be there: others
/// see one of the two at any time.
///
/// # Errors
///
/// What `rename(2)` gives, and `InvalidInput` for a path with a NUL byte.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped in the middle, it may or may not happen.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// # let (old, new) = (folder.path().join("old"), folder.path().join("new"));
/// std::fs::write(&old, "content")?;
/// assert_eq!(glommio::io::stat(&old).await?.file_size, 7);
/// glommio::io::rename(&old, &new).await?;
/// assert_eq!(std::fs::read(&new)?, b"content");
/// glommio::io::remove(&new).await?;
/// let error = glommio::io::remove(&new).await.unwrap_err();
/// assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub async fn rename<P: AsRef<Path>, Q: AsRef<Path>>(old_path: P, new_path: Q) -> Result<()> {
    let submitter = Submitter::begin().await;
    Ok(rename_with(&submitter, old_path.as_ref(), new_path.as_ref()).await?)
}

/// Removes the file at `path`. It is there for those who have it open until the last of them closes
/// it.
///
/// # Errors
///
/// What `unlink(2)` gives, such as `EISDIR` for a directory, and `InvalidInput` for a path with a
/// NUL byte.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped in the middle, it may or may not happen.
pub async fn remove<P: AsRef<Path>>(path: P) -> Result<()> {
    let submitter = Submitter::begin().await;
    Ok(remove_with(&submitter, path.as_ref()).await?)
}

/// The size and the like of the file at `path`, or at the end of the symbolic links that it is.
///
/// # Errors
///
/// What `statx(2)` gives, and `InvalidInput` for a path with a NUL byte.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped.
pub async fn stat<P: AsRef<Path>>(path: P) -> Result<Stat> {
    let statx = statx_with(&Submitter::begin().await, path.as_ref()).await?;
    Ok(Stat::of(&statx))
}

async fn statx_with(submitter: &Submitter, path: &Path) -> io::Result<Box<Statx>> {
    let op = StatxAt {
        path: c_path(path)?,
        statx: Box::new(Statx::zeroed()),
    };
    submitter.start(op)?.await
}

pub(super) async fn rename_with(submitter: &Submitter, from: &Path, to: &Path) -> io::Result<()> {
    let op = Rename {
        from: c_path(from)?,
        to: c_path(to)?,
    };
    submitter.start(op)?.await
}

pub(super) async fn remove_with(submitter: &Submitter, path: &Path) -> io::Result<()> {
    let op = Unlink {
        path: c_path(path)?,
        is_directory: false,
    };
    submitter.start(op)?.await
}

/// Makes a directory that only the process's mask restricts.
pub(super) async fn make_directory_with(submitter: &Submitter, path: &Path) -> io::Result<()> {
    let op = MakeDirectory {
        path: c_path(path)?,
        mode: 0o777,
    };
    submitter.start(op)?.await
}

/// `path` from the root on. As it is if the process has no working directory any more.
pub(super) fn absolute(path: &Path) -> PathBuf {
    if path.is_absolute() || path.as_os_str().is_empty() {
        path.to_path_buf()
    } else {
        working_directory().map_or_else(|_| path.to_path_buf(), |cwd| cwd.join(path))
    }
}
