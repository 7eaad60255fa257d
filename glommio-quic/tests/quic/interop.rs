//! Against quinn's endpoints, on tokio.

use crate::peer::{Result, client, client_config, loopback, pattern, run, server, server_config};
use futures_lite::future::zip;
use glommio::spawn_local;
use glommio_quic::VarInt;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const LENGTH: usize = 1_000_000;

#[test]
fn a_client_of_quinn() -> Result {
    run(async {
        let server = server()?;
        let address = server.local_addr()?;
        let peer = thread::spawn(move || quinn_client(address).map_err(|error| error.to_string()));
        let connection = server.accept().await.ok_or("closed")?.await?;

        let (mut send, mut recv) = connection.accept_bi().await?;
        while let Some(chunk) = recv.read_chunk(4096, true).await? {
            send.write_all(&chunk.bytes).await?;
        }
        send.finish()?;
        connection.send_datagram(connection.read_datagram().await?)?;
        let mut uni = connection.open_uni().await?;
        uni.write_all(b"bye").await?;
        uni.finish()?;
        let closed = connection.closed().await.to_string();
        assert!(closed.contains("seen"), "{closed}");
        peer.join().expect("it has not panicked")?;
        Ok(())
    })
}

fn quinn_client(address: SocketAddr) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = quinn::EndpointConfig::new(std::sync::Arc::new(
            glommio_quic::crypto::ResetKey::random()?,
        ));
        let socket = std::net::UdpSocket::bind(loopback())?;
        let runtime = std::sync::Arc::new(quinn::TokioRuntime);
        let endpoint = quinn::Endpoint::new(config, None, socket, runtime)?;
        let connection = endpoint
            .connect_with(client_config()?, address, "localhost")?
            .await?;
        let (mut send, mut recv) = connection.open_bi().await?;
        let sent = pattern(1, LENGTH);
        let (written, read) = zip(
            async {
                send.write_all(&sent).await?;
                send.finish()?;
                Ok::<_, Box<dyn std::error::Error>>(())
            },
            recv.read_to_end(LENGTH),
        )
        .await;
        written?;
        assert!(read? == sent);
        connection.send_datagram(bytes::Bytes::from_static(b"datagram"))?;
        assert_eq!(&connection.read_datagram().await?[..], b"datagram");
        let text = connection.accept_uni().await?.read_to_end(10).await?;
        assert_eq!(text, b"bye");
        connection.close(VarInt::from_u32(3), b"seen");
        endpoint.wait_idle().await;
        Ok(())
    })
}

#[test]
fn a_server_of_quinn() -> Result {
    let (address, addresses) = mpsc::channel();
    let peer = thread::spawn(move || quinn_server(&address).map_err(|error| error.to_string()));
    let address = addresses.recv_timeout(Duration::from_secs(60))?;
    run(async move {
        let client = client()?;
        let connection = client.connect(address, "localhost")?.await?;
        let mut streams = Vec::new();
        for number in 0..20 {
            let connection = connection.clone();
            streams.push(spawn_local(async move {
                let (mut send, mut recv) = connection.open_bi().await?;
                let sent = pattern(number, LENGTH / 10);
                let write = async {
                    send.write_all(&sent).await?;
                    send.finish()?;
                    Ok::<_, Box<dyn std::error::Error>>(())
                };
                let (written, read) = zip(write, recv.read_to_end(sent.len())).await;
                written?;
                assert!(read? == sent, "stream {number}");
                Ok::<_, Box<dyn std::error::Error>>(())
            }));
        }
        for stream in streams {
            stream.await?;
        }
        connection.close(VarInt::from_u32(0), b"");
        client.wait_idle().await;
        Ok(())
    })?;
    peer.join().expect("it has not panicked")?;
    Ok(())
}

fn quinn_server(address: &mpsc::Sender<SocketAddr>) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = quinn::EndpointConfig::new(std::sync::Arc::new(
            glommio_quic::crypto::ResetKey::random()?,
        ));
        let socket = std::net::UdpSocket::bind(loopback())?;
        address.send(socket.local_addr()?)?;
        let runtime = std::sync::Arc::new(quinn::TokioRuntime);
        let endpoint = quinn::Endpoint::new(config, Some(server_config()?), socket, runtime)?;
        let connection = endpoint.accept().await.ok_or("closed")?.await?;
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            tokio::spawn(async move {
                let all = recv.read_to_end(LENGTH).await;
                let all = all.map_err(|error| error.to_string())?;
                send.write_all(&all)
                    .await
                    .map_err(|error| error.to_string())?;
                send.finish().map_err(|error| error.to_string())
            });
        }
        endpoint.wait_idle().await;
        Ok(())
    })
}
