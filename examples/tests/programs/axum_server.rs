//! The example `axum_server`, by HTTP/1.1 and by all protocols.

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_lite::{StreamExt, stream};
use futures_rustls::TlsConnector;
use glommio::sync::CancellationToken;
use glommio::{LocalExecutor, future, net, spawn_local};
use glommio_h3::{Client, alt_svc};
use glommio_hyper::{GlommioExecutor, GlommioIo};
use glommio_quic::crypto::{self, QuicClientConfig};
use glommio_quic::rustls::pki_types::{CertificateDer, pem::PemObject};
use glommio_quic::{ClientConfig, Endpoint, rustls};
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use hyper::client::conn::{http1, http2};
use hyper::header::{ALT_SVC, HOST};
use hyper::{Request, Response, StatusCode};

use crate::http_servers::{request, response, status};
use crate::servers::{PATIENCE, Server, assert_closed, await_that, noise};
use crate::tls::{AUTHORITY, has_instructions};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;
type AnyBody = Pin<Box<dyn Body<Data = Bytes, Error = Infallible>>>;

/// Begins a request of axum whose handler waits for the rest of its body, and waits until it has
/// begun: the server, which allows one at a time, refuses those of `other`.
fn begin(client: &mut TcpStream, other: &mut TcpStream) {
    let head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\na ";
    client.write_all(head.as_bytes()).expect("it reads");
    await_that("a refusal", || status(other, "/") == 503);
}

/// tower's `GlobalConcurrencyLimitLayer`, below `LoadShedLayer`; and a handler that takes too long
/// gives its permit back, since the limit of time is around the router.
#[test]
fn axum_has_limits_and_contains_panics() {
    let server = Server::of("axum_server", &["--request-timeout", "1s", "--shards", "1"]);
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!(status(&mut first, "/slow/long"), 400);
    assert_eq!(status(&mut first, "/nothing"), 404);
    let sent = Instant::now();
    assert_eq!(status(&mut first, "/slow/3600000"), 504);
    assert!(sent.elapsed() >= Duration::from_secs(1));
    first
        .write_all(request("/panic").as_bytes())
        .expect("it reads");
    assert_closed(&mut first);
    assert_eq!(status(&mut second, "/"), 200);
    let server = Server::of("axum_server", &["--max-requests", "1", "--shards", "1"]);
    let (mut third, mut second) = (server.connect(), server.connect());
    begin(&mut third, &mut second);
    third.write_all(b"body").expect("it reads");
    assert_eq!(response(&mut third), Some((200, b"a body".to_vec())));
    assert_eq!(status(&mut second, "/"), 200, "it is free again");
}

#[test]
fn requests_that_have_begun_are_answered_at_the_end() {
    let server = Server::of("axum_server", &["--max-requests", "1", "--shards", "1"]);
    let (mut busy, mut idle) = (server.connect(), server.connect());
    begin(&mut busy, &mut idle);
    server.press_ctrl_c();
    assert_closed(&mut idle);
    busy.write_all(b"body").expect("it reads");
    assert_eq!(response(&mut busy), Some((200, b"a body".to_vec())));
    assert_closed(&mut busy);
    assert_eq!(server.ended(), "ended\n");
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let arguments = ["--max-requests", "1", "--grace", "1h", "--shards", "1"];
    let server = Server::of("axum_server", &arguments);
    let (mut busy, mut idle) = (server.connect(), server.connect());
    begin(&mut busy, &mut idle);
    server.press_ctrl_c();
    assert_closed(&mut idle);
    server.press_ctrl_c();
    assert_eq!(server.end().code(), Some(1));
}

fn run(test: impl Future<Output = Result>) {
    let in_time = LocalExecutor::default().run(future::timeout(PATIENCE, test));
    let result = in_time.expect("the test does not hang");
    result.expect("the test's operations succeed");
}

/// TLS of a client that speaks this protocol alone.
fn tls(protocol: &str) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY)?)?;
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.into()];
    Ok(config)
}

