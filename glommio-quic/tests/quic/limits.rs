//! Clients that would take more than they may.

use crate::peer::{Result, client, client_config, loopback, pair, run, server, server_config};
use futures_lite::future::{poll_once, zip};
use glommio::net::UdpSocket;
use glommio::spawn_local;
use glommio::timer::sleep;
use glommio_quic::{
    ConnectionError, Endpoint, Limits, TransportConfig, TransportErrorCode, VarInt,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

fn is_refused(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionClosed(close)
        if close.error_code == TransportErrorCode::CONNECTION_REFUSED)
}

/// Where a client sends to that never hears of the server. Only `most` datagrams come there.
fn one_way(to: SocketAddr, most: usize) -> Result<SocketAddr> {
    let relay = UdpSocket::bind(loopback())?;
    let address = relay.local_addr()?;
    spawn_local(async move {
        let (mut buffer, mut left) = ([0; 2000], most);
        while let Ok((length, from)) = relay.recv_from(&mut buffer).await {
            if from != to && left > 0 {
                left -= 1;
                // It may be gone.
                let _ = relay.send_to(&buffer[..length], to).await;
            }
        }
    })
    .detach();
    Ok(address)
}

/// A server that would wait for ever, and a client that asks again for ever.
fn patient() -> Result<(Endpoint, Endpoint)> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(None);
    let transport = Arc::new(transport);
    let (mut server, mut config) = (server_config()?, client_config()?);
    server.transport_config(Arc::clone(&transport));
    config.transport_config(transport);
    let client = client()?;
    client.set_default_client_config(config);
    Ok((Endpoint::server(server, loopback())?, client))
}

#[test]
fn a_handshake_that_does_not_get_on_is_closed_after_its_time() -> Result {
    run(async {
        let (server, client) = patient()?;
        let mut limits = Limits::default();
        assert_eq!(limits.handshake_timeout, Some(Duration::from_secs(10)));
        limits.handshake_timeout = Some(Duration::from_millis(500));
        server.set_limits(limits);
        // Silent ones, too: the server has sent as much as it may then, and waits for nothing else.
        for (count, most) in (1..).zip([1, usize::MAX]) {
            let relay = one_way(server.local_addr()?, most)?;
            let _connecting = client.connect(relay, "localhost")?;
            let accepted = server.accept().await.ok_or("closed")?.await;
            assert_eq!(accepted.map(drop), Err(ConnectionError::TimedOut));
            assert_eq!(server.stats().handshakes_timed_out, count);
            server.wait_idle().await;
        }

        // What is over in time is left alone.
        let (accepted, connected) = loop {
            // A busy machine may not be in time.
            if let Ok(pair) = pair(&server, &client).await {
                break pair;
            }
        };
        sleep(Duration::from_millis(1000)).await;
        assert_eq!(
            (accepted.close_reason(), connected.close_reason()),
            (None, None)
        );
        Ok(())
    })
}

#[test]
fn more_handshakes_than_there_may_be_wait_to_be_accepted() -> Result {
    run(async {
        let (server, client) = patient()?;
        let mut limits = Limits::default();
        limits.handshake_timeout = Some(Duration::from_millis(500));
        limits.handshakes = 1;
        server.set_limits(limits);
        let _stuck = client.connect(one_way(server.local_addr()?, usize::MAX)?, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let next = client.connect(server.local_addr()?, "localhost")?;
        // It has arrived.
        while server.stats().received < 2 {
            sleep(Duration::from_millis(1)).await;
        }
        assert!(
            poll_once(server.accept()).await.is_none(),
            "one is undecided"
        );
        let stuck = incoming.accept()?;
        let accept = async {
            let incoming = server.accept().await.ok_or("closed")?;
            assert_eq!(server.stats().handshakes_timed_out, 1, "the first is over");
            Ok::<_, Box<dyn std::error::Error>>(incoming.await?)
        };
        let (accepted, connected) = zip(accept, next.into_future()).await;
        accepted?;
        connected?;
        assert_eq!(stuck.await.map(drop), Err(ConnectionError::TimedOut));
        Ok(())
    })
}

#[test]
fn an_address_with_many_handshakes_proves_itself_and_is_refused() -> Result {
    run(async {
        let (server, client) = patient()?;
        let mut limits = Limits::default();
        limits.handshakes_per_address = 1;
        server.set_limits(limits);
        let _stuck = client.connect(one_way(server.local_addr()?, usize::MAX)?, "localhost")?;
        let stuck = server.accept().await.ok_or("closed")?.accept()?;
        let second = client.connect(server.local_addr()?, "localhost")?;
        let accepting = server.clone();
        let accept = spawn_local(async move { accepting.accept().await.map(drop) });
        let refused = second.await.map(drop).unwrap_err();
        assert!(is_refused(&refused), "{refused}");
        let stats = server.stats();
        assert_eq!((stats.accepted, stats.retried, stats.refused), (1, 1, 1));
        server.close(VarInt::from_u32(0), b"");
        assert_eq!(accept.await, None, "none was accepted");
        drop(stuck);
        Ok(())
    })
}

#[test]
fn more_connections_than_there_may_be_are_refused() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let mut limits = Limits::default();
        limits.connections = 1;
        server.set_limits(limits);
        let (accepted, connected) = pair(&server, &client).await?;
        let second = client.connect(server.local_addr()?, "localhost")?;
        let accepting = server.clone();
        let accept = spawn_local(async move { accepting.accept().await.map(|next| next.accept()) });
        let refused = second.await.map(drop).unwrap_err();
        assert!(is_refused(&refused), "{refused}");
        drop((accepted, connected));
        server.wait_idle().await;
        let third = client.connect(server.local_addr()?, "localhost")?;
        let accepted = accept.await.ok_or("closed")??;
        let _third = third.await?;
        accepted.await?;
        Ok(())
    })
}
