//! The system calls that move data. None of them waits, whatever mode the descriptor is in, none
//! raises `SIGPIPE`.

#![forbid(unsafe_code)]

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use nix::sys::socket::UnixAddr;
use socket2::SockAddr;

pub(super) use crate::sys::door::is_tried_at_once;
pub(super) use crate::sys::socket::{
    MAX_SLICES, has_urgent_data, is_writable, peek, receive, receive_record, receive_vectored,
    send, send_vectored,
};
use crate::sys::socket::{SEND, Socket};
use crate::sys::{self, unix_address};

pub(super) fn send_to(socket: &Socket, buf: &[u8], address: &SockAddr) -> io::Result<usize> {
    socket.send_to_with_flags(buf, address, SEND.bits())
}

/// The address of a datagram's sender.
pub(super) trait Sender: Sized {
    fn of(address: &SockAddr) -> io::Result<Self>;
}

impl Sender for SocketAddr {
    fn of(address: &SockAddr) -> io::Result<Self> {
        if address.len() == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what was received came without a sender's address: the socket is not a UDP socket",
            ));
        }
        address.as_socket().ok_or_else(|| no_sender("internet"))
    }
}

impl Sender for UnixAddr {
    fn of(address: &SockAddr) -> io::Result<Self> {
        unix_address::of_sender(address).ok_or_else(|| no_sender("Unix"))
    }
}

fn no_sender(family: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the sender of a datagram has no {family} address"),
    )
}

/// One datagram and its sender. What does not fit in `buf` is cut off.
pub(super) fn receive_from<S: Sender>(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, S)> {
    let (bytes, address) = sys::socket::receive_from(fd, buf, 0)?;
    Ok((bytes, S::of(&address)?))
}

/// As [`receive_from`], but the datagram stays in the socket.
pub(super) fn peek_from<S: Sender>(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, S)> {
    let (bytes, address) = sys::socket::receive_from(fd, buf, libc::MSG_PEEK)?;
    Ok((bytes, S::of(&address)?))
}
