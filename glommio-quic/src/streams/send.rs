//! The half of a stream that this side writes.

use crate::connection::{Half, Handle, State, stopped};
use crate::{ClosedStream, ConnectionError, StreamId, VarInt, WriteError, Written};
use bytes::Bytes;
use futures_io::AsyncWrite;
use quinn_proto::FinishError;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Writes a stream.
///
/// Dropped, the stream is [finished](Self::finish): what was written still goes to the peer, as
/// long as the connection lives. To have the peer know that it is incomplete, [reset](Self::reset)
/// it.
///
/// As `AsyncWrite`, closing it is to finish it, and flushing does nothing.
pub struct SendStream {
    connection: Rc<Handle>,
    id: StreamId,
    /// It was finished or reset.
    is_over: bool,
}

impl SendStream {
    pub(crate) fn new(connection: Rc<Handle>, id: StreamId) -> SendStream {
        SendStream {
            connection,
            id,
            is_over: false,
        }
    }

    fn state(&self) -> &Rc<State> {
        self.connection.state()
    }

    /// Writes some of `buf`, and returns how many bytes; at least one, unless `buf` is empty. Waits
    /// while the peer, or the window of the connection, lets nothing more be written.
    ///
    /// # Errors
    ///
    /// The peer has stopped the stream, it was finished or reset, or the connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has written nothing.
    pub async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_some(cx, buf)).await
    }

    /// Writes all of `buf`.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write). A part may have been written.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it may have written a part of `buf`, from the beginning.
    pub async fn write_all(&mut self, mut buf: &[u8]) -> Result<(), WriteError> {
        while !buf.is_empty() {
            let written = self.write(buf).await?;
            buf = &buf[written..];
        }
        Ok(())
    }

    /// Writes some of `bufs`, which are not copied but kept until the peer has them, and returns how
    /// many bytes, and how many whole buffers; at least one byte, unless all are empty. Buffers that
    /// were written are empty then, and of one that was written in part the rest is left. Waits as
    /// [`write`](Self::write) does.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has written nothing, and `bufs` are as before.
    pub async fn write_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Written, WriteError> {
        poll_fn(|cx| {
            if bufs.iter().all(Bytes::is_empty) {
                self.state().check()?;
                let (bytes, chunks) = (0, bufs.len());
                return Poll::Ready(Ok(Written { bytes, chunks }));
            }
            self.poll_with(cx, |stream| stream.write_chunks(bufs))
        })
        .await
    }

    /// Writes all of `buf`, as [`write_chunks`](Self::write_chunks) does.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write). A part may have been written.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it may have written a part of `buf`, from the beginning.
    pub async fn write_chunk(&mut self, buf: Bytes) -> Result<(), WriteError> {
        self.write_all_chunks(&mut [buf]).await
    }

    /// Writes all of `bufs`, as [`write_chunks`](Self::write_chunks) does. They are empty then.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write). A part may have been written: `bufs` have the rest.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it may have written a part, from the beginning: `bufs` have the rest.
    pub async fn write_all_chunks(&mut self, mut bufs: &mut [Bytes]) -> Result<(), WriteError> {
        while !bufs.is_empty() {
            let written = self.write_chunks(bufs).await?;
            bufs = &mut bufs[written.chunks..];
        }
        Ok(())
    }

    /// As [`write`](Self::write), in one poll: as `AsyncWrite`, with the errors of streams.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn poll_write_some(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if buf.is_empty() {
            self.state().check()?;
            return Poll::Ready(Ok(0));
        }
        self.poll_with(cx, |stream| stream.write(buf))
    }

    /// Has `write` write what it can, or waits.
    fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut quinn_proto::SendStream<'_>) -> Result<T, quinn_proto::WriteError>,
    ) -> Poll<Result<T, WriteError>> {
        let state = self.state();
        state.check()?;
        if self.is_over {
            return Poll::Ready(Err(WriteError::ClosedStream));
        }
        let written = {
            let mut proto = state.proto.borrow_mut();
            let mut stream = proto.send_stream(self.id);
            match write(&mut stream) {
                // A connection without window is found out before a stream that was stopped, and
                // nothing more is said of one that was.
                Err(quinn_proto::WriteError::Blocked) => match stream.stopped() {
                    Ok(Some(code)) => Err(quinn_proto::WriteError::Stopped(code)),
                    Ok(None) | Err(_) => Err(quinn_proto::WriteError::Blocked),
                },
                written => written,
            }
        };
        match written {
            Ok(written) => {
                state.schedule();
                Poll::Ready(Ok(written))
            }
            Err(quinn_proto::WriteError::Blocked) => {
                state.wait_for_stream(Half::Write, self.id, cx.waker());
                Poll::Pending
            }
            Err(quinn_proto::WriteError::Stopped(code)) => {
                Poll::Ready(Err(WriteError::Stopped(code)))
            }
            Err(quinn_proto::WriteError::ClosedStream) => {
                Poll::Ready(Err(WriteError::ClosedStream))
            }
        }
    }

    /// Ends the stream: the peer is told that there is no more, after what was written.
    ///
    /// It does not wait for the peer to have it; [`stopped`](Self::stopped) does.
    ///
    /// # Errors
    ///
    /// It was finished or reset already.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        let state = self.state();
        let finished = state.proto.borrow_mut().send_stream(self.id).finish();
        match finished {
            Ok(()) => {
                state.schedule();
                self.is_over = true;
                Ok(())
            }
            // Who wants to know asks `stopped`.
            Err(FinishError::Stopped(_)) => Ok(()),
            Err(FinishError::ClosedStream) => Err(closed_stream()),
        }
    }

    /// Abandons the stream, with this code for the peer. What is not received yet may never be.
    ///
    /// # Errors
    ///
    /// The peer has all of it, or it was reset already.
    pub fn reset(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        let state = self.state();
        state.proto.borrow_mut().send_stream(self.id).reset(code)?;
        state.schedule();
        self.is_over = true;
        Ok(())
    }

    /// Waits until the peer has stopped the stream, and gives its code; or until it has received
    /// all of a finished stream, which is `None`. It goes on when the stream is dropped, but does not
    /// keep the connection.
    ///
    /// That it was received does not mean that it was read.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, ConnectionError>> + 'static {
        stopped(Rc::clone(self.state()), self.id)
    }

    /// Sets the priority among the streams of this side, 0 at first. Data of streams with a
    /// higher one is sent first.
    ///
    /// # Errors
    ///
    /// The stream is closed.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        let mut proto = self.state().proto.borrow_mut();
        proto.send_stream(self.id).set_priority(priority)
    }

    /// The priority of the stream.
    ///
    /// # Errors
    ///
    /// The stream is closed.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        self.state()
            .proto
            .borrow_mut()
            .send_stream(self.id)
            .priority()
    }

    /// The number of the stream in its connection.
    pub fn id(&self) -> StreamId {
        self.id
    }
}

/// quinn-proto has no constructor for its error.
fn closed_stream() -> ClosedStream {
    ClosedStream::default()
}

impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.poll_write_some(cx, buf));
        Poll::Ready(written.map_err(io::Error::from))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let state = self.state();
        if let Err(error) = state.check() {
            return Poll::Ready(Err(WriteError::from(error).into()));
        }
        // Closed twice is closed.
        let _ = self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let state = self.state();
        state.forget_stream(Half::Write, self.id);
        state.forget_stops(self.id);
        if state.check().is_err() {
            return;
        }
        let changed = {
            let mut proto = state.proto.borrow_mut();
            let mut stream = proto.send_stream(self.id);
            match stream.finish() {
                Ok(()) => true,
                // The peer wants no more of it: nothing is left to be remembered.
                Err(FinishError::Stopped(code)) => stream.reset(code).is_ok(),
                Err(FinishError::ClosedStream) => false,
            }
        };
        if changed {
            state.schedule();
        }
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SendStream").field(&self.id).finish()
    }
}
