//! Two shards that send back what they are sent.

use crate::{Counts, Result, transport};
use futures_lite::future::or;
use glommio::channels::oneshot::{SharedReceiver, SharedSender, shared};
use glommio::{ExecutorJoinHandle, LocalExecutorBuilder, Placement, spawn_local};
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::{
    Connection, Endpoint, EndpointStats, Incoming, RecvStream, SendStream, ServerConfig, Shard,
    Steering, VarInt, crypto,
};
use std::net::{Ipv4Addr, SocketAddr};

const CERTIFICATE: &[u8] = include_bytes!("../../tests/keys/server.pem");
const KEY: &[u8] = include_bytes!("../../tests/keys/server.key");
const SHARDS: usize = 2;

pub struct Servers {
    address: SocketAddr,
    steering: Steering,
    running: Vec<(SharedSender<()>, ExecutorJoinHandle<Result<EndpointStats>>)>,
}

pub fn start() -> Result<Servers> {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let mut config = crypto::server_config(certificates, PrivateKeyDer::from_pem_slice(KEY)?)?;
    config.transport_config(transport()?);
    let shards = Shard::bind((Ipv4Addr::LOCALHOST, 0).into(), SHARDS)?;
    let (address, steering) = (shards[0].local_addr()?, shards[0].steering());
    let mut running = Vec::new();
    for shard in shards {
        // What is lost by the network is lost on purpose.
        socket2::SockRef::from(&shard).set_recv_buffer_size(4 << 20)?;
        let (stop, stopped) = shared();
        let config = config.clone();
        let executor = LocalExecutorBuilder::new(Placement::Unbound);
        running.push((stop, executor.spawn(move || serve(config, shard, stopped))?));
    }
    Ok(Servers {
        address,
        steering,
        running,
    })
}

impl Servers {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends them, when all clients are gone.
    pub fn stop(self, counts: &Counts) -> Result {
        for (stop, executor) in self.running {
            let _ = stop.send(());
            let stats = executor.join()??;
            println!("shard: {stats:?}");
            if self.steering == Steering::Kernel && stats.passed_on + stats.not_passed_on > 0 {
                counts.fail("the kernel has steered packets to the wrong shard");
            }
        }
        Ok(())
    }
}

async fn serve(
    config: ServerConfig,
    shard: Shard,
    stopped: SharedReceiver<()>,
) -> Result<EndpointStats> {
    let endpoint = Endpoint::shard(config, shard)?;
    let accept = async {
        while let Some(incoming) = endpoint.accept().await {
            // A client that gives up in its handshake is the client's failure.
            spawn_local(async { drop(answer(incoming).await) }).detach();
        }
    };
    or(accept, async { drop(stopped.await) }).await;
    endpoint.close(VarInt::from_u32(0), b"over");
    endpoint.wait_idle().await;
    Ok(endpoint.stats())
}

async fn answer(incoming: Incoming) -> Result {
    if incoming.may_retry() && incoming.remote_address().port().is_multiple_of(4) {
        // Some are asked for their address first.
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

async fn send_back(mut send: SendStream, mut recv: RecvStream) -> Result {
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
