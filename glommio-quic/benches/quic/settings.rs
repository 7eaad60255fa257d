//! What both have in common.

use crate::Result;
use glommio_quic::rustls::RootCertStore;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::{ClientConfig, ServerConfig, TransportConfig, VarInt, crypto};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

const AUTHORITY: &[u8] = include_bytes!("../../tests/keys/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../tests/keys/server.key");

pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// What is written and read at a time.
pub const PIECE: usize = 64 << 10;

pub fn server() -> Result<ServerConfig> {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let mut config = crypto::server_config(certificates, PrivateKeyDer::from_pem_slice(KEY)?)?;
    config.max_incoming(1 << 20);
    config.transport_config(transport(false)?);
    Ok(config)
}

/// With keep-alives for idle connections.
pub fn client(is_idle: bool) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY)?)?;
    let mut config = crypto::client_config(roots)?;
    config.transport_config(transport(is_idle)?);
    Ok(config)
}

fn transport(keeps_alive: bool) -> Result<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(120).try_into()?));
    transport.max_concurrent_uni_streams(VarInt::from_u32(16));
    if keeps_alive {
        transport.keep_alive_interval(Some(KEEP_ALIVE));
    }
    Ok(Arc::new(transport))
}

pub fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(2 << 20)?;
    options.set_send_buffer_size(2 << 20)?;
    Ok(socket)
}
