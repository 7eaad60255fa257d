//! What clients and shards have in common.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use glommio_quic::rustls::pki_types::CertificateDer;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::{TransportConfig, VarInt};

use crate::check::checker::Checker;
use crate::check::invariants::Invariant;

/// How a part of it ended.
pub(super) type Ended<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Enters what must not happen.
pub(super) fn complain(checker: &Checker, what: String) {
    checker.holds(Invariant::BytesWhole, false, || what);
}

pub(super) fn transport() -> Ended<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(PATIENCE.try_into()?));
    transport.keep_alive_interval(Some(Duration::from_secs(15)));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(16));
    Ok(Arc::new(transport))
}

pub(super) fn authority() -> Ended<CertificateDer<'static>> {
    Ok(CertificateDer::from_pem_slice(AUTHORITY)?)
}

pub(super) fn socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
}

/// With a stream, a silent peer, and a client that was asked for its address: on a busy machine, the
/// network of a run loses more than it means to.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

const AUTHORITY: &[u8] = include_bytes!("../../../../glommio-quic/tests/keys/authority.pem");
