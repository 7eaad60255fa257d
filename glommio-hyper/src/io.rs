//! Streams, as hyper reads and writes them.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::{UpgradableIo, connections};

/// A stream of `futures-io`, such as a `TcpStream`, for hyper.
///
/// hyper reads into memory that may be uninitialised, which safe code can only copy into. So the
/// stream is read into memory that all streams of the thread share, 16 KiB of it, and copied from
/// there: a connection that waits holds no buffer for that. A receive buffer of the stream
/// (`TcpStream::buffered`) would be a copy more, and has no use here.
///
/// Timeouts of the stream apply; they end the connection with an error.
#[derive(Debug)]
pub struct GlommioIo<S>(S);

impl<S> GlommioIo<S> {
    /// Wraps `stream`.
    pub fn new(stream: S) -> Self {
        GlommioIo(stream)
    }

    /// This stream for a connection that can be upgraded: `serve_connection(..).with_upgrades()`
    /// of a server, and the same of a client. See [`UpgradedIo`](crate::UpgradedIo).
    pub fn upgradable(self) -> UpgradableIo<S> {
        UpgradableIo::new(self)
    }

    /// The stream.
    pub fn get_ref(&self) -> &S {
        &self.0
    }

    /// The stream. What is read from it here, hyper misses.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.0
    }

    /// The stream, for instance from the parts of a connection that hyper is done with.
    pub fn into_inner(self) -> S {
        self.0
    }
}

/// As much as hyper reads at a time, or more.
const SCRATCH_BYTES: usize = 16 << 10;

thread_local! {
    /// Between reads. A read inside a read, which a stream may well make, takes memory of its own.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `f` with the memory that the streams of this thread share.
fn with_scratch<T>(f: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.resize(SCRATCH_BYTES, 0);
    let result = f(&mut scratch);
    // While the thread's locals are being destroyed it goes back to the allocator.
    let _ = SCRATCH.try_with(|it| it.set(scratch));
    result
}

impl<S: AsyncRead + Unpin> Read for GlommioIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        with_scratch(|scratch| {
            let most = room.remaining().min(scratch.len());
            let read = Pin::new(&mut self.0).poll_read(cx, &mut scratch[..most]);
            connections::count_read(match &read {
                Poll::Ready(Ok(count)) => *count,
                _ => 0,
            });
            let count = ready!(read)?;
            // None at all tells hyper that the peer has sent its last.
            room.put_slice(&scratch[..count]);
            Poll::Ready(Ok(()))
        })
    }
}

impl<S: AsyncWrite + Unpin> Write for GlommioIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    /// Head and body of a response lie apart, and go out in one call.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    /// Sends the end of the stream. The descriptor is closed when hyper drops the stream.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.0).poll_close(cx)) {
            // The peer was faster: nothing is left to be ended.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            ended => Poll::Ready(ended),
        }
    }
}
