//! What both have in common.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::rustls::{self, RootCertStore};
use glommio_quic::{ClientConfig, ServerConfig, TransportConfig, VarInt, crypto};
use nix::sys::socket::{setsockopt, sockopt};

use crate::{Load, Result};

const AUTHORITY: &[u8] = include_bytes!("../../../glommio-quic/tests/keys/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../glommio-quic/tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../../glommio-quic/tests/keys/server.key");

pub const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// What is written and read at a time.
pub const PIECE: usize = 64 << 10;

pub fn server(load: Load) -> Result<ServerConfig> {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_slice(KEY)?)?;
    tls.alpn_protocols = protocols(load);
    let mut config = crypto::with_crypto(tls.try_into()?)?;
    config.max_incoming(1 << 20);
    config.transport_config(transport(load)?);
    Ok(config)
}

pub fn client(load: Load) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY)?)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = protocols(load);
    let mut config = ClientConfig::new(Arc::new(crypto::QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(load)?);
    Ok(config)
}

fn protocols(load: Load) -> Vec<Vec<u8>> {
    match load {
        Load::Http3(_) => vec![glommio_h3::ALPN.to_vec()],
        _ => Vec::new(),
    }
}

fn transport(load: Load) -> Result<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(120).try_into()?));
    transport.max_concurrent_uni_streams(VarInt::from_u32(16));
    match load {
        Load::Idle(_) => {
            transport.keep_alive_interval(Some(KEEP_ALIVE));
        }
        Load::Unread => {
            // Room for all of it.
            transport.stream_receive_window(VarInt::from_u32(16 << 20));
            transport.receive_window(VarInt::from_u32(64 << 20));
        }
        _ => {}
    }
    Ok(Arc::new(transport))
}

pub fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    setsockopt(&socket, sockopt::RcvBuf, &(2 << 20))?;
    setsockopt(&socket, sockopt::SndBuf, &(2 << 20))?;
    Ok(socket)
}