/// What the server answers on a new connection.
async fn ask(
    server: SocketAddr,
    protocol: &str,
    request: Request<AnyBody>,
) -> Result<Response<Bytes>> {
    if protocol == "h3" {
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls(protocol)?)?));
        let quic = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let connection = quic.connect_with(config, server, "localhost")?.await?;
        let client = Client::new(connection).await?;
        let answer = collect(client.send(request).await?).await;
        // The server hears of the end before this executor may end.
        drop(client);
        quic.wait_idle().await;
        return answer;
    }
    let connector = TlsConnector::from(Arc::new(tls(protocol)?));
    let stream = net::TcpStream::connect(server).await?;
    let stream = connector.connect("localhost".try_into()?, stream).await?;
    let chosen = stream.get_ref().1.alpn_protocol();
    assert_eq!(chosen, Some(protocol.as_bytes()));
    let io = GlommioIo::new(stream);
    if protocol == "h2" {
        let (mut sender, connection) = http2::handshake(GlommioExecutor::new(), io).await?;
        spawn_local(connection).detach();
        collect(sender.send_request(request).await?).await
    } else {
        let (mut sender, connection) = http1::handshake(io).await?;
        spawn_local(connection).detach();
        collect(sender.send_request(request).await?).await
    }
}

async fn collect<B>(response: Response<B>) -> Result<Response<Bytes>>
where
    B: Body<Data = Bytes, Error: Error + 'static>,
{
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}

fn with_body(
    method: &str,
    path: &str,
    body: impl Body<Data = Bytes, Error = Infallible> + 'static,
) -> Request<AnyBody> {
    let uri = format!("https://localhost{path}");
    let request = Request::builder().method(method).uri(uri);
    let request = request.header(HOST, "localhost");
    let body: AnyBody = Box::pin(body);
    request.body(body).expect("it is one")
}

fn get() -> Request<AnyBody> {
    with_body("GET", "/", Empty::new())
}

/// The requests that are under way at the end are answered to the last byte, and no more are taken.
#[test]
fn one_router_answers_by_three_protocols_until_the_end() {
    if !has_instructions() {
        return;
    }
    let limits = ["--max-requests", "2", "--grace", "1m"];
    let arguments = [&["--tls", "--shards", "1"], &limits[..]].concat();
    let server = Server::of("axum_server", &arguments);
    let address = server.address;
    run(async {
        for (hits, protocol) in [(1, "http/1.1"), (2, "h2"), (3, "h3")] {
            let answer = ask(address, protocol, get()).await?;
            assert_eq!(*answer.body(), format!("{hits} hits on this shard\n"));
            let header = answer.headers().get(ALT_SVC);
            assert_eq!(header, Some(&alt_svc(address.port())), "{protocol}");
        }

        let go = CancellationToken::new();
        let (first, rest) = (Bytes::from("a body: "), Bytes::from(noise(1 << 20)));
        // Their handlers wait for the rest of their bodies.
        let slow = ["http/1.1", "h3"].map(|protocol| {
            let (go, rest) = (go.clone(), rest.clone());
            let rest = stream::once_future(async move {
                go.cancelled().await;
                rest
            });
            let pieces = stream::once(first.clone()).chain(rest);
            let body = StreamBody::new(pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
            spawn_local(ask(address, protocol, with_body("POST", "/echo", body)))
        });
        while ask(address, "h2", get()).await?.status() != StatusCode::SERVICE_UNAVAILABLE {}
        server.signal("TERM");
        // It takes no more clients when it has told all that there are.
        while ask(address, "h3", get()).await.is_ok() {}
        go.cancel();
        for slow in slow {
            let answer = slow.await?;
            assert_eq!(answer.status(), StatusCode::OK);
            assert!(
                *answer.body() == [first.clone(), rest.clone()].concat(),
                "the bytes differ"
            );
        }
        Ok(())
    });
    assert_eq!(server.ended(), "ended\n");
}

#[test]
fn each_shard_serves_http3() {
    if !has_instructions() {
        return;
    }
    let server = Server::of("axum_server", &["--tls", "--shards", "2"]);
    run(async {
        let mut shards = 0;
        while shards < 2 {
            let answer = ask(server.address, "h3", get()).await?;
            // The first request of one of them.
            shards += usize::from(answer.body() == "1 hits on this shard\n");
        }
        Ok(())
    });
    assert_eq!(server.interrupt(), "ended\n");
}
