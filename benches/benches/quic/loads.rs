//! What server and clients do: a part of the module of each library, whose names it uses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::{Connection, Endpoint, VarInt, block_on, detach, endpoint, sleep, spawn};
use crate::clock::Clock;
use crate::settings::{self, PIECE};
use crate::{Load, Result, flood};

/// How long idle connections are watched.
const WATCHED: Duration = Duration::from_secs(20);

/// Reads streams to their end, and says so.
pub fn serve(load: Load, address: &mpsc::Sender<SocketAddr>) -> Result {
    block_on(async {
        let endpoint = endpoint(Some(settings::server(load)?))?;
        address.send(endpoint.local_addr()?)?;
        if load == Load::Flood {
            detach(spawn::<()>(async {
                let mut before = support::process::thread_time();
                loop {
                    sleep(Duration::from_millis(1)).await;
                    before = flood::turn(before);
                }
            }));
        }
        while let Some(incoming) = endpoint.accept().await {
            if matches!(load, Load::Retries(_)) && incoming.may_retry() {
                incoming.retry().map_err(|error| error.to_string())?;
                continue;
            }
            detach(spawn(async move {
                let connection = incoming.await?;
                // The first is not read, as long as the connection lasts.
                let _unread = match load {
                    Load::Unread => Some(connection.accept_uni().await?),
                    _ => None,
                };
                while let Ok(mut stream) = connection.accept_uni().await {
                    let connection = connection.clone();
                    detach(spawn(async move {
                        while stream.read_chunk(usize::MAX, true).await?.is_some() {}
                        Ok(connection.open_uni().await?.finish()?)
                    }));
                }
                Ok(())
            }));
        }
        Ok(())
    })
}

pub fn run(server: SocketAddr, load: Load) -> Result<[f64; 2]> {
    block_on(async {
        #[allow(unused_mut, reason = "of those of quinn it takes `&mut`")]
        let mut endpoint = endpoint(None)?;
        endpoint.set_default_client_config(settings::client(load)?);
        match load {
            Load::Bulk { connections, bytes } => {
                let open = connect(&endpoint, server, connections).await?;
                let clock = Clock::start()?;
                let sending: Vec<_> = open
                    .into_iter()
                    .map(|one| spawn(send(one, bytes)))
                    .collect();
                for one in sending {
                    one.await?;
                }
                clock.bytes(connections * bytes)
            }
            Load::Handshakes(count) => {
                connect(&endpoint, server, 1).await?;
                let (clock, left) = (Clock::start()?, Arc::new(AtomicUsize::new(count)));
                let mut workers = Vec::new();
                for _ in 0..16 {
                    let (endpoint, left) = (endpoint.clone(), Arc::clone(&left));
                    workers.push(spawn(async move {
                        while left.load(Ordering::Relaxed) > 0 {
                            left.fetch_sub(1, Ordering::Relaxed);
                            let connection = endpoint.connect(server, "localhost")?.await?;
                            connection.close(VarInt::from_u32(0), b"");
                        }
                        Ok(())
                    }));
                }
                for worker in workers {
                    worker.await?;
                }
                clock.each(count, 1e3)
            }
            Load::Retries(count) => {
                connect(&endpoint, server, 1).await?;
                let clock = Clock::start()?;
                let mut connecting = Vec::new();
                for _ in 0..count {
                    let one = endpoint.connect(server, "localhost")?;
                    connecting.push(spawn(async move { Ok(one.await?) }));
                }
                let mut open = Vec::new();
                for one in connecting {
                    open.push(one.await?);
                }
                clock.each(count, 1e3)
            }
            Load::Flood => flood::send(server),
            Load::Unread => {
                let connection = connect(&endpoint, server, 1).await?.remove(0);
                let before = support::process::resident_bytes()?;
                let clock = Clock::start()?;
                let mut unread = connection.open_uni().await?;
                unread.write_all(&[7; 1000]).await?;
                let mut read = connection.open_uni().await?;
                for _ in 1..12_000 {
                    read.write_all(&[7; 40_000]).await?;
                    unread.write_all(&[7; 1000]).await?;
                }
                read.finish()?;
                connection.accept_uni().await?.read_to_end(0).await?;
                let kept = support::process::resident_bytes()? - before;
                Ok([kept as f64 / 1e6, clock.stop()?[1]])
            }
            Load::Http3(_) => Err("it has a client of its own".into()),
            Load::Idle(count) => {
                let before = support::process::resident_bytes()?;
                let open = connect(&endpoint, server, count).await?;
                sleep(settings::KEEP_ALIVE).await;
                let resident = support::process::resident_bytes()? - before;
                let clock = Clock::start()?;
                sleep(WATCHED).await;
                let [wall, cpu] = clock.stop()?;
                assert!(
                    open.iter().all(|one| one.close_reason().is_none()),
                    "all are alive"
                );
                Ok([resident as f64 / count as f64 / 1e3, cpu / wall * 1e3])
            }
        }
    })
}

/// One after the other.
async fn connect(endpoint: &Endpoint, server: SocketAddr, count: usize) -> Result<Vec<Connection>> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(endpoint.connect(server, "localhost")?.await?);
    }
    Ok(open)
}

async fn send(connection: Connection, bytes: usize) -> Result {
    let mut stream = connection.open_uni().await?;
    let piece = vec![7; PIECE];
    let mut left = bytes;
    while left > 0 {
        let length = left.min(PIECE);
        stream.write_all(&piece[..length]).await?;
        left -= length;
    }
    stream.finish()?;
    connection.accept_uni().await?.read_to_end(0).await?;
    Ok(())
}
