//! quinn's client, against our endpoint.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_lite::future::zip;
use glommio::spawn_local;
use glommio_quic::{Incoming, crypto};
use glommio_tokio::with_tokio;
use quinn::crypto::rustls::QuicClientConfig;

use crate::{Result, tls};

pub async fn quinn() -> Result<String> {
    let address = serve()?;
    let config = QuicClientConfig::try_from(tls::client()?)?;
    with_tokio(async move {
        let mut endpoint = quinn::Endpoint::client("127.0.0.1:0".parse()?)?;
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        let connection = endpoint.connect(address, "localhost")?.await?;
        let (mut send, mut recv) = connection.open_bi().await?;
        let sent = vec![7; 100_000];
        let write = async {
            send.write_all(&sent).await?;
            send.finish()?;
            Result::Ok(())
        };
        let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
        written?;
        let received = read?;
        assert!(received == sent, "the bytes differ");
        connection.close(0_u32.into(), b"done");
        endpoint.wait_idle().await;
        Ok(format!("{} bytes", received.len()))
    })
    .await
}

fn serve() -> Result<SocketAddr> {
    let (certificates, key) = tls::identity()?;
    let config = crypto::server_config(certificates, key)?;
    let endpoint = glommio_quic::Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = endpoint.local_addr()?;
    spawn_local(async move {
        while let Some(incoming) = endpoint.accept().await {
            // The client says what has gone wrong.
            spawn_local(async { drop(echo(incoming).await) }).detach();
        }
    })
    .detach();
    Ok(address)
}

async fn echo(incoming: Incoming) -> Result {
    let connection = incoming.await?;
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
            send.write_all(&chunk.bytes).await?;
        }
        send.finish()?;
    }
}
