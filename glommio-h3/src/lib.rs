//! HTTP/3 on glommio: the crate [`h3`] over connections of `glommio-quic`, with the services and the
//! bodies of [`hyper`].
//!
//! | | |
//! |---|---|
//! | [`Connections`] | serves connections, with limits, contains panics, and finishes in good order |
//! | [`Client`] | sends requests |
//! | [`Incoming`] | bodies that are received |
//! | [`Transport`] | the traits of h3, for what else is built on them |
//!
//! The TLS configurations of both sides have to name the protocol: [`ALPN`].
//!
//! ```
//! use glommio::{LocalExecutor, spawn_local};
//! use glommio_h3::{ALPN, Client, Connections};
//! use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
//! use glommio_quic::{ClientConfig, Endpoint, crypto, rustls};
//! use http_body_util::{BodyExt, Empty, Full};
//! use hyper::body::Bytes;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response};
//! use std::convert::Infallible;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! # let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/../glommio-quic/tests/keys");
//! # let (certificate, key) = (format!("{keys}/server.pem"), format!("{keys}/server.key"));
//! # let authority = format!("{keys}/authority.pem");
//! LocalExecutor::default().run(async {
//!     // `certificate`, `key` and `authority` are paths of PEM files.
//!     let certificates = vec![CertificateDer::from_pem_file(certificate)?];
//!     let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(crypto::provider()))
//!         .with_protocol_versions(&[&rustls::version::TLS13])?
//!         .with_no_client_auth()
//!         .with_single_cert(certificates, PrivateKeyDer::from_pem_file(key)?)?;
//!     tls.alpn_protocols = vec![ALPN.to_vec()];
//!     let config = crypto::with_crypto(tls.try_into()?)?;
//!     let endpoint = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//!     let address = endpoint.local_addr()?;
//!
//!     let connections = Connections::new();
//!     let (accepting, serving) = (endpoint.clone(), connections.clone());
//!     let server = spawn_local(async move {
//!         while let Some(incoming) = accepting.accept().await {
//!             let serving = serving.clone();
//!             spawn_local(async move {
//!                 let service = service_fn(|_| async {
//!                     Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
//!                 });
//!                 if let Ok(connection) = incoming.await {
//!                     drop(serving.serve(connection, service).await);
//!                 }
//!             })
//!             .detach();
//!         }
//!     });
//!
//!     let mut roots = rustls::RootCertStore::empty();
//!     roots.add(CertificateDer::from_pem_file(authority)?)?;
//!     let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(crypto::provider()))
//!         .with_protocol_versions(&[&rustls::version::TLS13])?
//!         .with_root_certificates(roots)
//!         .with_no_client_auth();
//!     tls.alpn_protocols = vec![ALPN.to_vec()];
//!     let config = ClientConfig::new(Arc::new(crypto::QuicClientConfig::try_from(tls)?));
//!     let quic = Endpoint::client("127.0.0.1:0".parse()?)?;
//!     let client = Client::new(quic.connect_with(config, address, "localhost")?.await?).await?;
//!     let request = Request::get("https://localhost/").body(Empty::<Bytes>::new())?;
//!     let response = client.send(request).await?;
//!     assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
//!
//!     // No more connections; those that there are finish their requests.
//!     server.cancel().await;
//!     connections.shutdown_within(Duration::from_secs(10)).await;
//!     endpoint.wait_idle().await;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod body;
mod client;
mod error;
mod server;
mod transport;

pub use body::Incoming;
pub use client::Client;
pub use error::Error;
pub use h3;
pub use server::{Connections, ConnectionsBuilder};
pub use transport::{BidiStream, RecvStream, SendStream, Transport};

use hyper::header::HeaderValue;

/// The name of the protocol, for `alpn_protocols` of the TLS configurations.
pub const ALPN: &[u8] = b"h3";

/// The value of the header `alt-svc` by which a server of HTTP/1 or HTTP/2 tells clients that it
/// serves HTTP/3 at this UDP port, for a day.
pub fn alt_svc(port: u16) -> HeaderValue {
    let text = format!("h3=\":{port}\"; ma=86400");
    HeaderValue::try_from(text).expect("it is of visible characters")
}
