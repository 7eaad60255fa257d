//! Clients that send streams, compare what comes back, and move.

use crate::{Counts, Options, Result, authority, socket, transport};
use futures_lite::future::{or, zip};
use glommio::timer::{sleep, timeout};
use glommio::{GlommioError, spawn_local};
use glommio_quic::rustls::RootCertStore;
use glommio_quic::{Connection, Endpoint, VarInt, crypto};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::generator::{Rng, stream};

const ENDPOINTS: usize = 100;
/// Handshakes at a time, of one endpoint.
const HANDSHAKES: usize = 2;
const LONGEST: usize = 20_000;
/// Between the streams of a connection, at most.
const PAUSE: Duration = Duration::from_secs(90);
/// Between the moves of an endpoint, at most.
const STAY: Duration = Duration::from_secs(120);
const PATIENCE: Duration = Duration::from_secs(120);

pub async fn run(options: Options, server: SocketAddr, counts: Arc<Counts>) -> Result {
    let mut roots = RootCertStore::empty();
    roots.add(authority()?)?;
    let mut config = crypto::client_config(roots)?;
    config.transport_config(transport()?);

    let mut endpoints = Vec::new();
    for number in 0..ENDPOINTS {
        let endpoint = Endpoint::new(crypto::endpoint_config()?, None, socket()?)?;
        endpoint.set_default_client_config(config.clone());
        let share = (options.connections + number) / ENDPOINTS;
        let seed = options.seed ^ ((number as u64) << 32);
        let one = one_endpoint(
            endpoint.clone(),
            server,
            share,
            seed,
            options.time,
            counts.clone(),
        );
        endpoints.push((endpoint, spawn_local(one)));
    }
    for (endpoint, one) in endpoints {
        one.await?;
        endpoint.close(VarInt::from_u32(0), b"over");
        endpoint.wait_idle().await;
        if endpoint.open_connections() != 0 {
            counts.fail("connections are left");
        }
    }
    Ok(())
}

async fn one_endpoint(
    endpoint: Endpoint,
    server: SocketAddr,
    share: usize,
    seed: u64,
    time: Duration,
    counts: Arc<Counts>,
) -> Result {
    let mut connections = Vec::new();
    while connections.len() < share {
        let batch = HANDSHAKES.min(share - connections.len());
        let handshakes = (0..batch).map(|_| connect(endpoint.clone(), server));
        let handshakes: Vec<_> = handshakes.map(spawn_local).collect();
        for handshake in handshakes {
            connections.push(handshake.await?);
            Counts::add(&counts.connected, 1);
        }
    }

    let until = Instant::now() + time;
    let mut tasks = Vec::new();
    for (number, connection) in connections.into_iter().enumerate() {
        let rng = stream(seed, number as u64);
        tasks.push(spawn_local(one_connection(
            connection,
            rng,
            until,
            counts.clone(),
        )));
    }
    let all = async {
        for task in tasks {
            task.await;
        }
        Ok(())
    };
    or(all, moves(&endpoint, stream(seed, u64::MAX), &counts)).await
}

async fn connect(endpoint: Endpoint, server: SocketAddr) -> Result<Connection> {
    Ok(endpoint.connect(server, "localhost")?.await?)
}

async fn moves(endpoint: &Endpoint, mut rng: Rng, counts: &Counts) -> Result {
    loop {
        sleep(up_to(&mut rng, STAY)).await;
        endpoint.rebind(socket()?)?;
        Counts::add(&counts.moves, 1);
    }
}

async fn one_connection(connection: Connection, mut rng: Rng, until: Instant, counts: Arc<Counts>) {
    let datagrams = count_datagrams(connection.clone(), counts.clone());
    let datagrams = spawn_local(datagrams);
    while Instant::now() < until {
        sleep(up_to(&mut rng, PAUSE)).await;
        let mut sent = vec![0; rng.usize(1..LONGEST)];
        rng.fill(&mut sent);
        let _ = connection.send_datagram(sent[..sent.len().min(1000)].to_vec().into());
        let limited = timeout(PATIENCE, async {
            Ok::<_, GlommioError<()>>(there_and_back(&connection, &sent).await)
        });
        match limited.await {
            Ok(Ok(())) => {
                Counts::add(&counts.streams, 1);
                Counts::add(&counts.bytes, 2 * sent.len() as u64);
            }
            Ok(Err(error)) => counts.fail(&error.to_string()),
            Err(error) => counts.fail(&error.to_string()),
        }
    }
    if let Some(error) = connection.close_reason() {
        counts.fail(&error.to_string());
    }
    datagrams.cancel().await;
}

async fn there_and_back(connection: &Connection, sent: &[u8]) -> Result {
    let (mut send, mut recv) = connection.open_bi().await?;
    let write = async {
        send.write_all(sent).await?;
        send.finish()?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
    written?;
    match read? == sent {
        true => Ok(()),
        false => Err(format!("{} bytes have come back different", sent.len()).into()),
    }
}

async fn count_datagrams(connection: Connection, counts: Arc<Counts>) {
    while connection.read_datagram().await.is_ok() {
        Counts::add(&counts.datagrams, 1);
    }
}

fn up_to(rng: &mut Rng, most: Duration) -> Duration {
    most.mul_f64(rng.f64())
}
