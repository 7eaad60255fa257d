//! Clients.

use crate::Error;
use crate::body::{self, Incoming};
use crate::transport::Transport;
use bytes::Bytes;
use glommio::spawn_local;
use glommio_quic::{Connection, StreamId, VarInt};
use h3::client::SendRequest;
use h3::error::Code;
use hyper::body::Body;
use hyper::{Request, Response};
use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;

/// A connection to a server; clones are the same connection, and each may have a request under way.
///
/// When the last clone, and the last response, is dropped, and the bodies of all requests are sent, the
/// connection is closed.
///
/// # Examples
///
/// See the [crate](crate).
#[derive(Clone)]
pub struct Client {
    requests: SendRequest<Transport, Bytes>,
    connection: Connection,
}

impl Client {
    /// Begins HTTP/3 on `connection`. A task of the current task queue sees to its control streams.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub async fn new(connection: Connection) -> Result<Client, Error> {
        let mut http = h3::client::builder();
        let transport = Transport::new(connection.clone());
        let (mut control, requests) = http.build(transport).await?;
        spawn_local(async move {
            let error = poll_fn(|cx| control.poll_close(cx)).await;
            if !error.is_h3_no_error() {
                tracing::debug!(%error, "a connection is lost");
            }
        })
        .detach();
        Ok(Client {
            requests,
            connection,
        })
    }

    /// Sends a request, whose URI is to have a scheme and an authority, and waits for the head of the
    /// response. The body of the request is sent by a task meanwhile.
    ///
    /// # Errors
    ///
    /// The connection or the stream has failed, or the server takes no more requests.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the server is told that the response is not wanted, if the request was sent.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Incoming>, Error>
    where
        B: Body + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let mut requests = self.requests.clone();
        let stream = requests.send_request(Request::from_parts(head, ()));
        let (mut send, recv) = stream.await?.split();
        let mut wanted = Wanted(Some(recv));
        let recv = wanted.0.as_mut().expect("it is taken at the end");
        if body.is_end_stream() {
            send.finish().await?;
        } else {
            let id = VarInt::from_u64(recv.id().into_inner()).expect("both have 62 bits");
            let received = self.connection.stopped(StreamId::from(id));
            // Without it the connection would be closed.
            let open = self.requests.clone();
            spawn_local(async move {
                match body::send(&mut send, body).await {
                    Ok(()) => drop(received.await),
                    Err(error) => tracing::debug!(%error, "the body of a request was not sent"),
                }
                drop(open);
            })
            .detach();
        }
        let response = recv.recv_response().await?;
        let (head, ()) = response.into_parts();
        let recv = wanted.0.take().expect("it was not taken before");
        let body = Incoming::of_response(recv, requests, &head.headers);
        Ok(Response::from_parts(head, body))
    }

    /// Closes the connection at once: requests that are under way fail.
    pub fn close(&self) {
        let code = VarInt::from_u64(Code::H3_NO_ERROR.value()).expect("it is short");
        self.connection.close(code, b"");
    }

    /// The connection itself.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// A response that is waited for. Dropped before, the server is told.
struct Wanted(Option<h3::client::RequestStream<crate::transport::RecvStream, Bytes>>);

impl Drop for Wanted {
    fn drop(&mut self) {
        if let Some(stream) = &mut self.0 {
            stream.stop_sending(Code::H3_REQUEST_CANCELLED);
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
