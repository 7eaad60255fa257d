//! gRPC: a service of tonic on hyper, with one executor per CPU.
//!
//! ```console
//! $ cargo run --release -p examples --bin grpc_server -- --port 50051
//! listening on http://127.0.0.1:50051
//! $ printf '\0\0\0\0\6\12\4rust' | curl -s --http2-prior-knowledge -H 'content-type: application/grpc' \
//!     --data-binary @- http://127.0.0.1:50051/greeting.Greeter/Greet | tail -c 11; echo
//! hello, rust
//! ^C
//! ended
//! ```
//!
//! (With `grpcurl`: `-plaintext -proto greeting.proto -d '{"name": "rust"}' 127.0.0.1:50051
//! greeting.Greeter/Greet`.)
//!
//! tonic's own transport needs tokio's runtime. A service that tonic has generated does not: it is a
//! service of tower, which hyper serves as HTTP/2 on the sockets, timers and tasks of the executor.
//!
//! - A limit of tower refuses what is too much with `RESOURCE_EXHAUSTED`.
//! - The deadline that a client sends (`grpc-timeout`), and that of the server, are timers of the
//!   executor, with `DEADLINE_EXCEEDED` at their end. They are for the head of the response: a stream
//!   of messages takes as long as it takes.

#![forbid(unsafe_code)]

mod service;

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use clap::Parser;
use examples::greeting;
use examples::greeting::greeter_server::GreeterServer;
use examples::serving::{Serving, Shard};
use glommio::net::TcpStream;
use glommio::{future, timer};
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use send_wrapper::SendWrapper;
use service::Service;
use tonic::Status;
use tonic::body::Body;
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{ServiceBuilder, ServiceExt};

/// Serves gRPC with one executor per CPU.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// Requests of one executor at a time; more are refused.
    #[arg(long, default_value_t = 1000)]
    max_requests: usize,

    /// How long a call may take until its response begins. A client may ask for less.
    #[arg(long, default_value = "10s")]
    request_timeout: humantime::Duration,

    /// How long a client may be silent until it is asked whether it is there, and then until it is
    /// given up.
    #[arg(long, default_value = "20s")]
    keep_alive: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    options
        .serving
        .run("http://", move |shard| serve(shard, options))?;
    println!("ended");
    Ok(())
}

async fn serve(shard: Shard, options: Options) {
    let greeter = ServiceBuilder::new()
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(options.max_requests))
        .service(GreeterServer::new(Service(sleep)));
    let answer = move |request: Request<Incoming>| {
        let limit = requested_timeout(request.headers()).unwrap_or(Duration::MAX);
        let limit = limit.min(*options.request_timeout);
        // A service is ready once: each request has a clone of its own.
        let answered = greeter.clone().oneshot(request);
        async move {
            let response = match future::timeout(limit, answered).await {
                Ok(Ok(response)) => response,
                // tower's limit, as the service itself has no errors.
                Ok(Err(_)) => refuse(Status::resource_exhausted("too many requests")),
                Err(_) => refuse(Status::deadline_exceeded("the deadline has passed")),
            };
            Ok::<_, Infallible>(response)
        }
    };
    let connections = Connections::builder()
        .keep_alive(*options.keep_alive, *options.keep_alive)
        .build();
    let http = connections.http2(GlommioExecutor::new());
    let serve = |stream: TcpStream| {
        // It fails on a connection that the client has closed already.
        let _ = stream.set_nodelay(true);
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

fn refuse(status: Status) -> Response<Body> {
    status.into_http()
}

/// The deadline that the client sends: up to eight digits and a unit.
fn requested_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let amount = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// A timer of the executor, for a method that has to be `Send`: it says so, and panics if it is
/// polled or dropped on another thread after all.
fn sleep(duration: Duration) -> SendWrapper<impl Future<Output = ()>> {
    SendWrapper::new(timer::sleep(duration))
}
