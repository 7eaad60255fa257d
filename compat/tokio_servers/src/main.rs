//! The twins of the examples `axum_server` and `grpc_server` on tokio's multi-thread runtime: the same
//! app and the same service, with the servers that axum and tonic bring along.
//!
//! ```console
//! $ tokio_servers axum 2
//! $ tokio_servers grpc 2
//! ```

#[path = "../../../examples/src/bin/axum_server/app.rs"]
mod app;
#[path = "../../../examples/src/bin/grpc_server/greeting.rs"]
#[allow(missing_docs, reason = "they are those of the example")]
mod greeting;
#[path = "../../../examples/src/bin/grpc_server/service.rs"]
mod service;

use std::error::Error;
use std::time::Duration;

use app::Limits;
use axum::serve::ListenerExt;
use greeting::greeter_server::GreeterServer;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

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
    let limits = Limits {
        requests: 1000,
        timeout: Duration::from_secs(10),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        // It fails on a connection that the client has closed already.
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, app::app(limits, tokio::time::sleep)).await?)
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
