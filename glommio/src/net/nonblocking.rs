//! The system calls that move data. None of them waits, whatever mode the descriptor is in, none
//! raises `SIGPIPE`.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::RawFd;

use nix::sys::socket::{self, MsgFlags, SockaddrStorage};

pub(super) use crate::sys::socket::{receive, receive_all, send};

const SEND: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);
const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT;
const PEEK: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_PEEK);

/// The kernel refuses more slices in one call (`UIO_MAXIOV`).
const MAX_SLICES: usize = 1024;

/// As [`receive`], but the data stays in the socket.
pub(super) fn peek(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    Ok(socket::recv(fd, buf, PEEK)?)
}

pub(super) fn receive_vectored(fd: RawFd, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let count = bufs.len().min(MAX_SLICES);
    let message = socket::recvmsg::<()>(fd, &mut bufs[..count], None, RECEIVE)?;
    Ok(message.bytes)
}

pub(super) fn send_vectored(fd: RawFd, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    let count = bufs.len().min(MAX_SLICES);
    Ok(socket::sendmsg::<()>(fd, &bufs[..count], &[], SEND, None)?)
}

pub(super) fn send_to(fd: RawFd, buf: &[u8], address: SocketAddr) -> io::Result<usize> {
    Ok(socket::sendto(
        fd,
        buf,
        &SockaddrStorage::from(address),
        SEND,
    )?)
}

/// One datagram and its sender. What does not fit in `buf` is cut off.
pub(super) fn receive_from(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    message_from(fd, buf, RECEIVE)
}

/// As [`receive_from`], but the datagram stays in the socket.
pub(super) fn peek_from(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
    message_from(fd, buf, PEEK)
}

fn message_from(fd: RawFd, buf: &mut [u8], flags: MsgFlags) -> io::Result<(usize, SocketAddr)> {
    let mut slices = [IoSliceMut::new(buf)];
    let message = socket::recvmsg::<SockaddrStorage>(fd, &mut slices, None, flags)?;
    let sender = message.address.as_ref().and_then(internet_address);
    let sender = sender.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the sender of a datagram has no internet address",
        )
    })?;
    Ok((message.bytes, sender))
}

fn internet_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = address.as_sockaddr_in() {
        return Some(SocketAddr::from(*v4));
    }
    address.as_sockaddr_in6().map(|v6| SocketAddr::from(*v6))
}
