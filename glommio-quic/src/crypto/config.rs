//! Configurations of rustls, as quinn-proto takes them.

use super::session::{Session, initial_keys, retry_tag};
use super::suites::initial_suite;
use quinn_proto::crypto::{self, Keys, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side};
use rustls::pki_types::ServerName;
use rustls::quic::{Suite, Version};
use std::sync::Arc;

/// TLS of a client.
///
/// Made from a [`rustls::ClientConfig`] whose provider has suites for QUIC, such as
/// [`provider`](super::provider), and TLS 1.3.
#[derive(Clone)]
pub struct QuicClientConfig {
    tls: Arc<rustls::ClientConfig>,
    initial: Suite,
}

/// TLS of a server.
///
/// Made from a [`rustls::ServerConfig`] whose provider has suites for QUIC, such as
/// [`provider`](super::provider), and TLS 1.3. Early data (0-RTT), which anyone on the path can send
/// again, is not accepted: `max_early_data_size` has to be 0.
#[derive(Clone)]
pub struct QuicServerConfig {
    tls: Arc<rustls::ServerConfig>,
    initial: Suite,
}

/// What the peers have agreed upon in the handshake. See [`Connection::handshake_data`].
///
/// [`Connection::handshake_data`]: crate::Connection::handshake_data
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeData {
    /// The protocol that was chosen by ALPN, if any was asked for.
    pub protocol: Option<Vec<u8>>,
    /// The name of the server that the client has asked for; on the server only.
    pub server_name: Option<String>,
}

impl TryFrom<rustls::ClientConfig> for QuicClientConfig {
    type Error = rustls::Error;

    /// Fails without TLS 1.3, and if the provider lacks TLS_AES_128_GCM_SHA256 for QUIC, which the
    /// first packets of each connection are protected with.
    fn try_from(tls: rustls::ClientConfig) -> Result<Self, rustls::Error> {
        let initial = initial_suite(tls.crypto_provider()).ok_or_else(no_initial_suite)?;
        let tls = Arc::new(tls);
        // The one way to ask what versions it has.
        let name = ServerName::try_from("localhost").expect("a name");
        rustls::quic::ClientConnection::new(Arc::clone(&tls), Version::V1, name, Vec::new())?;
        Ok(QuicClientConfig { tls, initial })
    }
}

impl TryFrom<rustls::ServerConfig> for QuicServerConfig {
    type Error = rustls::Error;

    /// Fails as that of [`QuicClientConfig`] does, and if early data is to be accepted.
    fn try_from(tls: rustls::ServerConfig) -> Result<Self, rustls::Error> {
        let initial = initial_suite(tls.crypto_provider()).ok_or_else(no_initial_suite)?;
        if tls.max_early_data_size != 0 {
            let text = "early data over QUIC is not supported; set `max_early_data_size` to 0";
            return Err(rustls::Error::General(text.into()));
        }
        let tls = Arc::new(tls);
        rustls::quic::ServerConnection::new(Arc::clone(&tls), Version::V1, Vec::new())?;
        Ok(QuicServerConfig { tls, initial })
    }
}

fn no_initial_suite() -> rustls::Error {
    let text = "the provider has no TLS13_AES_128_GCM_SHA256 for QUIC; take `crypto::provider()`";
    rustls::Error::General(text.into())
}

impl crypto::ClientConfig for QuicClientConfig {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let version = known_version(version)?;
        let invalid_name = || ConnectError::InvalidServerName(server_name.into());
        let name = ServerName::try_from(server_name).map_err(|_| invalid_name())?;
        let tls = rustls::quic::ClientConnection::new(
            Arc::clone(&self.tls),
            version,
            name.to_owned(),
            encoded(params),
        );
        // The configuration has made a session before: the system is without random bytes.
        // quinn-proto has no word for that.
        let tls = tls.map_err(|error| {
            tracing::error!(%error, "cannot begin a TLS session");
            ConnectError::UnsupportedVersion
        })?;
        Ok(Box::new(Session::new(version, self.initial, tls.into())))
    }
}

impl crypto::ServerConfig for QuicServerConfig {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        let version = known_version(version)?;
        Ok(initial_keys(version, dst_cid, Side::Server, &self.initial))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(accepted_version(version), orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let version = accepted_version(version);
        let tls = Arc::clone(&self.tls);
        let tls = rustls::quic::ServerConnection::new(tls, version, encoded(params))
            .expect("the configuration has made a session before");
        Box::new(Session::new(version, self.initial, tls.into()))
    }
}

/// What `initial_keys` has let pass, or quinn-proto does not call.
fn accepted_version(version: u32) -> Version {
    known_version(version).expect("packets of other versions have no initial keys")
}

fn known_version(version: u32) -> Result<Version, UnsupportedVersion> {
    match version {
        0x0000_0001 | 0xff00_0021..=0xff00_0022 => Ok(Version::V1),
        0xff00_001d..=0xff00_0020 => Ok(Version::V1Draft),
        _ => Err(UnsupportedVersion),
    }
}

fn encoded(params: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes);
    bytes
}
