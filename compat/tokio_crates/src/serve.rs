//! Servers of this program: apps of axum on hyper, on the executor.

use std::net::SocketAddr;

use axum::Router;
use glommio::net::TcpListener;
use glommio::spawn_local;
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo};
use hyper_util::service::TowerToHyperService;

use crate::Result;

/// Serves `app` by HTTP/1 for as long as the program runs.
pub fn http1(app: Router) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    spawn_local(async move {
        let connections = Connections::new();
        let service = TowerToHyperService::new(app);
        while let Ok(stream) = listener.accept().await {
            let http = connections.http1();
            let connection = http.serve_connection(GlommioIo::new(stream), service.clone());
            spawn_local(connections.watch(connection)).detach();
        }
    })
    .detach();
    Ok(address)
}

/// Serves `app` by HTTP/2 for as long as the program runs.
pub fn http2(app: Router) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    spawn_local(async move {
        let connections = Connections::new();
        let service = TowerToHyperService::new(app);
        while let Ok(stream) = listener.accept().await {
            let http = connections.http2(GlommioExecutor::new());
            let connection = http.serve_connection(GlommioIo::new(stream), service.clone());
            spawn_local(connections.watch(connection)).detach();
        }
    })
    .detach();
    Ok(address)
}
