//! The system calls that move data. None of them waits, whatever mode the descriptor is in, none
//! raises `SIGPIPE`.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
#[cfg(feature = "simulation")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, RawFd};

use nix::errno::Errno;
use nix::poll::{self, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{self, MsgFlags, UnixAddr};
use socket2::SockAddr;

#[cfg(feature = "simulation")]
use crate::simulated;
use crate::sys::socket::Socket;
pub(super) use crate::sys::socket::{has_urgent_data, receive, receive_record, send};
use crate::sys::{self, unix_address};

const SEND: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);
const RECEIVE: MsgFlags = MsgFlags::MSG_DONTWAIT;
const PEEK: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_PEEK);

/// The kernel refuses more slices in one call (`UIO_MAXIOV`).
pub(super) const MAX_SLICES: usize = 1024;

/// Whether an attempt at `fd` is made at once, before a wait for `events` of `poll(2)`. In a simulation the seed
/// has some come too early, though the wait is over as soon as it begins.
#[inline]
#[cfg_attr(not(feature = "simulation"), expect(unused_variables))]
pub(super) fn is_tried_at_once(fd: RawFd, events: libc::c_short) -> bool {
    #[cfg(feature = "simulation")]
    if simulated::attempt_is_too_early(fd, events) {
        return false;
    }
    true
}

/// As [`receive`], but the data stays in the socket.
pub(super) fn peek(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    #[cfg(feature = "simulation")]
    if let Some(socket) = simulated::socket(fd) {
        return Ok(socket.receive(buf, true)?.len);
    }
    Ok(socket::recv(fd, buf, PEEK)?)
}

/// As [`receive`], into no more than [`MAX_SLICES`].
pub(super) fn receive_vectored(fd: RawFd, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    #[cfg(feature = "simulation")]
    if let Some(socket) = simulated::socket(fd) {
        let mut whole = vec![0; bufs.iter().map(|buf| buf.len()).sum()];
        let received = socket.receive(&mut whole, false)?.len;
        let mut rest = &whole[..received];
        for buf in bufs {
            let (part, left) = rest.split_at(rest.len().min(buf.len()));
            buf[..part.len()].copy_from_slice(part);
            rest = left;
        }
        return Ok(received);
    }
    let message = socket::recvmsg::<()>(fd, bufs, None, RECEIVE)?;
    Ok(message.bytes)
}

pub(super) fn send_vectored(fd: RawFd, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
    #[cfg(feature = "simulation")]
    if let Some(socket) = simulated::socket(fd) {
        let whole: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        return socket.send(&whole);
    }
    let count = bufs.len().min(MAX_SLICES);
    Ok(socket::sendmsg::<()>(fd, &bufs[..count], &[], SEND, None)?)
}

pub(super) fn send_to(socket: &Socket, buf: &[u8], address: &SockAddr) -> io::Result<usize> {
    socket.send_to_with_flags(buf, address, SEND.bits())
}

/// Whether a send would not block now.
pub(super) fn is_writable(socket: &Socket) -> io::Result<bool> {
    #[cfg(feature = "simulation")]
    if let Some(socket) = simulated::socket(socket.as_raw_fd()) {
        return Ok(socket.readiness() & libc::POLLOUT != 0);
    }
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
