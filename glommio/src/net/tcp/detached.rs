//! A connection on its way to another executor.

#![forbid(unsafe_code)]

use std::net::SocketAddr;

use crate::net::detached::{Detached, detached_methods};
use crate::net::{NonBuffered, Result, RxBuf, addr};

/// A TCP connection with the state of its stream, which belongs to no executor: what
/// [`TcpStream::detach`](crate::net::TcpStream::detach) returns.
///
/// It may be sent to another thread, to be [attached](Self::attach) there. It owns the connection,
/// which is closed when it is dropped, for instance in a channel without a receiver.
///
/// Unlike an [`AcceptedTcpStream`](crate::net::AcceptedTcpStream), it keeps the receive buffer with
/// the bytes in it, and the timeouts.
///
/// # Examples
///
/// A connection moves in the middle of a line:
///
/// ```
/// use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
/// use glommio::{LocalExecutor, LocalExecutorBuilder, net::{TcpListener, TcpStream}};
/// use std::time::Duration;
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let mut server = listener.accept().await?.buffered();
///     server.set_read_timeout(Some(Duration::from_secs(30)))?;
///     client.write_all(b"GET key\n").await?;
///     let mut command = [0; 4];
///     server.read_exact(&mut command).await?;
///
///     let detached = server.detach();
///     assert_eq!(detached.unread(), b"key\n");
///     assert_eq!(detached.peer_addr()?, client.local_addr()?);
///     assert_eq!(detached.read_timeout(), Some(Duration::from_secs(30)));
///     assert_eq!(detached.write_timeout(), None);
///     let worker = LocalExecutorBuilder::default().spawn(|| async move {
///         let mut server = detached.attach();
///         let mut key = String::new();
///         server.read_line(&mut key).await?;
///         assert_eq!(key, "key\n");
///         server.write_all(b"value").await
///     })?;
///     let mut answer = String::new();
///     client.read_to_string(&mut answer).await?;
///     assert_eq!(answer, "value");
///     worker.join()??;
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct DetachedTcpStream<B: RxBuf = NonBuffered> {
    pub(super) detached: Detached<B>,
}

impl<B: RxBuf> DetachedTcpStream<B> {
    /// The address of the peer.
    ///
    /// # Errors
    ///
    /// Kind `NotConnected` if the connection has been reset meanwhile.
    pub fn peer_addr(&self) -> Result<SocketAddr> {
        Ok(addr::peer_addr(&self.detached.socket)?)
    }
}

detached_methods!(DetachedTcpStream);
