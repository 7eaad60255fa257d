//! A connection on its way to another executor.

#![forbid(unsafe_code)]

use crate::net::detached::{Detached, detached_methods};
use crate::net::{NonBuffered, RxBuf};

/// A connection between Unix sockets with the state of its stream, which belongs to no executor:
/// what [`UnixStream::detach`](crate::net::UnixStream::detach) returns.
///
/// As a [`DetachedTcpStream`](crate::net::DetachedTcpStream), it may be sent to another thread, to
/// be [attached](Self::attach) there, and closes the connection when it is dropped.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
/// use glommio::{LocalExecutor, LocalExecutorBuilder, net::UnixStream};
///
/// LocalExecutor::default().run(async {
///     let (mut here, there) = UnixStream::pair()?;
///     let mut there = there.buffered();
///     here.write_all(b"one\ntwo\n").await?;
///     let mut line = String::new();
///     there.read_line(&mut line).await?;
///
///     let detached = there.detach();
///     assert_eq!(detached.unread(), b"two\n");
///     let worker = LocalExecutorBuilder::default()
///         .spawn(|| async move { detached.attach().write_all(b"hello").await })?;
///     let mut received = String::new();
///     here.read_to_string(&mut received).await?;
///     assert_eq!(received, "hello");
///     worker.join()??;
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct DetachedUnixStream<B: RxBuf = NonBuffered> {
    pub(super) detached: Detached<B>,
}

detached_methods!(DetachedUnixStream);
