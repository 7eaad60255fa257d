//! The addresses of Unix sockets, as the kernel gives them: of any length.
//!
//! A sender without a name comes with no bytes at all, which `nix` does not expect. A path that
//! fills `sun_path` to the last byte, with no room for a NUL, comes with a length that counts one
//! all the same: one more than the structure has.

#![allow(unsafe_code)]

use std::io;
use std::mem::{ManuallyDrop, offset_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sys::socket::{SockaddrLike, UnixAddr};
use socket2::SockAddr;

use super::door::door;

/// Where `socket` is bound.
pub(crate) fn local_addr(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    door!(socket(socket).unix_local_addr());
    as_std(&socket).local_addr()
}

/// What `socket` is connected to.
pub(crate) fn peer_addr(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    door!(socket(socket).unix_peer_addr());
    as_std(&socket).peer_addr()
}

/// The standard library takes addresses of every length. What it calls a datagram socket may be a
/// stream: only the address is asked for.
fn as_std(socket: &BorrowedFd<'_>) -> ManuallyDrop<UnixDatagram> {
    // SAFETY: the descriptor is open for as long as it is borrowed, which is longer than the
    // functions above use this; and it is not closed here, since this is never dropped.
    ManuallyDrop::new(unsafe { UnixDatagram::from_raw_fd(socket.as_raw_fd()) })
}

/// The address of a sender, as `recvfrom` has written it; none if it is of another family.
pub(crate) fn of_sender(address: &SockAddr) -> Option<UnixAddr> {
    if address.len() as usize <= offset_of!(libc::sockaddr_un, sun_path) {
        return Some(UnixAddr::new_unnamed());
    }
    if !address.is_unix() {
        return None;
    }
    let length = address.len().min(UnixAddr::size());
    // SAFETY: it is the address of a Unix socket, and of its bytes, all of which are initialized,
    // no more are taken than the structure has.
    unsafe { UnixAddr::from_raw(address.as_ptr().cast(), Some(length)) }
}
