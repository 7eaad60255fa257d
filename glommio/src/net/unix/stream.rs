//! Connections between Unix sockets.

use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::{Domain, Socket, Type};

use super::{AcceptedUnixStream, address};
use crate::net::face::stream_face;
use crate::net::stream::Stream;
use crate::net::{NonBuffered, Result, RxBuf, connect};
use crate::reactor::current;

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
///     let (mut here, there) = UnixStream::pair()?;
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
    /// with a NUL byte. Waits while the listener's backlog is full.
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
    /// Dropping it cancels the attempt; the socket is closed once the operation has ended in the
    /// kernel.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::{AsyncReadExt, AsyncWriteExt};
    /// use glommio::net::{UnixListener, UnixStream};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// let mut client = UnixStream::connect(&path).await?;
    /// let mut server = listener.accept().await?;
    /// client.write_all(b"ping").await?;
    /// let mut buffer = [0; 4];
    /// server.read_exact(&mut buffer).await?;
    /// assert_eq!(&buffer, b"ping");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn connect<A: AsRef<Path>>(addr: A) -> Result<UnixStream> {
        let address = address::of(addr)?;
        let socket = connect::stream(&current::current(), &address, None, connect::plain).await?;
        Ok(UnixStream::new(socket))
    }
}

stream_face!(
    UnixStream,
    accepted: AcceptedUnixStream,
    addresses: address,
    Address: SocketAddr,
    std: std::os::unix::net::UnixStream,
);
