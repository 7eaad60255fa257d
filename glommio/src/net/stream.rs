//! What all streams have in common, whatever their address family.
//!
//! Reading is spared an attempt that can be foreseen to fail. A receive that got less than it asked
//! for has emptied the socket, as a rule, so the next one waits for readiness at once; if that was
//! not so, or more has come in the meantime, the wait ends in the same turn.
//!
//! A TCP connection that is read often has a [multishot poll](super::multishot_poll): its waits
//! cost no submission then. But they also do not find out by themselves that something was left,
//! so whether a receive has emptied the socket is judged there.
//!
//! The [budget] of a task is asked where data may be at hand: before each system call, which is done
//! by [`Readiness::poll_io`], and here before the receive buffer is read.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Weak;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::Protocol;

use super::buffer::{Buffered, NonBuffered, RxBuf};
use super::detached::Detached;
use super::readiness::{Direction, Directions, Readiness, outcome_at_once};
use super::time_limit::checked;
use crate::reactor::{Reactor, budget, current};
use crate::sys::socket::Socket;
use crate::sys::splice::Pipe;
use crate::sys::{scm_rights, socket};

/// A connected socket with its receive buffer.
#[derive(Debug)]
pub(super) struct Stream<B> {
    connection: Connection,
    buffer: B,
    /// `poll_fill_buf` was ready, and nothing was consumed since.
    is_shown: bool,
}

/// The part of a stream that knows of no buffer.
#[derive(Debug)]
struct Connection {
    reactor: Weak<Reactor>,
    // Before the socket: what is in flight has to go before the descriptor is closed.
    directions: Directions,
    socket: Socket,
    /// The last receive took all there was.
    is_empty: bool,
    /// The error of a peek that had bytes to return. The kernel reports it once.
    peeked_error: Cell<Option<i32>>,
}

impl<B> Stream<B> {
    /// Binds `socket` to the executor of this thread.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub(super) fn new(socket: Socket, buffer: B) -> Self {
        let reactor = current::current();
        let connection = Connection {
            directions: Directions::new(reactor.clone(), timed_out),
            reactor,
            socket,
            is_empty: false,
            peeked_error: Cell::new(None),
        };
        Stream {
            connection,
            buffer,
            is_shown: false,
        }
    }

    /// Exchanges the buffer. What the old one holds is lost.
    pub(super) fn with_buffer<C>(self, buffer: C) -> Stream<C> {
        Stream {
            connection: self.connection,
            buffer,
            is_shown: false,
        }
    }

    /// The bare descriptor; timers are gone, and nothing is in flight for it.
    pub(super) fn into_fd(self) -> OwnedFd {
        OwnedFd::from(self.connection.socket)
    }

    /// As [`into_fd`](Self::into_fd), with all that the stream keeps.
    pub(super) fn detach(self) -> Detached<B> {
        Detached {
            read_timeout: self.read_timeout(),
            write_timeout: self.write_timeout(),
            peeked_error: self.connection.peeked_error.get(),
            socket: self.connection.socket,
            buffer: self.buffer,
        }
    }

    /// Binds it to the executor of this thread.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub(super) fn attach(detached: Detached<B>) -> Self {
        let stream = Stream::new(detached.socket, detached.buffer);
        let Connection {
            directions,
            peeked_error,
            ..
        } = &stream.connection;
        directions.read.set_time_limit(detached.read_timeout);
        directions.write.set_time_limit(detached.write_timeout);
        peeked_error.set(detached.peeked_error);
        stream
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.connection.socket
    }

    pub(super) fn read_timeout(&self) -> Option<Duration> {
        self.connection.directions.read.time_limit()
    }

    pub(super) fn write_timeout(&self) -> Option<Duration> {
        self.connection.directions.write.time_limit()
    }

    pub(super) fn set_read_timeout(&self, length: Option<Duration>) -> io::Result<()> {
        let length = checked(length)?;
        self.connection.directions.read.set_time_limit(length);
        Ok(())
    }

    pub(super) fn set_write_timeout(&self, length: Option<Duration>) -> io::Result<()> {
        let length = checked(length)?;
        self.connection.directions.write.set_time_limit(length);
        Ok(())
    }

    /// Shuts down one or both directions. That the connection is gone already is no error, unless
    /// it never was one.
    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self.connection.socket.shutdown(how) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return budget::poll_consume(cx).map(|()| Ok(0));
        }
        let fd = self.connection.fd();
        let write = &mut self.connection.directions.write;
        write.poll_io(fd, cx, false, || socket::send(fd, buf))
    }

    pub(super) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if bufs.iter().all(|buf| buf.is_empty()) {
            return budget::poll_consume(cx).map(|()| Ok(0));
        }
        let fd = self.connection.fd();
        let write = &mut self.connection.directions.write;
        write.poll_io(fd, cx, false, || socket::send_vectored(fd, bufs))
    }

    /// Sends up to `bytes` bytes that are in `pipe`; the socket is nonblocking.
    pub(super) fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        bytes: usize,
        has_more: bool,
    ) -> Poll<io::Result<usize>> {
        let Connection {
            directions, socket, ..
        } = &mut self.connection;
        let fd = socket.as_raw_fd();
        let write = &mut directions.write;
        write.poll_io(fd, cx, false, || {
            pipe.drain(socket.as_fd(), bytes, has_more)
        })
    }
}

