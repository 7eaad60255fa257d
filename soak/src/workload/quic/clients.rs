//! Clients that send streams and datagrams, compare what comes back, and move.

use glommio::sync::Semaphore;
use glommio::timer::timeout;
use glommio_quic::rustls::RootCertStore;
use glommio_quic::{Connection, Endpoint, VarInt, crypto};
use support::lossy_proxy::Proxy;

use super::servers::{Ended, PATIENCE, authority, complain, socket, transport};
use crate::workload::prelude::*;

/// What all of them know.
#[derive(Clone)]
struct Clients {
    checker: Rc<Checker>,
    server: SocketAddr,
    /// Closed when the run drains, which wakes all that pause.
    pauses: Rc<Semaphore>,
}

/// Opens all connections and uses them until the run drains.
pub(super) async fn run(
    checker: &Rc<Checker>,
    proxy: &Proxy,
    seed: u64,
    connections: usize,
) -> Ended {
    let clients = Clients {
        checker: Rc::clone(checker),
        server: proxy.address(),
        pauses: Rc::new(Semaphore::new(0)),
    };
    let to_come = &checker.stats.gauges.quic_connections_to_come;
    to_come.store(connections as u64, Ordering::Relaxed);
    let mut roots = RootCertStore::empty();
    roots.add(authority()?)?;
    let mut config = crypto::client_config(roots)?;
    config.transport_config(transport()?);

    let mut endpoints = Vec::new();
    for number in 0..connections.div_ceil(SHARE) {
        let endpoint = Endpoint::new(crypto::endpoint_config()?, None, socket()?)?;
        endpoint.set_default_client_config(config.clone());
        let share = SHARE.min(connections - number * SHARE);
        let rng = stream(seed, STREAM + number as u64);
        let one = clients.clone().endpoint(endpoint.clone(), share, rng);
        endpoints.push((endpoint, spawn_local(one)));
    }
    checker.drained().await;
    clients.pauses.close();
    let mut closing = Vec::new();
    for (endpoint, one) in endpoints {
        one.await?;
        endpoint.close(VarInt::from_u32(0), b"over");
        closing.push(endpoint);
    }
    for endpoint in closing {
        endpoint.wait_idle().await;
        let left = endpoint.open_connections() as u64;
        checker.check(Invariant::BytesWhole, left, || {
            format!("{left} connections are left")
        });
    }
    let gauges = &checker.stats.gauges;
    add(&gauges.datagrams_sent, proxy.passed() + proxy.lost());
    add(&gauges.datagrams_lost, proxy.lost());
    Ok(())
}

impl Clients {
    async fn endpoint(self, endpoint: Endpoint, share: usize, mut rng: Rng) -> Ended {
        let mut connections = Vec::new();
        while connections.len() < share && !self.checker.control.is_draining() {
            let batch = HANDSHAKES.min(share - connections.len());
            let handshakes = (0..batch).map(|_| connect(endpoint.clone(), self.server));
            let handshakes: Vec<_> = handshakes.map(spawn_local).collect();
            for handshake in handshakes {
                let connection = handshake.await?;
                let gauges = &self.checker.stats.gauges;
                bump(&gauges.quic_connections);
                let to_come = &gauges.quic_connections_to_come;
                to_come.fetch_sub(1, Ordering::Relaxed);
                let rng = rng.fork();
                connections.push(spawn_local(self.clone().connection(connection, rng)));
            }
        }
        let all = async {
            for connection in connections {
                connection.await;
            }
            Ok(())
        };
        or(all, self.moves(&endpoint, &mut rng)).await
    }

    async fn moves(&self, endpoint: &Endpoint, rng: &mut Rng) -> Ended {
        loop {
            sleep(rng.uniform(STAY_MIN, STAY_MAX)).await;
            endpoint.rebind(socket()?)?;
            bump(&self.checker.stats.gauges.quic_moves);
        }
    }

    /// Stream after stream, until the run drains.
    async fn connection(self, connection: Connection, mut rng: Rng) {
        let datagrams = spawn_local(take_datagrams(connection.clone()));
        while !self.checker.control.is_draining() {
            let mut sent = vec![0; rng.usize(1..LONGEST)];
            rng.fill(&mut sent);
            let datagram = sent[..sent.len().min(DATAGRAM)].to_vec();
            // It may be lost.
            let _ = connection.send_datagram(datagram.into());
            let limited = timeout(PATIENCE, async {
                Ok::<_, GlommioError<()>>(there_and_back(&connection, &sent).await)
            });
            match limited.await {
                Ok(Ok(is_whole)) => {
                    self.checker.holds(Invariant::BytesWhole, is_whole, || {
                        format!("{} bytes of a stream came back different", sent.len())
                    });
                    bump(&self.checker.stats.gauges.quic_streams);
                    let delivered = 2 * sent.len() as u64;
                    add(&self.checker.stats.gauges.bytes_delivered, delivered);
                }
                Ok(Err(error)) => {
                    complain(&self.checker, format!("a stream: {error}"));
                    break;
                }
                Err(_) => {
                    let what = format!("no stream back in {PATIENCE:?}: {:?}", connection.stats());
                    complain(&self.checker, what);
                    break;
                }
            }
            let pause = sleep(rng.uniform(Duration::ZERO, PAUSE_MAX));
            or(pause, async { drop(self.pauses.acquire(1).await) }).await;
        }
        if let Some(error) = connection.close_reason() {
            complain(&self.checker, format!("a connection was lost: {error}"));
        }
        datagrams.cancel().await;
    }
}

async fn connect(endpoint: Endpoint, server: SocketAddr) -> Ended<Connection> {
    Ok(endpoint.connect(server, "localhost")?.await?)
}

/// Whether what comes back is what was sent.
async fn there_and_back(connection: &Connection, sent: &[u8]) -> Ended<bool> {
    let (mut send, mut recv) = connection.open_bi().await?;
    let write = async {
        send.write_all(sent).await?;
        send.finish()?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
    written?;
    Ok(read? == sent)
}

async fn take_datagrams(connection: Connection) {
    while connection.read_datagram().await.is_ok() {}
}

/// Connections of an endpoint.
pub(super) const SHARE: usize = 100;

/// At a time, of one endpoint.
const HANDSHAKES: usize = 2;

/// The longest stream, in bytes.
const LONGEST: usize = 20_000;

const DATAGRAM: usize = 1000;

/// Between the streams of a connection.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Between the moves of an endpoint. No connection may move before its handshake is confirmed (RFC 9000,
/// section 9): by then the first stream of each is over.
const STAY_MIN: Duration = Duration::from_secs(10);
const STAY_MAX: Duration = Duration::from_secs(60);

/// Apart from all others that draw from the seed.
const STREAM: u64 = 1 << 51;
