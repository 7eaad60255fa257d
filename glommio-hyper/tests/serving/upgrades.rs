//! Connections that go on as WebSockets.

use async_tungstenite::tungstenite::Message;
use async_tungstenite::tungstenite::handshake::derive_accept_key;
use async_tungstenite::tungstenite::protocol::Role;
use async_tungstenite::{WebSocketStream, client_async};
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio_hyper::{ConnectionError, UpgradableIo, UpgradedIo};
use hyper::StatusCode;
use hyper::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};

use super::*;

type Conversations = Rc<Cell<Vec<&'static str>>>;

fn note(ended: &Conversations, how: &'static str) {
    let mut all = ended.take();
    all.push(how);
    ended.set(all);
}

/// Echoes until the client or the server ends; `panic` panics.
async fn converse(
    mut request: Request<Incoming>,
    connections: Connections,
    ended: Conversations,
) -> Result {
    let io = UpgradedIo::new(hyper::upgrade::on(&mut request).await?);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    let ending = connections.ending();
    loop {
        let message = async { socket.next().await };
        let shutdown = async {
            ending.cancelled().await;
            None
        };
        match futures_lite::future::or(message, shutdown).await {
            None if ending.is_cancelled() => break note(&ended, "shut down"),
            None => break note(&ended, "end of stream"),
            Some(Ok(Message::Close(_))) => break note(&ended, "closed"),
            Some(message) => {
                let message = message?;
                assert_ne!(message, Message::text("panic"), "as asked");
                socket.send(message).await?;
            }
        }
    }
    socket.close(None).await?;
    Ok(())
}

/// Accepts connections that may be upgraded.
fn serve(connections: &Connections) -> Result<(SocketAddr, Conversations, Task<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let ended = Conversations::default();
    let shared = (connections.clone(), Rc::clone(&ended));
    let accepting = spawn_local(async move {
        while let Ok(stream) = listener.accept().await {
            let (connections, ended) = shared.clone();
            let watched = connections.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let key = request.headers().get(SEC_WEBSOCKET_KEY).cloned();
                if key.is_some() {
                    let conversation = converse(request, connections.clone(), Rc::clone(&ended));
                    spawn_local(connections.watch_upgraded(conversation)).detach();
                }
                async move {
                    let mut response = Response::new(Full::<Bytes>::from("hello"));
                    if let Some(key) = key {
                        *response.body_mut() = Full::default();
                        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                        let accept = derive_accept_key(key.as_bytes());
                        let headers = response.headers_mut();
                        headers.insert(CONNECTION, "upgrade".parse()?);
                        headers.insert(UPGRADE, "websocket".parse()?);
                        headers.insert(SEC_WEBSOCKET_ACCEPT, accept.parse()?);
                    }
                    Ok::<_, hyper::header::InvalidHeaderValue>(response)
                }
            });
            let io = GlommioIo::new(stream).upgradable();
            let connection = watched.http1().serve_connection(io, service);
            spawn_local(watched.watch(connection.with_upgrades())).detach();
        }
    });
    Ok((address, ended, accepting))
}

#[test]
fn a_websocket_echoes() {
    run(async {
        let connections = Connections::new();
        let (address, ended, accepting) = serve(&connections)?;
        let stream = TcpStream::connect(address).await?;
        let (mut socket, _response) = client_async("ws://localhost/", stream).await?;
        for n in 0..100 {
            let sent = Message::text(format!("number {n}"));
            socket.send(sent.clone()).await?;
            assert_eq!(socket.next().await.expect("it is open")?, sent);
        }
        let sent = Message::binary(vec![7; 1 << 20]);
        socket.send(sent.clone()).await?;
        assert_eq!(socket.next().await.expect("it is open")?, sent);
        socket.close(None).await?;
        while socket.next().await.is_some() {}
        accepting.cancel().await;
        connections.shutdown().await;
        assert_eq!(ended.take(), ["closed"]);
        Ok(())
    });
}

