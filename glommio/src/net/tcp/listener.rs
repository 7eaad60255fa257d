//! Listening for TCP connections.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Type};

use super::{AcceptedTcpStream, TcpStream};
use crate::net::accept_queue::Acceptor;
use crate::net::listener_methods::listener_methods;
use crate::net::methods::descriptor_impls;
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
    /// For other options, or another backlog, make the socket yourself, with the crate `socket2`, and
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

    /// For a listener whose socket other listeners share; see [`Acceptor`].
    pub(in crate::net) fn acceptor(&self) -> &Acceptor {
        &self.acceptor
    }

    listener_methods!(
        TcpStream,
        AcceptedTcpStream,
        addr,
        SocketAddr,
        std::net::TcpListener
    );
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

impl_debug! { TcpListener, it: fd: it.socket.as_raw_fd(); .. }

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
    /// [`into_parts`](Self::into_parts) returns them. With [epoll](crate::Driver) the socket is in
    /// non-blocking mode if the executor has waited for a connection, also for others that own it.
    impl IntoRawFd for TcpListener;
}
