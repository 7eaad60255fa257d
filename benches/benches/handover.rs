//! What it costs to give a connection to another executor: the hand-over of a `BalancedTcpListener`,
//! and `detach` and `attach`.
//!
//! ```console
//! $ cargo bench -p benches --bench handover -- --rounds 9
//! ```
//!
//! The rows take turns within each round; what is printed are medians of the rounds, with the least
//! and the greatest. Up to the last row all happens on one executor, so that no wake of another
//! thread is in it; the last row has one there and one back.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_lite::future::zip;
use glommio::channels::shared_channel::{self, ConnectedReceiver, ConnectedSender};
use glommio::net::{BalancedTcpListener, DetachedTcpStream, TcpListener, TcpStream};
use glommio::{GlommioError, LocalExecutor, LocalExecutorBuilder};

type Result<T> = std::result::Result<T, GlommioError<()>>;

/// Of one row in one round.
const CONNECTIONS: u32 = 2_000;
const MOVES: u32 = 50_000;
const JOURNEYS: u32 = 5_000;

const ROWS: [&str; 5] = [
    "connect, accept, close",
    "the same, balanced: its own",
    "the same, balanced: handed over",
    "detach and attach",
    "to another executor and back",
];

fn main() {
    let rounds = rounds();
    let mut measured = [const { Vec::new() }; ROWS.len()];
    for round in 0..=rounds {
        let times = LocalExecutor::default()
            .run(measure())
            .expect("loopback works");
        // The first one warms up.
        if round > 0 {
            for (row, time) in measured.iter_mut().zip(times) {
                row.push(time);
            }
        }
    }
    println!("| | ns each | least | greatest |\n|---|---|---|---|");
    for (row, mut times) in ROWS.into_iter().zip(measured) {
        times.sort_unstable();
        let (least, greatest) = (times[0], times[times.len() - 1]);
        let median = times[times.len() / 2];
        println!(
            "| {row} | {} | {} | {} |",
            median.as_nanos(),
            least.as_nanos(),
            greatest.as_nanos()
        );
    }
}

/// `--rounds N`; what else cargo passes is ignored.
fn rounds() -> usize {
    let mut arguments = std::env::args().skip_while(|it| it != "--rounds");
    let rounds = arguments.nth(1).map(|it| it.parse().expect("a number"));
    rounds.unwrap_or(9).max(1)
}

async fn measure() -> Result<[Duration; ROWS.len()]> {
    Ok([
        plain().await?,
        balanced(0).await?,
        balanced(1).await?,
        attached().await?,
        journeys().await?,
    ])
}

async fn plain() -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let begin = Instant::now();
    for _ in 0..CONNECTIONS {
        let _client = connected(address)?;
        listener.accept().await?;
    }
    Ok(begin.elapsed() / CONNECTIONS)
}

/// One member accepts all, and each connection goes to `chosen`: itself, or the other one.
async fn balanced(chosen: usize) -> Result<Duration> {
    let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
    let weight = move |load: glommio::net::ShardLoad| u64::from(load.shard != chosen);
    let listener = BalancedTcpListener::with_weight(socket, weight);
    let address = listener.local_addr()?;
    let (mut accepts, mut takes) = (listener.join(0)?, listener.join(1)?);
    let begin = Instant::now();
    for _ in 0..CONNECTIONS {
        let _client = connected(address)?;
        if chosen == 0 {
            accepts.accept().await?;
        } else {
            // It accepts, finds that the connection is not its own, and waits again.
            let handed_over = futures_lite::future::poll_once(accepts.accept()).await;
            assert!(handed_over.is_none());
            takes.accept().await?;
        }
    }
    Ok(begin.elapsed() / CONNECTIONS)
}

async fn attached() -> Result<Duration> {
    let (_client, mut stream) = pair().await?;
    let begin = Instant::now();
    for _ in 0..MOVES {
        stream = stream.detach().attach();
    }
    Ok(begin.elapsed() / MOVES)
}

async fn journeys() -> Result<Duration> {
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
    for _ in 0..JOURNEYS {
        let sent = there.send(stream.detach()).await;
        assert!(sent.is_ok(), "the other executor lives");
        stream = home.recv().await.expect("it sends it back").attach();
    }
    let took = begin.elapsed() / JOURNEYS;
    drop(there);
    other.join()?;
    Ok(took)
}

/// A client of the kernel alone: connecting to a listener on loopback does not wait.
fn connected(address: SocketAddr) -> Result<std::net::TcpStream> {
    Ok(std::net::TcpStream::connect(address)?)
}

async fn pair() -> Result<(std::net::TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = connected(listener.local_addr()?)?;
    Ok((client, listener.accept().await?))
}
