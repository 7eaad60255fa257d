//! An HTTP server: unmodified hyper, on one executor per thread.
//!
//! ```console
//! $ cargo run --release -p examples --bin http_server -- --threads 2 --port 8080
//! $ curl http://127.0.0.1:8080/
//! $ curl http://127.0.0.1:8080/bytes/100000 | wc -c
//! $ curl --data-binary @README.md http://127.0.0.1:8080/echo
//! $ curl http://127.0.0.1:8080/slow/500
//! $ wrk -t1 -c64 -d10s http://127.0.0.1:8080/
//! $ curl http://127.0.0.1:8080/compute/500
//! ```
//!
//! With `--http2` it speaks HTTP/2 in place of HTTP/1, to clients that know (`curl
//! --http2-prior-knowledge`).
//!
//! `docs/examples.md` shows what they print. Ctrl-C ends the server: it takes no more connections,
//! answers the requests that have begun, and prints a line of statistics.
//!
//! # Coming from tokio
//!
//! - No task ever moves to another thread, so nothing needs to be `Send`, and there is nothing to
//!   lock. Each executor of the pool listens for itself, on the same address, and the kernel shares
//!   out the connections (by `SO_REUSEPORT`, which `TcpListener::bind` sets).
//! - `tokio::spawn` becomes `spawn_local(..).detach()`: a task whose handle is dropped is cancelled
//!   (see `accept_each`).
//! - `TokioIo`, `TokioTimer` and `TokioExecutor` become `GlommioIo`, `GlommioTimer` and
//!   `GlommioExecutor` of the crate `glommio-hyper`. The executor is for HTTP/2 alone.
//! - Sockets have timeouts of their own, as those of `std::net` do: no `timeout` around each read.

#![forbid(unsafe_code)]

mod counters;
mod service;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;
use counters::Counters;
use examples::serving::unless_hurried;
use futures_lite::future::or;
use glommio::channels::oneshot;
use glommio::net::{ConnectionLimit, ConnectionPlace, TcpListener, TcpStream};
use glommio::overload::Shed;
use glommio::signal::{self, Signals};
use glommio::timer::sleep;
use glommio::{
    LocalExecutor, LocalExecutorPoolBuilder, PoolPlacement, PoolThreadHandles, TaskPanic,
    spawn_local,
};
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use libc::{SIGINT, SIGTERM};

/// Serves HTTP with one executor per thread.
#[derive(Clone, Debug, Parser)]
#[command(name = "http_server")]
struct Options {
    /// Executors, each with its own thread and CPU.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,

    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,

    /// HTTP/2 in place of HTTP/1.1, from the first byte on.
    #[arg(long)]
    http2: bool,

    /// How long the head of a request may take, and how long a connection may be idle before it
    /// comes. With HTTP/2, how long a client may take to begin.
    #[arg(long, default_value = "10s")]
    header_timeout: humantime::Duration,

    /// How long a client of HTTP/2 may be silent until it is asked whether it is there, and then
    /// until it is given up.
    #[arg(long, default_value = "20s")]
    keep_alive: humantime::Duration,

    /// How long to wait for more of a body, or for the client to take more of a response.
    ///
    /// Also the longest that a response may take to begin, since hyper reads meanwhile, to learn
    /// of clients that leave.
    #[arg(long, default_value = "90s")]
    io_timeout: humantime::Duration,

    /// Connections of one executor at a time; more wait in the backlog of the kernel.
    #[arg(long, default_value_t = 100_000)]
    max_connections: usize,

    /// Refuse requests with status 503 while the executor is overloaded: `docs/guide/overload.md`.
    #[arg(long)]
    shed: bool,

