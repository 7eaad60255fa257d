//! Bodies of messages, as they come and as they are sent.

use crate::Error;
use crate::transport::{RecvStream, SendStream, Transport};
use bytes::{Buf, Bytes};
use fragile::Fragile;
use futures_lite::ready;
use h3::error::{Code, StreamError};
use h3::{client, server};
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::CONTENT_LENGTH;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// The body of a request or a response that is received.
///
/// Dropped before its end, the peer is told to send no more of it.
///
/// It is `Send` for what asks for that, such as the bodies of axum, and stays on its thread.
///
/// # Panics
///
/// Panics if it is polled, or dropped, on another thread.
pub struct Incoming {
    stream: Fragile<Stream>,
    state: State,
    /// Of the body, if it was said.
    left: Option<u64>,
}

enum Stream {
    Request(server::RequestStream<RecvStream, Bytes>),
    Response {
        stream: client::RequestStream<RecvStream, Bytes>,
        /// Without it the connection would be closed.
        _open: client::SendRequest<Transport, Bytes>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    Trailers,
    Over,
}

impl Incoming {
    pub(crate) fn of_request(
        stream: server::RequestStream<RecvStream, Bytes>,
        headers: &HeaderMap,
    ) -> Incoming {
        Incoming::new(Stream::Request(stream), headers)
    }

    pub(crate) fn of_response(
        stream: client::RequestStream<RecvStream, Bytes>,
        open: client::SendRequest<Transport, Bytes>,
        headers: &HeaderMap,
    ) -> Incoming {
        let stream = Stream::Response {
            stream,
            _open: open,
        };
        Incoming::new(stream, headers)
    }

    fn new(stream: Stream, headers: &HeaderMap) -> Incoming {
        let length = headers.get(CONTENT_LENGTH);
        Incoming {
            stream: Fragile::new(stream),
            state: State::Data,
            left: length.and_then(|length| length.to_str().ok()?.parse().ok()),
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let Incoming {
            stream,
            state,
            left,
        } = &mut *self;
        let stream = stream.get_mut();
        if *state == State::Data {
            match ready!(stream.poll_data(cx)) {
                Ok(Some(data)) => {
                    *left = left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Ok(None) => *state = State::Trailers,
                Err(error) => {
                    *state = State::Over;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if *state == State::Trailers {
            let trailers = ready!(stream.poll_trailers(cx));
            *state = State::Over;
            return Poll::Ready(trailers.map(|it| it.map(Frame::trailers)).transpose());
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Over
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Stream {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamError>> {
        fn bytes(mut data: impl Buf) -> Bytes {
            data.copy_to_bytes(data.remaining())
        }
        match self {
            Stream::Request(stream) => stream.poll_recv_data(cx).map_ok(|data| data.map(bytes)),
            Stream::Response { stream, .. } => {
                stream.poll_recv_data(cx).map_ok(|data| data.map(bytes))
            }
        }
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamError>> {
        match self {
            Stream::Request(stream) => stream.poll_recv_trailers(cx),
            Stream::Response { stream, .. } => stream.poll_recv_trailers(cx),
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.state == State::Over {
            return;
        }
        // RFC 9114, section 4.1: what was not wanted is no error.
        match self.stream.get_mut() {
            Stream::Request(stream) => stream.stop_sending(Code::H3_NO_ERROR),
            Stream::Response { stream, .. } => stream.stop_sending(Code::H3_REQUEST_CANCELLED),
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").finish_non_exhaustive()
    }
}

/// What bodies are sent on, of servers and clients.
pub(crate) trait Outgoing {
    async fn data(&mut self, data: Bytes) -> Result<(), StreamError>;
    async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamError>;
    async fn finish(&mut self) -> Result<(), StreamError>;
    fn abandon(&mut self);
}

macro_rules! outgoing {
    ($side:ident) => {
        impl Outgoing for $side::RequestStream<SendStream<Bytes>, Bytes> {
            async fn data(&mut self, data: Bytes) -> Result<(), StreamError> {
                self.send_data(data).await
            }

            async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamError> {
                self.send_trailers(trailers).await
            }

            async fn finish(&mut self) -> Result<(), StreamError> {
                self.finish().await
            }

            fn abandon(&mut self) {
                self.stop_stream(Code::H3_INTERNAL_ERROR);
            }
        }
    };
}

outgoing!(server);
outgoing!(client);

/// Sends all of `body`, and ends the stream.
pub(crate) async fn send<B>(stream: &mut impl Outgoing, body: B) -> Result<(), Error>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = pin!(body);
    while !body.is_end_stream() {
        let frame = match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                // The peer is not to take what has come for all of it.
                stream.abandon();
                return Err(Error::Body(error.into()));
            }
            None => break,
        };
        match frame.into_data() {
            Ok(mut data) => {
                let data = data.copy_to_bytes(data.remaining());
                if !data.is_empty() {
                    stream.data(data).await?;
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    stream.trailers(trailers).await?;
                    break;
                }
            }
        }
    }
    Ok(stream.finish().await?)
}
