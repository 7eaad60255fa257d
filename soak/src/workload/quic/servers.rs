//! Shards that send back what they are sent.

use std::error::Error;
use std::net::{Ipv4Addr, UdpSocket};

use glommio::channels::oneshot::SharedReceiver;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::{
    Connection, Endpoint, Incoming, RecvStream, SendStream, Shard, Steering, TransportConfig,
    VarInt, crypto,
};

use crate::workload::prelude::*;

/// Serves until the clients are gone.
pub(super) async fn serve(
    checker: &Rc<Checker>,
    shard: Shard,
    stopped: SharedReceiver<()>,
) -> Ended {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let mut config = crypto::server_config(certificates, PrivateKeyDer::from_pem_slice(KEY)?)?;
    config.transport_config(transport()?);
    config.retry_token_lifetime(PATIENCE);
    let steering = shard.steering();
    let endpoint = Endpoint::shard(config, shard)?;
    let accept = async {
        while let Some(incoming) = endpoint.accept().await {
            // A client that gives up in its handshake is the client's failure.
            spawn_local(async { drop(answer(incoming).await) }).detach();
        }
    };
    or(accept, async { drop(stopped.await) }).await;
    endpoint.close(VarInt::from_u32(0), b"over");
    // A connection whose client closed it by packets that were lost stays for three probe timeouts.
    or(endpoint.wait_idle(), sleep(LEAVE)).await;
    let stats = endpoint.stats();
    if steering == Steering::Kernel && stats.passed_on + stats.not_passed_on > 0 {
        complain(checker, format!("steered to the wrong shard: {stats:?}"));
    }
    Ok(())
}

async fn answer(incoming: Incoming) -> Ended {
    if incoming.may_retry() && incoming.remote_address().port().is_multiple_of(4) {
        incoming.retry().map_err(|error| error.to_string())?;
        return Ok(());
    }
    let connection = incoming.await?;
    spawn_local(send_datagrams_back(connection.clone())).detach();
    loop {
        let (send, recv) = connection.accept_bi().await?;
        spawn_local(async { drop(send_back(send, recv).await) }).detach();
    }
}

async fn send_back(mut send: SendStream, mut recv: RecvStream) -> Ended {
    while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
        send.write_all(&chunk.bytes).await?;
    }
    Ok(send.finish()?)
}

async fn send_datagrams_back(connection: Connection) {
    while let Ok(datagram) = connection.read_datagram().await {
        // Whatever comes of it: datagrams may be lost.
        let _ = connection.send_datagram(datagram);
    }
}

const LEAVE: Duration = Duration::from_secs(3);

const CERTIFICATE: &[u8] = include_bytes!("../../../../glommio-quic/tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../../../glommio-quic/tests/keys/server.key");

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
