//! Endpoints of one address, in executors of their own.

use crate::peer::{Result, client, loopback, pattern, run, server_config};
use futures_lite::future::{or, zip};
use glommio::{LocalExecutorBuilder, Placement, spawn_local};
use glommio_quic::{Endpoint, EndpointStats, Shard, Steering};
use std::collections::HashSet;
use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;

const SHARDS: usize = 3;
const CONNECTIONS: u64 = 12;

/// Clients move while they send. Returns what the shards have counted.
fn clients_move(steering: Steering) -> Result<Vec<EndpointStats>> {
    let shards = Shard::bind_with(loopback(), SHARDS, steering)?;
    assert!(
        shards.iter().all(|shard| shard.steering() == steering),
        "this kernel has it"
    );
    let address = shards[0].local_addr()?;
    let config = server_config()?;
    let (mut ends, mut threads) = (Vec::new(), Vec::new());
    let (started, start) = mpsc::channel();
    for shard in shards {
        let (end, over) = glommio::channels::oneshot::shared::<()>();
        ends.push(end);
        let (config, started) = (config.clone(), started.clone());
        let executor = LocalExecutorBuilder::new(Placement::Unbound);
        threads.push(executor.spawn(async move || {
            let endpoint = Endpoint::shard(config, shard).map_err(|error| error.to_string())?;
            started.send(()).map_err(|error| error.to_string())?;
            let accept = async {
                while let Some(incoming) = endpoint.accept().await {
                    spawn_local(echo(incoming)).detach();
                }
            };
            or(accept, async { over.await.unwrap_or(()) }).await;
            Ok::<_, String>(endpoint.stats())
        })?);
    }
    for _ in 0..SHARDS {
        start.recv()?;
    }

    let clients = run(async move {
        let mut clients = Vec::new();
        for number in 0..CONNECTIONS {
            clients.push(spawn_local(async move {
                let client = client()?;
                let connection = client.connect(address, "localhost")?.await?;
                for round in 0..5 {
                    let sent = pattern(number * 5 + round, 50_000);
                    let (mut send, mut recv) = connection.open_bi().await?;
                    let write = async {
                        send.write_all(&sent).await?;
                        send.finish()?;
                        Ok::<_, Box<dyn std::error::Error>>(())
                    };
                    let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
                    written?;
                    assert!(read? == sent, "client {number}, round {round}");
                    client.rebind(UdpSocket::bind(loopback())?)?;
                }
                Ok::<_, Box<dyn std::error::Error>>(())
            }));
        }
        for client in clients {
            client.await?;
        }
        Ok(())
    });
    drop(ends);
    let mut stats = Vec::new();
    for thread in threads {
        stats.push(thread.join()??);
    }
    clients?;
    Ok(stats)
}

async fn echo(incoming: glommio_quic::Incoming) -> Result {
    let connection = incoming.await?;
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        let all = recv.read_to_end(1 << 20).await?;
        send.write_all(&all).await?;
        send.finish()?;
    }
}

#[test]
fn the_kernel_steers_by_the_connection_id() -> Result {
    let stats = clients_move(Steering::Kernel)?;
    for shard in &stats {
        assert_eq!(
            (shard.passed_on, shard.not_passed_on, shard.taken_over),
            (0, 0, 0)
        );
    }
    Ok(())
}

#[test]
fn shards_pass_on_what_the_kernel_does_not_steer() -> Result {
    let stats = clients_move(Steering::PassingOn)?;
    let sum = |count: fn(&EndpointStats) -> u64| stats.iter().map(count).sum::<u64>();
    // Sixty moves, each to the right shard by one chance in three.
    assert!(sum(|shard| shard.passed_on) > 0, "{stats:?}");
    // The last of them may find the other shard gone.
    assert!(sum(|shard| shard.taken_over) > 0, "{stats:?}");
    assert!(
        sum(|shard| shard.passed_on) >= sum(|shard| shard.taken_over),
        "{stats:?}"
    );
    Ok(())
}

#[test]
fn how_many_shards_there_can_be() {
    for wrong in [0, Shard::MAX + 1] {
        let error = Shard::bind(loopback(), wrong).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    let all = thread::spawn(|| Shard::bind(loopback(), Shard::MAX).map(|shards| shards.len()));
    assert_eq!(all.join().expect("no panic").expect("sockets"), Shard::MAX);
}

#[test]
fn a_shard_that_is_alone_has_its_port_to_itself() -> Result {
    // With SO_REUSEPORT at the time, two of so many are given one port in all likelihood.
    let shards: Vec<_> = (0..500)
        .map(|_| Shard::bind(loopback(), 1))
        .collect::<std::io::Result<_>>()?;
    let shards: Vec<_> = shards.into_iter().flatten().collect();
    let ports: HashSet<_> =
        (shards.iter().map(|shard| shard.local_addr())).collect::<std::io::Result<_>>()?;
    assert_eq!(ports.len(), shards.len());
    assert!((shards.iter()).all(|shard| shard.steering() == Steering::Kernel));
    Ok(())
}
