//! Endpoints of this crate.

#[path = "loads.rs"]
mod loads;

use crate::{Result, settings};
use glommio::{LocalExecutor, Task};
use glommio_quic::{ServerConfig, crypto};
pub use loads::{run, serve};

use glommio::timer::sleep;
use glommio_quic::{Connection, Endpoint, VarInt};

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    LocalExecutor::default().run(future)
}

fn spawn<T: 'static>(future: impl Future<Output = Result<T>> + 'static) -> Task<Result<T>> {
    glommio::spawn_local(future)
}

fn detach<T>(task: Task<T>) {
    task.detach();
}

fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint> {
    let config = crypto::endpoint_config()?;
    Ok(Endpoint::new(config, server, settings::socket()?)?)
}
