//! Listening for TCP connections.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;

use futures_core::Stream;
use socket2::{Domain, Protocol, Type};

use super::{AcceptedTcpStream, TcpStream};
use crate::net::accept_queue::Acceptor;
use crate::net::incoming::Incoming;
use crate::net::methods::{descriptor_impls, listener_methods};
use crate::net::{Result, addr};
use crate::sys::socket::Socket;

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
///
/// Whatever [`bind`](TcpListener::bind) does not set can be set on a socket of the crate `socket2`:
/// here, that no IPv4 client is served, and how many may wait in the backlog.
///
/// ```
/// use std::net::{Ipv6Addr, SocketAddr};
/// use glommio::{LocalExecutor, net::TcpListener};
/// use socket2::{Domain, Protocol, Socket, Type};
///
/// # if std::net::TcpListener::bind("[::1]:0").is_err() {
/// #     return Ok(()); // No IPv6 here.
/// # }
/// let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
/// socket.set_only_v6(true)?;
/// socket.set_reuse_port(true)?;
/// socket.bind(&SocketAddr::from((Ipv6Addr::LOCALHOST, 0)).into())?;
/// socket.listen(16)?;
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::from(socket);
///     let client = std::net::TcpStream::connect(listener.local_addr()?)?;
///     let server = listener.accept().await?;
///     assert_eq!(server.peer_addr()?, client.local_addr()?);
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct TcpListener {
    // Before the socket: what is in flight has to go before the descriptor is closed.
    acceptor: Acceptor,
    socket: Socket,
}

impl TcpListener {
    /// Listens on the first resolved address of `addr` for which that succeeds, with a backlog of
    /// 1024 connections (or what `net.core.somaxconn` allows). Port 0 stands for a free one.
    ///
    /// `SO_REUSEPORT` is set: several executors may listen on the same address, and the kernel
    /// shares new connections out among them. `SO_REUSEADDR` is set, too.
    ///
    /// A host name is resolved on the spot, which blocks the thread.
    ///
    /// For other options, or another backlog, make the socket yourself and
    /// [convert it](#impl-From%3CSocket%3E-for-TcpListener).
    ///
    /// # Errors
    ///
    /// What resolving or, for the last address, `bind(2)` or `listen(2)` gives; kind `Other`,
    /// `empty address`, if there is no address.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn bind<A: ToSocketAddrs>(addr: A) -> Result<TcpListener> {
        let socket = addr::bind_first(addr, listening_socket)?;
        Ok(TcpListener::new(socket))
    }

    /// All connections from now on, as a stream that never ends.
    ///
    /// Errors come as items, after which it goes on: a consumer that ignores, say, `EMFILE` is
    /// given it again and again.
    ///
    /// # Cancel safety
    ///
    /// No connection is lost when the stream or the future of its next item is dropped: the next
    /// call gets it.
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
        Incoming::new(&self.acceptor)
    }

    /// Stops accepting, and returns the listening socket along with the connections that it has
    /// accepted and that no call has returned yet.
    ///
    /// The kernel accepts for calls of [`accept`](Self::accept) that wait, and some may have been dropped
    /// since. To hand the socket over, for instance to another process, without closing such a connection,
    /// call this; [`into_raw_fd`](std::os::fd::IntoRawFd::into_raw_fd) closes it. Clients that have not
    /// been accepted stay in the backlog of the socket, except for one: of a client that came while an accept waited the
    /// kernel may have told nothing else, here or in another process, so it is accepted and returned.
    ///
    /// Suspends only while the kernel is accepting for this listener: until it has stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is done, the listener and its connections are closed.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, net::TcpListener};
    ///
    /// LocalExecutor::default().run(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0")?;
    ///     let client = std::net::TcpStream::connect(listener.local_addr()?)?;
    ///
    ///     let (socket, accepted) = listener.into_parts().await;
    ///     let served = match accepted.first() {
    ///         Some(connection) => connection.peer_addr()?,
    ///         None => socket.accept()?.1,
    ///     };
    ///     assert_eq!(served, client.local_addr()?);
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub async fn into_parts(self) -> (std::net::TcpListener, Vec<AcceptedTcpStream>) {
        let accepted = self.acceptor.stop().await;
        drop(self.acceptor);
        let accepted = accepted.into_iter().map(|fd| AcceptedTcpStream { fd });
        (self.socket.into(), accepted.collect())
    }

    /// For a listener whose socket other listeners share; see [`Acceptor`].
    pub(in crate::net) fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    listener_methods!(TcpStream, AcceptedTcpStream, addr, SocketAddr);
}

/// A socket that listens on `address`, with the options that are documented at `bind`.
pub(in crate::net) fn listening_socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_port(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener")
            .field("fd", &self.socket.as_raw_fd())
            .finish_non_exhaustive()
    }
}

descriptor_impls! {
    /// Takes a stream socket that is bound and listening, blocking or not.
    impl From<Socket> for TcpListener;
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    impl From<std::net::TcpListener> for TcpListener;
    impl FromRawFd for TcpListener;
    impl AsRawFd for TcpListener;
    impl AsFd for TcpListener;
    /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
    /// Connections that it has accepted and that no call has returned yet are closed;
    /// [`into_parts`](Self::into_parts) returns them.
    impl IntoRawFd for TcpListener;
}
