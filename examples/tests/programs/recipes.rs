//! Libraries that know nothing of glommio, on its sockets, as in `docs/recipes`. What
//! they want is a stream of `futures-io`, which a `TcpStream` is.

use std::convert::Infallible;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use async_tungstenite::tungstenite::Message;
use async_tungstenite::{accept_async, client_async};
use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use futures_rustls::rustls::pki_types::ServerName;
use futures_rustls::{TlsAcceptor, TlsConnector};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutor, future, spawn_local};
use glommio_hyper::{GlommioExecutor, GlommioIo};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode, client, server};
use hyper_util::service::TowerToHyperService;
use tower::{Service, ServiceExt, service_fn};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(60);

fn run(test: impl Future<Output = Result>) {
    let in_time = LocalExecutor::default().run(future::timeout(PATIENCE, test));
    let result = in_time.expect("the test does not hang");
    result.expect("the test's operations succeed");
}

/// WebSockets, by `async-tungstenite`.
#[test]
fn websocket() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = spawn_local(async move {
            let mut socket = accept_async(listener.accept().await?).await?;
            let mut echoed = 0;
            while let Some(message) = socket.next().await {
                match message? {
                    message @ (Message::Text(_) | Message::Binary(_)) => {
                        socket.send(message).await?;
                        echoed += 1;
                    }
                    Message::Close(_) => break,
                    _ => {}
                }
            }
            Ok::<_, Box<dyn Error>>(echoed)
        });
        let stream = TcpStream::connect(address).await?;
        let (mut socket, _response) = client_async("ws://localhost/", stream).await?;
        for n in 0..100 {
            let sent = Message::text(format!("number {n}"));
            socket.send(sent.clone()).await?;
            let received = socket.next().await.expect("it is open")?;
            assert_eq!(received, sent);
        }
        let sent = Message::binary(vec![7; 1 << 20]);
        socket.send(sent.clone()).await?;
        assert_eq!(socket.next().await.expect("it is open")?, sent);
        socket.close(None).await?;
        assert_eq!(server.await?, 101);
        Ok(())
    });
}

fn acceptor() -> Result<TlsAcceptor> {
    Ok(TlsAcceptor::from(crate::tls::server_config()?))
}

fn connector(authority: &[u8]) -> Result<TlsConnector> {
    Ok(TlsConnector::from(crate::tls::client_config(authority)?))
}

/// TLS, by `futures-rustls`.
#[test]
fn tls() {
    if !crate::tls::has_instructions() {
        return;
    }
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let acceptor = acceptor()?;
        let server = spawn_local(async move {
            let mut stream = acceptor.accept(listener.accept().await?).await?;
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await?;
            stream.write_all(&received).await?;
            stream.close().await?;
            // One that does not trust us.
            let refused = acceptor.accept(listener.accept().await?).await;
            assert!(refused.is_err());
            Ok::<_, Box<dyn Error>>(())
        });
        let name = ServerName::try_from("localhost")?;
        let sent = vec![5; 1 << 20];
        let connecting = connector(crate::tls::AUTHORITY)?;
        let stream = TcpStream::connect(address).await?;
        let mut stream = connecting.connect(name.clone(), stream).await?;
        stream.write_all(&sent).await?;
        stream.close().await?;
        let mut received = Vec::new();
        stream.read_to_end(&mut received).await?;
        assert!(received == sent, "the bytes differ");
        let stream = TcpStream::connect(address).await?;
        let error = connector(b"")?
            .connect(name, stream)
            .await
            .expect_err("its authority is unknown");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{error}");
        server.await
    });
}

/// What the tower answers. It sleeps and holds an `Rc`: nothing of it is `Send`.
fn tower()
-> impl Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible, Future: 'static>
+ Clone
+ 'static {
    let shared = Rc::new("answered by ");
    let answer = service_fn(move |request: Request<Incoming>| {
        let shared = Rc::clone(&shared);
        async move {
            sleep(Duration::from_millis(1)).await;
            let text = format!("{shared}{}", request.uri().path());
            Ok(Response::new(Full::new(Bytes::from(text))))
        }
    });
    let with_status = answer.map_response(|mut response: Response<_>| {
        *response.status_mut() = StatusCode::CREATED;
        response
    });
    with_status.map_request(|mut request: Request<_>| {
        *request.uri_mut() = "/layer".parse().expect("it is a path");
        request
    })
}

/// Services and layers of `tower`, under HTTP/1 and HTTP/2.
#[test]
fn services_of_tower() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let serving = spawn_local(async move {
            let service = TowerToHyperService::new(tower());
            let io = GlommioIo::new(listener.accept().await?);
            let http = server::conn::http1::Builder::new();
            http.serve_connection(io, service.clone()).await?;
            let io = GlommioIo::new(listener.accept().await?);
            let http = server::conn::http2::Builder::new(GlommioExecutor::new());
            http.serve_connection(io, service).await?;
            Ok::<_, Box<dyn Error>>(())
        });
        let request = || {
            let request = Request::get("http://localhost/").header("host", "localhost");
            request.body(Full::<Bytes>::default())
        };
        let check = async |response: Response<Incoming>| {
            assert_eq!(response.status(), StatusCode::CREATED);
            let body = response.into_body().collect().await?.to_bytes();
            assert_eq!(body, "answered by /layer");
            Ok::<_, Box<dyn Error>>(())
        };
        let io = GlommioIo::new(TcpStream::connect(address).await?);
        let (mut sender, connection) = client::conn::http1::handshake(io).await?;
        let connection = spawn_local(connection);
        for _ in 0..3 {
            sender.ready().await?;
            check(sender.send_request(request()?).await?).await?;
        }
        drop(sender);
        connection.await?;
        let io = GlommioIo::new(TcpStream::connect(address).await?);
        let executor = GlommioExecutor::new();
        let (mut sender, connection) = client::conn::http2::handshake(executor, io).await?;
        let connection = spawn_local(connection);
        for _ in 0..3 {
            check(sender.send_request(request()?).await?).await?;
        }
        drop(sender);
        connection.await?;
        serving.await
    });
}
