//! Endpoints of quinn, on current-thread runtimes of tokio.

use crate::settings::{self, PIECE};
use crate::{Clock, Load, Result, WATCHED};
use glommio_quic::crypto;
use quinn::{Connection, Endpoint, TokioRuntime, VarInt};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use tokio::runtime::Builder;

pub fn serve(address: &mpsc::Sender<SocketAddr>) -> Result {
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let config = crypto::endpoint_config()?;
            let (server, socket) = (settings::server()?, settings::socket()?);
            let endpoint = Endpoint::new(config, Some(server), socket, Arc::new(TokioRuntime))?;
            address.send(endpoint.local_addr()?)?;
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    let connection = incoming.await?;
                    while let Ok(mut stream) = connection.accept_uni().await {
                        let connection = connection.clone();
                        tokio::spawn(async move {
                            while stream.read_chunk(usize::MAX, true).await?.is_some() {}
                            connection.open_uni().await?.finish()?;
                            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
                        });
                    }
                    Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
                });
            }
            Ok(())
        })
}

pub fn run(server: SocketAddr, load: Load) -> Result<[f64; 2]> {
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let config = crypto::endpoint_config()?;
            let socket = settings::socket()?;
            let mut endpoint = Endpoint::new(config, None, socket, Arc::new(TokioRuntime))?;
            endpoint.set_default_client_config(settings::client(matches!(load, Load::Idle(_)))?);
            match load {
                Load::Bulk { connections, bytes } => {
                    let mut open = Vec::new();
                    for _ in 0..connections {
                        open.push(endpoint.connect(server, "localhost")?.await?);
                    }
                    let clock = Clock::start()?;
                    let sending: Vec<_> = open
                        .into_iter()
                        .map(|one| tokio::spawn(send(one, bytes)))
                        .collect();
                    for one in sending {
                        one.await??;
                    }
                    clock.bulk(connections * bytes)
                }
                Load::Handshakes(count) => {
                    endpoint.connect(server, "localhost")?.await?;
                    let (clock, left) = (Clock::start()?, Arc::new(AtomicUsize::new(count)));
                    let mut workers = Vec::new();
                    for _ in 0..16 {
                        let (endpoint, left) = (endpoint.clone(), Arc::clone(&left));
                        workers.push(tokio::spawn(async move {
                            while left.load(Ordering::Relaxed) > 0 {
                                left.fetch_sub(1, Ordering::Relaxed);
                                let connection = endpoint.connect(server, "localhost")?.await?;
                                connection.close(VarInt::from_u32(0), b"");
                            }
                            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
                        }));
                    }
                    for worker in workers {
                        worker.await??;
                    }
                    clock.handshakes(count)
                }
                Load::Idle(count) => {
                    let before = support::process::resident_bytes()?;
                    let mut open = Vec::new();
                    for _ in 0..count {
                        open.push(endpoint.connect(server, "localhost")?.await?);
                    }
                    tokio::time::sleep(settings::KEEP_ALIVE).await;
                    let resident = support::process::resident_bytes()? - before;
                    let clock = Clock::start()?;
                    tokio::time::sleep(WATCHED).await;
                    let [wall, cpu] = clock.stop()?;
                    assert!(
                        open.iter().all(|one| one.close_reason().is_none()),
                        "all are alive"
                    );
                    Ok([resident as f64 / count as f64, cpu / wall * 1e3])
                }
            }
        })
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
