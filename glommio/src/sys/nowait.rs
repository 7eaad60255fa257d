//! Whether reads and writes can be told not to wait (`RWF_NOWAIT` of `preadv2(2)`).
//!
//! gVisor takes the flag for files and pipes, and waits all the same: a read of an empty pipe would keep the thread for
//! ever. Of sockets it says that it does not know the flag, as a kernel does that has none.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

/// Asks the system once per process. If in doubt it is not, which is slower and never wrong.
pub(crate) fn is_heeded() -> bool {
    static IS_HEEDED: OnceLock<bool> = OnceLock::new();
    *IS_HEEDED.get_or_init(|| ask().unwrap_or(false))
}

fn ask() -> io::Result<bool> {
    let (socket, _peer) = UnixStream::pair()?;
    let limit = Duration::from_secs(1);
    socket.set_read_timeout(Some(limit))?;
    let mut byte = 0_u8;
    let slice = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let since = crate::clock::real();
    // SAFETY: the kernel writes at most one byte, to the one slice, which has a place for it.
    let read = unsafe { libc::preadv2(socket.as_raw_fd(), &slice, 1, -1, libc::RWF_NOWAIT) };
    let is_refused = read < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock;
    Ok(is_refused && crate::clock::real() - since < limit)
}

#[cfg(test)]
#[test]
fn linux_heeds_it() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    assert!(is_heeded() || release.trim() == "4.4.0", "or it is gVisor");
}
