//! Listening on a Unix socket.

use std::os::fd::AsRawFd;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use socket2::{Domain, Type};

use super::{AcceptedUnixStream, UnixStream, address};
use crate::net::Result;
use crate::net::accept_queue::Acceptor;
use crate::net::listener_methods::listener_methods;
use crate::net::methods::descriptor_impls;
use crate::sys::socket::Socket;

/// A Unix socket that accepts connections.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
/// use glommio::{LocalExecutor, net::{UnixListener, UnixStream}, spawn_local};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("socket");
/// LocalExecutor::default().run(async {
///     let listener = UnixListener::bind(&path)?;
///     let server = spawn_local(async move {
///         let mut stream = listener.incoming().next().await.expect("there is always a next one")?;
///         stream.write_all(b"hello").await?;
///         Ok::<_, glommio::GlommioError<()>>(())
///     });
///     let mut client = UnixStream::connect(&path).await?;
///     let mut greeting = String::new();
///     client.read_to_string(&mut greeting).await?;
///     assert_eq!(greeting, "hello");
///     server.await
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct UnixListener {
    // Before the socket: what is in flight has to go before the descriptor is closed.
    acceptor: Acceptor,
    socket: Socket,
}

impl UnixListener {
    /// Listens at the path `addr`, with a backlog of 128 connections (or what `net.core.somaxconn`
    /// allows).
    ///
    /// This creates a file. Nothing removes it, neither before nor when the listener is dropped.
    /// A path that begins with a NUL byte is an abstract name and no file; for an empty one the
    /// kernel chooses such a name.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if the path is longer than 107 bytes, or contains a NUL byte elsewhere;
    /// kind `AddrInUse` if it exists, whatever it is; what else `bind(2)` or `listen(2)` give.
    ///
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    pub fn bind<A: AsRef<Path>>(addr: A) -> Result<UnixListener> {
        let address = address::of(addr)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&address)?;
        socket.listen(BACKLOG)?;
        Ok(UnixListener::new(socket))
    }

    listener_methods!(
        UnixStream,
        AcceptedUnixStream,
        address,
        SocketAddr,
        std::os::unix::net::UnixListener
    );
}

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;

impl_debug! { UnixListener, it: fd: it.socket.as_raw_fd(); .. }

descriptor_impls! {
    /// Takes a stream socket that is bound and listening, blocking or not.
    impl From<Socket> for UnixListener;
    /// # Panics
    ///
    /// Panics if no executor runs on this thread.
    impl From<std::os::unix::net::UnixListener> for UnixListener;
    impl FromRawFd for UnixListener;
    impl AsRawFd for UnixListener;
    impl AsFd for UnixListener;
    /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
    /// Connections that it has accepted and that no call has returned yet are closed;
    /// [`into_parts`](Self::into_parts) returns them. With [epoll](crate::Driver) the socket is in
    /// non-blocking mode if the executor has waited for a connection, also for others that own it.
    impl IntoRawFd for UnixListener;
}
