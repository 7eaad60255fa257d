//! Many executors that share the background thread, and the wakes that reach them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use glommio::{LocalExecutorPoolBuilder, PoolPlacement, spawn_local};
use glommio_tokio::{Tokio, with_tokio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::run;

const EXECUTORS: usize = 8;
const TASKS: usize = 20;
const ROUNDS: usize = 20;

#[test]
fn sockets_of_many_executors() {
    let round_trips = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&round_trips);
    let shard = move || {
        let counted = Arc::clone(&counted);
        async move {
            let tokio = Tokio::start().expect("there are resources");
            let listening = tokio.with(TcpListener::bind("127.0.0.1:0"));
            let listener = listening.await.expect("a port");
            let address = listener.local_addr().expect("it listens");
            let server = spawn_local(tokio.with(async move {
                for _ in 0..TASKS {
                    let (mut stream, _) = listener.accept().await?;
                    spawn_local(with_tokio(async move {
                        let (mut reader, mut writer) = stream.split();
                        tokio::io::copy(&mut reader, &mut writer).await
                    }))
                    .detach();
                }
                std::io::Result::Ok(())
            }));
            let clients: Vec<_> = (0..TASKS)
                .map(|_| {
                    spawn_local(with_tokio(async move {
                        let mut stream = TcpStream::connect(address).await?;
                        for round in 0..ROUNDS {
                            let sent = [round as u8; 64];
                            stream.write_all(&sent).await?;
                            let mut echoed = [0; 64];
                            stream.read_exact(&mut echoed).await?;
                            assert_eq!(echoed, sent);
                        }
                        std::io::Result::Ok(ROUNDS)
                    }))
                })
                .collect();
            for client in clients {
                let done = client.await.expect("it is echoed");
                counted.fetch_add(done, Ordering::Relaxed);
            }
            server.await.expect("it accepts");
        }
    };
    let threads = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(EXECUTORS))
        .on_all_shards(shard)
        .expect("executors");
    for result in threads.join_all() {
        result.expect("nothing panics");
    }
    assert_eq!(
        round_trips.load(Ordering::Relaxed),
        EXECUTORS * TASKS * ROUNDS
    );
}

/// Each wake comes from another thread, mostly while the executor sleeps or falls asleep.
#[test]
fn no_wake_is_lost() {
    run(async {
        let tokio = Tokio::start()?;
        let (to_there, mut there) = mpsc::channel(1);
        let (to_here, mut here) = mpsc::channel(1);
        tokio.handle().spawn(async move {
            while let Some(value) = there.recv().await {
                if to_here.send(value).await.is_err() {
                    break;
                }
            }
        });
        tokio
            .with(async move {
                for value in 0..20_000 {
                    to_there.send(value).await?;
                    assert_eq!(here.recv().await, Some(value));
                    if value % 1000 == 0 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
                Ok(())
            })
            .await
    });
}
