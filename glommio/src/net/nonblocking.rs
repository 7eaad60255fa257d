//! The system calls that move data. None of them waits, whatever mode the descriptor is in, none
//! raises `SIGPIPE`.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, RawFd};

use nix::errno::Errno;
use nix::poll::{self, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{self, MsgFlags, SockaddrLike, SockaddrStorage, UnixAddr};
use socket2::{SockAddr, Socket};

use crate::sys::unix_address;

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

pub(super) fn send_to(socket: &Socket, buf: &[u8], address: &SockAddr) -> io::Result<usize> {
    socket.send_to_with_flags(buf, address, SEND.bits())
}

/// Whether there is room to send now.
pub(super) fn is_writable(socket: &Socket) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    match poll::poll(&mut polled, PollTimeout::ZERO) {
        // Interrupted it is only where it would wait.
        Ok(0) | Err(Errno::EINTR) => Ok(false),
        Ok(_) => Ok(polled[0]
            .revents()
            .is_some_and(|it| it.contains(PollFlags::POLLOUT))),
        Err(error) => Err(error.into()),
    }
}

/// The address of whoever sent a datagram.
pub(super) trait Sender: Sized {
    /// As the kernel gives it.
    type Raw: SockaddrLike;

    fn of(raw: Self::Raw) -> io::Result<Self>;
}

impl Sender for SocketAddr {
    type Raw = SockaddrStorage;

    fn of(raw: SockaddrStorage) -> io::Result<Self> {
        if let Some(v4) = raw.as_sockaddr_in() {
            return Ok(SocketAddr::from(*v4));
        }
        let v6 = raw.as_sockaddr_in6().map(|v6| SocketAddr::from(*v6));
        v6.ok_or_else(|| no_sender("internet"))
    }
}

impl Sender for UnixAddr {
    type Raw = UnixAddr;

    fn of(raw: UnixAddr) -> io::Result<Self> {
        unix_address::of_sender(raw).ok_or_else(|| no_sender("Unix"))
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
    message_from(fd, buf, RECEIVE)
}

/// As [`receive_from`], but the datagram stays in the socket.
pub(super) fn peek_from<S: Sender>(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, S)> {
    message_from(fd, buf, PEEK)
}

fn message_from<S: Sender>(fd: RawFd, buf: &mut [u8], flags: MsgFlags) -> io::Result<(usize, S)> {
    let mut slices = [IoSliceMut::new(buf)];
    let message = socket::recvmsg::<S::Raw>(fd, &mut slices, None, flags)?;
    let sender = message.address.expect("recvmsg always gives one");
    Ok((message.bytes, S::of(sender)?))
}
