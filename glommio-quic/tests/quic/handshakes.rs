//! Who gets a connection, and who does not.

use crate::peer::server_config;
use crate::peer::{Result, client, client_config, impatient, loopback, pair, run, server};
use futures_lite::future::{poll_once, zip};
use glommio::spawn_local;
use glommio_quic::crypto::{HandshakeData, QuicClientConfig, provider};
use glommio_quic::rustls::RootCertStore;
use glommio_quic::{ConnectError, ConnectionError, Endpoint, VarInt, rustls};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_client_is_asked_to_prove_its_address() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let connecting = client.connect(server.local_addr()?, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        assert!(!incoming.remote_address_validated() && incoming.may_retry());
        assert_eq!(incoming.remote_address(), client.local_addr()?);
        incoming.retry()?;

        let incoming = server.accept().await.ok_or("closed")?;
        assert!(incoming.remote_address_validated());
        let incoming = incoming
            .retry()
            .expect_err("once is enough")
            .into_incoming();
        let (accepted, connected) = zip(incoming.into_future(), connecting.into_future()).await;
        accepted?;
        connected?;
        Ok(())
    })
}

#[test]
fn refused_dropped_and_ignored_clients() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let address = server.local_addr()?;
        let is_refused = |error: ConnectionError| match error {
            ConnectionError::ConnectionClosed(close) => {
                close.error_code == glommio_quic::TransportErrorCode::CONNECTION_REFUSED
            }
            _ => false,
        };

        let connecting = client.connect(address, "localhost")?;
        server.accept().await.ok_or("closed")?.refuse();
        assert!(is_refused(connecting.await.unwrap_err()));

        let connecting = client.connect(address, "localhost")?;
        drop(server.accept().await.ok_or("closed")?);
        assert!(is_refused(connecting.await.unwrap_err()));

        let impatient = impatient(Duration::from_millis(300))?;
        let connecting = client.connect_with(impatient, address, "localhost")?;
        let ignore = async {
            loop {
                server.accept().await.expect("not closed").ignore();
            }
        };
        let result = futures_lite::future::or(async { connecting.await.map(drop) }, ignore).await;
        assert_eq!(result, Err(ConnectionError::TimedOut));

        // A server without a configuration.
        server.set_server_config(None);
        let impatient = self::impatient(Duration::from_millis(300))?;
        let connecting = client.connect_with(impatient, address, "localhost")?;
        assert!(connecting.await.is_err());
        Ok(())
    })
}

#[test]
fn more_clients_than_may_wait_come_later() -> Result {
    run(async {
        let mut config = server_config()?;
        config.max_incoming(4);
        let server = Endpoint::server(config, loopback())?;
        let client = client()?;
        let mut connecting = Vec::new();
        for _ in 0..10 {
            let one = client.connect(server.local_addr()?, "localhost")?;
            connecting.push(spawn_local(one.into_future()));
        }
        // All have asked, and some of them twice.
        glommio::timer::sleep(Duration::from_millis(1500)).await;
        let mut waiting = Vec::new();
        while let Some(incoming) = poll_once(server.accept()).await {
            waiting.push(incoming.ok_or("closed")?);
        }
        assert_eq!(waiting.len(), 4);

        let mut accepted = Vec::new();
        for incoming in waiting {
            accepted.push(spawn_local(incoming.into_future()));
        }
        while accepted.len() < 10 {
            let incoming = server.accept().await.ok_or("closed")?;
            accepted.push(spawn_local(incoming.into_future()));
        }
        for (one, other) in connecting.into_iter().zip(accepted) {
            one.await?;
            other.await?;
        }
        Ok(())
    })
}

#[test]
fn a_stranger_is_not_trusted() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let trusts_none = glommio_quic::crypto::client_config(RootCertStore::empty())?;
        let connecting = client.connect_with(trusts_none, server.local_addr()?, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let (accepted, connected) = zip(incoming.into_future(), connecting.into_future()).await;
        let connected = connected.unwrap_err();
        assert!(connected.to_string().contains("certificate"), "{connected}");
        assert!(accepted.is_err());

        let connecting = client.connect(server.local_addr()?, "elsewhere")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let (accepted, connected) = zip(incoming.into_future(), connecting.into_future()).await;
        assert!(accepted.is_err() && connected.is_err());
        Ok(())
    })
}

#[test]
fn what_the_handshake_has_told() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let data = accepted.handshake_data().ok_or("none")?;
        let data = data
            .downcast::<HandshakeData>()
            .expect("that of this crate");
        assert_eq!(data.server_name.as_deref(), Some("localhost"));
        assert!(connection.peer_identity().is_some() && accepted.peer_identity().is_none());
        let (mut here, mut there) = ([0; 32], [0; 32]);
        let export = |connection: &glommio_quic::Connection, secret: &mut [u8]| {
            connection.export_keying_material(secret, b"label", b"context")
        };
        export(&accepted, &mut here).expect("32 bytes");
        export(&connection, &mut there).expect("32 bytes");
        assert_eq!(here, there);
        assert_ne!(here, [0; 32]);
        Ok(())
    })
}

#[test]
fn what_cannot_be_connected_to() -> Result {
    run(async {
        let client = Endpoint::client(loopback())?;
        let address = client.local_addr()?;
        let connect = |addr, name| client.connect(addr, name).map(drop).unwrap_err();
        assert_eq!(
            connect(address, "localhost"),
            ConnectError::NoDefaultClientConfig
        );
        client.set_default_client_config(client_config()?);
        assert!(matches!(
            connect(address, "not a name"),
            ConnectError::InvalidServerName(_)
        ));
        let v6 = "[::1]:443".parse()?;
        assert_eq!(
            connect(v6, "localhost"),
            ConnectError::InvalidRemoteAddress(v6)
        );
        assert!(matches!(
            connect(loopback(), "localhost"),
            ConnectError::InvalidRemoteAddress(_)
        ));
        client.close(VarInt::from_u32(0), b"");
        assert_eq!(
            connect(address, "localhost"),
            ConnectError::EndpointStopping
        );
        Ok(())
    })
}

/// A provider without QUIC is an error, not a panic in the first handshake.
#[test]
fn a_provider_without_quic() {
    let mut without = provider();
    without.cipher_suites.clear();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(without));
    assert!(
        config
            .with_protocol_versions(&[&rustls::version::TLS13])
            .is_err()
    );

    let mut second = provider();
    second.cipher_suites.remove(0);
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(second))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("it has one of TLS 1.3")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let error = QuicClientConfig::try_from(config)
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(error.contains("AES_128_GCM"), "{error}");
}
