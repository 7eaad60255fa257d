//! Programs that take over an address from each other.

use crate::peer::{Result, client, loopback, run, server_config};
use glommio::spawn_local;
use glommio::timer::sleep;
use glommio_quic::crypto::ResetKey;
use glommio_quic::{Connection, Endpoint, Incoming, ServerConfig, ShardOptions, VarInt};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

const SHARDS: usize = 3;

/// The endpoints of one program, which serve.
fn program(
    number: usize,
    key: &ResetKey,
    config: &ServerConfig,
    address: SocketAddr,
) -> Result<Vec<Endpoint>> {
    let options = ShardOptions::new().share_address(true);
    let options = options.reset_key(key.clone());
    let options = options.first_number(number * SHARDS);
    let shards = options.bind(address, SHARDS)?;
    let mut endpoints = Vec::new();
    for _ in 0..SHARDS {
        let endpoint = Endpoint::shard(config.clone(), shards.take()?)?;
        let serving = endpoint.clone();
        spawn_local(async move {
            while let Some(incoming) = serving.accept().await {
                spawn_local(async { drop(echo(incoming).await) }).detach();
            }
        })
        .detach();
        endpoints.push(endpoint);
    }
    Ok(endpoints)
}

async fn echo(incoming: Incoming) -> Result {
    let connection = incoming.await?;
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        send.write_all(&recv.read_to_end(100).await?).await?;
        send.finish()?;
    }
}

/// Each with its endpoint.
type Clients = Vec<(Endpoint, Connection)>;

async fn ask(clients: &[(Endpoint, Connection)]) -> Result {
    for (_, connection) in clients {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(b"there").await?;
        send.finish()?;
        assert_eq!(recv.read_to_end(100).await?, b"there");
    }
    Ok(())
}

fn passed_on(endpoints: &[Endpoint]) -> u64 {
    endpoints.iter().map(|it| it.stats().passed_on).sum()
}

/// How many sockets the kernel has at `address`.
fn sockets(address: SocketAddr) -> Result<usize> {
    let port = format!(":{:04X} 00000000:", address.port());
    let all = fs::read_to_string("/proc/net/udp")?;
    Ok(all.lines().filter(|line| line.contains(&port)).count())
}

#[test]
fn programs_that_take_over_in_turn_keep_their_connections_and_are_steered_to() -> Result {
    run(async {
        let (key, config) = (ResetKey::random()?, server_config()?);
        let mut address = loopback();
        let mut before: Option<(Vec<Endpoint>, Clients)> = None;
        for number in [0, 1, 0, 1] {
            let new = program(number, &key, &config, address)?;
            address = new[0].local_addr()?;
            let mut clients = Vec::new();
            for _ in 0..12 {
                let client = client()?;
                let connection = client.connect(address, "localhost")?.await?;
                clients.push((client, connection));
            }
            ask(&clients).await?;
            let accepted: u64 = new.iter().map(|it| it.stats().accepted).sum();
            assert_eq!(accepted, 12, "new clients come to the new program");
            if let Some((old, clients_of_old)) = before.take() {
                let was_passed_on = passed_on(&old);
                ask(&clients_of_old).await?;
                assert_eq!(passed_on(&old), was_passed_on);
                assert_eq!(passed_on(&new), 0);
                for endpoint in &old {
                    endpoint.close(VarInt::from_u32(0), b"");
                    endpoint.wait_idle().await;
                    ask(&clients).await?;
                }
                assert_eq!(
                    passed_on(&new),
                    0,
                    "the sockets of the old one are at their places"
                );
                drop((old, clients_of_old));
                while sockets(address)? > SHARDS {
                    sleep(Duration::from_millis(1)).await;
                }
                while passed_on(&new) < 16 {
                    ask(&clients).await?;
                }
                // What was on its way.
                ask(&clients).await?;
                let was_passed_on = passed_on(&new);
                for _ in 0..10 {
                    ask(&clients).await?;
                }
                assert_eq!(passed_on(&new), was_passed_on, "the kernel steers again");
            }
            before = Some((new, clients));
        }
        Ok(())
    })
}