impl Stream<NonBuffered> {
    /// As [`poll_write`](Self::poll_write), with descriptors at the first byte.
    pub(super) fn poll_send_fds(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Poll<io::Result<usize>> {
        let fd = self.connection.fd();
        let write = &mut self.connection.directions.write;
        write.poll_io(fd, cx, false, || scm_rights::send(fd, buf, fds))
    }

    /// As [`poll_read`](Self::poll_read), with the descriptors that come with the data.
    pub(super) fn poll_receive_fds(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, Vec<OwnedFd>)>> {
        let connection = &mut self.connection;
        if let Some(error) = connection.take_peeked_error() {
            return Poll::Ready(Err(error));
        }
        // It stops where descriptors are, so how much has come does not tell what is left.
        connection.is_empty = false;
        let fd = connection.fd();
        let read = &mut connection.directions.read;
        read.poll_io(fd, cx, false, || scm_rights::receive(fd, buf))
    }

    /// As [`poll_read`](Self::poll_read), from one record of the kernel's TLS, with its content
    /// type.
    pub(super) fn poll_read_record(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, Option<u8>)>> {
        match buf {
            [] => budget::poll_consume(cx).map(|()| Ok((0, None))),
            buf => self.connection.poll_receive_record(cx, buf),
        }
    }
}

impl<B: fmt::Debug> Stream<B> {
    /// What users are shown of it.
    pub(super) fn describe(&self, mut socket: fmt::DebugStruct<'_, '_>) -> fmt::Result {
        (socket.field("fd", &self.connection.fd()))
            .field("buffer", &self.buffer)
            .field("read_timeout", &self.read_timeout())
            .field("write_timeout", &self.write_timeout())
            .finish_non_exhaustive()
    }
}

impl<B: RxBuf> Stream<B> {
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return budget::poll_consume(cx).map(|()| Ok(0));
        }
        if self.buffer.is_empty() && buf.len() >= self.buffer.buffer_size() {
            return self.connection.poll_receive(cx, buf);
        }
        ready!(self.poll_filled(cx))?;
        Poll::Ready(Ok(self.buffer.read(buf)))
    }

    pub(super) fn poll_read_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let count = bufs.len().min(socket::MAX_SLICES);
        let bufs = &mut bufs[..count];
        let room: usize = bufs.iter().map(|buf| buf.len()).sum();
        if room == 0 {
            return budget::poll_consume(cx).map(|()| Ok(0));
        }
        if self.buffer.is_empty() && room >= self.buffer.buffer_size() {
            return self.connection.poll_receive_vectored(cx, bufs, room);
        }
        ready!(self.poll_filled(cx))?;
        let mut total = 0;
        for buf in bufs {
            let count = self.buffer.read(buf);
            total += count;
            if count < buf.len() {
                break;
            }
        }
        Poll::Ready(Ok(total))
    }

    /// As `recv(MSG_PEEK)`, with the unread bytes of the buffer first. Waits only if there is
    /// nothing at all.
    pub(super) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        let fd = self.connection.fd();
        let peeked = outcome_at_once(&mut || self.peek_at_once(buf)).await;
        if let Some(peeked) = peeked {
            return peeked;
        }
        // Its own, since the stream's remembers one waiter, which reads.
        let reactor = self.connection.reactor.clone();
        let mut readable = Readiness::of_one_wait(reactor, Direction::Read, None, timed_out);
        poll_fn(|cx| readable.poll_io(fd, cx, true, || socket::peek(fd, buf))).await
    }

    fn peek_at_once(&self, buf: &mut [u8]) -> io::Result<usize> {
        let buffered = self.buffer.peek(buf);
        let rest = &mut buf[buffered..];
        if rest.is_empty() {
            return Ok(buffered);
        }
        let peeked = match self.connection.take_peeked_error() {
            Some(error) => Err(error),
            None => socket::peek(self.connection.fd(), rest),
        };
        match peeked {
            Ok(count) => Ok(buffered + count),
            Err(error) if buffered > 0 => {
                if error.kind() != io::ErrorKind::WouldBlock {
                    self.connection.peeked_error.set(error.raw_os_error());
                }
                Ok(buffered)
            }
            Err(error) => Err(error),
        }
    }

    /// Until the buffer holds something, or the stream has ended.
    fn poll_filled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            return self.poll_refill(cx);
        }
        // Reads from the buffer count as well: it may hold any number of lines.
        budget::poll_consume(cx).map(Ok)
    }

    fn poll_refill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let room = self.buffer.unfilled();
        if room.is_empty() {
            // Receiving nothing into an empty slice would look like the end of the stream.
            let text = "the receive buffer is empty and has no capacity";
            let invalid = || io::Error::new(io::ErrorKind::InvalidInput, text);
            return budget::poll_consume(cx).map(|()| Err(invalid()));
        }
        let count = ready!(self.connection.poll_receive(cx, room))?;
        self.buffer.handle_result(count);
        Poll::Ready(Ok(()))
    }
}

