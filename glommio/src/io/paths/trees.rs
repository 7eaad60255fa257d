//! Directories by their paths, with all that is in them.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{make_directory_with, remove_with, statx_with};
use crate::error::GlommioError;
use crate::io::Result;
use crate::io::error::enhanced;
use crate::io::submit::Submitter;
use crate::reactor::op::Unlink;
use crate::sys::file::entries::Entries;
use crate::sys::file::{self, c_path, removal};

/// Makes a directory at `path`, and those above it that are missing. One that is there is no error.
///
/// # Errors
///
/// What `mkdir(2)` gives, with the path of the directory that could not be made: `ENOTDIR` or
/// `EEXIST` if there is a file in its place.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped in the middle, any of the directories may or may not have been made.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// # let folder = tempfile::tempdir().unwrap();
/// let logs = folder.path().join("var/log/today");
/// glommio::io::create_dir_all(&logs).await?;
/// assert!(logs.is_dir());
/// glommio::io::create_dir_all(&logs).await?; // once more is no error
/// glommio::io::remove_dir(&logs).await?; // it is empty
/// glommio::io::remove_dir_all(folder.path().join("var")).await?;
/// assert!(!logs.exists());
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub async fn create_dir_all<P: AsRef<Path>>(path: P) -> Result<()> {
    let submitter = Submitter::begin().await;
    let mut next = path.as_ref();
    // Upwards until one can be made, then down again.
    let mut missing = Vec::new();
    loop {
        if next.as_os_str().is_empty() {
            // The working directory.
            break;
        }
        match make_or_find(&submitter, next).await {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => match next.parent() {
                Some(parent) if missing.len() < MAX_DEPTH => {
                    missing.push(next);
                    next = parent;
                }
                _ => return Err(not_made(error, next)),
            },
            Err(error) => return Err(not_made(error, next)),
        }
    }
    while let Some(next) = missing.pop() {
        let made = make_or_find(&submitter, next).await;
        made.map_err(|error| not_made(error, next))?;
    }
    Ok(())
}

/// No path of the kernel has more parts.
const MAX_DEPTH: usize = 4096;

async fn make_or_find(submitter: &Submitter, path: &Path) -> io::Result<()> {
    let Err(error) = make_directory_with(submitter, path).await else {
        return Ok(());
    };
    // Where directories must not be made, there may be one all the same.
    let found = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => return Err(error),
        _ => statx_with(submitter, path).await,
    };
    match found {
        Ok(statx) if statx.is_directory() => Ok(()),
        _ => Err(error),
    }
}

fn not_made(error: io::Error, path: &Path) -> GlommioError<()> {
    enhanced(error, "Creating a directory", Some(path), None)
}

/// Removes the empty directory at `path`.
///
/// # Errors
///
/// What `rmdir(2)` gives, such as `ENOTEMPTY`, or `ENOTDIR` for a file.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped in the middle, it may or may not happen.
pub async fn remove_dir<P: AsRef<Path>>(path: P) -> Result<()> {
    let path = path.as_ref();
    let removed = remove_dir_with(&Submitter::begin().await, path).await;
    removed.map_err(|error| not_removed(error, path))
}

async fn remove_dir_with(submitter: &Submitter, path: &Path) -> io::Result<()> {
    let op = Unlink {
        path: c_path(path)?,
        is_directory: true,
    };
    submitter.start(op)?.await
}

fn not_removed(error: io::Error, path: &Path) -> GlommioError<()> {
    enhanced(error, "Removing", Some(path), None)
}

