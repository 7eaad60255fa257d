//! Endpoints of one address, in executors of their own.

use crate::peer::{Result, client, impatient, loopback, pattern, run, server, server_config};
use futures_lite::future::{or, poll_once, zip};
use glommio::timer::sleep;
use glommio::{
    LocalExecutorBuilder, LocalExecutorPoolBuilder, Placement, PoolPlacement, ShardExitPolicy,
    spawn_local,
};
use glommio_quic::crypto::ResetKey;
use glommio_quic::{
    Connection, ConnectionError, Endpoint, EndpointStats, ServerConfig, Shard, ShardOptions,
    Shards, Steering, VarInt, crypto,
};
use std::collections::HashSet;
use std::error::Error;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

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

/// What a server answers carries the ID that the shard has chosen, in packets of all kinds.
#[test]
fn an_endpoint_of_each_shard_connects() -> Result {
    for steering in [Steering::Kernel, Steering::PassingOn] {
        run(async move {
            let server = server()?;
            let shards = Shard::bind_with(loopback(), SHARDS, steering)?;
            let shards: Vec<_> = (shards.into_iter())
                .map(|shard| Endpoint::shard(server_config()?, shard).map_err(Into::into))
                .collect::<Result<_>>()?;
            for shard in &shards {
                let config = impatient(Duration::from_secs(10))?;
                let connecting = shard.connect_with(config, server.local_addr()?, "localhost")?;
                let incoming = server.accept().await.ok_or("closed")?;
                let (accepted, connected) =
                    zip(incoming.into_future(), connecting.into_future()).await;
                connected?;
                accepted?;
            }
            let passed_on: u64 = shards.iter().map(|shard| shard.stats().passed_on).sum();
            assert_eq!(passed_on > 0, steering == Steering::PassingOn);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn shards_with_settings_have_these_and_the_ids_of_shards() -> Result {
    run(async {
        let shards = Shard::bind(loopback(), SHARDS)?;
        let address = shards[0].local_addr()?;
        let mut settings = crypto::endpoint_config()?;
        // A draft.
        settings.supported_versions(vec![0xff00_001d]);
        let _shards = (shards.into_iter())
            .map(|shard| {
                let server = Some(server_config()?);
                Ok(Endpoint::shard_with(settings.clone(), server, shard)?)
            })
            .collect::<Result<Vec<_>>>()?;
        let refused = client()?.connect(address, "localhost")?.await;
        assert_eq!(refused.map(drop), Err(ConnectionError::VersionMismatch));
        Ok(())
    })
}

#[test]
fn shards_at_a_used_address_are_an_error_unless_they_share_it() -> Result {
    let in_use = std::io::ErrorKind::AddrInUse;
    for count in [1, 3] {
        let shards = Shard::bind(loopback(), count)?;
        let address = shards[0].local_addr()?;
        for count in [1, 2] {
            assert_eq!(Shard::bind(address, count).unwrap_err().kind(), in_use);
        }
        drop(shards);
        drop(Shard::bind(address, count)?);
    }
    let shared = || ShardOptions::new().share_address(true);
    let one = shared().bind(loopback(), 2)?;
    let two = shared().first_number(2).bind(one.local_addr(), 2)?;
    assert_eq!(two.take()?.number(), 2);
    let error = ShardOptions::new().bind(one.local_addr(), 2);
    assert_eq!(error.unwrap_err().kind(), in_use);
    let too_many = shared().first_number(255).bind(loopback(), 2);
    assert_eq!(
        too_many.unwrap_err().kind(),
        std::io::ErrorKind::InvalidInput
    );
    Ok(())
}

#[test]
fn shards_that_take_over_an_address_leave_the_connections_of_the_others_alone() -> Result {
    run(async {
        let key = ResetKey::random()?;
        let shared = || {
            ShardOptions::new()
                .share_address(true)
                .reset_key(key.clone())
        };
        let config = server_config()?;
        let endpoints = |shards: &Shards| -> Result<Vec<Endpoint>> {
            (0..2)
                .map(|_| Ok(Endpoint::shard(config.clone(), shards.take()?)?))
                .collect()
        };
        let serve = |endpoints: &[Endpoint]| {
            for endpoint in endpoints {
                let endpoint = endpoint.clone();
                spawn_local(async move {
                    while let Some(incoming) = endpoint.accept().await {
                        spawn_local(echo(incoming)).detach();
                    }
                })
                .detach();
            }
        };
        let old = shared().bind(loopback(), 2)?;
        let address = old.local_addr();
        let old = endpoints(&old)?;
        serve(&old);
        let clients = (0..8).map(|_| client()).collect::<Result<Vec<_>>>()?;
        let mut connections = Vec::new();
        for client in &clients {
            connections.push(client.connect(address, "localhost")?.await?);
        }
        let new = endpoints(&shared().first_number(2).bind(address, 2)?)?;
        serve(&new);
        for connection in &connections {
            assert_eq!(asked(connection, b"still here").await?, b"still here");
        }
        for endpoint in &old {
            endpoint.close(VarInt::from_u32(0), b"");
            endpoint.wait_idle().await;
        }
        drop(old);
        for client in &clients {
            let connection = client.connect(address, "localhost")?.await?;
            assert_eq!(asked(&connection, b"a new one").await?, b"a new one");
        }
        Ok(())
    })
}

async fn asked(connection: &Connection, question: &[u8]) -> Result<Vec<u8>> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(question).await?;
    send.finish()?;
    Ok(recv.read_to_end(question.len()).await?)
}

/// A shard of `shards` in an executor that ends when it is told.
struct Running {
    end: glommio::channels::oneshot::SharedSender<()>,
    thread: glommio::ExecutorJoinHandle<std::result::Result<EndpointStats, String>>,
    accepted: Arc<AtomicUsize>,
}

impl Running {
    fn start(shards: &Shards, config: &ServerConfig) -> Result<Running> {
        let (end, over) = glommio::channels::oneshot::shared::<()>();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (shards, config, count) = (shards.clone(), config.clone(), Arc::clone(&accepted));
        let executor = LocalExecutorBuilder::new(Placement::Unbound);
        let thread = executor.spawn(async move || {
            let shard = shards.take().map_err(|error| error.to_string())?;
            let endpoint = Endpoint::shard(config, shard).map_err(|error| error.to_string())?;
            let accept = async {
                while let Some(incoming) = endpoint.accept().await {
                    count.fetch_add(1, Ordering::Relaxed);
                    spawn_local(echo(incoming)).detach();
                }
            };
            or(accept, async { over.await.unwrap_or(()) }).await;
            Ok::<_, String>(endpoint.stats())
        })?;
        Ok(Running {
            end,
            thread,
            accepted,
        })
    }

    fn end(self) -> Result<EndpointStats> {
        drop(self.end);
        Ok(self.thread.join()??)
    }

    fn has_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed) > 0
    }
}

#[test]
fn clients_of_a_dead_shard_hear_of_it_and_it_is_made_again() -> Result {
    let shards = ShardOptions::new().bind(loopback(), SHARDS)?;
    let (address, config) = (shards.local_addr(), server_config()?);
    let mut running = (0..SHARDS)
        .map(|_| Running::start(&shards, &config))
        .collect::<Result<Vec<_>>>()?;
    run(async move {
        let mut connections = Vec::new();
        let mut connect = async |running: &[Running]| {
            while !running.iter().all(Running::has_accepted) {
                let client = client()?;
                // A silent end would be longer than the test.
                let config = impatient(Duration::from_secs(600))?;
                let connection = client.connect_with(config, address, "localhost")?.await?;
                asked(&connection, b"hello").await?;
                connections.push((client, connection));
            }
            Ok::<_, Box<dyn Error>>(std::mem::take(&mut connections))
        };
        let before = connect(&running).await?;
        assert!(shards.take().is_err(), "all are taken");
        // In the thread of the test, as no other is to be blocked.
        let dead = running.remove(0);
        let died_with = dead.accepted.load(Ordering::Relaxed);
        dead.end()?;

        let mut lost = 0;
        for (_, connection) in &before {
            match asked(connection, &[7; 5000]).await {
                Ok(answer) => assert_eq!(answer, [7; 5000]),
                Err(_) => {
                    assert_eq!(connection.close_reason(), Some(ConnectionError::Reset));
                    lost += 1;
                }
            }
        }
        assert_eq!(lost, died_with);

        running.push(Running::start(&shards, &config)?);
        let after = connect(&running).await?;
        for (client, connection) in before.iter().chain(&after) {
            client.rebind(UdpSocket::bind(loopback())?)?;
            if connection.close_reason().is_none() {
                for _ in 0..20 {
                    assert_eq!(asked(connection, b"moved").await?, b"moved");
                }
            }
        }
        drop((before, after));
        let again = running.pop().ok_or("it was added")?.end()?;
        // But for what came before the kernel was told.
        assert!(again.received >= 20, "{again:?}");
        assert!(again.passed_on < 10 && again.taken_over < 10, "{again:?}");
        running
            .into_iter()
            .try_for_each(|shard| shard.end().map(drop))
    })
}

/// Its clients hear of it, and further ones come to it again.
#[test]
fn a_pool_makes_a_shard_again_that_has_failed() -> Result {
    const FAIL: usize = 1;
    const END: usize = 2;
    #[derive(Default)]
    struct OfShard {
        order: AtomicUsize,
        started: AtomicUsize,
        accepted: AtomicUsize,
    }
    let shards = ShardOptions::new().bind(loopback(), 2)?;
    let (address, config) = (shards.local_addr(), server_config()?);
    let all: Arc<[OfShard; 2]> = Arc::default();
    let ours = Arc::clone(&all);
    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
        .on_shard_end(ShardExitPolicy::Restart { per_minute: 9 })
        .try_on_all_shards(async move || {
            let shard = shards.take().map_err(|error| error.to_string())?;
            let this = &ours[shard.number()];
            let endpoint = Endpoint::shard(config, shard).map_err(|error| error.to_string())?;
            this.started.fetch_add(1, Ordering::Relaxed);
            let accept = async {
                while let Some(incoming) = endpoint.accept().await {
                    this.accepted.fetch_add(1, Ordering::Relaxed);
                    spawn_local(echo(incoming)).detach();
                }
                Ok(())
            };
            let obey = async {
                loop {
                    match this.order.swap(0, Ordering::Relaxed) {
                        FAIL => return Err("it was told to fail".to_owned()),
                        END => return Ok(()),
                        _ => sleep(Duration::from_millis(1)).await,
                    }
                }
            };
            or(accept, obey).await
        })?;
    run(async move {
        let connect = async || {
            let mut connections = Vec::new();
            while (all.iter()).any(|it| it.accepted.load(Ordering::Relaxed) == 0) {
                let client = client()?;
                // A silent end would be longer than the test.
                let config = impatient(Duration::from_secs(600))?;
                let connection = client.connect_with(config, address, "localhost")?.await?;
                asked(&connection, b"hello").await?;
                connections.push((client, connection));
            }
            Ok::<_, Box<dyn Error>>(connections)
        };
        let before = connect().await?;
        let died_with = all[0].accepted.swap(0, Ordering::Relaxed);
        all[0].order.store(FAIL, Ordering::Relaxed);
        while all[0].started.load(Ordering::Relaxed) < 2 {
            sleep(Duration::from_millis(1)).await;
        }
        let mut lost = 0;
        for (_, connection) in &before {
            if asked(connection, &[7; 5000]).await.is_err() {
                assert_eq!(connection.close_reason(), Some(ConnectionError::Reset));
                lost += 1;
            }
        }
        assert_eq!(lost, died_with);
        drop(connect().await?);
        for shard in &*all {
            shard.order.store(END, Ordering::Relaxed);
        }
        Ok(())
    })?;
    for ended in pool.join_all() {
        ended??;
    }
    Ok(())
}

#[test]
fn an_endpoint_that_is_restarted_with_its_key_resets_the_connections_of_before() -> Result {
    let key = ResetKey::random()?;
    let config = server_config()?;
    let start = |address| -> Result<_> {
        let (end, over) = glommio::channels::oneshot::shared::<()>();
        let socket = UdpSocket::bind(address)?;
        let address = socket.local_addr()?;
        let (key, config) = (key.clone(), config.clone());
        let executor = LocalExecutorBuilder::new(Placement::Unbound);
        let thread = executor.spawn(async move || {
            let endpoint = crypto::endpoint_config_with(key);
            let endpoint =
                Endpoint::new(endpoint, Some(config), socket).map_err(|error| error.to_string())?;
            let accept = async {
                while let Some(incoming) = endpoint.accept().await {
                    spawn_local(echo(incoming)).detach();
                }
            };
            or(accept, async { over.await.unwrap_or(()) }).await;
            Ok::<_, String>(())
        })?;
        Ok((address, end, thread))
    };
    // An address at which no other test takes the port meanwhile.
    let (address, end, thread) = start("127.0.0.2:0".parse()?)?;
    run(async move {
        let client = client()?;
        let config = impatient(Duration::from_secs(600))?;
        let connection = client.connect_with(config, address, "localhost")?.await?;
        asked(&connection, b"hello").await?;
        drop(end);
        thread.join()??;
        let (_, end, thread) = start(address)?;
        assert!(asked(&connection, &[7; 5000]).await.is_err());
        assert_eq!(connection.close_reason(), Some(ConnectionError::Reset));
        drop(end);
        thread.join()??;
        Ok(())
    })
}

/// What is for a shard of another process is not to be reset: that may be alive.
#[test]
fn only_connections_of_the_own_shards_are_reset() -> Result {
    run(async {
        let shards = ShardOptions::new().first_number(3).bind(loopback(), 1)?;
        let _endpoint = Endpoint::shard(server_config()?, shards.take()?)?;
        let unknown = glommio::net::UdpSocket::bind(loopback())?;
        unknown.connect(shards.local_addr()).await?;
        for number in [4, 2, 3] {
            let mut packet = [9; 1000];
            packet[..2].copy_from_slice(&[0x40, number]);
            unknown.send(&packet).await?;
            // Resets are no more frequent than one in a millisecond.
            glommio::timer::sleep(Duration::from_millis(20)).await;
        }
        let mut answer = [0; 1000];
        assert!(unknown.recv(&mut answer).await? < 1000);
        assert!(
            poll_once(unknown.recv(&mut answer)).await.is_none(),
            "another answer"
        );
        Ok(())
    })
}

#[test]
fn shards_that_end_and_are_made_again_at_the_same_time_are_each_found_by_the_kernel() -> Result {
    let shards = ShardOptions::new().bind(loopback(), 4)?;
    let sender = UdpSocket::bind(loopback())?;
    for _ in 0..100 {
        let taken: Vec<Shard> = thread::scope(|scope| {
            let take = || {
                for _ in 0..30 {
                    drop(shards.take()?);
                }
                shards.take()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            let taken = threads.into_iter().map(|it| it.join().expect("no panic"));
            taken.collect::<std::io::Result<_>>()
        })?;
        for shard in &taken {
            assert_eq!(shard.steering(), Steering::Kernel);
            let socket = UdpSocket::from(shard.as_fd().try_clone_to_owned()?);
            socket.set_read_timeout(Some(Duration::from_secs(10)))?;
            let packet = [0x40, u8::try_from(shard.number())?, 7];
            sender.send_to(&packet, shards.local_addr())?;
            let mut read = [0; 10];
            assert_eq!(socket.recv(&mut read)?, 3, "shard {}", shard.number());
            assert_eq!(read[..3], packet);
        }
    }
    Ok(())
}
