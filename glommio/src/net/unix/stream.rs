//! Connections between Unix sockets.

use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::{Domain, Type};

use super::{AcceptedUnixStream, DetachedUnixStream, address};
use crate::net::methods::{
    address_methods, descriptor_impls, moves_between_executors, stream_impls, stream_methods,
    unbuffered_methods,
};
use crate::net::stream::Stream;
use crate::net::{NonBuffered, Result, RxBuf, connect};
use crate::reactor::{budget, current};
use crate::sys::socket::Socket;

/// A connection between Unix sockets.
///
/// Reads, writes, buffers and times out as a [`TcpStream`](crate::net::TcpStream) does.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncBufReadExt, AsyncWriteExt, StreamExt};
/// use glommio::{LocalExecutor, net::UnixStream};
///
/// LocalExecutor::default().run(async {
///     let (mut here, there) = UnixStream::pair()?; // or UnixStream::connect(path)
///     assert_eq!(here.peer_cred()?, there.peer_cred()?); // of one process
///     here.write_all(b"one\ntwo\n").await?;
///     here.close().await?;
///     let lines: Vec<String> = there.buffered().lines().try_collect().await?;
///     assert_eq!(lines, ["one", "two"]);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct UnixStream<B: RxBuf = NonBuffered> {
    stream: Stream<B>,
}

impl UnixStream {
    /// Two streams connected to each other, without addresses.
    ///
    /// # Errors
    ///
    /// What `socketpair(2)` gives.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn pair() -> Result<(UnixStream, UnixStream)> {
        let (one, other) = Socket::pair(Domain::UNIX, Type::STREAM, None)?;
        Ok((UnixStream::new(one), UnixStream::new(other)))
    }

    /// Connects to the listener at the path `addr`; to one with an abstract name if that begins
    /// with a NUL byte.
    ///
    /// While the listener's backlog is full, it tries again every 50 ms, at first more often: the
    /// kernel does not report when there is space. So clients that wait do not connect in the order
    /// in which they came.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if the path is longer than 107 bytes, or contains a NUL byte elsewhere;
    /// what `connect(2)` gives, such as kind `NotFound`, or `ConnectionRefused` if no socket
    /// listens there.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the socket, and nothing is left of the attempt.
    pub async fn connect<A: AsRef<Path>>(addr: A) -> Result<UnixStream> {
        let address = budget::checked(address::of(addr)).await?;
        Ok(UnixStream::new(
            connect::unix(&current::current(), &address).await?,
        ))
    }

    unbuffered_methods!(UnixStream, AcceptedUnixStream);

    /// Sends bytes, and with the first of them descriptors, which the peer gets duplicates of. Returns
    /// how many bytes were sent: at least one, so that the descriptors went with them. Write the
    /// rest as usual.
    ///
    /// The peer has to receive these bytes by [`recv_with_fds`](Self::recv_with_fds), or as
    /// `recvmsg(2)` does: whatever else reads them closes the descriptors.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if `buf` is empty; what `sendmsg(2)` gives, `EINVAL` for more than 253
    /// descriptors, `ETOOMANYREFS` if the process has too many on their way. Nothing was sent then.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, nothing was sent.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::AsyncReadExt;
    /// use glommio::{LocalExecutor, net::{TcpListener, TcpStream, UnixStream}};
    /// use std::os::fd::AsFd;
    ///
    /// LocalExecutor::default().run(async {
    ///     // The two ends may be in two processes.
    ///     let (mut old, mut new) = UnixStream::pair()?;
    ///     let listener = TcpListener::bind("127.0.0.1:0")?;
    ///     let address = listener.local_addr()?;
    ///     old.send_with_fds(b"listener", &[listener.as_fd()]).await?;
    ///     drop(listener);
    ///
    ///     let mut buf = [0; 32];
    ///     let (bytes, mut fds) = new.recv_with_fds(&mut buf).await?;
    ///     assert_eq!(&buf[..bytes], b"listener");
    ///     let listener = std::net::TcpListener::from(fds.pop().expect("it was sent"));
    ///     let listener = TcpListener::from(listener);
    ///     let _client = TcpStream::connect(address).await?;
    ///     let _server = listener.accept().await?;
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub async fn send_with_fds(&mut self, buf: &[u8], fds: &[BorrowedFd<'_>]) -> Result<usize> {
        if buf.is_empty() {
            budget::consume().await;
            let text = "descriptors are sent with at least one byte, and there is none";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
        }
        Ok(poll_fn(|cx| self.stream.poll_send_fds(cx, buf, fds)).await?)
    }

    /// Receives bytes, and the descriptors that were [sent](Self::send_with_fds) with them: how many
    /// bytes, zero at the end of the stream or for an empty `buf`, and duplicates of the descriptors,
    /// which are closed on `execve(2)`.
    ///
    /// Never receives bytes of two sends with descriptors at a time. They come with the first bytes
    /// of their send, also if `buf` is too small for all of these.
    ///
    /// # Errors
    ///
    /// What `recvmsg(2)` gives. `EMFILE` if this process could not have all of the descriptors: then
    /// none of them is left, and the bytes are lost with them. Raise `ulimit -n`, or send fewer at a
    /// time.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, nothing was received.
    pub async fn recv_with_fds(&mut self, buf: &mut [u8]) -> Result<(usize, Vec<OwnedFd>)> {
        if buf.is_empty() {
            budget::consume().await;
            return Ok((0, Vec::new()));
        }
        Ok(poll_fn(|cx| self.stream.poll_receive_fds(cx, buf)).await?)
    }
}

impl<B: RxBuf> UnixStream<B> {
    stream_methods!(DetachedUnixStream);
    address_methods!(address, SocketAddr);
}

moves_between_executors!(UnixStream, AcceptedUnixStream, DetachedUnixStream);

stream_impls! {
    impl<B: RxBuf + Unpin> AsyncRead for UnixStream<B>;
    impl<B: Buffered + Unpin> AsyncBufRead for UnixStream<B>;
    impl<B: RxBuf + Unpin> AsyncWrite for UnixStream<B>;
    impl<B: RxBuf + Debug> Debug for UnixStream<B>;
}

descriptor_impls! {
    /// Takes a connected stream socket, blocking or not.
    impl From<Socket> for UnixStream;
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    impl From<std::os::unix::net::UnixStream> for UnixStream;
    impl FromRawFd for UnixStream;
    impl<B: RxBuf> AsRawFd for UnixStream<B>;
    impl<B: RxBuf> AsFd for UnixStream<B>;
    /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
    impl IntoRawFd for UnixStream;
}
