//! From paths to socket addresses, and back from what the kernel gives.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::SockAddr;

use crate::sys::socket::Socket;
use crate::sys::unix_address;

/// The address that `path` names.
pub(super) fn of(path: impl AsRef<Path>) -> io::Result<SockAddr> {
    let path = path.as_ref();
    let bytes = path.as_os_str().as_bytes();
    // The kernel would take the part before it, which is some other file.
    if bytes.first() != Some(&0) && bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path of a socket must not contain NUL bytes, but for the first of an abstract name",
        ));
    }
    SockAddr::unix(path)
}

/// Where a Unix socket is bound.
pub(super) fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    unix_address::local_addr(socket.as_fd())
}

/// What a Unix socket is connected to.
pub(super) fn peer_addr(socket: &Socket) -> io::Result<SocketAddr> {
    unix_address::peer_addr(socket.as_fd())
}
