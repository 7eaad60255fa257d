//! What hyper needs of a runtime, implemented on glommio: [`HyperStream`] for its connections,
//! [`HyperTimer`] for its timeouts. These two are all that HTTP/1 needs; copy the file into a
//! program of your own.
//!
//! Neither holds any unsafe code. `hyper::rt::Read` offers memory that may be uninitialised, which
//! a safe reader can only copy into: so the stream reads into a buffer of its own, as
//! `AsyncBufRead` does, and from there each byte is copied once.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use fragile::Fragile;
use futures_lite::{AsyncBufRead, AsyncWrite};
use glommio::timer::Timer;
use hyper::rt::{Read, ReadBufCursor, Sleep, Write};

/// A buffered stream, for instance `TcpStream::buffered()`, as hyper reads and writes it.
#[derive(Debug)]
pub struct HyperStream<S>(pub S);

impl<S: AsyncBufRead + Unpin> Read for HyperStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut self.0;
        let bytes = ready!(Pin::new(&mut *stream).poll_fill_buf(cx))?;
        // None at all tells hyper that the client has sent its last.
        let count = bytes.len().min(room.remaining());
        room.put_slice(&bytes[..count]);
        Pin::new(stream).consume(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for HyperStream<S> {
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
        Pin::new(&mut self.0).poll_close(cx)
    }
}

/// The clock behind hyper's timeouts, such as `header_read_timeout`.
#[derive(Clone, Copy, Debug)]
pub struct HyperTimer;

impl hyper::rt::Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(HyperSleep {
            timer: Fragile::new(Timer::new(duration)),
        })
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.sleep(deadline.saturating_duration_since(Instant::now()))
    }
}

/// A timer for hyper.
///
/// hyper requires it to be `Send` and `Sync` for runtimes that move tasks between threads. Ours
/// never do, and our timers are neither: the wrapper is, and panics if the timer is touched on
/// another thread after all.
#[derive(Debug)]
struct HyperSleep {
    timer: Fragile<Timer>,
}

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(self.timer.get_mut()).poll(cx).map(drop)
    }
}

impl Sleep for HyperSleep {}
