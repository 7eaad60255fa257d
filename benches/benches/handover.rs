//! What it costs to give a connection to another executor: the hand-over of a `BalancedTcpListener`, and `detach` and
//! `attach`.
//!
//! Up to the last all happens on one executor, so that no wake of another thread is in it; the last has one there and
//! one back.

#![allow(missing_docs, reason = "`criterion_group` makes a function")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use futures_lite::future::{poll_once, zip};
use glommio::channels::shared_channel::{self, ConnectedReceiver, ConnectedSender};
use glommio::net::{BalancedTcpListener, DetachedTcpStream, ShardLoad, TcpListener, TcpStream};
use glommio::{GlommioError, LocalExecutor, LocalExecutorBuilder};
use nix::sys::socket::{setsockopt, sockopt};

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30);
    targets = handover
}
criterion_main!(benches);

type Result<T> = std::result::Result<T, GlommioError<()>>;

fn handover(criterion: &mut Criterion) {
    measure(criterion, "connect, accept, close", plain);
    measure(criterion, "the same, balanced: its own", async |times| {
        balanced(times, 0).await
    });
    measure(
        criterion,
        "the same, balanced: handed over",
        async |times| balanced(times, 1).await,
    );
    measure(criterion, "detach and attach", attached);
    measure(criterion, "to another executor and back", journeys);
}

/// Runs `times` in an executor, which is told how often and says how long that took.
fn measure(criterion: &mut Criterion, row: &str, times: impl AsyncFn(u64) -> Result<Duration>) {
    criterion.bench_function(row, |bencher| {
        bencher.iter_custom(|count| {
            let took = LocalExecutor::default().run(times(count));
            took.expect("loopback works")
        });
    });
}

async fn plain(times: u64) -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let begin = Instant::now();
    for _ in 0..times {
        let _client = connected(address)?;
        listener.accept().await?;
    }
    Ok(begin.elapsed())
}

/// One member accepts all, and each connection goes to `chosen`: itself, or the other one.
async fn balanced(times: u64, chosen: usize) -> Result<Duration> {
    let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
    let weight = move |load: ShardLoad| u64::from(load.shard != chosen);
    let listener = BalancedTcpListener::with_weight(socket, weight);
    let address = listener.local_addr()?;
    let (mut accepts, mut takes) = (listener.join(0)?, listener.join(1)?);
    let begin = Instant::now();
    for _ in 0..times {
        let _client = connected(address)?;
        if chosen == 0 {
            accepts.accept().await?;
        } else {
            // It accepts, finds that the connection is not its own, and waits again.
            assert!(poll_once(accepts.accept()).await.is_none());
            takes.accept().await?;
        }
    }
    Ok(begin.elapsed())
}

async fn attached(times: u64) -> Result<Duration> {
    let (_client, mut stream) = pair().await?;
    let begin = Instant::now();
    for _ in 0..times {
        stream = stream.detach().attach();
    }
    Ok(begin.elapsed())
}

async fn journeys(times: u64) -> Result<Duration> {
    let (there, out) = shared_channel::new_bounded(1);
    let (back, home) = shared_channel::new_bounded(1);
    let other = LocalExecutorBuilder::default().spawn(move || async move {
        let (out, back) = zip(out.connect(), back.connect()).await;
        let out: ConnectedReceiver<DetachedTcpStream> = out;
        while let Some(detached) = out.recv().await {
            if back.send(detached.attach().detach()).await.is_err() {
                break;
            }
        }
    })?;
    let (there, home) = zip(there.connect(), home.connect()).await;
    let there: ConnectedSender<DetachedTcpStream> = there;
    let (_client, mut stream) = pair().await?;
    let begin = Instant::now();
    for _ in 0..times {
        let sent = there.send(stream.detach()).await;
        assert!(sent.is_ok(), "the other executor lives");
        stream = home.recv().await.expect("it sends it back").attach();
    }
    let took = begin.elapsed();
    drop(there);
    other.join()?;
    Ok(took)
}

/// A client of the kernel alone: connecting to a listener on loopback does not wait. It is gone when it is closed, with
/// its port, of which there are not enough otherwise.
fn connected(address: SocketAddr) -> Result<std::net::TcpStream> {
    let client = std::net::TcpStream::connect(address)?;
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&client, sockopt::Linger, &at_once).map_err(std::io::Error::from)?;
    Ok(client)
}

async fn pair() -> Result<(std::net::TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = connected(listener.local_addr()?)?;
    Ok((client, listener.accept().await?))
}
