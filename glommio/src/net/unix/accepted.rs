//! A connection between two executors.

#![forbid(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A connected Unix stream socket that belongs to no executor yet.
///
/// As an [`AcceptedTcpStream`](crate::net::AcceptedTcpStream), it may be sent to another thread, to
/// be [bound](Self::bind_to_executor) there, and is closed when it is dropped.
///
/// # Examples
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use glommio::{LocalExecutor, LocalExecutorBuilder, net::UnixStream};
///
/// LocalExecutor::default().run(async {
///     let (mut here, there) = UnixStream::pair()?;
///     let there = there.into_accepted();
///     let worker = LocalExecutorBuilder::default()
///         .spawn(|| async move { there.bind_to_executor().write_all(b"hello").await })?;
///     let mut received = String::new();
///     here.read_to_string(&mut received).await?;
///     assert_eq!(received, "hello");
///     worker.join()??;
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Debug)]
pub struct AcceptedUnixStream {
    pub(super) fd: OwnedFd,
}

impl AsFd for AcceptedUnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
