//! TLS 1.3 for QUIC, by rustls, with cryptography that needs no C compiler.
//!
//! ```text
//!   quinn-proto ──▶ session.rs, config.rs ──▶ rustls::quic ──▶ any CryptoProvider with QUIC suites
//!        │                                                          │
//!        └──▶ tokens.rs (resets, retries)                           └── suites.rs: graviola's
//! ```
//!
//! quinn-proto has the same adapters for *ring* and aws-lc-rs only; both need a C compiler.

mod config;
mod session;
mod suites;
mod tokens;

pub use config::{HandshakeData, QuicClientConfig, QuicServerConfig};
pub use suites::provider;
pub use tokens::{ResetKey, TokenKey};

use crate::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig, VarInt};
use quinn_proto::RandomConnectionIdGenerator;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;

/// A server that shows `certificates` and accepts each client, without a protocol chosen by ALPN.
///
/// For anything else make a [`rustls::ServerConfig`] with [`provider`], and a [`QuicServerConfig`]
/// from it, for [`with_crypto`]. Endpoints that serve one address are to have clones of one
/// configuration, so that each knows the tokens that the others have issued.
///
/// # Errors
///
/// What rustls says of the certificates or of the key; or that the system has no random bytes.
pub fn server_config(
    certificates: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    with_crypto(tls.try_into()?)
}

/// A server with this TLS configuration, and a new key for tokens.
///
/// Its transport has the defaults of quinn-proto, with one difference: what a client may send
/// before it is read is 2.5 MB for a connection, and half of that for a stream. Without, it would be
/// 1.25 MB for each of 200 streams.
///
/// # Errors
///
/// The system has no random bytes.
pub fn with_crypto(tls: QuicServerConfig) -> Result<ServerConfig, rustls::Error> {
    let key = TokenKey::random()?;
    let mut config = ServerConfig::new(Arc::new(tls), Arc::new(key));
    let mut transport = TransportConfig::default();
    transport.receive_window(VarInt::from_u32(RECEIVE_WINDOW));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// In bytes: twice the window that one stream has by default.
const RECEIVE_WINDOW: u32 = 2_500_000;

/// A client that trusts the servers which `roots` vouch for.
///
/// For anything else make a [`rustls::ClientConfig`] with [`provider`], and a [`QuicClientConfig`]
/// from it, for [`ClientConfig::new`].
///
/// # Errors
///
/// What rustls says of the provider.
pub fn client_config(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(
        tls,
    )?)))
}

/// The defaults of quinn-proto, and a new key for stateless resets.
///
/// # Errors
///
/// The system has no random bytes.
pub fn endpoint_config() -> Result<EndpointConfig, rustls::Error> {
    Ok(endpoint_config_with(ResetKey::random()?))
}

/// The defaults of quinn-proto but for connection IDs of 64 random bits, with this key for stateless
/// resets: with that of an earlier run at the same address, the clients of that run hear at once that
/// their connections are lost.
pub fn endpoint_config_with(key: ResetKey) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(key));
    config.cid_generator(|| Box::new(connection_ids()));
    config
}

/// Retries take an ID without a look at those in use, and the default generator has 24 random bits:
/// with 1,000 connections, one of 1,000 retried clients often got another's.
fn connection_ids() -> RandomConnectionIdGenerator {
    RandomConnectionIdGenerator::new(8)
}

/// Fills `bytes` from the system.
fn fill_random(bytes: &mut [u8]) -> Result<(), rustls::Error> {
    graviola::random::fill(bytes).map_err(|_| rustls::Error::FailedToGetRandomBytes)
}

#[cfg(test)]
mod tests {
    use super::connection_ids;
    use quinn_proto::ConnectionIdGenerator;
    use std::collections::HashSet;

    #[test]
    fn a_hundred_thousand_connection_ids_are_all_different() {
        let mut ids = connection_ids();
        let different: HashSet<_> = (0..100_000).map(|_| ids.generate_cid()).collect();
        assert_eq!(different.len(), 100_000);
    }
}
