//! The driver of ScyllaDB and Cassandra, as far as it comes without a server.

use std::net::TcpListener;

use glommio_tokio::with_tokio;
use scylla::client::session_builder::SessionBuilder;

use crate::Result;

pub async fn scylla() -> Result<String> {
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let session = SessionBuilder::new().known_node_addr(closed);
    let error = with_tokio(session.build()).await.err();
    let error = error.ok_or("it has found a server")?;
    let refused = error.to_string().contains("Connection refused");
    Ok(format!("refused: {refused}"))
}
