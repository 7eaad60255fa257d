//! What executors do, for Prometheus: its text format, over HTTP.
//!
//! ```console
//! $ cargo run --release -p examples --features metrics --bin metrics -- --port 9100 --socket metrics.sock
//! listening on http://127.0.0.1:9100
//! $ curl -s http://127.0.0.1:9100/metrics | grep -m 2 timers_armed
//! # HELP glommio_timers_armed_total Timers that were armed.
//! # TYPE glommio_timers_armed_total counter
//! ^C
//! ```
//!
//! The executors serve, and have some work of their own: tasks that sleep, and blocking calls.
//! `--socket` makes a Unix socket that says the same to each client: `cargo run --release -p
//! glommio-top -- metrics.sock` shows it as a live table.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use examples::serving::{Serving, Shard};
use futures_lite::AsyncWriteExt;
use glommio::metrics::prometheus_text;
use glommio::net::{TcpStream, UnixListener};
use glommio::timer::sleep;
use glommio::{executor, spawn_local};
use glommio_hyper::{Connections, GlommioIo};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};

/// Serves the metrics of the executors of this process.
#[derive(Clone, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// A Unix socket, to be made, that says the same to each client: for `glommio-top`.
    #[arg(long)]
    socket: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Options { serving, socket } = Options::parse();
    let path = socket.clone();
    serving.run("http://", move |shard| run(shard, socket))?;
    if let Some(path) = path {
        fs::remove_file(path)?;
    }
    Ok(())
}

async fn run(shard: Shard, socket: Option<PathBuf>) {
    spawn_local(work()).detach();
    if let Some(path) = socket.filter(|_| shard.id == 0) {
        spawn_local(async move {
            if let Err(error) = tell_each(path).await {
                eprintln!("there is no socket: {error}");
            }
        })
        .detach();
    }
    let connections = Connections::new();
    let http = connections.http1();
    let serve = |stream: TcpStream| {
        let connection = http.serve_connection(GlommioIo::new(stream), service_fn(answer));
        let served = connections.watch(connection);
        // A client that leaves or sends nonsense ends its own connection and nothing else.
        async move { drop(served.await) }
    };
    shard.serve_each(serve).await;
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, prometheus_text()),
        _ => (StatusCode::NOT_FOUND, "there is GET /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    Ok(response)
}

/// Says to each client of a Unix socket what there is, for ever.
async fn tell_each(path: PathBuf) -> glommio::Result<(), ()> {
    let listener = UnixListener::bind(path)?;
    loop {
        match listener.accept().await {
            Ok(mut stream) => {
                let tell = async move {
                    stream.set_write_timeout(Some(Duration::from_secs(5)))?;
                    stream.write_all(prometheus_text().as_bytes()).await?;
                    stream.close().await
                };
                spawn_local(tell).detach();
            }
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// The tasks of an executor that has something to count.
async fn work() {
    for n in 1..=20_u64 {
        let ticks = async move {
            loop {
                sleep(Duration::from_millis(n)).await;
                executor().yield_now().await;
            }
        };
        spawn_local(ticks).detach();
    }
    loop {
        let block = || std::thread::sleep(Duration::from_millis(20));
        executor().spawn_blocking(block).await;
    }
}
