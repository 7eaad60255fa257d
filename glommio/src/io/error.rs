//! What errors of operations on files say beyond the system's own words.

use std::io;
use std::os::fd::RawFd;
use std::path::Path;

use super::Result;
use crate::error::GlommioError;
use crate::sys::door::number_of;

/// The error of `op`, attempted on the file `fd` at `path`.
pub(super) fn enhanced(
    source: io::Error,
    op: &'static str,
    path: Option<&Path>,
    fd: Option<RawFd>,
) -> GlommioError<()> {
    GlommioError::EnhancedIoError {
        source,
        op,
        path: path.map(Path::to_path_buf),
        fd: fd.map(number_of),
    }
}

/// The error of `op` on a file whose path is not known, but needed.
pub(super) fn needs_path<T>(op: &'static str, fd: RawFd) -> Result<T> {
    let source = io::Error::new(
        io::ErrorKind::InvalidData,
        "operation requires a valid path",
    );
    Err(enhanced(source, op, None, Some(fd)))
}

/// What was meant is known only to the system: a system error by its number.
pub(super) fn errno(number: libc::c_int) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// A copy: `io::Error` has no `Clone`.
pub(super) fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => errno(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// As [`again`], with what was attempted.
pub(super) fn again_enhanced(error: &GlommioError<()>) -> GlommioError<()> {
    match error {
        GlommioError::EnhancedIoError {
            source,
            op,
            path,
            fd,
        } => GlommioError::EnhancedIoError {
            source: again(source),
            op,
            path: path.clone(),
            fd: *fd,
        },
        GlommioError::IoError(source) => GlommioError::IoError(again(source)),
        other => GlommioError::IoError(io::Error::other(other.to_string())),
    }
}
