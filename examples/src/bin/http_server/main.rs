//! An HTTP server: unmodified hyper, on one executor per thread.
//!
//! ```console
//! $ cargo run --release -p examples --bin http_server -- --threads 2 --port 8080
//! $ curl http://127.0.0.1:8080/
//! $ curl http://127.0.0.1:8080/bytes/100000 | wc -c
//! $ curl --data-binary @README.md http://127.0.0.1:8080/echo
//! $ curl http://127.0.0.1:8080/slow/500
//! $ wrk -t1 -c64 -d10s http://127.0.0.1:8080/
//! ```
//!
//! `docs/examples.md` shows what they print. Ctrl-C ends the server with a line of statistics.
//!
//! # Coming from tokio
//!
//! - No task ever moves to another thread, so nothing needs to be `Send`, and there is nothing to
//!   lock. Each executor of the pool listens for itself, on the same address, and the kernel shares
//!   out the connections (by `SO_REUSEPORT`, which `TcpListener::bind` sets).
//! - `tokio::spawn` becomes `spawn_local(..).detach()`: a task whose handle is dropped is cancelled
//!   (see `accept_each` in the examples' library).
//! - `TokioIo` and `TokioTimer` become the two types of `hyper_runtime.rs`. HTTP/1 needs no more.
//! - Sockets have timeouts of their own, as those of `std::net` do: no `timeout` around each read.

#![forbid(unsafe_code)]

mod counters;
mod hyper_runtime;
mod service;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use counters::Counters;
use examples::accept_each;
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_runtime::{HyperStream, HyperTimer};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Serves HTTP/1.1 with one executor per thread.
#[derive(Clone, Debug, Parser)]
#[command(name = "http_server")]
struct Options {
    /// Executors, each with a thread and a CPU of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,

    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,

    /// How long the head of a request may take, and how long a connection may be idle before it
    /// comes.
    #[arg(long, default_value = "10s")]
    header_timeout: humantime::Duration,

    /// How long to wait for more of a body, or for the client to take more of a response.
    ///
    /// Also the longest that a response may take to begin, since hyper reads meanwhile, to learn
    /// of clients that leave.
    #[arg(long, default_value = "90s")]
    io_timeout: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let started = Instant::now();
    let counters = start(options)?;
    signals.forever().next();
    println!(
        "{} in {:.1} s",
        counters::total(&counters),
        started.elapsed().as_secs_f64()
    );
    // The executors end with the process.
    Ok(())
}

/// Starts the executors, and returns when all of them listen.
fn start(options: Options) -> Result<Vec<Arc<Counters>>, Box<dyn Error>> {
    let executors = usize::from(options.threads);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let address = Arc::new(Mutex::new(address));
    let (report, reports) = mpsc::channel();
    let shard = {
        let address = Arc::clone(&address);
        // Cloned for each executor and called on its thread: from here on nothing is shared.
        move || async move {
            let counters = Arc::new(Counters::default());
            let (listener, error) = match listen(&address) {
                Ok(listener) => (Some(listener), Ok(Arc::clone(&counters))),
                Err(error) => (None, Err(error)),
            };
            // It is not received if `main` has given up, and then the process ends.
            let is_awaited = report.send(error).is_ok();
            if let Some(listener) = listener.filter(|_| is_awaited) {
                serve(listener, options, counters).await;
            }
        }
    };
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::MaxSpread(executors, None))
        .name("http")
        .on_all_shards(shard)?;

    let mut counters = Vec::new();
    while counters.len() < executors {
        match reports.recv_timeout(START_PATIENCE) {
            Ok(report) => counters.push(report?),
            Err(RecvTimeoutError::Timeout) => return Err("not all executors have started".into()),
            Err(RecvTimeoutError::Disconnected) => {
                // All have ended, and the result of one at least says why.
                for result in shards.join_all() {
                    result?;
                }
                return Err("no executor is left".into());
            }
        }
    }
    let address = *address.lock().unwrap_or_else(PoisonError::into_inner);
    println!("listening on http://{address}/");
    Ok(counters)
}

/// Listens on `address`, in which port 0 becomes the port that the first executor is given.
fn listen(address: &Mutex<SocketAddr>) -> glommio::Result<TcpListener, ()> {
    let mut address = address.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind(*address)?;
    *address = listener.local_addr()?;
    Ok(listener)
}

/// What the connections of one executor share.
struct Shard {
    http: http1::Builder,
    io_timeout: Duration,
    counters: Arc<Counters>,
}

async fn serve(listener: TcpListener, options: Options, counters: Arc<Counters>) {
    let mut http = http1::Builder::new();
    http.timer(HyperTimer)
        .header_read_timeout(*options.header_timeout);
    let shard = Rc::new(Shard {
        http,
        io_timeout: *options.io_timeout,
        counters,
    });
    accept_each(&listener, move |stream| {
        let shard = Rc::clone(&shard);
        async move {
            shard.counters.count_connection();
            // A client that leaves, stalls or sends nonsense ends its own connection and nothing
            // else.
            if converse(stream, &shard).await.is_err() {
                shard.counters.count_failure();
            }
        }
    })
    .await
}

/// Answers the requests of one connection, until either side ends it.
async fn converse(stream: TcpStream, shard: &Shard) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(shard.io_timeout))?;
    stream.set_write_timeout(Some(shard.io_timeout))?;
    let service = service_fn(|request| {
        shard.counters.count_request();
        service::respond(request, sleep)
    });
    shard
        .http
        .serve_connection(HyperStream(stream.buffered()), service)
        .await?;
    Ok(())
}

const START_PATIENCE: Duration = Duration::from_secs(10);
