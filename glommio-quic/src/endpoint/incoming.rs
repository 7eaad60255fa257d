//! Connections that clients ask for, and that are not accepted yet.

use super::Shared;
use super::limits::Client;
use crate::connection::Connecting;
use glommio::time::now;
use quinn_proto::{ConnectionError, ConnectionId, ServerConfig};
use std::error::Error;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// A client that wants to connect. Nothing has been computed or kept for it yet but its first
/// packets.
///
/// Dropped, it is refused. To await it is to accept it, and to wait for the handshake.
#[must_use = "it is refused when it is dropped"]
pub struct Incoming {
    shared: Rc<Shared>,
    /// `None` once it is decided.
    proto: Option<quinn_proto::Incoming>,
    /// `None` once it counts as a connection.
    client: Option<Client>,
}

impl Incoming {
    pub(super) fn new(shared: Rc<Shared>, proto: quinn_proto::Incoming) -> Incoming {
        let client = Client::of(&proto);
        shared.handshakes.begin(client);
        shared.undecided.set(shared.undecided.get() + 1);
        Incoming {
            shared,
            proto: Some(proto),
            client: Some(client),
        }
    }

    /// Accepts it: the handshake begins.
    ///
    /// # Errors
    ///
    /// Its first packets are not what they should be, or the endpoint is gone.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        self.accept_by(None)
    }

    /// As [`accept`](Self::accept), with another configuration than that of the endpoint.
    ///
    /// # Errors
    ///
    /// As [`accept`](Self::accept).
    pub fn accept_with(self, config: Arc<ServerConfig>) -> Result<Connecting, ConnectionError> {
        self.accept_by(Some(config))
    }

    fn accept_by(
        mut self,
        config: Option<Arc<ServerConfig>>,
    ) -> Result<Connecting, ConnectionError> {
        let incoming = self.decide();
        if let Some(error) = self.shared.lost_error() {
            self.shared.ignore(incoming);
            return Err(error);
        }
        let mut response = Vec::new();
        let accepted = self
            .shared
            .proto()
            .accept(incoming, now(), &mut response, config);
        match accepted {
            Ok((handle, proto)) => {
                let client = self.client.take();
                Ok(Connecting::new(self.shared.insert(handle, proto, client)))
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.shared.respond(transmit, response);
                }
                Err(error.cause)
            }
        }
    }

    /// Tells the client that it is refused.
    pub fn refuse(mut self) {
        let incoming = self.decide();
        self.shared.refuse(incoming);
    }

    /// Asks the client to prove that it receives at its address, before anything is computed for
    /// it. It comes again with the proof, as another `Incoming`.
    ///
    /// # Errors
    ///
    /// The client has proven that already; see [`may_retry`](Self::may_retry). The `Incoming` is in
    /// the error.
    pub fn retry(mut self) -> Result<(), RetryError> {
        let incoming = self.decide();
        let retried = self.shared.retry(incoming);
        retried.map_err(|error| {
            self.proto = Some(error.into_incoming());
            RetryError(Box::new(self))
        })
    }

    /// Drops it, and sends nothing. The client will ask again and at last give up.
    pub fn ignore(mut self) {
        let incoming = self.decide();
        self.shared.ignore(incoming);
    }

    /// The address of this side that the client has sent to, if known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.undecided().local_ip()
    }

    /// The address of the client, which may be forged until it is
    /// [validated](Self::remote_address_validated).
    pub fn remote_address(&self) -> SocketAddr {
        self.undecided().remote_address()
    }

    /// Whether the client has proven that it receives at its address, by a token of this server.
    pub fn remote_address_validated(&self) -> bool {
        self.undecided().remote_address_validated()
    }

    /// The connection ID that the client has sent its first packet to, before it was retried.
    pub fn orig_dst_cid(&self) -> &ConnectionId {
        self.undecided().orig_dst_cid()
    }

    /// Whether [`retry`](Self::retry) may be called.
    pub fn may_retry(&self) -> bool {
        self.undecided().may_retry()
    }

    fn undecided(&self) -> &quinn_proto::Incoming {
        self.proto.as_ref().expect(UNDECIDED)
    }

    fn decide(&mut self) -> quinn_proto::Incoming {
        self.proto.take().expect(UNDECIDED)
    }
}

const UNDECIDED: &str = "what decides it takes it";

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(incoming) = self.proto.take() {
            self.shared.refuse(incoming);
        }
        if let Some(client) = self.client.take() {
            self.shared.handshakes.end(client);
        }
        self.shared.undecided.set(self.shared.undecided.get() - 1);
        self.shared.wake_accepting();
        self.shared.wake_driver();
    }
}

impl IntoFuture for Incoming {
    type Output = Result<crate::Connection, ConnectionError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.accept()?.await })
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Incoming");
        if let Some(proto) = &self.proto {
            debug.field("remote_address", &proto.remote_address());
        }
        debug.finish_non_exhaustive()
    }
}

/// A client was asked to prove its address again. See [`Incoming::retry`]. The one error that stays
/// on its thread, as it has the `Incoming`.
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// What was not retried.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}

impl fmt::Debug for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RetryError").field(&self.0).finish()
    }
}

impl fmt::Display for RetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client has proven its address already; ask `may_retry` first")
    }
}

impl Error for RetryError {}
