//! The certificate of the server, and the protocols that are offered with it.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use futures_rustls::TlsAcceptor;
use glommio_h3::ALPN;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::rustls::version::TLS13;
use glommio_quic::{crypto, rustls};

/// TLS over TCP, and that of QUIC.
#[derive(Clone)]
pub struct Tls {
    pub tcp: TlsAcceptor,
    pub quic: glommio_quic::ServerConfig,
}

impl Tls {
    /// With what these PEM files have.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, Box<dyn Error>> {
        let certificates: Vec<_> =
            CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_file(key)?;
        let offering = |protocols: &[&[u8]]| {
            // Cryptography without a C compiler. Others are a choice of features of `rustls`.
            let provider = Arc::new(crypto::provider());
            let mut config = rustls::ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&TLS13])?
                .with_no_client_auth()
                .with_single_cert(certificates.clone(), key.clone_key())?;
            config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
            Ok::<_, rustls::Error>(config)
        };
        Ok(Tls {
            tcp: Arc::new(offering(&[b"h2", b"http/1.1"])?).into(),
            quic: crypto::with_crypto(offering(&[ALPN])?.try_into()?)?,
        })
    }
}