/// What the client sends along with the request is not lost.
#[test]
fn bytes_that_came_with_the_request_are_read() {
    run(async {
        let connections = Connections::new();
        let (address, _ended, accepting) = serve(&connections)?;
        let mut stream = TcpStream::connect(address).await?;
        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
            sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
        // A text of two bytes, masked with zeros.
        let message = [0x81, 0x82, 0, 0, 0, 0, b'h', b'i'];
        stream.write_all(&[&request[..], &message].concat()).await?;
        let mut received = Vec::new();
        while !received.ends_with(&[0x81, 2, b'h', b'i']) {
            let mut byte = [0];
            stream.read_exact(&mut byte).await?;
            received.extend(byte);
        }
        assert!(received.starts_with(b"HTTP/1.1 101 "));
        drop(stream);
        accepting.cancel().await;
        connections.shutdown().await;
        Ok(())
    });
}

#[test]
fn a_shutdown_waits_for_upgraded_connections_which_learn_of_it() {
    run(async {
        let connections = Connections::new();
        let (address, ended, accepting) = serve(&connections)?;
        let stream = TcpStream::connect(address).await?;
        let (mut socket, _response) = client_async("ws://localhost/", stream).await?;
        accepting.cancel().await;
        connections.shutdown().await;
        assert_eq!(ended.take(), ["shut down"]);
        let last = socket.next().await.expect("it says goodbye")?;
        assert!(matches!(last, Message::Close(_)), "{last}");
        Ok(())
    });
}

/// One that does not end is closed when the time is over.
#[test]
fn a_shutdown_with_a_limit_closes_upgraded_connections() {
    run(async {
        let connections = Connections::new();
        let conversation = connections.watch_upgraded(std::future::pending::<Result>());
        let conversation = spawn_local(conversation);
        let closed = connections.shutdown_within(Duration::from_millis(1));
        assert_eq!(closed.await, 1);
        let error = conversation.await.expect_err("it never ends by itself");
        assert!(matches!(error, ConnectionError::ShutDown), "{error}");
        connections.shutdown().await;
        Ok(())
    });
}

#[test]
fn a_panic_in_a_conversation_closes_its_connection() {
    run(async {
        let connections = Connections::new();
        let (address, _ended, accepting) = serve(&connections)?;
        for panics in 1..3 {
            let stream = TcpStream::connect(address).await?;
            let (mut socket, _response) = client_async("ws://localhost/", stream).await?;
            socket.send(Message::text("panic")).await?;
            assert!(!matches!(socket.next().await, Some(Ok(_))), "it is closed");
            assert_eq!(connections.panics(), panics);
        }
        accepting.cancel().await;
        connections.shutdown().await;
        Ok(())
    });
}

/// On the client's side as well, and the stream comes back.
#[test]
fn a_client_can_upgrade() {
    run(async {
        let connections = Connections::new();
        let (address, _ended, accepting) = serve(&connections)?;
        let io = GlommioIo::new(TcpStream::connect(address).await?).upgradable();
        let (mut sender, connection) = client::conn::http1::handshake(io).await?;
        spawn_local(connection.with_upgrades()).detach();
        let request = Request::get("/")
            .header("host", "localhost")
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "websocket")
            .header("sec-websocket-version", "13")
            .header(SEC_WEBSOCKET_KEY, "AAAAAAAAAAAAAAAAAAAAAA==")
            .body(Full::<Bytes>::default())?;
        let mut response = sender.send_request(request).await?;
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        let upgraded = hyper::upgrade::on(&mut response).await?;
        let mut socket =
            WebSocketStream::from_raw_socket(UpgradedIo::new(upgraded), Role::Client, None).await;
        socket.send(Message::text("hi")).await?;
        assert_eq!(
            socket.next().await.expect("it is open")?,
            Message::text("hi")
        );

        let io = GlommioIo::new(TcpStream::connect(address).await?).upgradable();
        let (mut sender, connection) = client::conn::http1::handshake::<_, Full<Bytes>>(io).await?;
        let connection = spawn_local(connection.without_shutdown());
        sender.ready().await?;
        drop(sender);
        let stream: TcpStream = UpgradableIo::into_inner(connection.await?.io);
        assert_eq!(stream.peer_addr()?, address);
        drop((stream, socket));
        accepting.cancel().await;
        connections.shutdown().await;
        Ok(())
    });
}
