//! The TLS of tests: a certificate of `localhost`, and who trusts it.

use std::error::Error;
use std::sync::Arc;

use futures_rustls::rustls::crypto::CryptoProvider;
use futures_rustls::rustls::pki_types::pem::PemObject;
use futures_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// No secrets: a test authority that is gone, and a certificate of `localhost`.
pub const AUTHORITY: &[u8] = include_bytes!("../../keys/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../../keys/server.pem");
const KEY: &[u8] = include_bytes!("../../keys/server.key");

/// Cryptography without a C compiler. Others are a choice of features of `rustls`.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls_graviola::default_provider())
}

pub fn server_config() -> Result<Arc<ServerConfig>> {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_slice(KEY)?)?;
    Ok(Arc::new(config))
}

/// Trusts `authority` alone, or none if it is empty.
pub fn client_config(authority: &[u8]) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    if !authority.is_empty() {
        roots.add(CertificateDer::from_pem_slice(authority)?)?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// What the provider of this test needs of the processor.
pub fn has_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("pclmulqdq");
    #[cfg(not(target_arch = "x86_64"))]
    let has = true;
    if !has {
        eprintln!("skipped: this processor is too old for the cryptography of this test");
    }
    has
}
