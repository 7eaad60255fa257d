//! axum on hyper, with one executor per CPU.
//!
//! ```console
//! $ cargo run --release -p examples --bin axum_server -- --port 8080 --shards 1 --request-timeout 1s
//! listening on http://127.0.0.1:8080
//! $ curl -s http://127.0.0.1:8080/
//! 1 hits on this shard
//! $ curl -s --data-binary 'a body' http://127.0.0.1:8080/echo; echo
//! a body
//! $ curl -s http://127.0.0.1:8080/slow/5
//! waited 5 ms
//! $ curl -s -w '%{http_code}\n' http://127.0.0.1:8080/slow/60000
//! Operation timed out after 1s
//! 504
//! ^C
//! ended
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
use std::time::Duration;

use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use clap::Parser;
use examples::serving::{Serving, Shard};
use glommio::net::TcpStream;
use glommio::{future, timer};
use glommio_hyper::{Connections, GlommioIo};
use hyper::body::Incoming;
use hyper::service::service_fn;
use send_wrapper::SendWrapper;
use tower::ServiceExt;

/// Serves axum with one executor per CPU.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

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
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    options
        .serving
        .run("http://", move |shard| serve(shard, options))?;
    println!("ended");
    Ok(())
}

async fn serve(shard: Shard, options: Options) {
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
    let serve = |stream: TcpStream| {
        let limit = Some(*options.io_timeout);
        // They fail on a connection that the client has closed already.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(limit);
        let _ = stream.set_write_timeout(limit);
        let connection = http.serve_connection(GlommioIo::new(stream), service_fn(answer.clone()));
        let served = connections.watch(connection);
        // A client that leaves or sends nonsense ends its own connection.
        async move { drop(served.await) }
    };
    shard.serve_each(serve).await;
    let closed = connections.shutdown_within(*options.serving.grace).await;
    if closed > 0 {
        eprintln!("{closed} connections were closed before they had finished");
    }
}

/// A timer of the executor, for a handler that has to be `Send`: it says so, and panics if it is
/// polled or dropped on another thread after all.
fn sleep(duration: Duration) -> SendWrapper<impl Future<Output = ()>> {
    SendWrapper::new(timer::sleep(duration))
}
