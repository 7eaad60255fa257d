//! TLS by tokio-rustls, on our sockets, and a client of HTTP that speaks it.

use std::net::SocketAddr;
use std::sync::Arc;

use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;
use glommio_tokio::compat::FuturesAsyncReadCompatExt;
use glommio_tokio::with_tokio;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::{Result, http};

const AUTHORITY: &[u8] = include_bytes!("../../../examples/tests/keys/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../../examples/tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../../examples/tests/keys/server.key");

pub fn identity() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    Ok((certificates, PrivateKeyDer::from_pem_slice(KEY)?))
}

fn server() -> Result<TlsAcceptor> {
    let (certificates, key) = identity()?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

pub fn client() -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY)?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// On both sides without a tokio runtime.
pub async fn tokio_rustls() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let acceptor = server()?;
    spawn_local(async move {
        let stream = listener.accept().await?.compat();
        let mut stream = acceptor.accept(stream).await?;
        let (mut reader, mut writer) = tokio::io::split(&mut stream);
        tokio::io::copy(&mut reader, &mut writer).await?;
        stream.shutdown().await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    })
    .detach();
    let stream = TcpStream::connect(address).await?.compat();
    let connector = TlsConnector::from(Arc::new(client()?));
    let mut stream = connector
        .connect(ServerName::try_from("localhost")?, stream)
        .await?;
    let sent = vec![7; 100_000];
    let (mut reader, mut writer) = tokio::io::split(&mut stream);
    let write = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await
    };
    let mut received = Vec::new();
    let (_, read) = tokio::try_join!(write, reader.read_to_end(&mut received))?;
    assert!(received == sent, "the bytes differ");
    Ok(format!("{read} bytes"))
}

/// The server is hyper over TLS on our sockets.
pub async fn reqwest() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address: SocketAddr = listener.local_addr()?;
    let acceptor = server()?;
    spawn_local(async move {
        let service = TowerToHyperService::new(http::app());
        while let Ok(stream) = listener.accept().await {
            let (acceptor, service) = (acceptor.clone(), service.clone());
            spawn_local(async move {
                let stream = acceptor.accept(stream.compat()).await?;
                let http = http1::Builder::new();
                http.serve_connection(TokioIo::new(stream), service).await?;
                Ok::<_, Box<dyn std::error::Error>>(())
            })
            .detach();
        }
    })
    .detach();
    let config = client()?;
    let answer = with_tokio(async move {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .resolve("localhost", address)
            .build()?;
        let url = format!("https://localhost:{}/", address.port());
        client.get(url).send().await?.text().await
    });
    Ok(answer.await?)
}
