//! The addresses of Unix sockets, as the kernel gives them: of any length.
//!
//! A sender without a name comes with no bytes at all, which `nix` does not expect. A path that fills
//! `sun_path` to the last byte, with no room for a NUL, comes with a length that counts one all the
//! same: one more than the structure has.

use std::io;
use std::mem::{ManuallyDrop, offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::sys::socket::{AddressFamily, SockaddrLike, UnixAddr};

/// Where `socket` is bound.
pub(crate) fn local_addr(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    as_std(&socket).local_addr()
}

/// What `socket` is connected to.
pub(crate) fn peer_addr(socket: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    as_std(&socket).peer_addr()
}

/// The standard library takes addresses of every length. What it calls a datagram socket may be a
/// stream: only the address is asked for.
fn as_std(socket: &BorrowedFd<'_>) -> ManuallyDrop<UnixDatagram> {
    // SAFETY: the descriptor is open for as long as it is borrowed, which is longer than the functions
    // above use this; and it is not closed here, since this is never dropped.
    ManuallyDrop::new(unsafe { UnixDatagram::from_raw_fd(socket.as_raw_fd()) })
}

/// What `recvmsg` has written as the address of a sender, made safe to look at; none if it is of another
/// family.
pub(crate) fn of_sender(mut address: UnixAddr) -> Option<UnixAddr> {
    let length = address.len() as usize;
    if length <= offset_of!(libc::sockaddr_un, sun_path) {
        return Some(UnixAddr::new_unnamed());
    }
    if address.family() != Some(AddressFamily::Unix) {
        return None;
    }
    if length > size_of::<libc::sockaddr_un>() {
        // SAFETY: the kernel has filled the structure, whose size this is, and a path without a NUL
        // at its end is a valid one.
        unsafe { address.set_length(size_of::<libc::sockaddr_un>()) }
            .expect("addresses of Unix sockets vary in length");
        return Some(address);
    }
    // Built anew: the rest of what was received into may be anything.
    match (address.as_abstract(), address.path()) {
        (Some(name), _) => UnixAddr::new_abstract(name).ok(),
        (None, Some(path)) => UnixAddr::new(path).ok(),
        (None, None) => Some(UnixAddr::new_unnamed()),
    }
}
