//! Finishing: what has begun is answered, and nothing else is waited for.

use futures_lite::AsyncReadExt;
use futures_lite::future::poll_once;

use super::*;

#[test]
fn a_shutdown_without_connections_is_done_at_once() {
    run(async {
        let connections = Connections::new();
        assert!(!connections.is_shut_down());
        connections.shutdown().await;
        assert!(connections.is_shut_down());
        connections.shutdown().await;
        Ok(())
    });
}

#[test]
fn idle_connections_end_at_once() {
    run(async {
        for version in VERSIONS {
            let server = Server::start(version)?;
            let mut clients = Vec::new();
            for _ in 0..5 {
                let (mut client, connection) = Client::connect(version, server.address).await?;
                assert_eq!(text(client.send(get("/")).await?).await?, "hello");
                clients.push((client, connection));
            }
            server.stop().await;
            for (mut client, connection) in clients {
                connection.await?;
                client.send(get("/")).await.expect_err("it has ended");
            }
        }
        Ok(())
    });
}

#[test]
fn a_request_that_has_begun_is_answered() {
    run(async {
        for version in VERSIONS {
            let server = Server::start(version)?;
            let (mut client, connection) = Client::connect(version, server.address).await?;
            let asking = spawn_local(async move {
                let response = client.send(get("/slow/30")).await?;
                text(response).await
            });
            while server.begun.get() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            let (begun, answered) = (Rc::clone(&server.begun), Rc::clone(&server.answered));
            server.stop().await;
            assert_eq!((begun.get(), answered.get()), (1, 1), "it was waited for");
            assert_eq!(asking.await?, "at last");
            connection.await?;
        }
        Ok(())
    });
}

/// Asked at the call, and given up; a second call waits again.
#[test]
fn a_shutdown_that_is_given_up_goes_on() {
    run(async {
        let server = Server::start(Version::Http1)?;
        let (mut client, connection) = Client::connect(Version::Http1, server.address).await?;
        let asking = spawn_local(async move {
            let response = client.send(get("/slow/20")).await?;
            text(response).await
        });
        while server.begun.get() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        drop(server.connections.shutdown());
        assert!(poll_once(server.connections.shutdown()).await.is_none());
        let limited = future::timeout(Duration::from_nanos(1), server.connections.shutdown());
        assert!(limited.await.is_err());
        server.stop().await;
        assert_eq!(asking.await?, "at last");
        connection.await?;
        Ok(())
    });
}

/// One that comes too late is told so, and its task ends.
#[test]
fn a_connection_after_the_shutdown_ends_by_itself() {
    run(async {
        let server = Server::start(Version::Http1)?;
        server.connections.shutdown().await;
        let mut stream = TcpStream::connect(server.address).await?;
        assert_eq!(stream.read(&mut [0; 1]).await?, 0);
        assert_eq!(server.begun.get(), 0);
        server.stop().await;
        Ok(())
    });
}

/// A connection that is dropped is not waited for.
#[test]
fn a_dropped_connection_counts_no_more() {
    run(async {
        let connections = Connections::new();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let _client = TcpStream::connect(listener.local_addr()?).await?;
        let io = GlommioIo::new(listener.accept().await?);
        let service =
            service_fn(|_| async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::new()))) });
        let mut connection = Box::pin({
            let http = server::conn::http1::Builder::new();
            connections.watch(http.serve_connection(io, service))
        });
        assert!(poll_once(&mut connection).await.is_none());
        let mut ending = Box::pin(connections.shutdown());
        assert!(poll_once(&mut ending).await.is_none());
        drop(connection);
        ending.await;
        Ok(())
    });
}

/// The head of its request stays in pieces, until its time is over.
#[test]
fn a_head_that_has_begun_is_waited_for_no_longer_than_its_timeout() {
    use futures_lite::AsyncWriteExt;

    run(async {
        let limit = Duration::from_millis(300);
        let connections = Connections::builder().handshake_timeout(limit).build();
        let server = Server::start_with(Version::Http1, connections)?;
        let mut stream = TcpStream::connect(server.address).await?;
        stream.write_all(b"GET / HTT").await?;
        // It has been read, as one that follows has been answered.
        let (mut client, connection) = Client::connect(Version::Http1, server.address).await?;
        text(client.send(get("/")).await?).await?;
        let begin = std::time::Instant::now();
        let connections = server.connections.clone();
        let in_time = future::timeout(PATIENCE / 2, server.stop()).await;
        assert!(in_time.is_ok(), "after {:?}", begin.elapsed());
        assert!(connections.is_shut_down());
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await?;
        drop(client);
        connection.await?;
        Ok(())
    });
}
