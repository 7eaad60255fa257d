//! From what callers give as an address to socket addresses.
//!
//! Addresses and IP literals cost nothing. A host name is looked up by the standard library, which
//! blocks the calling thread, and with it the executor, until the resolver has answered.

#![forbid(unsafe_code)]

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// The first address.
pub(super) fn first(address: impl ToSocketAddrs) -> io::Result<SocketAddr> {
    address.to_socket_addrs()?.next().ok_or_else(empty)
}

/// All addresses; maybe none.
pub(super) fn all(address: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    Ok(address.to_socket_addrs()?.collect())
}

/// What is said when there is no address at all.
pub(super) fn empty() -> io::Error {
    io::Error::other("empty address")
}

/// Of an address that the kernel gave for an internet socket.
pub(super) fn from_kernel(address: &socket2::SockAddr) -> io::Result<SocketAddr> {
    address.as_socket().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the socket has no internet address",
        )
    })
}