    /// How long requests that have begun may take when the server ends.
    #[arg(long, default_value = "5s")]
    grace: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    // Before there are other threads, which inherit it.
    signal::block(&[SIGINT, SIGTERM])?;
    let executor = LocalExecutor::default();
    let signals = executor.run(async { Signals::new(&[SIGINT, SIGTERM]) })?;
    let started = Instant::now();
    let server = start(options)?;
    executor.run(signals.recv())?;
    let counters = executor.run(unless_hurried(&signals, server.stop()))?;
    println!(
        "{} in {:.1} s",
        counters::total(&counters),
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The executors of a server.
struct Server {
    threads: PoolThreadHandles<()>,
    shards: Vec<Started>,
}

/// An executor that listens. Dropping `stop` ends it.
struct Started {
    counters: Arc<Counters>,
    stop: oneshot::SharedSender<()>,
}

impl Server {
    /// Ends the executors, and returns what they have counted.
    async fn stop(mut self) -> Result<Vec<Arc<Counters>>, Box<dyn Error>> {
        let end = |Started { counters, stop }| {
            drop(stop);
            counters
        };
        let counters = self.shards.into_iter().map(end).collect();
        while let Some((_, result)) = self.threads.join_next().await {
            result?;
        }
        Ok(counters)
    }
}

/// Starts the executors, and returns when all of them listen.
fn start(options: Options) -> Result<Server, Box<dyn Error>> {
    let executors = usize::from(options.threads);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let address = Arc::new(Mutex::new(address));
    let (report, reports) = mpsc::channel();
    let shard = {
        let address = Arc::clone(&address);
        // Cloned for each executor and called on its thread: from here on nothing is shared.
        move || async move {
            let counters = Arc::new(Counters::default());
            let (stop, stopped) = oneshot::shared();
            let (listener, started) = match listen(&address) {
                Ok(listener) => {
                    let counters = Arc::clone(&counters);
                    (Some(listener), Ok(Started { counters, stop }))
                }
                Err(error) => (None, Err(error)),
            };
            // It is not received if `main` has given up, and then the process ends.
            let is_awaited = report.send(started).is_ok();
            if let Some(listener) = listener.filter(|_| is_awaited) {
                serve(listener, options, counters, stopped).await;
            }
        }
    };
    let threads = LocalExecutorPoolBuilder::new(PoolPlacement::MaxSpread(executors, None))
        .name("http")
        .timer_slack(TIMER_SLACK)
        .on_task_panic(TaskPanic::Isolate)
        .on_all_shards(shard)?;

    let mut shards = Vec::new();
    while shards.len() < executors {
        match reports.recv_timeout(START_PATIENCE) {
            Ok(started) => shards.push(started?),
            Err(RecvTimeoutError::Timeout) => return Err("not all executors have started".into()),
            Err(RecvTimeoutError::Disconnected) => {
                // All have ended, and the result of one at least says why.
                for result in threads.join_all() {
                    result?;
                }
                return Err("no executor is left".into());
            }
        }
    }
    let address = *address.lock().unwrap_or_else(PoisonError::into_inner);
    println!("listening on http://{address}/");
    Ok(Server { threads, shards })
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
    protocol: Protocol,
    connections: Connections,
    io_timeout: Duration,
    counters: Arc<Counters>,
    shed: Option<Shed>,
}

enum Protocol {
    Http1(http1::Builder),
    Http2(http2::Builder<GlommioExecutor>),
}

impl Protocol {
    fn new(is_http2: bool, connections: &Connections) -> Protocol {
        if is_http2 {
            Protocol::Http2(connections.http2(GlommioExecutor::new()))
        } else {
            Protocol::Http1(connections.http1())
        }
    }
}

/// Serves until `stopped`.
async fn serve(
    listener: TcpListener,
    options: Options,
    counters: Arc<Counters>,
    stopped: oneshot::SharedReceiver<()>,
) {
    // A handler that panics ends its connection and nothing else.
    let connections = Connections::builder()
        .handshake_timeout(*options.header_timeout)
        .keep_alive(*options.keep_alive, *options.keep_alive)
        .build();
    let shard = Rc::new(Shard {
        protocol: Protocol::new(options.http2, &connections),
        connections: connections.clone(),
        io_timeout: *options.io_timeout,
        counters,
        shed: options.shed.then(Shed::new),
    });
    let limit = ConnectionLimit::new(options.max_connections);
    let accept = async {
        accept_each(&listener, &limit, move |stream, place| {
            converse(Box::new(stream), place, Rc::clone(&shard))
        })
        .await;
    };
    or(accept, async {
        let _ = stopped.await;
    })
    .await;
    drop(listener);
    // What has not finished by then is closed.
    let closed = connections.shutdown_within(*options.grace).await;
    if closed > 0 {
        eprintln!("{closed} connections were closed before they had finished");
    }
}

/// Accepts connections for ever and has each served by a task of its own.
///
/// An error of `accept` is no reason to end: the listener remains usable.
async fn accept_each<F>(
    listener: &TcpListener,
    limit: &ConnectionLimit,
    serve: impl Fn(TcpStream, ConnectionPlace) -> F,
) -> !
where
    F: Future<Output = ()> + 'static,
{
    loop {
        match listener.accept_within(limit).await {
            Ok((stream, place)) => {
                // A task whose handle is dropped is cancelled; this one runs on by itself.
                spawn_local(serve(stream, place)).detach();
            }
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers the requests of one connection, until either side ends it.
///
/// A client that leaves, stalls or sends nonsense ends its own connection and nothing else.
///
/// The stream is in a box since the task would hold it twice: an argument of an `async fn` keeps its
/// memory to the end, although it has been moved into the connection.
async fn converse(stream: Box<TcpStream>, place: ConnectionPlace, shard: Rc<Shard>) {
    // One more connection may come when this one has ended.
    let _place = place;
    shard.counters.count_connection();
    let Ok(io) = prepared(stream, shard.io_timeout) else {
        shard.counters.count_failure();
        return;
    };
    let of_service = Rc::clone(&shard);
    let service = service_fn(move |request| {
        of_service.counters.count_request();
        let admitted = of_service.shed.as_ref().map_or(Ok(()), Shed::admit);
        service::respond(request, admitted, sleep)
    });
    let connections = &shard.connections;
    let end = match &shard.protocol {
        Protocol::Http1(http) => {
            let connection = http.serve_connection(io, service);
            connections.watch(connection).await
        }
        Protocol::Http2(http) => {
            let connection = http.serve_connection(io, service);
            connections.watch(connection).await
        }
    };
    if end.is_err() {
        shard.counters.count_failure();
    }
}

/// The stream for hyper, which is not to wait for ever.
fn prepared(
    stream: Box<TcpStream>,
    io_timeout: Duration,
) -> glommio::Result<GlommioIo<Box<TcpStream>>, ()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(io_timeout))?;
    stream.set_write_timeout(Some(io_timeout))?;
    Ok(GlommioIo::new(stream))
}

const START_PATIENCE: Duration = Duration::from_secs(10);

/// A timeout of a connection may be late by so much, and one wake of the thread serves those that are
/// due within it.
const TIMER_SLACK: Duration = Duration::from_millis(1);
