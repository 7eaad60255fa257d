//! Whether reads and writes can be told not to wait (`RWF_NOWAIT` of `preadv2(2)`).
//!
//! gVisor takes the flag for files and pipes, and waits all the same: a read of an empty pipe would keep the thread for
//! ever. Of sockets it says that it does not know the flag. Linux before 6.5 says that of pipes, too, and heeds the flag
//! for files.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use nix::fcntl::OFlag;

/// How long a read of the socket waits if the flag is ignored.
const LIMIT: Duration = Duration::from_secs(1);

/// Asks the system once per process. If in doubt it is not, which is slower and never wrong.
pub(crate) fn is_heeded() -> bool {
    static IS_HEEDED: OnceLock<bool> = OnceLock::new();
    *IS_HEEDED.get_or_init(|| ask().unwrap_or(false))
}

fn ask() -> io::Result<bool> {
    // Never waits, so that nothing has to end the wait.
    let (pipe, _writer) = nix::unistd::pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
    let (socket, _peer) = UnixStream::pair()?;
    socket.set_read_timeout(Some(LIMIT))?;
    Ok(is_heeded_by(pipe, socket))
}

/// What the system says of a pipe and of a socket. Both are empty.
fn is_heeded_by(pipe: impl AsFd, socket: impl AsFd) -> bool {
    let since = crate::clock::real();
    read(pipe) == Some(libc::EOPNOTSUPP)
        || read(socket) == Some(libc::EAGAIN) && crate::clock::real() - since < LIMIT
}

/// Why a byte could not be read without waiting.
fn read(from: impl AsFd) -> Option<i32> {
    let mut byte = 0_u8;
    let slice = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let fd = from.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most one byte, to the one slice, which has a place for it.
    let read = unsafe { libc::preadv2(fd, &slice, 1, -1, libc::RWF_NOWAIT) };
    (read < 0).then(nix::errno::Errno::last_raw)
}

#[cfg(test)]
#[test]
fn linux_heeds_it() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    assert!(is_heeded() || release.trim() == "4.4.0", "or it is gVisor");
}

/// On Linux 6.1 no read was tried without waiting, not even of a file that is in memory.
#[cfg(test)]
#[test]
fn linux_before_6_5_heeds_it_for_files() {
    use std::os::fd::{FromRawFd, OwnedFd};

    let (pipe, _writer) = nix::unistd::pipe2(OFlag::O_NONBLOCK).expect("descriptors are left");
    // SAFETY: it is new, and of nothing else.
    let unknown = unsafe { OwnedFd::from_raw_fd(libc::inotify_init1(libc::IN_NONBLOCK)) };
    if read(&unknown) != Some(libc::EOPNOTSUPP) {
        return eprintln!(
            "skipped: linux_before_6_5: this system has the flag for each descriptor"
        );
    }
    assert!(is_heeded_by(&unknown, &unknown));
    if read(&pipe) == Some(libc::EAGAIN) {
        assert!(!is_heeded_by(&pipe, &unknown), "this is gVisor's answer");
    }
}
