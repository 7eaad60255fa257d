//! Crates made for tokio, in tasks of an executor: each case runs some, and prints what they did.
//!
//! ```console
//! $ tokio_crates http
//! $ tokio_crates postgres 'postgres://user@127.0.0.1:5432/database'
//! ```

mod dns;
#[path = "../../../examples/src/greeting.rs"]
#[allow(missing_docs, reason = "they are those of the example")]
mod greeting;
mod grpc;
mod http;
mod local;
mod mappers;
mod messages;
mod mongo;
mod quic;
mod s3;
mod scheduled;
mod serve;
mod servers;
#[path = "../../../examples/src/bin/grpc_server/service.rs"]
mod service;
mod sql;
mod store;
mod tls;
mod traces;
mod web_socket;

use std::error::Error;
use std::time::Duration;

use glommio::{LocalExecutorBuilder, Placement, future};

/// What has not happened by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_default();
    let place = arguments.next().unwrap_or_default();
    let executor = LocalExecutorBuilder::new(Placement::Unbound).make()?;
    let done = executor.run(future::timeout(PATIENCE, async {
        match &*case {
            "hyper-util" => http::hyper_util().await,
            "reqwest" => http::reqwest().await,
            "ureq" => http::ureq().await,
            "tower-http" => http::tower_http().await,
            "actix-web" => servers::actix_web().await,
            "warp" => servers::warp().await,
            "rocket" => servers::rocket().await,
            "quinn" => quic::quinn().await,
            "tokio-rustls" => tls::tokio_rustls().await,
            "reqwest-https" => tls::reqwest().await,
            "tonic" => grpc::tonic().await,
            "tonic-native" => grpc::tonic_native().await,
            "tokio-tungstenite" => web_socket::tokio_tungstenite().await,
            "object_store" => s3::object_store().await,
            "hickory-resolver" => dns::hickory_resolver().await,
            "sqlx-postgres" => sql::sqlx_postgres(&place).await,
            "sqlx-sqlite" => sql::sqlx_sqlite().await,
            "tokio-postgres" => sql::tokio_postgres(&place).await,
            "bb8" => sql::bb8(&place).await,
            "deadpool" => sql::deadpool(&place).await,
            "diesel" => mappers::diesel().await,
            "diesel-async" => mappers::diesel_async(&place).await,
            "diesel-async-native" => mappers::diesel_async_native(&place).await,
            "sea-orm" => mappers::sea_orm(&place).await,
            "mongodb" => mongo::mongodb().await,
            "redis" => store::redis(&place).await,
            "redis-native" => store::redis_native(&place).await,
            "moka" => store::moka().await,
            "async-nats" => messages::async_nats(&place).await,
            "rumqttc" => messages::rumqttc(&place).await,
            "lapin" => messages::lapin(&place).await,
            "flume" => messages::flume().await,
            "tokio-sync" => messages::tokio_sync().await,
            "tokio-cron-scheduler" => scheduled::tokio_cron_scheduler().await,
            "async-io" => scheduled::async_io().await,
            "tokio-fs" => local::tokio_fs().await,
            "tokio-process" => local::tokio_process().await,
            "tokio-signal" => local::tokio_signal().await,
            "tracing" => local::tracing().await,
            "opentelemetry-otlp" => traces::opentelemetry_otlp().await,
            "metrics" => local::metrics().await,
            _ => Err(format!("there is no case `{case}`").into()),
        }
    }));
    println!("{}", done??);
    Ok(())
}
