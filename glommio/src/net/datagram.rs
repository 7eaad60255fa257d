//! What all datagram sockets have in common, whatever their address family.
//!
//! Any number of tasks may wait in either direction. Each has a wait of its own, which goes with
//! its future; a datagram wakes them all, one gets it, the others wait again.

#![forbid(unsafe_code)]

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Weak;
use std::time::Duration;

use nix::sys::socket::UnixAddr;
use socket2::SockAddr;

use super::readiness::{Direction, Readiness, outcome_at_once};
use super::time_limit::{checked, pause};
use crate::reactor::{Reactor, current};
use crate::sys::door::is_tried_at_once;
use crate::sys::socket::{self, SEND, Socket};
use crate::sys::unix_address;

/// What `buffer_size` of the sockets returns at first. It has no effect.
pub(super) const DEFAULT_BUFFER_BYTES: usize = 8192;

/// A datagram socket with its timeouts.
#[derive(Debug)]
pub(super) struct Datagram {
    // Before the socket: what was in flight has to go before the descriptor is closed.
    reactor: CancelOnDrop,
    socket: Socket,
    read_timeout: Cell<Option<Duration>>,
    write_timeout: Cell<Option<Duration>>,
}

impl Datagram {
    /// Binds `socket` to the executor of this thread; if none runs, to that in which it is first
    /// used.
    pub(super) fn new(socket: Socket) -> Self {
        let reactor = OnceCell::new();
        if current::is_any() {
            reactor.get_or_init(current::current);
        }
        Datagram {
            reactor: CancelOnDrop(reactor),
            socket,
            read_timeout: Cell::new(None),
            write_timeout: Cell::new(None),
        }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Of the executor that the socket belongs to.
    ///
    /// # Panics
    ///
    /// Panics if it belongs to none, and none runs on this thread.
    pub(super) fn reactor(&self) -> &Weak<Reactor> {
        self.reactor.0.get_or_init(current::current)
    }

    /// What users are shown of it.
    pub(super) fn describe(&self, mut socket: fmt::DebugStruct<'_, '_>) -> fmt::Result {
        (socket.field("fd", &self.socket.as_raw_fd()))
            .field("read_timeout", &self.read_timeout())
            .field("write_timeout", &self.write_timeout())
            .finish_non_exhaustive()
    }

    pub(super) fn into_fd(self) -> OwnedFd {
        OwnedFd::from(self.socket)
    }

    pub(super) fn read_timeout(&self) -> Option<Duration> {
        self.read_timeout.get()
    }

    pub(super) fn write_timeout(&self) -> Option<Duration> {
        self.write_timeout.get()
    }

    pub(super) fn set_read_timeout(&self, length: Option<Duration>) -> io::Result<()> {
        self.read_timeout.set(checked(length)?);
        Ok(())
    }

    pub(super) fn set_write_timeout(&self, length: Option<Duration>) -> io::Result<()> {
        self.write_timeout.set(checked(length)?);
        Ok(())
    }

    /// Calls `attempt` with the descriptor until it does not give `WouldBlock`, for no longer than
    /// the read timeout.
    pub(super) async fn read<T>(
        &self,
        attempt: impl FnMut(RawFd) -> io::Result<T>,
    ) -> io::Result<T> {
        self.wait_for(Direction::Read, self.read_timeout.get(), attempt)
            .await
    }

    /// As [`read`](Self::read), but waits before the first call, too: for a socket that is likely to
    /// be empty.
    pub(super) async fn read_when_ready<T>(
        &self,
        mut attempt: impl FnMut(RawFd) -> io::Result<T>,
    ) -> io::Result<T> {
        let fd = self.socket.as_raw_fd();
        self.wait(fd, Direction::Read, self.read_timeout.get(), || attempt(fd))
            .await
    }

    /// As [`read`](Self::read), for as long as it takes.
    pub(super) async fn read_without_limit<T>(
        &self,
        attempt: impl FnMut(RawFd) -> io::Result<T>,
    ) -> io::Result<T> {
        self.wait_for(Direction::Read, None, attempt).await
    }

    /// As [`read`](Self::read), for sending, with the write timeout.
    pub(super) async fn write<T>(
        &self,
        attempt: impl FnMut(RawFd) -> io::Result<T>,
    ) -> io::Result<T> {
        self.wait_for(Direction::Write, self.write_timeout.get(), attempt)
            .await
    }

    /// Waits until `fd`, this socket or one that stands for it, has space for a datagram, or
    /// `limit` is over.
    pub(super) async fn until_writable(
        &self,
        fd: RawFd,
        limit: Option<Duration>,
    ) -> io::Result<()> {
        self.wait(fd, Direction::Write, limit, || Ok(())).await
    }

    /// Waits for `length`.
    pub(super) async fn pause(&self, length: Duration) -> io::Result<()> {
        pause(self.reactor(), length).await
    }

    async fn wait_for<T>(
        &self,
        direction: Direction,
        limit: Option<Duration>,
        mut attempt: impl FnMut(RawFd) -> io::Result<T>,
    ) -> io::Result<T> {
        let fd = self.socket.as_raw_fd();
        if is_tried_at_once(fd, direction.events())
            && let Some(done) = outcome_at_once(&mut || attempt(fd)).await
        {
            return done;
        }
        self.wait(fd, direction, limit, || attempt(fd)).await
    }

    async fn wait<T>(
        &self,
        fd: RawFd,
        direction: Direction,
        limit: Option<Duration>,
        mut attempt: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        let reactor = self.reactor().clone();
        let mut readiness = Readiness::of_one_wait(reactor, direction, limit, timed_out);
        poll_fn(|cx| readiness.poll_io(fd, cx, true, &mut attempt)).await
    }
}

/// The kernel holds the socket, and its port, until the cancellations of the waits of dropped
/// futures are submitted. So they are submitted before the descriptor is closed.
#[derive(Debug)]
struct CancelOnDrop(OnceCell<Weak<Reactor>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(reactor) = self.0.get().and_then(Weak::upgrade) {
            reactor.cancel_now();
        }
    }
}

/// What calls that have waited too long end with.
pub(super) fn timed_out() -> io::Error {
    io::Error::from_raw_os_error(libc::ETIMEDOUT)
}

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
    let (bytes, address) = socket::receive_from(fd, buf, 0)?;
    Ok((bytes, S::of(&address)?))
}

/// As [`receive_from`], but the datagram stays in the socket.
pub(super) fn peek_from<S: Sender>(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, S)> {
    let (bytes, address) = socket::receive_from(fd, buf, libc::MSG_PEEK)?;
    Ok((bytes, S::of(&address)?))
}
