//! TCP connections.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{AcceptedTcpStream, DetachedTcpStream};
use crate::clock;
use crate::net::methods::{
    address_methods, descriptor_impls, moves_between_executors, stream_impls, stream_methods,
    unbuffered_methods,
};
use crate::net::stream::Stream;
use crate::net::{NonBuffered, Result, RxBuf, addr, connect};
use crate::reactor::{budget, current, deadline_after};
use crate::sys::socket::Socket;
use crate::sys::socket::set_tcp_option;
use crate::sys::splice::Pipe;

/// A TCP connection.
///
/// Reads and writes through the traits of `futures-io`; without a receive buffer (the default),
/// each read is a system call into the caller's memory. [`buffered`](Self::buffered) adds a buffer
/// and [`AsyncBufRead`](futures_io::AsyncBufRead). A read or write that finds the socket ready does
/// not suspend.
///
/// If several tasks wait in the same direction, the last to poll is woken. Dropping the stream
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
    /// Connects to `addr`: to the first of its addresses that accepts the connection.
    ///
    /// Addresses and IP literals need no resolving. A host name is resolved on a thread that the
    /// executor starts only for this, up to four names at a time; it does not wait for
    /// [blocking calls](crate::ExecutorProxy::spawn_blocking). That is so for a name in a `str`, a
    /// `String`, or a pair of one of them and a port, or behind a reference or a few to these.
    /// An implementor of [`ToSocketAddrs`] that is not of the standard library is called on the
    /// executor's thread; if it blocks, so does the executor.
    ///
    /// # Errors
    ///
    /// What resolving or, for the last address, `connect(2)` gives; kind `Other`, `empty address`,
    /// if there is none.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping it cancels the attempt; the socket is closed once the operation has ended in the
    /// kernel. A lookup that has begun finishes in the background; its result is discarded.
    pub async fn connect<A: ToSocketAddrs>(addr: A) -> Result<TcpStream> {
        let socket = connect::tcp(&current::current(), addr, None, connect::plain).await?;
        Ok(TcpStream::new(socket))
    }

    /// As [`connect`](Self::connect), in no more than `duration`, which bounds the resolving of a
    /// name and all attempts together. The remaining time is divided evenly among the remaining
    /// addresses, so that one that does not answer leaves time for the next.
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
    /// # Examples
    ///
    /// ```
    /// use glommio::net::{TcpListener, TcpStream};
    /// use std::time::Duration;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect_timeout(listener.local_addr()?, Duration::from_secs(5)).await?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect_timeout<A: ToSocketAddrs>(
        addr: A,
        duration: Duration,
    ) -> Result<TcpStream> {
        if duration.is_zero() {
            budget::consume().await;
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "cannot set a 0 duration timeout",
            )
            .into());
        }
        let deadline = deadline_after(clock::now(), duration);
        let reactor = current::current();
        let socket = connect::tcp(&reactor, addr, Some(deadline), connect::plain).await?;
        Ok(TcpStream::new(socket))
    }

    /// As [`connect`](Self::connect), but what is written first may go along with the request for
    /// the connection (`TCP_FASTOPEN_CONNECT`, RFC 7413), which saves a round trip.
    ///
    /// The first connection to a host asks it for a cookie, and is made as by `connect`. Later ones
    /// use the cookie, which the kernel keeps: this returns at once, and **nothing is sent before
    /// the first write**. So it is for protocols in which the client speaks first. Until the server
    /// has answered, [`peer_addr`](Self::peer_addr) fails with `ENOTCONN`. If the server refuses or
    /// does not answer, reads and writes fail, and no further address of `addr` is tried. The
    /// listener has to take part ([`set_fastopen`](crate::net::TcpListener::set_fastopen)), and may
    /// receive the same data twice, so the first request must be one that can be repeated.
    ///
    /// If bit 1 of `net.ipv4.tcp_fastopen` is off (it is on by default), this is the same as
    /// `connect`.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::AsyncWriteExt;
    /// use glommio::net::{TcpListener, TcpStream};
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// listener.set_fastopen(16)?;
    /// let mut stream = TcpStream::connect_fastopen(listener.local_addr()?).await?;
    /// stream.write_all(b"GET key\n").await?;
    /// # listener.accept().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect_fastopen<A: ToSocketAddrs>(addr: A) -> Result<TcpStream> {
        let deferred = |socket: &Socket| -> io::Result<()> {
            match set_tcp_option(socket.as_fd(), libc::TCP_FASTOPEN_CONNECT, 1) {
                // The system does not want clients to.
                Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
                result => result,
            }
        };
        let socket = connect::tcp(&current::current(), addr, None, deferred).await?;
        Ok(TcpStream::new(socket))
    }

    /// Reads from a connection whose records the kernel decrypts (`TCP_ULP` `tls`): the bytes of at
    /// most one record, and its content type (see [`tls_record`](crate::net::tls_record)). A record
    /// that does not fit in `plaintext` is continued by the next call, with the same type.
    ///
    /// An ordinary read fails with `EIO` at a record that is not application data: an alert, or a
    /// message of the handshake, which this returns. Without the kernel's TLS, the type is `None`,
    /// and this is an ordinary read. Zero bytes and no type are the end of the stream.
    ///
    /// The read timeout applies.
    ///
    /// # Errors
    ///
    /// What `recv(2)` gives: `EBADMSG` for a record that cannot be decrypted.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::{TcpStream, tls_record};
    ///
    /// /// What `stream`, set up for the kernel's TLS, has to say.
    /// async fn next(stream: &mut TcpStream) -> glommio::Result<Option<Vec<u8>>, ()> {
    ///     let mut buf = vec![0; 16 << 10];
    ///     loop {
    ///         let (count, kind) = stream.recv_tls_record(&mut buf).await?;
    ///         match kind {
    ///             Some(tls_record::APPLICATION_DATA) => {
    ///                 buf.truncate(count);
    ///                 return Ok(Some(buf));
    ///             }
    ///             Some(tls_record::ALERT) | None => return Ok(None),
    ///             _ => { /* a ticket: for the TLS library */ }
    ///         }
    ///     }
    /// }
    /// ```
    pub async fn recv_tls_record(&mut self, plaintext: &mut [u8]) -> Result<(usize, Option<u8>)> {
        let read = poll_fn(|cx| self.stream.poll_read_record(cx, plaintext));
        Ok(read.await?)
    }

    /// As [`recv_tls_record`](Self::recv_tls_record), for callers that keep no future.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::TcpStream;
    /// use std::task::{Context, Poll};
    ///
    /// /// For a trait that asks for a poll function.
    /// fn poll_kind(
    ///     stream: &mut TcpStream,
    ///     cx: &mut Context<'_>,
    ///     buf: &mut [u8],
    /// ) -> Poll<glommio::Result<Option<u8>, ()>> {
    ///     stream.poll_recv_tls_record(cx, buf).map_ok(|(_, kind)| kind)
    /// }
    /// ```
    pub fn poll_recv_tls_record(
        &mut self,
        cx: &mut Context<'_>,
        plaintext: &mut [u8],
    ) -> Poll<Result<(usize, Option<u8>)>> {
        let read = self.stream.poll_read_record(cx, plaintext);
        read.map_err(Into::into)
    }

    unbuffered_methods!(TcpStream, AcceptedTcpStream);
}

