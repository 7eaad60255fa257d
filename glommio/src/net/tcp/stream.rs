//! TCP connections.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_io::{AsyncBufRead, AsyncRead, AsyncWrite};
use socket2::Socket;

use super::AcceptedTcpStream;
use crate::net::stream::Stream;
use crate::net::{Buffered, NonBuffered, Preallocated, Result, RxBuf, addr, connect};
use crate::reactor::{current, deadline_after};

/// A TCP connection.
///
/// Reads and writes through the traits of `futures-io`; without a receive buffer (the default), each
/// read is a system call into the caller's memory. [`buffered`](Self::buffered) adds a buffer and
/// [`AsyncBufRead`]. A read or write that finds the socket ready does not suspend.
///
/// Of several tasks that wait in the same direction, the last to poll is woken. Dropping the stream
/// closes the connection; what was written is still sent.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncBufReadExt, AsyncWriteExt, StreamExt};
/// use glommio::{LocalExecutor, net::{TcpListener, TcpStream}};
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let server = listener.accept().await?.buffered();
///     client.write_all(b"one\ntwo\n").await?;
///     client.close().await?;
///     let lines: Vec<String> = server.lines().try_collect().await?;
///     assert_eq!(lines, ["one", "two"]);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct TcpStream<B: RxBuf = NonBuffered> {
    stream: Stream<B>,
}

impl TcpStream {
    /// Connects to `addr`: to the first of its addresses that takes the connection.
    ///
    /// Addresses and IP literals need no resolving. A host name is resolved on one of the executor's
    /// [blocking threads](crate::ExecutorProxy::spawn_blocking), in its turn among other blocking calls,
    /// and the executor goes on meanwhile. That is so for a name in a `str`, a `String`, or a pair of one
    /// of them and a port, or behind a reference or a few to these. An implementor of
    /// [`ToSocketAddrs`] that is not of the standard library is asked on the executor's thread; if it
    /// blocks, so does the executor.
    ///
    /// # Errors
    ///
    /// What resolving or, for the last address, `connect(2)` gives; kind `Other`, `empty address`, if
    /// there is none.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping it gives the attempt up; the socket is closed once the kernel has let go of it. A lookup
    /// of a name ends by itself, unheard, on its blocking thread.
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> Result<TcpStream> {
        let reactor = current::current();
        let addresses = addr::all(&reactor, addr).await?;
        let socket = connect::tcp(&reactor, addresses, None).await?;
        Ok(TcpStream::from(socket))
    }

    /// As [`connect`](Self::connect), in no more than `duration`, which bounds all attempts together
    /// but not the resolving of a name.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect). Kind `TimedOut`, `ETIMEDOUT`, if it took longer; kind
    /// `InvalidInput` if `duration` is zero.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    ///
    /// # Cancel safety
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_timeout<A: ToSocketAddrs>(
        addr: A,
        duration: Duration,
    ) -> Result<TcpStream> {
        if duration.is_zero() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "cannot set a 0 duration timeout",
            )
            .into());
        }
        let reactor = current::current();
        let addresses = addr::all(&reactor, addr).await?;
        let deadline = deadline_after(Instant::now(), duration);
        let socket = connect::tcp(&reactor, addresses, Some(deadline)).await?;
        Ok(TcpStream::from(socket))
    }

    /// Adds a receive buffer of 8192 bytes.
    pub fn buffered(self) -> TcpStream<Preallocated> {
        self.buffered_with(Preallocated::default())
    }

    /// Adds `buf` as the receive buffer.
    pub fn buffered_with<B: Buffered>(self, buf: B) -> TcpStream<B> {
        TcpStream {
            stream: self.stream.with_buffer(buf),
        }
    }

    /// Takes the connection from this executor, for another one to
    /// [bind](AcceptedTcpStream::bind_to_executor). No byte is lost. Timeouts are forgotten.
    ///
    /// A stream with a receive buffer has no such method: what it holds would be lost.
    pub fn into_accepted(self) -> AcceptedTcpStream {
        AcceptedTcpStream::new(self.stream.into_fd())
    }
}

impl<B: RxBuf> TcpStream<B> {
    /// Sets how long a read may wait. `None`, the default, is for ever.
    ///
    /// The time counts from when the read finds nothing to return; a read that finds something takes
    /// no notice of it. One that waits too long ends with kind `TimedOut` and the text
    /// `Operation timed out`. Nothing is lost by that, and the next read has the full time again.
    ///
    /// A read that waits already gets the new timeout, from now. [`peek`](Self::peek) has none.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput`, `EINVAL`, if `dur` is zero; the timeout stays as it was.
    pub fn set_read_timeout(&self, dur: Option<Duration>) -> Result<()> {
        Ok(self.stream.set_read_timeout(dur)?)
    }

