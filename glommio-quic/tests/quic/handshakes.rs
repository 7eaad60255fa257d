//! Who gets a connection, and who does not.

use crate::peer::{
    CERTIFICATE, KEY, Result, client, client_config, impatient, loopback, pair, run, server,
    server_config,
};
use futures_lite::future::zip;
use glommio::spawn_local;
use glommio_quic::crypto::{HandshakeData, QuicClientConfig, QuicServerConfig, provider};
use glommio_quic::quinn_proto::{TokenLog, TokenReuseError, ValidationTokenConfig};
use glommio_quic::rustls::RootCertStore;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use glommio_quic::{ConnectError, ConnectionError, Endpoint, TransportConfig, VarInt, rustls};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[test]
fn a_client_is_asked_to_prove_its_address() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let connecting = client.connect(server.local_addr()?, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        assert!(!incoming.remote_address_validated() && incoming.may_retry());
        assert_eq!(incoming.remote_address(), client.local_addr()?);
        let asked_first = *incoming.orig_dst_cid();
        incoming.retry()?;

        let incoming = server.accept().await.ok_or("closed")?;
        assert!(incoming.remote_address_validated());
        assert_eq!(*incoming.orig_dst_cid(), asked_first);
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
        assert!(server.stats().ignored > 0);
        assert_eq!(server.stats().refused, 2);

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
        for _ in 0..4 {
            waiting.push(server.accept().await.ok_or("closed")?);
        }
        let more = glommio::timer::timeout(Duration::from_millis(50), async {
            Ok(server.accept().await)
        });
        assert!(more.await.is_err());
        assert!(server.stats().initials_ignored > 0);

        let mut accepted = Vec::new();
        for incoming in waiting {
            accepted.push(spawn_local(incoming.into_future()));
        }
        while accepted.len() < 10 {
            let incoming = server.accept().await.ok_or("closed")?;
            accepted.push(spawn_local(incoming.into_future()));
        }
        // Those of one line are not those of one connection: none is closed before all are there.
        let mut connected = Vec::new();
        for one in connecting.into_iter().chain(accepted) {
            connected.push(one.await?);
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

/// As when the program accepts, and is busy with others before it waits for the handshake.
#[test]
fn a_client_that_has_sent_and_left_before_its_handshake_was_awaited_is_still_read() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let connecting = client.connect(server.local_addr()?, "localhost")?;
        let accepted = server.accept().await.ok_or("closed")?.accept()?;
        let connection = connecting.await?;
        let mut stream = connection.open_uni().await?;
        stream.write_all(b"acknowledged").await?;
        stream.finish()?;
        assert_eq!(stream.stopped().await?, None, "all of it was received");
        connection.close(VarInt::from_u32(3), b"");
        server.wait_idle().await;

        let accepted = accepted.await?;
        let mut stream = accepted.accept_uni().await?;
        assert_eq!(stream.read_to_end(100).await?, b"acknowledged");
        assert!(matches!(
            accepted.close_reason(),
            Some(ConnectionError::ApplicationClosed(close)) if close.error_code == VarInt::from_u32(3)
        ));
        Ok(())
    })
}

#[test]
fn a_client_that_waits_to_be_accepted_outlives_the_last_handle_of_the_endpoint() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let connecting = client.connect(server.local_addr()?, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        drop(server);
        // The tasks of the endpoint have a turn.
        glommio::timer::sleep(Duration::from_millis(10)).await;
        let (accepted, connected) = zip(incoming.into_future(), connecting.into_future()).await;
        let (accepted, connected) = (accepted?, connected?);
        connected.open_uni().await?.write_all(b"a").await?;
        accepted.accept_uni().await?;
        Ok(())
    })
}

