//! Connections in their handshake.

use super::{Connection, Handle, State};
use crate::ConnectionError;
use std::any::Any;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;

/// A connection in its handshake. Await it for the [`Connection`].
///
/// The handshake goes on whether or not it is awaited. Dropped, the connection is closed.
#[must_use = "the connection is closed when it is dropped"]
pub struct Connecting(Rc<Handle>);

impl Connecting {
    pub(crate) fn new(state: Rc<State>) -> Connecting {
        Connecting(Handle::new(state))
    }

    /// Waits for what the first packets of the peer tell: a
    /// [`crypto::HandshakeData`](crate::crypto::HandshakeData) for the configurations of this crate.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn handshake_data(&mut self) -> Result<Box<dyn Any>, ConnectionError> {
        let state = self.0.state();
        let data = || {
            if !state.has_handshake_data() {
                return state.check().err().map(Err);
            }
            let data = state.proto.borrow().crypto_session().handshake_data();
            Some(Ok(data.expect("the session has announced it")))
        };
        state.waiters.handshake.wait_until(data).await
    }

    /// The address of the peer.
    pub fn remote_address(&self) -> SocketAddr {
        self.0.state().proto.borrow().remote_address()
    }

    /// The address of this side that the peer sends to, if known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.0.state().proto.borrow().local_ip()
    }

    async fn connected(self) -> Result<Connection, ConnectionError> {
        let state = self.0.state();
        let connected = || match state.is_connected() {
            // Also if it is lost since: what has come before can be read.
            true => Some(Ok(())),
            false => state.check().err().map(Err),
        };
        state.waiters.connected.wait_until(connected).await?;
        Ok(Connection::new(self.0))
    }
}

impl IntoFuture for Connecting {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.connected())
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting")
            .field("remote_address", &self.remote_address())
            .finish_non_exhaustive()
    }
}
