//! The half of a stream that this side reads.

use crate::connection::{Half, Handle, State};
use crate::{Chunk, ClosedStream, ReadError, ReadExactError, ReadToEndError, StreamId, VarInt};
use bytes::Bytes;
use futures_io::AsyncRead;
use quinn_proto::{Chunks, ReadableError};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Reads a stream.
///
/// Dropped before its end was read, the peer is told to [stop](Self::stop) it, with code 0.
pub struct RecvStream {
    connection: Rc<Handle>,
    id: StreamId,
    /// Its end was read, or it was stopped.
    is_over: bool,
    /// The peer has reset it, which was found out together with data.
    reset: Option<VarInt>,
}

impl RecvStream {
    pub(crate) fn new(connection: Rc<Handle>, id: StreamId) -> RecvStream {
        RecvStream {
            connection,
            id,
            is_over: false,
            reset: None,
        }
    }

    fn state(&self) -> &Rc<State> {
        self.connection.state()
    }

    /// Reads into `buf`, and returns how many bytes; `None` at the end of the stream, and when it was
    /// stopped. Waits while there is none.
    ///
    /// # Errors
    ///
    /// The peer has reset the stream, or the connection is lost. Data that came before the
    /// connection was lost is read first.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_some(cx, buf)).await
    }

    /// Fills `buf`.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), or the stream ends before.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the data that it has read is lost.
    pub async fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while filled < buf.len() {
            match self.read(&mut buf[filled..]).await? {
                Some(length) => filled += length,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// Reads a piece of at most `max_length` bytes as it was received, without a copy; `None` at
    /// the end of the stream. If not `ordered`, the pieces come in the order of their arrival, and
    /// the stream cannot be read in order any more.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn read_chunk(
        &mut self,
        max_length: usize,
        ordered: bool,
    ) -> Result<Option<Chunk>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max_length, ordered)).await
    }

    /// As [`read_chunk`](Self::read_chunk), in one poll.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max_length: usize,
        ordered: bool,
    ) -> Poll<Result<Option<Chunk>, ReadError>> {
        let take = |chunks: &mut Chunks<'_>| match next(chunks, max_length) {
            Ok(chunk) => (Some(chunk), None),
            Err(end) => (None, Some(end)),
        };
        self.poll_chunks(cx, ordered, take)
    }

    /// Reads pieces as they were received, in order and without a copy, into `bufs`, and returns how
    /// many; `None` at the end of the stream, and when it was stopped. Waits while there is none.
    /// Where they begin and end is not what the peer has written at a time.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn read_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        if bufs.is_empty() {
            return Ok(Some(0));
        }
        let mut fill = |chunks: &mut Chunks<'_>| {
            for (filled, buf) in bufs.iter_mut().enumerate() {
                match next(chunks, usize::MAX) {
                    Ok(chunk) => *buf = chunk.bytes,
                    Err(end) => return ((filled > 0).then_some(filled), Some(end)),
                }
            }
            (Some(bufs.len()), None)
        };
        poll_fn(|cx| self.poll_chunks(cx, true, &mut fill)).await
    }

    /// Reads the rest of the stream, in order.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), or more than `limit` bytes are left: then the peer is told to stop.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the data that it has read is lost.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(usize::MAX, true).await? {
            if chunk.bytes.len() > limit - all.len() {
                // That it may be closed by now is fine.
                let _ = self.stop(VarInt::from_u32(0));
                return Err(ReadToEndError::TooLong);
            }
            all.extend_from_slice(&chunk.bytes);
        }
        Ok(all)
    }

    /// As [`read`](Self::read), in one poll.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        let fill = |chunks: &mut Chunks<'_>| {
            let mut filled = 0;
            let end = loop {
                if filled == buf.len() {
                    break None;
                }
                match next(chunks, buf.len() - filled) {
                    Ok(chunk) => {
                        let length = chunk.bytes.len();
                        buf[filled..filled + length].copy_from_slice(&chunk.bytes);
                        filled += length;
                    }
                    Err(end) => break Some(end),
                }
            };
            ((filled > 0).then_some(filled), end)
        };
        self.poll_chunks(cx, true, fill)
    }

    /// Has `read` take what it wants of what was received. It returns that, and what kept it from
    /// more.
    fn poll_chunks<T>(
        &mut self,
        cx: &mut Context<'_>,
        ordered: bool,
        read: impl FnOnce(&mut Chunks<'_>) -> (Option<T>, Option<End>),
    ) -> Poll<Result<Option<T>, ReadError>> {
        if let Some(code) = self.reset {
            return Poll::Ready(Err(ReadError::Reset(code)));
        }
        if self.is_over {
            return Poll::Ready(Ok(None));
        }
        let state = Rc::clone(self.state());
        let ((value, end), gives_credit) = {
            let mut proto = state.proto.borrow_mut();
            let mut stream = proto.recv_stream(self.id);
            let mut chunks = stream.read(ordered).map_err(|error| match error {
                ReadableError::ClosedStream => ReadError::ClosedStream,
                ReadableError::IllegalOrderedRead => ReadError::IllegalOrderedRead,
            })?;
            let result = read(&mut chunks);
            (result, chunks.finalize().should_transmit())
        };
        if gives_credit {
            state.schedule();
        }

        match end {
            Some(End::Finished) => self.is_over = true,
            Some(End::Error(quinn_proto::ReadError::Reset(code))) => self.reset = Some(code),
            Some(End::Error(quinn_proto::ReadError::Blocked)) | None => {}
        }
        match (value, self.reset) {
            (Some(value), _) => Poll::Ready(Ok(Some(value))),
            (None, Some(code)) => Poll::Ready(Err(ReadError::Reset(code))),
            (None, None) if self.is_over => Poll::Ready(Ok(None)),
            (None, None) => {
                state.check()?;
                state.wait_for_stream(Half::Read, self.id, cx.waker());
                Poll::Pending
            }
        }
    }

    /// Tells the peer that nothing more of the stream will be read, with this code. What was
    /// received is dropped.
    ///
    /// # Errors
    ///
    /// Its end or its reset was read, or it was stopped already.
    pub fn stop(&mut self, code: VarInt) -> Result<(), ClosedStream> {
        let state = self.state();
        state.proto.borrow_mut().recv_stream(self.id).stop(code)?;
        state.schedule();
        self.is_over = true;
        Ok(())
    }

    /// Waits until the peer has reset the stream, and gives its code; `None` if it was stopped, or
    /// read to its end.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, crate::ConnectionError> {
        poll_fn(|cx| {
            if let Some(code) = self.reset {
                return Poll::Ready(Ok(Some(code)));
            }
            let state = Rc::clone(self.state());
            let reset = state
                .proto
                .borrow_mut()
                .recv_stream(self.id)
                .received_reset();
            match reset {
                Err(_) => Poll::Ready(Ok(None)),
                Ok(Some(code)) => {
                    self.reset = Some(code);
                    // The peer may open another stream in its place.
                    state.schedule();
                    Poll::Ready(Ok(Some(code)))
                }
                Ok(None) => {
                    state.check()?;
                    // A reset wakes readers.
                    state.wait_for_stream(Half::Read, self.id, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The number of the stream in its connection.
    pub fn id(&self) -> StreamId {
        self.id
    }
}

/// Why there is no more.
enum End {
    Finished,
    Error(quinn_proto::ReadError),
}

/// The next piece of what was received.
fn next(chunks: &mut Chunks<'_>, max_length: usize) -> Result<Chunk, End> {
    match chunks.next(max_length) {
        Ok(Some(chunk)) => Ok(chunk),
        Ok(None) => Err(End::Finished),
        Err(error) => Err(End::Error(error)),
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let read = ready!(self.poll_read_some(cx, buf));
        Poll::Ready(match read {
            Ok(length) => Ok(length.unwrap_or(0)),
            Err(error) => Err(error.into()),
        })
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let state = self.state();
        state.forget_stream(Half::Read, self.id);
        if self.is_over || self.reset.is_some() || state.check().is_err() {
            return;
        }
        let stopped = {
            let mut proto = state.proto.borrow_mut();
            proto.recv_stream(self.id).stop(VarInt::from_u32(0))
        };
        if stopped.is_ok() {
            state.schedule();
        }
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RecvStream").field(&self.id).finish()
    }
}
