//! Endpoints of quinn, on current-thread runtimes of tokio.

#[path = "loads.rs"]
mod loads;

use crate::{Result, settings};
use glommio_quic::{ServerConfig, crypto};
pub use loads::{run, serve};
use quinn::TokioRuntime;
use std::sync::Arc;
use tokio::runtime::Builder;

use quinn::{Connection, Endpoint, VarInt};
use tokio::time::sleep;

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(future)
}

fn spawn<T: Send + 'static>(
    future: impl Future<Output = Result<T>> + Send + 'static,
) -> impl Future<Output = Result<T>> {
    let task = tokio::spawn(future);
    async { task.await? }
}

fn detach<T>(task: T) {
    drop(task);
}

fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint> {
    let (config, runtime) = (crypto::endpoint_config()?, Arc::new(TokioRuntime));
    Ok(Endpoint::new(config, server, settings::socket()?, runtime)?)
}
