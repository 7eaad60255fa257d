//! axum on hyper, with one executor per CPU.
//!
//! ```console
//! $ cargo run --release -p examples --bin axum_server -- --port 8080
//! $ curl http://127.0.0.1:8080/
//! $ curl --data-binary 'a body' http://127.0.0.1:8080/echo
//! $ curl -i http://127.0.0.1:8080/slow/500
//! $ curl -i http://127.0.0.1:8080/slow/60000
//! ```
//!
//! `axum::serve` needs tokio's runtime. A `Router` does not: it is a service of tower, which hyper
//! serves on the sockets and timers of the executor. tower's `TimeoutLayer` is not used: its timers
//! are tokio's, so connections would have to be polled in a tokio context (`glommio-tokio`). The
//! same limit around the router is a timer of the executor.
//!
//! A handler that waits for something of the executor's, which is not `Send`, wraps it: see `sleep`.

#![forbid(unsafe_code)]

mod app;

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use clap::Parser;
use examples::serving::until_stopped;
use futures_lite::future::or;
use glommio::net::{BalancedTcpListener, ShardListener};
use glommio::signal;
use glommio::sync::CancellationToken;
use glommio::{
    GlommioError, LocalExecutorPoolBuilder, PoolPlacement, TaskPanic, future, spawn_local, timer,
};
use glommio_hyper::{Connections, GlommioIo};
use hyper::body::Incoming;
use hyper::service::service_fn;
use libc::{SIGINT, SIGTERM};
use send_wrapper::SendWrapper;
use tower::ServiceExt;

/// Serves axum with one executor per CPU.
#[derive(Clone, Debug, Parser)]
#[command(name = "axum_server")]
struct Options {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,

    /// Executors. Default: one for each CPU that this process may use.
    #[arg(long)]
    shards: Option<usize>,

    /// Requests of one executor at a time; more are refused with status 503.
    #[arg(long, default_value_t = 1000)]
    max_requests: usize,

    /// How long a handler may take, until status 504.
    #[arg(long, default_value = "10s")]
    request_timeout: humantime::Duration,

    /// How long to wait for more of a body, or for the client to take more of a response. Longer
    /// than a handler may take, since hyper reads meanwhile.
    #[arg(long, default_value = "30s")]
    io_timeout: humantime::Duration,

    /// How long requests that have begun may take when the server ends.
    #[arg(long, default_value = "5s")]
    grace: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    // Before there are other threads, which inherit it.
    signal::block(&[SIGINT, SIGTERM])?;
    let listener = BalancedTcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    println!("listening on http://{}/", listener.local_addr()?);
    let stop = CancellationToken::new();
    let stopping = stop.foreign_child();
    let starts = Arc::new(AtomicUsize::new(0));
    let count = options.shards.unwrap_or_else(PoolPlacement::default_shards);
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(count))
        .name("axum")
        .on_task_panic(TaskPanic::Isolate)
        .try_on_all_shards(move || {
            let shard = listener.join(starts.fetch_add(1, Ordering::Relaxed));
            async move {
                serve(shard?, options, stopping.attach()).await;
                Ok::<_, GlommioError<()>>(())
            }
        })?;
    until_stopped(shards, stop)?;
    println!("ended");
    Ok(())
}

/// Serves until `stopped`.
async fn serve(mut listener: ShardListener, options: Options, stopped: CancellationToken) {
    let app = app::app(options.max_requests, sleep);
    let answer = move |request: Request<Incoming>| {
        // A service is ready once: each request has a clone of its own.
        let answered = app.clone().oneshot(request);
        async move {
            match future::timeout(*options.request_timeout, answered).await {
                Ok(answered) => answered,
                Err(late) => Ok((StatusCode::GATEWAY_TIMEOUT, format!("{late}\n")).into_response()),
            }
        }
    };
    // Their limits are for clients that are slow, and a handler that panics ends its connection.
    let connections = Connections::new();
    let http = connections.http1();
    let accept = async {
        loop {
            let (stream, guard) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, most likely. They come back as connections end.
                    eprintln!("cannot accept: {error}");
                    timer::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let limit = Some(*options.io_timeout);
            // They fail on a connection that the client has closed already.
            let _ = stream.set_nodelay(true);
            let _ = stream
                .set_read_timeout(limit)
                .and(stream.set_write_timeout(limit));
            let service = service_fn(answer.clone());
            let connection = http.serve_connection(GlommioIo::new(stream), service);
            let served = connections.watch(connection);
            spawn_local(async move {
                let _guard = guard;
                // A client that leaves or sends nonsense ends its own connection.
                let _ = served.await;
            })
            .detach();
        }
    };
    or(accept, stopped.cancelled()).await;
    drop(listener);
    let closed = connections.shutdown_within(*options.grace).await;
    if closed > 0 {
        eprintln!("{closed} connections were closed before they had finished");
    }
}

/// A timer of the executor, for a handler that has to be `Send`: it says so, and panics if it is
/// polled or dropped on another thread after all.
fn sleep(duration: Duration) -> SendWrapper<impl Future<Output = ()>> {
    SendWrapper::new(timer::sleep(duration))
}