impl<B: RxBuf> TcpStream<B> {
    stream_methods!(DetachedTcpStream);
    address_methods!(addr, SocketAddr);

    /// Sends up to `bytes` bytes that are in `pipe`; the socket is nonblocking.
    pub(super) fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        pipe: &Pipe,
        bytes: usize,
        has_more: bool,
    ) -> Poll<io::Result<usize>> {
        self.stream.poll_drain(cx, pipe, bytes, has_more)
    }
}

moves_between_executors!(TcpStream, AcceptedTcpStream, DetachedTcpStream);

stream_impls! {
    impl<B: RxBuf + Unpin> AsyncRead for TcpStream<B>;
    impl<B: Buffered + Unpin> AsyncBufRead for TcpStream<B>;
    impl<B: RxBuf + Unpin> AsyncWrite for TcpStream<B>;
    impl<B: RxBuf + Debug> Debug for TcpStream<B>;
}

descriptor_impls! {
    /// Takes a connected stream socket, blocking or not.
    impl From<Socket> for TcpStream;
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    impl From<std::net::TcpStream> for TcpStream;
    impl FromRawFd for TcpStream;
    impl<B: RxBuf> AsRawFd for TcpStream<B>;
    impl<B: RxBuf> AsFd for TcpStream<B>;
    /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
    impl IntoRawFd for TcpStream;
}
