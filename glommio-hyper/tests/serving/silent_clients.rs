//! Clients of HTTP/2 that connect and then say little or nothing.

use std::time::Instant;

use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A frame of settings, with none in it.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

const SHORT: Duration = Duration::from_millis(20);

/// Clients that have sent nothing, half a preface, and settings, of which the server knows.
async fn silent_clients(server: &Server, all_sent: &[&[u8]]) -> Result<Vec<TcpStream>> {
    let mut clients = Vec::new();
    for sent in all_sent {
        let mut client = TcpStream::connect(server.address).await?;
        client.write_all(sent).await?;
        // The server begins with its settings.
        client.read_exact(&mut [0; 9]).await?;
        clients.push(client);
    }
    Ok(clients)
}

/// Whatever still comes, and then the end.
async fn read_to_the_end(clients: Vec<TcpStream>) {
    for mut client in clients {
        // It may also have been reset, as there were bytes that the server had not read.
        let _ = client.read_to_end(&mut Vec::new()).await;
    }
}

/// A time limit for handshakes is on, whether or not it is asked for.
#[test]
fn handshakes_have_a_limit_by_default() {
    let builder = format!("{:?}", Connections::builder());
    assert!(
        builder.contains("handshake_timeout: Some(10s)"),
        "{builder}"
    );
}

#[test]
fn clients_that_do_not_begin_are_cut_off() {
    run(async {
        let connections = Connections::builder().handshake_timeout(SHORT).build();
        let server = Server::start_with(Version::Http2, connections)?;
        let begin = Instant::now();
        let clients = silent_clients(&server, &[b"", &PREFACE[..12], &PREFACE[..23]]).await?;
        read_to_the_end(clients).await;
        assert!(begin.elapsed() >= SHORT, "each has its time");
        assert!(!server.connections.is_shut_down());
        server.stop().await;
        Ok(())
    });
}

/// A byte at a time does not help: the limit is for all of the preface.
#[test]
fn a_preface_in_drops_is_cut_off() {
    run(async {
        let connections = Connections::builder().handshake_timeout(SHORT).build();
        let server = Server::start_with(Version::Http2, connections)?;
        let mut clients = silent_clients(&server, &[b""]).await?;
        let client = &mut clients[0];
        let mut sent = 0;
        while client.write_all(&PREFACE[..1]).await.is_ok() {
            sent += 1;
            assert!(sent < 24, "it was cut off before the end of the preface");
            sleep(SHORT / 2).await;
        }
        server.stop().await;
        Ok(())
    });
}

/// The limit is for the handshake, and not for what comes after.
#[test]
fn a_client_that_has_begun_may_be_idle() {
    run(async {
        let connections = Connections::builder().handshake_timeout(SHORT).build();
        let server = Server::start_with(Version::Http2, connections)?;
        let (mut client, connection) = Client::connect(Version::Http2, server.address).await?;
        for _ in 0..2 {
            assert_eq!(text(client.send(get("/")).await?).await?, "hello");
            sleep(SHORT * 3).await;
        }
        drop(client);
        connection.await?;
        server.stop().await;
        Ok(())
    });
}

#[test]
fn a_shutdown_ends_beside_clients_that_have_not_begun() {
    run(async {
        let connections = Connections::builder().handshake_timeout(SHORT).build();
        let server = Server::start_with(Version::Http2, connections)?;
        let clients = silent_clients(&server, &[b"", &PREFACE[..12]]).await?;
        server.stop().await;
        read_to_the_end(clients).await;
        Ok(())
    });
}

/// They do not answer to the goodbye, either, but the keep-alive notices.
#[test]
fn a_shutdown_ends_beside_clients_that_have_fallen_silent() {
    run(async {
        let connections = Connections::builder().keep_alive(SHORT, SHORT).build();
        let server = Server::start_with(Version::Http2, connections)?;
        let settings = [PREFACE, SETTINGS].concat();
        let clients = silent_clients(&server, &[PREFACE, &settings]).await?;
        server.stop().await;
        read_to_the_end(clients).await;
        Ok(())
    });
}

/// Without any other limit.
#[test]
fn a_shutdown_with_a_limit_ends_beside_silent_clients() {
    run(async {
        let connections = Connections::builder().handshake_timeout(None).build();
        let server = Server::start_with(Version::Http2, connections)?;
        let settings = [PREFACE, SETTINGS].concat();
        let all_sent: [&[u8]; 4] = [b"", &PREFACE[..12], PREFACE, &settings];
        let clients = silent_clients(&server, &all_sent).await?;
        let (mut client, connection) = Client::connect(Version::Http2, server.address).await?;
        assert_eq!(text(client.send(get("/")).await?).await?, "hello");

        drop(server.connections.shutdown());
        connection.await?;
        while server.connections.open() > all_sent.len() {
            sleep(Duration::from_millis(1)).await;
        }
        let begin = Instant::now();
        let closed = server.connections.shutdown_within(SHORT).await;
        assert_eq!(closed, all_sent.len());
        assert!(begin.elapsed() >= SHORT);
        read_to_the_end(clients).await;
        // All are closed, so there is nothing left to wait for, nor any limit.
        server.stop().await;
        Ok(())
    });
}

/// A handler that does not come to an end is dropped with its connection, of either version.
#[test]
fn a_shutdown_with_a_limit_drops_requests_that_take_too_long() {
    run(async {
        for version in VERSIONS {
            let server = Server::start(version)?;
            let (mut client, connection) = Client::connect(version, server.address).await?;
            let asking = spawn_local(async move { client.send(get("/slow/3600000")).await });
            while server.begun.get() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(server.connections.shutdown_within(SHORT).await, 1);
            asking.await.expect_err("it is not answered");
            let _ended = connection.await;
            assert_eq!(server.answered.get(), 0);
            // The handler is dropped, and what it shared with it.
            while Rc::strong_count(&server.begun) > 2 {
                sleep(Duration::from_millis(1)).await;
            }
            server.stop().await;
        }
        Ok(())
    });
}

/// All that has begun is answered within the limit, and nothing is closed.
#[test]
fn a_shutdown_with_a_limit_ends_before_it_where_it_can() {
    run(async {
        for version in VERSIONS {
            let server = Server::start(version)?;
            let (mut client, connection) = Client::connect(version, server.address).await?;
            let asking = spawn_local(async move {
                let response = client.send(get("/slow/20")).await?;
                text(response).await
            });
            while server.begun.get() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(server.connections.shutdown_within(PATIENCE * 2).await, 0);
            assert_eq!(asking.await?, "at last");
            connection.await?;
            // Nor are those closed that come now: they are told to finish.
            let late = server.connections.shutdown_within(Duration::ZERO);
            assert_eq!(late.await, 0);
            server.stop().await;
        }
        Ok(())
    });
}
