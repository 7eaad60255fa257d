//! Descriptors that are known by their number alone.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

/// Whether a file is open under that number.
///
/// # Errors
///
/// `EBADF` if there is none.
pub(crate) fn check_open(fd: RawFd) -> io::Result<()> {
    // SAFETY: the call takes two numbers, touches no memory, and changes nothing.
    match unsafe { libc::fcntl(fd, libc::F_GETFD) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
