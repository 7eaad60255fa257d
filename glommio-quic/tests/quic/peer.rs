//! Servers and clients of tests, on the loopback interface.

use glommio::{LocalExecutor, timer::timeout};
use glommio_quic::rustls::RootCertStore;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, crypto};
use std::error::Error;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// No secrets: a test authority that is gone, and a certificate of `localhost`.
const AUTHORITY: &[u8] = include_bytes!("../keys/authority.pem");
pub const CERTIFICATE: &[u8] = include_bytes!("../keys/server.pem");
pub const KEY: &[u8] = include_bytes!("../keys/server.key");

pub fn server_config() -> Result<ServerConfig> {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    Ok(crypto::server_config(
        certificates,
        PrivateKeyDer::from_pem_slice(KEY)?,
    )?)
}

pub fn client_config() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY)?)?;
    Ok(crypto::client_config(roots)?)
}

pub fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub fn server() -> Result<Endpoint> {
    Ok(Endpoint::server(server_config()?, loopback())?)
}

pub fn client() -> Result<Endpoint> {
    let client = Endpoint::client(loopback())?;
    client.set_default_client_config(client_config()?);
    Ok(client)
}

/// A client that gives up on a silent peer after this.
pub fn impatient(idle: Duration) -> Result<ClientConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(idle.try_into()?));
    let mut config = client_config()?;
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Both ends of a connection.
pub async fn pair(server: &Endpoint, client: &Endpoint) -> Result<(Connection, Connection)> {
    let connecting = client.connect(server.local_addr()?, "localhost")?;
    let incoming = server.accept().await.ok_or("the server is closed")?;
    let (accepted, connected) =
        futures_lite::future::zip(incoming.into_future(), connecting.into_future()).await;
    Ok((accepted?, connected?))
}

/// Runs a test, with a limit that only a hang exceeds.
pub fn run(test: impl Future<Output = Result>) -> Result {
    LocalExecutor::default().run(async {
        let limited = timeout(Duration::from_secs(300), async { Ok(test.await) }).await;
        limited.map_err(|_| "the test hangs")?
    })
}

/// `length` bytes that tell where they are.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
