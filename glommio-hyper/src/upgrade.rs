//! Connections that go on with another protocol.

use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use fragile::Fragile;
use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper::upgrade::Upgraded;

use crate::GlommioIo;

/// A stream for a connection that can be upgraded; see [`GlommioIo::upgradable`].
///
/// hyper wants it to be `Send`, for runtimes that move tasks between threads. Ours never do, and
/// our streams are not: this one says so, and panics if it is used or dropped on another thread
/// after all.
#[derive(Debug)]
pub struct UpgradableIo<S>(Fragile<GlommioIo<S>>);

impl<S> UpgradableIo<S> {
    pub(crate) fn new(io: GlommioIo<S>) -> Self {
        UpgradableIo(Fragile::new(io))
    }

    /// The stream, for instance from the parts of an upgraded connection
    /// ([`Upgraded::downcast`]).
    ///
    /// # Panics
    ///
    /// On another thread than that of the stream.
    pub fn into_inner(self) -> S {
        self.0.into_inner().into_inner()
    }
}

impl<S: AsyncRead + Unpin> Read for UpgradableIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_read(cx, room)
    }
}

impl<S: AsyncWrite + Unpin> Write for UpgradableIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.0.get_mut()).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.0.get_mut()).poll_shutdown(cx)
    }
}

/// An upgraded connection as a stream of `futures-io`, as WebSocket libraries want it.
///
/// Made of what `hyper::upgrade::on` resolves to, on servers and clients alike. It begins with the
/// bytes that hyper had read ahead.
///
/// # Examples
///
/// A server that speaks a protocol of its own after the upgrade:
///
/// ```
/// use std::convert::Infallible;
/// use std::io;
///
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use glommio::net::{TcpListener, TcpStream};
/// use glommio::{LocalExecutor, spawn_local};
/// use glommio_hyper::{Connections, GlommioIo, UpgradedIo};
/// use http_body_util::Empty;
/// use hyper::body::Bytes;
/// use hyper::service::service_fn;
/// use hyper::{Response, StatusCode};
///
/// LocalExecutor::default().run(async {
///     let listener = TcpListener::bind("127.0.0.1:0")?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///
///     let connections = Connections::new();
///     let watched = connections.clone();
///     let service = service_fn(move |mut request| {
///         let conversation = watched.watch_upgraded(async move {
///             let upgraded = hyper::upgrade::on(&mut request).await.map_err(io::Error::other)?;
///             UpgradedIo::new(upgraded).write_all(b"hello").await
///         });
///         spawn_local(conversation).detach();
///         async {
///             let mut response = Response::new(Empty::<Bytes>::new());
///             *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
///             response.headers_mut().insert("upgrade", "hello".parse().expect("a value"));
///             Ok::<_, Infallible>(response)
///         }
///     });
///     let io = GlommioIo::new(listener.accept().await?).upgradable();
///     let connection = connections.http1().serve_connection(io, service);
///     spawn_local(connections.watch(connection.with_upgrades())).detach();
///
///     let request = b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: hello\r\n\r\n";
///     client.write_all(request).await?;
///     let mut answer = String::new();
///     client.read_to_string(&mut answer).await?;
///     assert!(answer.ends_with("\r\n\r\nhello"));
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UpgradedIo {
    io: Upgraded,
    /// The stream inside stays on its thread.
    _thread: PhantomData<Rc<()>>,
}

impl UpgradedIo {
    /// The connection `upgraded`.
    pub fn new(upgraded: Upgraded) -> Self {
        UpgradedIo {
            io: upgraded,
            _thread: PhantomData,
        }
    }

    /// The connection as hyper has it, which its `downcast` takes apart.
    pub fn into_inner(self) -> Upgraded {
        self.io
    }
}

impl AsyncRead for UpgradedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut bytes = ReadBuf::new(bytes);
        ready!(Pin::new(&mut self.io).poll_read(cx, bytes.unfilled()))?;
        Poll::Ready(Ok(bytes.filled().len()))
    }
}

impl AsyncWrite for UpgradedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