    /// Sets how long a write may wait. As [`set_read_timeout`](Self::set_read_timeout) otherwise.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput`, `EINVAL`, if `dur` is zero; the timeout stays as it was.
    pub fn set_write_timeout(&self, dur: Option<Duration>) -> Result<()> {
        Ok(self.stream.set_write_timeout(dur)?)
    }

    /// What was set by [`set_read_timeout`](Self::set_read_timeout).
    pub fn read_timeout(&self) -> Option<Duration> {
        self.stream.read_timeout()
    }

    /// What was set by [`set_write_timeout`](Self::set_write_timeout).
    pub fn write_timeout(&self) -> Option<Duration> {
        self.stream.write_timeout()
    }

    /// Shuts down one or both directions of the connection. Does not suspend.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected` if there is no connection (any more); other errors are ignored.
    ///
    /// # Cancel safety
    ///
    /// It is done at the first poll.
    pub async fn shutdown(&self, how: Shutdown) -> Result<()> {
        Ok(self.stream.shutdown(how)?)
    }

    /// As [`shutdown`](Self::shutdown), for callers that keep no future. Never pending.
    ///
    /// # Errors
    ///
    /// As [`shutdown`](Self::shutdown).
    pub fn poll_shutdown(&self, _cx: &mut Context<'_>, how: Shutdown) -> Poll<Result<()>> {
        Poll::Ready(self.stream.shutdown(how).map_err(Into::into))
    }

    /// Reads without taking: the same bytes are read again. Returns how many there are in `buf`; zero
    /// at the end of the stream, or for an empty `buf`.
    ///
    /// Waits, for as long as it takes, only if nothing has come. May go on beside reads and writes of
    /// other tasks.
    ///
    /// # Errors
    ///
    /// What `recv(2)` gives.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn peek(&self, buf: &mut [u8]) -> Result<usize> {
        Ok(self.stream.peek(buf).await?)
    }

    /// The address at the other end.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected` if there is no connection (any more).
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        Ok(addr::from_kernel(&self.socket().peer_addr()?)?)
    }

    /// The address at this end.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` gives.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(addr::from_kernel(&self.socket().local_addr()?)?)
    }

    pub(super) fn socket(&self) -> &Socket {
        self.stream.socket()
    }
}

impl<B: RxBuf + Unpin> AsyncRead for TcpStream<B> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream.poll_read(cx, buf)
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream.poll_read_vectored(cx, bufs)
    }
}

impl<B: Buffered + Unpin> AsyncBufRead for TcpStream<B> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_mut().stream.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.get_mut().stream.consume(amt);
    }
}

/// `flush` has nothing to do. `close` sends what was written and the end of the stream; the
/// connection stays open for reading.
impl<B: RxBuf + Unpin> AsyncWrite for TcpStream<B> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().stream.poll_write_vectored(cx, bufs)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(Shutdown::Write))
    }
}

/// Takes a connected socket, blocking or not.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
impl From<Socket> for TcpStream {
    fn from(socket: Socket) -> Self {
        TcpStream {
            stream: Stream::new(socket, NonBuffered),
        }
    }
}

/// Takes a connection of the standard library, blocking or not. Its timeouts are not taken over.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
impl From<std::net::TcpStream> for TcpStream {
    fn from(stream: std::net::TcpStream) -> Self {
        TcpStream::from(Socket::from(stream))
    }
}

/// Takes a connected stream socket, blocking or not.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
#[allow(unsafe_code, reason = "the trait's only method is unsafe")]
impl FromRawFd for TcpStream {
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller gives us a descriptor that nobody else closes, as the trait demands.
        TcpStream::from(unsafe { Socket::from_raw_fd(fd) })
    }
}

impl<B: RxBuf> AsRawFd for TcpStream<B> {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl<B: RxBuf> AsFd for TcpStream<B> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Takes the connection from this executor, as [`TcpStream::into_accepted`].
impl IntoRawFd for TcpStream<NonBuffered> {
    fn into_raw_fd(self) -> RawFd {
        self.stream.into_fd().into_raw_fd()
    }
}

impl<B: RxBuf + fmt::Debug> fmt::Debug for TcpStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpStream")
            .field("fd", &self.as_raw_fd())
            .field("buffer", self.stream.buffer())
            .field("read_timeout", &self.read_timeout())
            .field("write_timeout", &self.write_timeout())
            .finish_non_exhaustive()
    }
}
