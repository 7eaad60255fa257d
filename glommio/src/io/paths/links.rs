//! Further names of files: hard links and symbolic ones; and who may do what with a file.

use std::ffi::CString;
use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::io::Result;
use crate::io::error::enhanced;
use crate::io::submit::Submitter;
use crate::reactor::op::{HardLink, Symlink};
use crate::sys::descriptor::Descriptor;
use crate::sys::file::{self, c_path};

/// Gives the file at `original` the further path `link`, in the same filesystem, where nothing may
/// be yet. A symbolic link is not followed: it gets the further path itself.
///
/// # Errors
///
/// What `link(2)` gives, such as `EEXIST` or `EXDEV`, with the path `link`; `InvalidInput` for a
/// path with a NUL byte.
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
/// use glommio::io;
/// use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = |name| folder.path().join(name);
/// std::fs::write(path("file"), "content")?;
/// io::set_permissions(path("file"), Permissions::from_mode(0o600)).await?;
/// io::hard_link(path("file"), path("link")).await?;
/// io::remove(path("file")).await?;
/// assert_eq!(std::fs::read(path("link"))?, b"content");
///
/// io::symlink("target", path("symlink")).await?;
/// assert_eq!(io::read_link(path("symlink")).await?, Path::new("target"));
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub async fn hard_link<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> Result<()> {
    let (original, link) = (original.as_ref(), link.as_ref());
    let submitter = Submitter::begin().await;
    let linked = link_by(&submitter, None, c_path(original), link, 0).await;
    linked.map_err(|error| enhanced(error, "Linking", Some(link), None))
}

/// Gives the open file `file` the path `to`.
///
/// The kernel lets every process do so by the name that the descriptor has in `/proc`; by the
/// descriptor itself, where there is no `/proc`, some alone.
pub(in crate::io) async fn link_open_with(
    submitter: &Submitter,
    file: Descriptor,
    to: &Path,
) -> io::Result<()> {
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    let name = CString::new(name).expect("there is no NUL byte in it");
    let open = Some(file.clone());
    let by_name = link_by(submitter, open, Ok(name), to, libc::AT_SYMLINK_FOLLOW).await;
    match by_name {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let none = Ok(CString::default());
            let by_descriptor = link_by(submitter, Some(file), none, to, libc::AT_EMPTY_PATH).await;
            by_descriptor.map_err(|_| error)
        }
        linked => linked,
    }
}

async fn link_by(
    submitter: &Submitter,
    open: Option<Descriptor>,
    from: io::Result<CString>,
    to: &Path,
    flags: libc::c_int,
) -> io::Result<()> {
    let op = HardLink {
        open: open.map(Into::into),
        from: from?,
        to: c_path(to)?,
        flags,
    };
    submitter.start(op)?.await
}

/// Makes a symbolic link at `link`, where nothing may be yet, that leads to `original`: as it is
/// written, relative to where the link is. Nothing need be there.
///
/// # Errors
///
/// What `symlink(2)` gives, such as `EEXIST`, with the path `link`; `InvalidInput` for a path with a
/// NUL byte.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped in the middle, it may or may not happen.
pub async fn symlink<P: AsRef<Path>, Q: AsRef<Path>>(original: P, link: Q) -> Result<()> {
    let (original, link) = (original.as_ref(), link.as_ref());
    let submitter = Submitter::begin().await;
    let linked = async {
        let (target, link) = (c_path(original)?, c_path(link)?);
        submitter.start(Symlink { target, link })?.await
    };
    (linked.await).map_err(|error| enhanced(error, "Linking", Some(link), None))
}

/// Where the symbolic link at `path` leads to, as it is written in the link.
///
/// # Errors
///
/// What `readlink(2)` gives, such as `EINVAL` for what is no symbolic link.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped.
pub async fn read_link<P: AsRef<Path>>(path: P) -> Result<PathBuf> {
    let path = path.as_ref();
    let link = path.to_path_buf();
    let read = Submitter::begin()
        .await
        .blocking(move || file::read_link(&link))
        .await;
    read.map_err(|error| enhanced(error, "Reading a link", Some(path), None))
}

/// Sets who may do what with the file at `path`, or at the end of the symbolic links that it is.
///
/// # Errors
///
/// What `chmod(2)` gives, such as `EPERM`.
///
/// # Panics
///
/// Panics outside an executor.
///
/// # Cancel safety
///
/// Dropped before a blocking thread has begun it, nothing happens; later, it does.
pub async fn set_permissions<P: AsRef<Path>>(path: P, permissions: Permissions) -> Result<()> {
    let path = path.as_ref();
    let changed = path.to_path_buf();
    let set = Submitter::begin()
        .await
        .blocking(move || file::set_permissions(&changed, permissions))
        .await;
    set.map_err(|error| enhanced(error, "Setting permissions", Some(path), None))
}
