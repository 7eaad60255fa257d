//! HTTP/3, of one executor.

use std::future::pending;
use std::io;
use std::time::Duration;

use axum::http::Request;
use futures_lite::future::or;
use glommio::{Task, spawn_local};
use glommio_h3::{Connections, Incoming};
use glommio_quic::{Endpoint, Limits, ServerConfig, Shard, VarInt};
use hyper::service::service_fn;

use crate::Answers;

/// The socket of an executor, and the connections over it.
pub struct Http3 {
    endpoint: Endpoint,
    connections: Connections,
    accepting: Task<()>,
}

impl Http3 {
    /// Accepts clients, `max_connections` at a time.
    pub fn start(
        config: ServerConfig,
        shard: Shard,
        max_connections: usize,
        answers: Answers,
    ) -> io::Result<Http3> {
        let endpoint = Endpoint::shard(config, shard)?;
        let mut limits = Limits::default();
        limits.connections = max_connections;
        endpoint.set_limits(limits);
        let connections = Connections::new();
        let accepting = accept(endpoint.clone(), connections.clone(), answers);
        Ok(Http3 {
            endpoint,
            connections,
            accepting: spawn_local(accepting),
        })
    }

    /// Answers the requests that have come, for up to `grace`, and refuses further clients meanwhile.
    /// Returns how many connections were closed before they had finished.
    pub async fn end(self, grace: Duration) -> usize {
        self.accepting.cancel().await;
        let finished = self.connections.shutdown_within(grace);
        let refuse = async {
            while let Some(late) = self.endpoint.accept().await {
                late.refuse();
            }
            pending().await
        };
        let closed = or(finished, refuse).await;
        // The clients are told, and then the executor may end.
        self.endpoint.close(VarInt::from_u32(0), b"");
        self.endpoint.wait_idle().await;
        closed
    }
}

async fn accept(endpoint: Endpoint, connections: Connections, answers: Answers) {
    while let Some(incoming) = endpoint.accept().await {
        let (connections, answers) = (connections.clone(), answers.clone());
        spawn_local(async move {
            // A client that leaves or sends nonsense ends its own connection.
            if let Ok(connection) = incoming.await {
                let service = service_fn(move |request: Request<Incoming>| answers.answer(request));
                drop(connections.serve(connection, service).await);
            }
        })
        .detach();
    }
}
