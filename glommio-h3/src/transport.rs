//! The traits of h3 over connections and streams of glommio-quic.

use bytes::{Buf, Bytes};
use futures_lite::ready;
use glommio_quic as quic;
use glommio_quic::{ConnectionError, ReadError, VarInt, WriteError};
use h3::error::Code;
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A QUIC connection, as [`h3`] takes it.
#[derive(Clone, Debug)]
pub struct Transport {
    connection: quic::Connection,
    /// Streams that are accepted are split before they are answered. What is written to one before is
    /// all of an answer, by h3 itself: that the headers are too long.
    splits: bool,
}

impl Transport {
    /// For `h3::server` and `h3::client`, if [`Connections`](crate::Connections) and
    /// [`Client`](crate::Client) are not what is wanted.
    pub fn new(connection: quic::Connection) -> Transport {
        Transport {
            connection,
            splits: false,
        }
    }

    /// For what splits streams before it answers.
    pub(crate) fn splitting(connection: quic::Connection) -> Transport {
        Transport {
            connection,
            splits: true,
        }
    }
}

impl<B: Buf> h3::quic::Connection<B> for Transport {
    type RecvStream = RecvStream;
    type OpenStreams = Transport;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let accepted = ready!(self.connection.poll_accept_uni(cx));
        Poll::Ready(accepted.map(RecvStream).map_err(lost))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let accepted = ready!(self.connection.poll_accept_bi(cx));
        let mut accepted = accepted.map(BidiStream::new).map_err(lost)?;
        accepted.send.is_to_be_split = self.splits;
        Poll::Ready(Ok(accepted))
    }

    fn opener(&self) -> Transport {
        self.clone()
    }
}

impl<B: Buf> h3::quic::OpenStreams<B> for Transport {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let opened = ready!(self.connection.poll_open_bi(cx));
        Poll::Ready(opened.map(BidiStream::new).map_err(lost_stream))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let opened = ready!(self.connection.poll_open_uni(cx));
        let stream = |stream| SendStream::new(stream, false);
        Poll::Ready(opened.map(stream).map_err(lost_stream))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(as_code(code.value()), reason);
    }
}

/// A stream of a request and its response.
pub struct BidiStream<B: Buf> {
    send: SendStream<B>,
    recv: RecvStream,
}

impl<B: Buf> BidiStream<B> {
    fn new((send, recv): (quic::SendStream, quic::RecvStream)) -> Self {
        BidiStream {
            send: SendStream::new(send, true),
            recv: RecvStream(recv),
        }
    }
}

impl<B: Buf> h3::quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(mut self) -> (SendStream<B>, RecvStream) {
        self.send.is_to_be_split = false;
        (self.send, self.recv)
    }
}

impl<B: Buf> h3::quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl<B: Buf> h3::quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

/// The half of a stream that is written.
pub struct SendStream<B: Buf> {
    stream: quic::SendStream,
    /// What is to be written next.
    writing: Option<WriteBuf<B>>,
    /// Dropped, it is reset: the end of the stream would say that the message is complete.
    is_incomplete: bool,
    /// See [`Transport`].
    is_to_be_split: bool,
}

impl<B: Buf> SendStream<B> {
    fn new(stream: quic::SendStream, is_message: bool) -> Self {
        SendStream {
            stream,
            writing: None,
            is_incomplete: is_message,
            is_to_be_split: false,
        }
    }
}

impl<B: Buf> h3::quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if let Some(data) = &mut self.writing {
            while data.has_remaining() {
                let written = ready!(self.stream.poll_write_some(cx, data.chunk()));
                data.advance(written.map_err(not_written)?);
            }
            self.writing = None;
            self.is_incomplete &= !self.is_to_be_split;
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            let text = "data is to be sent before the stream is ready";
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(text.into()),
            });
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        self.is_incomplete = false;
        let finished = self.stream.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, reset_code: u64) {
        self.is_incomplete = false;
        // It may be over by now.
        let _ = self.stream.reset(as_code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl<B: Buf> Drop for SendStream<B> {
    fn drop(&mut self) {
        if self.is_incomplete {
            let _ = self
                .stream
                .reset(as_code(Code::H3_REQUEST_CANCELLED.value()));
        }
    }
}

/// The half of a stream that is read.
pub struct RecvStream(quic::RecvStream);

impl h3::quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let chunk = ready!(self.0.poll_read_chunk(cx, usize::MAX, true));
        let bytes = chunk.map(|chunk| chunk.map(|chunk| chunk.bytes));
        Poll::Ready(bytes.map_err(not_read))
    }

    fn stop_sending(&mut self, error_code: u64) {
        let _ = self.0.stop(as_code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

fn as_code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn id(id: quic::StreamId) -> StreamId {
    let number = VarInt::from(id).into_inner();
    StreamId::try_from(number).expect("both have 62 bits")
}

pub(crate) fn lost(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

fn lost_stream(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: lost(error),
    }
}

fn not_read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        ReadError::ConnectionLost(error) => lost_stream(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

fn not_written(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        },
        WriteError::ConnectionLost(error) => lost_stream(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