impl<B: Buffered> Stream<B> {
    pub(super) fn poll_fill_buf(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        // Combinators ask twice in a row, as the first answer borrows the stream, and rely on it.
        let filled = if mem::take(&mut self.is_shown) {
            budget::unlimited(|| self.poll_filled(cx))
        } else {
            self.poll_filled(cx)
        };
        ready!(filled)?;
        self.is_shown = true;
        Poll::Ready(Ok(self.buffer.as_bytes()))
    }

    pub(super) fn consume(&mut self, amt: usize) {
        self.is_shown = false;
        self.buffer.consume(amt);
    }
}

impl Connection {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Some(error) = self.take_peeked_error() {
            return Poll::Ready(Err(error));
        }
        if self.directions.read.is_waited_for_often() {
            let is_tcp = || matches!(self.socket.protocol(), Ok(Some(Protocol::TCP)));
            let is_plain = || socket::has_upper_layer(self.socket.as_fd()).is_ok_and(|has| !has);
            // An event and a receive tell when such a socket is empty.
            let read = &mut self.directions.read;
            read.use_multishot_poll(|| is_tcp() && is_plain());
        }
        let (fd, asked) = (self.fd(), buf.len());
        let read = &mut self.directions.read;
        let received = read.poll_io(fd, cx, self.is_empty, || socket::receive(fd, buf));
        self.note_received(received, asked)
    }

    fn poll_receive_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        asked: usize,
    ) -> Poll<io::Result<usize>> {
        if let Some(error) = self.take_peeked_error() {
            return Poll::Ready(Err(error));
        }
        let fd = self.fd();
        let read = &mut self.directions.read;
        let received = read.poll_io(fd, cx, self.is_empty, || socket::receive_vectored(fd, bufs));
        self.note_received(received, asked)
    }

    fn note_received(
        &mut self,
        received: Poll<io::Result<usize>>,
        asked: usize,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = &received {
            // After the end of the stream or an error there is no waiting: the kernel answers at
            // once.
            self.is_empty = match *result {
                Ok(got @ 1..) => self.directions.read.note_received(self.fd(), got < asked),
                _ => false,
            };
        }
        received
    }

    /// As [`poll_receive`](Self::poll_receive), from one record of the kernel's TLS.
    fn poll_receive_record(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, Option<u8>)>> {
        if let Some(error) = self.take_peeked_error() {
            return Poll::Ready(Err(error));
        }
        // A record that came short says nothing about the next one, so the socket is always tried.
        self.is_empty = false;
        let fd = self.fd();
        let read = &mut self.directions.read;
        read.poll_io(fd, cx, false, || socket::receive_record(fd, buf))
    }

    fn take_peeked_error(&self) -> Option<io::Error> {
        self.peeked_error.take().map(io::Error::from_raw_os_error)
    }
}

// Nothing in it is ever pinned, whatever the buffer is.
impl<B> Unpin for Stream<B> {}

fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "Operation timed out")
}