/// More than wait for the driver at a time, and all of them answered before it has a turn.
#[test]
fn clients_that_come_together_are_all_asked_to_prove_their_address_and_all_refused() -> Result {
    const CLIENTS: usize = 150;
    run(async {
        let (server, client) = (server()?, client()?);
        // On a machine that is busy with other things, all of it may take minutes.
        let mut config = server_config()?;
        config.retry_token_lifetime(Duration::from_secs(3600));
        server.set_server_config(Some(config));
        let mut config = client_config()?;
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(None);
        // What a full receive buffer loses is sent again after three times as long.
        transport.initial_rtt(Duration::from_secs(1));
        config.transport_config(Arc::new(transport));
        let (mut connecting, mut waiting) = (Vec::new(), Vec::new());
        while connecting.len() < CLIENTS {
            // Few enough for the receive buffer of the server.
            for _ in 0..CLIENTS / 10 {
                let address = server.local_addr()?;
                let one = client.connect_with(config.clone(), address, "localhost")?;
                connecting.push(spawn_local(one.into_future()));
            }
            while waiting.len() < connecting.len() {
                waiting.push(server.accept().await.ok_or("closed")?);
            }
        }
        for incoming in waiting.drain(..) {
            incoming.retry()?;
        }
        while waiting.len() < CLIENTS {
            let incoming = server.accept().await.ok_or("closed")?;
            match incoming.remote_address_validated() {
                true => waiting.push(incoming),
                // It has asked again before the answer came.
                false => incoming.retry()?,
            }
        }
        drop(waiting);
        // As are those that ask again, since the answer was lost.
        let accepting = server.clone();
        spawn_local(async move { while accepting.accept().await.is_some() {} }).detach();
        for connecting in connecting {
            let refused = connecting.await;
            assert!(
                matches!(refused, Err(ConnectionError::ConnectionClosed(_))),
                "{refused:?}"
            );
        }
        assert_eq!(server.stats().answers_dropped, 0);
        Ok(())
    })
}

struct PanickingLog;

impl TokenLog for PanickingLog {
    fn check_and_insert(
        &self,
        _: u128,
        _: SystemTime,
        _: Duration,
    ) -> std::result::Result<(), TokenReuseError> {
        panic!("a token log that panics");
    }
}

#[test]
fn a_token_log_that_panics_does_not_deafen_the_endpoint() -> Result {
    run(async {
        let mut tokens = ValidationTokenConfig::default();
        tokens.log(Arc::new(PanickingLog)).sent(1);
        let mut config = server_config()?;
        config.validation_token_config(tokens);
        let (server, client) = (Endpoint::server(config, loopback())?, client()?);
        let address = server.local_addr()?;
        let returns = impatient(Duration::from_secs(1))?;
        let connecting = client.connect_with(returns.clone(), address, "localhost")?;
        let incoming = server.accept().await.ok_or("closed")?;
        let (accepted, connected) = zip(incoming.into_future(), connecting.into_future()).await;
        let (accepted, connected) = (accepted?, connected?);
        // Behind the token.
        accepted.open_uni().await?.write_all(b"a").await?;
        connected.accept_uni().await?;

        let lost = client.connect_with(returns, address, "localhost")?.await;
        assert_eq!(lost.map(drop), Err(ConnectionError::TimedOut));
        let (_accepted, other) = pair(&server, &client).await?;
        assert_eq!(other.close_reason(), None);
        Ok(())
    })
}

/// Anyone on the path can send it again.
#[test]
fn a_server_that_would_accept_early_data_is_refused() -> Result {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE)?];
    let key = PrivateKeyDer::from_pem_slice(KEY)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    QuicServerConfig::try_from(tls.clone())?;
    tls.max_early_data_size = u32::MAX;
    let error = QuicServerConfig::try_from(tls).map(drop).unwrap_err();
    assert!(error.to_string().contains("early data"), "{error}");
    Ok(())
}

#[test]
fn what_cannot_be_sent_is_counted() -> Result {
    run(async {
        let client = client()?;
        // A socket of the loopback interface does not reach it.
        let connecting = client.connect("192.0.2.1:443".parse()?, "localhost")?;
        while client.stats().sends_failed == 0 {
            glommio::timer::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(client.stats().answers_dropped, 0);
        drop(connecting);
        Ok(())
    })
}
