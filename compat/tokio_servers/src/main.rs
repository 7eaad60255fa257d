//! The twins of the examples `axum_server` and `grpc_server` on tokio's multi-thread runtime: the same
//! app and the same service.
//!
//! The app of axum is served by hyper, as the example does it, with the same limits for heads and
//! for handlers, which `axum::serve` does not have. tokio's sockets have no read and write timeouts,
//! so in that it does less. The service of tonic is served by the server that tonic brings along.
//!
//! ```console
//! $ tokio_servers axum 2
//! $ tokio_servers grpc 2
//! ```

#[path = "../../../examples/src/bin/axum_server/app.rs"]
mod app;
#[path = "../../../examples/src/greeting.rs"]
#[allow(missing_docs, reason = "they are those of the example")]
mod greeting;
#[path = "../../../examples/src/bin/grpc_server/service.rs"]
mod service;

use std::error::Error;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use axum::response::IntoResponse;
use greeting::greeter_server::GreeterServer;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::time::timeout;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower::ServiceExt;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let threads = arguments
        .next()
        .ok_or("usage: tokio_servers axum|grpc THREADS")?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.parse()?)
        .enable_all()
        .build()?;
    // A task, since the future of `block_on` is polled on a thread of its own.
    runtime.block_on(async move {
        let serving = tokio::spawn(async move {
            match &*kind {
                "axum" => axum().await.map_err(|it| it.to_string()),
                "grpc" => grpc().await.map_err(|it| it.to_string()),
                _ => Err(format!("there is no server `{kind}`")),
            }
        });
        Ok(serving.await??)
    })
}

async fn axum() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let app = app::app(1000, tokio::time::sleep);
    let answer = move |request: Request<Incoming>| {
        let answered = app.clone().oneshot(request);
        async move {
            match timeout(Duration::from_secs(10), answered).await {
                Ok(answered) => answered,
                Err(late) => Ok((StatusCode::GATEWAY_TIMEOUT, late.to_string()).into_response()),
            }
        }
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(10));
    loop {
        let (stream, _) = listener.accept().await?;
        // It fails on a connection that the client has closed already.
        let _ = stream.set_nodelay(true);
        let service = service_fn(answer.clone());
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
    }
}

async fn grpc() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let greeter = GreeterServer::new(service::Service(tokio::time::sleep));
    Server::builder()
        .timeout(Duration::from_secs(10))
        .load_shed(true)
        .layer(tower::limit::GlobalConcurrencyLimitLayer::new(1000))
        .add_service(greeter)
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await?;
    Ok(())
}