/// Removes the directory at `path` with all that is in it. Symbolic links are removed, as is `path`
/// if it is one; where they lead to is left alone, also if a directory is replaced by a link
/// meanwhile. Names that another one removes meanwhile are no error.
///
/// A directory of the tree takes a descriptor while what is below it is removed.
///
/// # Errors
///
/// What `openat(2)`, `getdents64(2)` and `unlinkat(2)` give, with the path of what could not be
/// removed; the rest of the tree may still be there. `ENOTEMPTY` where names are added all the time.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped in the middle, a part of the tree is removed. It ends with the names that a blocking
/// thread has begun with, some two thousand at most.
pub async fn remove_dir_all<P: AsRef<Path>>(path: P) -> Result<()> {
    let path = path.as_ref();
    let submitter = Submitter::begin().await;
    let opened = open(&submitter, None, path.as_os_str().to_owned()).await;
    match opened {
        Ok(directory) => remove_tree(&submitter, path, directory).await,
        Err(error) => {
            let link = path.to_path_buf();
            let is_link = submitter.blocking(move || file::is_link(&link));
            let result = match is_link.await {
                Ok(true) => remove_with(&submitter, path).await,
                _ => Err(error),
            };
            result.map_err(|error| not_removed(error, path))
        }
    }
}

/// A directory on the way down.
struct Level {
    path: PathBuf,
    name: OsString,
    directory: Arc<OwnedFd>,
    /// Directories in it that are still to be removed.
    found: Vec<OsString>,
    /// There may be names that were not looked at.
    has_more: bool,
    passes: usize,
}

/// Looks through a directory that is not empty after all: some filesystems leave names out if others
/// are removed meanwhile.
const MAX_PASSES: usize = 8;

impl Level {
    fn new(path: PathBuf, name: OsString, directory: OwnedFd) -> Self {
        Level {
            path,
            name,
            directory: Arc::new(directory),
            found: Vec::new(),
            has_more: true,
            passes: 0,
        }
    }
}

/// Without recursion: a tree may be deep.
async fn remove_tree(submitter: &Submitter, root: &Path, directory: OwnedFd) -> Result<()> {
    let mut levels = vec![Level::new(root.to_path_buf(), OsString::new(), directory)];
    let mut block = Entries::default();
    while let Some(mut level) = levels.pop() {
        if let Some(name) = level.found.pop() {
            let path = level.path.join(&name);
            let opened = open(submitter, Some(&level.directory), name.clone()).await;
            levels.push(level);
            match opened {
                Ok(directory) => levels.push(Level::new(path, name, directory)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(not_removed(error, &path)),
            }
        } else if level.has_more {
            let directory = Arc::clone(&level.directory);
            let remove = move || {
                let removed = removal::remove_block(directory.as_fd(), &mut block);
                Ok((block, removed))
            };
            let removed = match submitter.blocking(remove).await {
                Ok((back, removed)) => {
                    block = back;
                    removed
                }
                Err(error) => return Err(not_removed(error, &level.path)),
            };
            match removed {
                Ok(removed) => {
                    level.found = removed.directories;
                    level.has_more = removed.has_more;
                }
                Err(failed) => {
                    let path = failed.name.map(|name| level.path.join(name));
                    let path = path.unwrap_or(level.path);
                    return Err(not_removed(failed.error, &path));
                }
            }
            levels.push(level);
        } else {
            let parent = levels.last().map(|parent| Arc::clone(&parent.directory));
            let removed = match parent {
                None => remove_dir_with(submitter, root).await,
                Some(parent) => {
                    let name = level.name.clone();
                    let remove = move || removal::remove_directory(parent.as_fd(), &name);
                    submitter.blocking(remove).await
                }
            };
            match removed {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound && !levels.is_empty() => {}
                Err(error)
                    if error.raw_os_error() == Some(libc::ENOTEMPTY)
                        && level.passes < MAX_PASSES =>
                {
                    let directory = Arc::clone(&level.directory);
                    let rewound = submitter.blocking(move || removal::rewind(directory.as_fd()));
                    let rewound = rewound.await;
                    rewound.map_err(|error| not_removed(error, &level.path))?;
                    level.passes += 1;
                    level.has_more = true;
                    levels.push(level);
                }
                Err(error) => return Err(not_removed(error, &level.path)),
            }
        }
    }
    Ok(())
}

/// Opens the directory `name` in `parent`, or in the working directory, unless it is a link.
async fn open(
    submitter: &Submitter,
    parent: Option<&Arc<OwnedFd>>,
    name: OsString,
) -> io::Result<OwnedFd> {
    let parent = parent.map(Arc::clone);
    submitter
        .blocking(move || {
            let parent = parent.as_ref().map(|parent| parent.as_fd());
            removal::open_directory(parent, &name)
        })
        .await
}
