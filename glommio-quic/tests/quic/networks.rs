//! Networks that lose datagrams, and clients that move to another address.

use crate::peer::{
    Result, client, client_config, loopback, pair, pattern, run, server, server_config,
};
use futures_lite::future::zip;
use glommio_quic::{Connection, Endpoint, MtuDiscoveryConfig, TransportConfig, crypto};
use std::net::UdpSocket;
use std::sync::Arc;
use support::lossy_proxy::Proxy;

async fn transfer(from: &Connection, to: &Connection, seed: u64, length: usize) -> Result {
    let sent = pattern(seed, length);
    let write = async {
        let mut send = from.open_uni().await?;
        send.write_all(&sent).await?;
        send.finish()?;
        Ok::<_, Box<dyn std::error::Error>>(send.stopped().await?)
    };
    let read = async {
        let mut stream = to.accept_uni().await?;
        Ok::<_, Box<dyn std::error::Error>>(stream.read_to_end(length).await?)
    };
    let (written, read) = zip(write, read).await;
    assert_eq!(written?, None);
    assert!(read? == sent, "{length} bytes, seed {seed}");
    Ok(())
}

async fn pair_over(
    proxy: &Proxy,
    server: &Endpoint,
    client: &Endpoint,
) -> Result<(Connection, Connection)> {
    let connecting = client.connect(proxy.address(), "localhost")?;
    let incoming = server.accept().await.ok_or("closed")?;
    let (accepted, connected) = zip(incoming.into_future(), connecting.into_future()).await;
    Ok((accepted?, connected?))
}

#[test]
fn every_byte_comes_over_a_network_that_loses() -> Result {
    run(async {
        for seed in 1..=3 {
            let (server, client) = (server()?, client()?);
            let proxy = Proxy::start(server.local_addr()?, 50_000, seed, 4)?;
            let (accepted, connection) = pair_over(&proxy, &server, &client).await?;
            transfer(&connection, &accepted, seed, 300_000).await?;
            transfer(&accepted, &connection, seed, 300_000).await?;
            assert!(proxy.lost() > 0);
            let lost = connection.stats().path.lost_packets + accepted.stats().path.lost_packets;
            assert!(lost > 0, "seed {seed}");
        }
        Ok(())
    })
}

#[test]
fn a_client_moves_while_it_sends() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        let before = accepted.remote_address();
        let moves = async {
            for _ in 0..3 {
                glommio::timer::sleep(std::time::Duration::from_millis(5)).await;
                client.rebind(UdpSocket::bind(loopback())?)?;
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        };
        let (transferred, moved) = zip(transfer(&connection, &accepted, 1, 5_000_000), moves).await;
        transferred?;
        moved?;
        // The path is validated by now, and used in both directions.
        transfer(&accepted, &connection, 2, 100_000).await?;
        transfer(&connection, &accepted, 3, 1000).await?;
        assert_ne!(accepted.remote_address(), before);
        assert_eq!(accepted.remote_address(), client.local_addr()?);
        assert_eq!(server.open_connections(), 1);
        Ok(())
    })
}

#[test]
fn a_client_that_only_reads_moves() -> Result {
    run(async {
        let (server, client) = (server()?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        transfer(&accepted, &connection, 1, 1000).await?;
        // Its acknowledgements have left, most likely.
        glommio::timer::sleep(std::time::Duration::from_millis(200)).await;
        client.rebind(UdpSocket::bind(loopback())?)?;
        // The server has to be told where to send to.
        transfer(&accepted, &connection, 2, 100_000).await?;
        assert_eq!(accepted.remote_address(), client.local_addr()?);
        Ok(())
    })
}

/// What is sent by one call is bounded in bytes, too.
#[test]
fn long_datagrams() -> Result {
    run(async {
        let mut endpoint = crypto::endpoint_config()?;
        endpoint.max_udp_payload_size(9000)?;
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(9000);
        let mut transport = TransportConfig::default();
        transport.mtu_discovery_config(Some(discovery));
        let transport = Arc::new(transport);
        let (mut server, mut client) = (server_config()?, client_config()?);
        server.transport_config(Arc::clone(&transport));
        client.transport_config(transport);
        let server = Endpoint::new(endpoint.clone(), Some(server), UdpSocket::bind(loopback())?)?;
        let config = client;
        let client = Endpoint::new(endpoint, None, UdpSocket::bind(loopback())?)?;
        client.set_default_client_config(config);

        let (accepted, connection) = pair(&server, &client).await?;
        for seed in 0..4 {
            transfer(&connection, &accepted, seed, 2_000_000).await?;
        }
        assert!(
            connection.stats().path.current_mtu > 8000,
            "{:?}",
            connection.stats().path
        );
        Ok(())
    })
}
