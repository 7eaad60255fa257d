//! A connection between two executors.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::net::{Result, addr};

/// A connected TCP socket that belongs to no executor yet.
///
/// It may be sent to another thread: accept here, send it through a channel, and call
/// [`bind_to_executor`](Self::bind_to_executor) there. It owns the connection, which is closed when it
/// is dropped, for instance in a channel without a receiver.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use glommio::{LocalExecutor, LocalExecutorBuilder, net::{TcpListener, TcpStream}};
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let accepted = listener.shared_accept().await?;
///     assert_eq!(accepted.peer_addr()?, client.local_addr()?);
///
///     let worker = LocalExecutorBuilder::default().spawn(|| async move {
///         let mut server = accepted.bind_to_executor();
///         server.write_all(b"hello from another executor").await
///     })?;
///     let mut received = String::new();
///     client.read_to_string(&mut received).await?;
///     assert_eq!(received, "hello from another executor");
///     worker.join()??;
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Debug)]
pub struct AcceptedTcpStream {
    pub(in crate::net) fd: OwnedFd,
}

impl AcceptedTcpStream {
    /// The address at the other end.
    ///
    /// # Errors
    ///
    /// `NotConnected` if the connection has been reset meanwhile.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        Ok(addr::peer_addr_of(self.fd.as_fd())?)
    }
}

impl AsFd for AcceptedTcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
