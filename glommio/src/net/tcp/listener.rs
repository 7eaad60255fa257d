//! Listening for TCP connections.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use socket2::{Domain, Protocol, Socket, Type};

use super::{AcceptedTcpStream, TcpStream};
use crate::net::accept_queue::{Accept, Acceptor};
use crate::net::{Result, addr};
use crate::reactor::current;

/// A socket that accepts TCP connections.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use glommio::{LocalExecutor, net::{TcpListener, TcpStream}, spawn_local};
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let address = listener.local_addr()?;
///     let server = spawn_local(async move {
///         let mut stream = listener.accept().await?;
///         stream.write_all(b"hello").await?;
///         Ok::<_, glommio::GlommioError<()>>(())
///     });
///     let mut client = TcpStream::connect(address).await?;
///     let mut greeting = String::new();
///     client.read_to_string(&mut greeting).await?;
///     assert_eq!(greeting, "hello");
///     server.await
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct TcpListener {
    // Before the socket: what is in flight has to go before the descriptor is closed.
    acceptor: Acceptor,
    socket: Socket,
}

impl TcpListener {
    /// Listens on `addr`, of which the first address counts, with room for 1024 connections that
    /// nobody has accepted yet (or what `net.core.somaxconn` allows). Port 0 stands for a free one.
    ///
    /// `SO_REUSEPORT` is set: several executors may listen on the same address, and the kernel shares
    /// new connections out among them. `SO_REUSEADDR` is set, too.
    ///
    /// A host name is resolved on the spot, which blocks the thread.
    ///
    /// # Errors
    ///
    /// What resolving, `bind(2)` or `listen(2)` give; kind `Other`, `empty address`, if there is no
    /// address.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn bind<A: ToSocketAddrs>(addr: A) -> Result<TcpListener> {
        let address = addr::first_now(addr)?;
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_reuse_port(true)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::new(socket))
    }

    /// The next connection, for whichever executor
    /// [binds](AcceptedTcpStream::bind_to_executor) it.
    ///
    /// Any number of tasks may accept at a time, and each gets a connection of its own.
    ///
    /// # Errors
    ///
    /// What `accept(2)` gives, for instance `EMFILE`. The listener remains usable.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: a connection that was about to be returned is left to the
    /// next call.
    pub async fn shared_accept(&self) -> Result<AcceptedTcpStream> {
        Ok(AcceptedTcpStream::new(self.acceptor.accept().await?))
    }

    /// The next connection, for this executor.
    ///
    /// # Errors
    ///
    /// As [`shared_accept`](Self::shared_accept).
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    ///
    /// # Cancel safety
    ///
    /// As [`shared_accept`](Self::shared_accept).
    pub async fn accept(&self) -> Result<TcpStream> {
        Ok(bind_to_executor(self.acceptor.accept().await?))
    }

    /// As [`shared_accept`](Self::shared_accept), for callers that keep no future. The task is woken
    /// when there may be a connection; any number of tasks may poll.
    ///
    /// # Errors
    ///
    /// As [`shared_accept`](Self::shared_accept).
    pub fn poll_shared_accept(&self, cx: &mut Context<'_>) -> Poll<Result<AcceptedTcpStream>> {
        self.acceptor
            .poll_accept(cx)
            .map(|accepted| Ok(AcceptedTcpStream::new(accepted?)))
    }

    /// As [`accept`](Self::accept), for callers that keep no future. The task is woken when there may
    /// be a connection; any number of tasks may poll.
    ///
    /// # Errors
    ///
    /// As [`shared_accept`](Self::shared_accept).
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Result<TcpStream>> {
        self.acceptor
            .poll_accept(cx)
            .map(|accepted| Ok(bind_to_executor(accepted?)))
    }

    /// All connections from now on, as a stream that never ends.
    ///
    /// Errors come as items, after which it goes on: a consumer that ignores, say, `EMFILE` is given
    /// it again and again.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::StreamExt;
    /// use glommio::{LocalExecutor, net::{TcpListener, TcpStream}};
    ///
    /// LocalExecutor::default().run(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0")?;
    ///     let client = TcpStream::connect(listener.local_addr()?).await?;
    ///     let server = listener.incoming().next().await.expect("there is always a next one")?;
    ///     assert_eq!(server.peer_addr()?, client.local_addr()?);
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn incoming(&self) -> impl Stream<Item = Result<TcpStream>> + Unpin + '_ {
        Incoming {
            acceptor: &self.acceptor,
            accept: self.acceptor.accept(),
        }
    }

    /// The address that it listens on.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` gives.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        Ok(addr::from_kernel(&self.socket.local_addr()?)?)
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// `socket` is bound and listening.
    fn new(socket: Socket) -> Self {
        TcpListener {
            acceptor: Acceptor::new(current::current(), socket.as_raw_fd()),
            socket,
        }
    }
}

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

fn bind_to_executor(fd: OwnedFd) -> TcpStream {
    TcpStream::from(Socket::from(fd))
}

struct Incoming<'a> {
    acceptor: &'a Acceptor,
    accept: Accept<'a>,
}

impl Stream for Incoming<'_> {
    type Item = Result<TcpStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = std::task::ready!(Pin::new(&mut self.accept).poll(cx));
        self.accept = self.acceptor.accept();
        Poll::Ready(Some(accepted.map(bind_to_executor).map_err(Into::into)))
    }
}

/// Takes a listener of the standard library, blocking or not.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
impl From<std::net::TcpListener> for TcpListener {
    fn from(listener: std::net::TcpListener) -> Self {
        TcpListener::new(Socket::from(listener))
    }
}

/// Takes a socket that is bound and listening, blocking or not.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
impl From<Socket> for TcpListener {
    fn from(socket: Socket) -> Self {
        TcpListener::new(socket)
    }
}

/// Takes a stream socket that is bound and listening, blocking or not.
///
/// # Panics
///
/// Panics if no executor runs on this thread.
#[allow(unsafe_code, reason = "the trait's only method is unsafe")]
impl FromRawFd for TcpListener {
    unsafe fn from_raw_fd(fd: RawFd) -> Self {
        // SAFETY: the caller gives us a descriptor that nobody else closes, as the trait demands.
        TcpListener::new(unsafe { Socket::from_raw_fd(fd) })
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Connections that were accepted and not claimed are closed.
impl IntoRawFd for TcpListener {
    fn into_raw_fd(self) -> RawFd {
        drop(self.acceptor);
        self.socket.into_raw_fd()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("fd", &self.as_raw_fd())
            .finish_non_exhaustive()
    }
}
