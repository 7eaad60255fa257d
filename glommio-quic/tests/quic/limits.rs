//! Clients that would take more than they may.

use crate::peer::{Result, client, client_config, loopback, pair, run, server, server_config};
use futures_lite::future::{poll_once, zip};
use glommio::net::UdpSocket;
use glommio::timer::sleep;
use glommio::{executor, spawn_local};
use glommio_quic::quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey};
use glommio_quic::{
    Connecting, ConnectionError, Endpoint, Incoming, Limits, TransportConfig, TransportErrorCode,
    VarInt,
};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
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

/// `count` clients, all of which have asked before the first is accepted.
async fn burst(server: &Endpoint, client: &Endpoint, count: u64) -> Result<Vec<Connecting>> {
    // The key of a hybrid exchange takes a second datagram.
    let all = server.stats().received + 2 * count;
    let mut transport = TransportConfig::default();
    // They do not ask twice.
    transport.initial_rtt(Duration::from_secs(100));
    let mut config = client_config()?;
    config.transport_config(Arc::new(transport));
    let address = server.local_addr()?;
    let connecting = (0..count).map(|_| client.connect_with(config.clone(), address, "localhost"));
    let connecting = connecting.collect::<std::result::Result<_, _>>()?;
    while server.stats().received < all {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(connecting)
}

/// Takes what may be accepted, and decides nothing.
fn hold(server: &Endpoint) -> Rc<RefCell<Vec<Incoming>>> {
    let (server, held) = (server.clone(), Rc::new(RefCell::default()));
    let holds: Rc<RefCell<Vec<Incoming>>> = Rc::clone(&held);
    spawn_local(async move {
        while let Some(incoming) = server.accept().await {
            holds.borrow_mut().push(incoming);
        }
    })
    .detach();
    held
}

/// Waits until `server` has refused `count`, and then as long as would show one too many.
async fn refused(server: &Endpoint, count: u64) {
    while server.stats().refused < count {
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_millis(50)).await;
    assert_eq!(server.stats().refused, count);
}

#[test]
fn clients_of_a_burst_that_are_not_decided_count_as_connections() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let mut limits = Limits::default();
        limits.connections = 2;
        server.set_limits(limits);
        let connecting = burst(&server, &client, 6).await?;
        let held = hold(&server);
        refused(&server, 4).await;
        let held = held.take();
        assert_eq!(held.len(), 2);
        for incoming in held {
            spawn_local(async { incoming.await.map(drop) }).detach();
        }
        let mut connected = 0;
        for connecting in connecting {
            connected += usize::from(connecting.await.is_ok());
        }
        assert_eq!(connected, 2);
        Ok(())
    })
}

#[test]
fn clients_of_a_burst_that_are_not_decided_count_for_their_address() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let mut limits = Limits::default();
        limits.handshakes_per_address = 2;
        server.set_limits(limits);
        let _connecting = burst(&server, &client, 6).await?;
        let held = hold(&server);
        // Four prove their address, and come again.
        refused(&server, 2).await;
        assert_eq!(server.stats().retried, 4);
        let held = held.take();
        let validated: Vec<_> = held
            .iter()
            .map(Incoming::remote_address_validated)
            .collect();
        assert_eq!(validated, [false, false, true, true]);
        Ok(())
    })
}

#[test]
fn forged_addresses_do_not_shut_out_clients_that_prove_theirs() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let mut limits = Limits::default();
        limits.handshakes_per_address = 1;
        server.set_limits(limits);
        // As from a forged address, it never answers.
        let _forged = client.connect(one_way(server.local_addr()?, 1)?, "localhost")?;
        let _under_way = server.accept().await.ok_or("closed")?.accept()?;
        let (accepted, connected) = pair(&server, &client).await?;
        let stats = server.stats();
        assert_eq!((stats.accepted, stats.retried, stats.refused), (2, 1, 0));
        drop((accepted, connected));
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
        let _first = client.connect(server.local_addr()?, "localhost")?;
        server.accept().await.ok_or("closed")?.retry()?;
        let first = server.accept().await.ok_or("closed")?;
        assert!(first.remote_address_validated());
        let second = client.connect(server.local_addr()?, "localhost")?;
        let accepting = server.clone();
        let accept = spawn_local(async move { accepting.accept().await.map(drop) });
        let refused = second.await.map(drop).unwrap_err();
        assert!(is_refused(&refused), "{refused}");
        let stats = server.stats();
        assert_eq!((stats.accepted, stats.retried, stats.refused), (0, 2, 1));
        server.close(VarInt::from_u32(0), b"");
        assert_eq!(accept.await, None, "none was accepted");
        drop(first);
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

/// Tokens as they are. To seal one takes as long as a task may run.
struct SlowKey;

impl HandshakeTokenKey for SlowKey {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(SlowKey)
    }
}

impl AeadKey for SlowKey {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> std::result::Result<(), CryptoError> {
        while !executor().need_preempt() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _: &[u8],
    ) -> std::result::Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

#[test]
fn clients_that_are_turned_away_leave_turns_to_other_tasks() -> Result {
    run(async {
        let mut config = server_config()?;
        config.token_key(Arc::new(SlowKey));
        let (server, client) = (Endpoint::server(config, loopback())?, client()?);
        let mut limits = Limits::default();
        limits.handshakes_per_address = 0;
        server.set_limits(limits);
        let _connecting = burst(&server, &client, 20).await?;
        let _held = hold(&server);
        let mut turns = 0;
        while server.stats().retried < 20 {
            executor().yield_now().await;
            turns += 1;
        }
        assert!(turns > 5, "{turns} turns");
        Ok(())
    })
}

#[test]
fn closing_refuses_the_clients_that_wait_but_not_all_of_them_at_once() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let connecting = burst(&server, &client, 30).await?;
        server.close(VarInt::from_u32(0), b"");
        assert_eq!(server.stats().refused, 0, "before the driver has a turn");
        assert!(server.accept().await.is_none());
        server.wait_idle().await;
        assert_eq!(server.stats().refused, 30);
        for connecting in connecting {
            let refused = connecting.await.map(drop).unwrap_err();
            assert!(is_refused(&refused), "{refused}");
        }
        Ok(())
    })
}
