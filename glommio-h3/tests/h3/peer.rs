//! A server, and clients, on the loopback interface.

use glommio::timer::timeout;
use glommio::{LocalExecutor, spawn_local};
use glommio_h3::{ALPN, Client, Connections, Incoming};
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::{ClientConfig, Connection, Endpoint, TransportConfig, crypto, rustls};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::service::Service;
use hyper::{Request, Response};
use std::error::Error;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;
pub type BoxError = Box<dyn Error + Send + Sync>;
pub type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// No secrets: a test authority that is gone, and a certificate of `localhost`.
const AUTHORITY: &[u8] = include_bytes!("../../../glommio-quic/tests/keys/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../glommio-quic/tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../../glommio-quic/tests/keys/server.key");

/// Runs a test, with a limit that only a hang exceeds.
pub fn run(test: impl Future<Output = Result>) -> Result {
    LocalExecutor::default().run(async {
        let limited = timeout(Duration::from_secs(120), async { Ok(test.await) }).await;
        limited.map_err(|_| "the test hangs")?
    })
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A server of `connections` by `service`.
pub fn server<S>(connections: &Connections, service: S) -> Result<Endpoint>
where
    S: Service<Request<Incoming>, Response = Response<AnyBody>, Error = BoxError>,
    S: Clone + 'static,
{
    server_at(connections, service, loopback())
}

pub fn server_at<S>(connections: &Connections, service: S, at: SocketAddr) -> Result<Endpoint>
where
    S: Service<Request<Incoming>, Response = Response<AnyBody>, Error = BoxError>,
    S: Clone + 'static,
{
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_slice(KEY)?)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let mut config = crypto::with_crypto(tls.try_into()?)?;
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(5).try_into()?));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, at)?;
    let (accepting, serving) = (endpoint.clone(), connections.clone());
    spawn_local(async move {
        while let Some(incoming) = accepting.accept().await {
            let (serving, service) = (serving.clone(), service.clone());
            spawn_local(async move {
                if let Ok(connection) = incoming.await {
                    // The test sees what its client has of it.
                    drop(serving.serve(connection, service).await);
                }
            })
            .detach();
        }
    })
    .detach();
    Ok(endpoint)
}

pub async fn client(server: &Endpoint) -> Result<Client> {
    client_of(server.local_addr()?).await
}

pub async fn client_of(server: SocketAddr) -> Result<Client> {
    Ok(Client::new(connect(server).await?).await?)
}

/// A connection without HTTP so far.
pub async fn connect(server: SocketAddr) -> Result<Connection> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY)?)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let config = ClientConfig::new(Arc::new(crypto::QuicClientConfig::try_from(tls)?));
    let quic = Endpoint::client(match server.ip().is_loopback() {
        true => loopback(),
        false => (Ipv4Addr::UNSPECIFIED, 0).into(),
    })?;
    Ok(quic.connect_with(config, server, "localhost")?.await?)
}

pub fn full(bytes: impl Into<Bytes>) -> AnyBody {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub fn request(method: &str, path: &str, body: impl Into<Bytes>) -> Result<Request<AnyBody>> {
    let uri = format!("https://localhost{path}");
    Ok(Request::builder()
        .method(method)
        .uri(uri)
        .body(full(body))?)
}

/// `length` bytes that tell where they are.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
