//! Servers and clients of hyper on executors: requests, timeouts, and how they finish.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::StreamExt;
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutor, Task, future, spawn_local};
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo, GlommioTimer};
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};

mod http1;
mod http2;
mod idle_clients;
mod panics;
mod shutdown;
mod silent_clients;
mod timers;
mod upgrades;

type Error = Box<dyn std::error::Error>;
type Result<T = ()> = std::result::Result<T, Error>;

/// What has not happened by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    let in_time = LocalExecutor::default().run(future::timeout(PATIENCE, test));
    let result = in_time.expect("the test does not hang");
    result.expect("the test's operations succeed")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

const VERSIONS: [Version; 2] = [Version::Http1, Version::Http2];

/// A server of a test.
struct Server {
    address: SocketAddr,
    connections: Connections,
    /// Requests that were begun, and those that were answered.
    begun: Rc<Cell<usize>>,
    answered: Rc<Cell<usize>>,
    accepting: Task<()>,
}

impl Server {
    fn start(version: Version) -> Result<Server> {
        let connections = Connections::builder().handshake_timeout(PATIENCE);
        Server::start_with(version, connections.build())
    }

    fn start_with(version: Version, connections: Connections) -> Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (begun, answered) = (Rc::default(), Rc::default());
        let shared = (connections.clone(), Rc::clone(&begun), Rc::clone(&answered));
        let accepting = spawn_local(async move {
            let (connections, begun, answered) = shared;
            while let Ok(stream) = listener.accept().await {
                let (begun, answered) = (Rc::clone(&begun), Rc::clone(&answered));
                let service = service_fn(move |request| {
                    assert_ne!(request.uri().path(), "/panic/at-once", "as asked");
                    respond(request, Rc::clone(&begun), Rc::clone(&answered))
                });
                let io = GlommioIo::new(stream);
                match version {
                    Version::Http1 => {
                        let http = connections.http1();
                        let connection = http.serve_connection(io, service);
                        spawn_local(connections.watch(connection)).detach();
                    }
                    Version::Http2 => {
                        let http = connections.http2(GlommioExecutor::new());
                        let connection = http.serve_connection(io, service);
                        spawn_local(connections.watch(connection)).detach();
                    }
                }
            }
        });
        Ok(Server {
            address,
            connections,
            begun,
            answered,
            accepting,
        })
    }

    async fn stop(self) {
        self.accepting.cancel().await;
        self.connections.shutdown().await;
    }
}

type Body = Either<Full<Bytes>, Incoming>;

/// `/slow/MS` waits; `/panic/HOW` panics; `/echo` returns the body; the rest is greeted.
async fn respond(
    request: Request<Incoming>,
    begun: Rc<Cell<usize>>,
    answered: Rc<Cell<usize>>,
) -> std::result::Result<Response<Body>, Infallible> {
    begun.set(begun.get() + 1);
    let path = request.uri().path().to_owned();
    let body = match path.strip_prefix("/slow/") {
        Some(ms) => {
            let ms = ms.parse().expect("the tests ask for numbers");
            sleep(Duration::from_millis(ms)).await;
            Either::Left(Full::from("at last"))
        }
        None if path == "/panic/later" => {
            sleep(Duration::from_millis(1)).await;
            panic!("later, as asked");
        }
        None if path == "/panic/twice" => {
            let _local = panics::PanicsInDrop;
            sleep(Duration::from_millis(1)).await;
            std::panic::panic_any(panics::PanicsInDrop);
        }
        None if path == "/panic/in-drop" => {
            let _local = panics::PanicsInDrop;
            Either::Left(Full::from("never"))
        }
        None if path == "/panic/in-task" => {
            panics::spawn_panicking();
            Either::Left(Full::from("hello"))
        }
        None if path == "/echo" => Either::Right(request.into_body()),
        None => Either::Left(Full::from("hello")),
    };
    answered.set(answered.get() + 1);
    Ok(Response::new(body))
}

/// A client's side of a connection.
enum Client<B> {
    Http1(client::conn::http1::SendRequest<B>),
    Http2(client::conn::http2::SendRequest<B>),
}

impl<B> Client<B>
where
    B: hyper::body::Body + Unpin + 'static,
    B::Data: Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Connects. The connection's own future runs as a task, whose output tells how it ended.
    async fn connect(
        version: Version,
        address: SocketAddr,
    ) -> Result<(Self, Task<hyper::Result<()>>)> {
        let io = GlommioIo::new(TcpStream::connect(address).await?);
        Ok(match version {
            Version::Http1 => {
                let (sender, connection) = client::conn::http1::handshake(io).await?;
                (Client::Http1(sender), spawn_local(connection))
            }
            Version::Http2 => {
                let executor = GlommioExecutor::new();
                let (sender, connection) = client::conn::http2::handshake(executor, io).await?;
                (Client::Http2(sender), spawn_local(connection))
            }
        })
    }

    async fn send(&mut self, request: Request<B>) -> hyper::Result<Response<Incoming>> {
        match self {
            Client::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Client::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}

fn get(path: &str) -> Request<Full<Bytes>> {
    let request = Request::get(format!("http://localhost{path}")).header("host", "localhost");
    request.body(Full::default()).expect("it is in order")
}

async fn text(response: Response<Incoming>) -> Result<String> {
    let bytes = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(bytes.to_vec())?)
}

/// Requests follow one another on one connection.
async fn is_served(version: Version) -> Result {
    let server = Server::start(version)?;
    let (mut client, connection) = Client::connect(version, server.address).await?;
    for _ in 0..20 {
        assert_eq!(text(client.send(get("/")).await?).await?, "hello");
    }
    assert_eq!(text(client.send(get("/slow/2")).await?).await?, "at last");
    assert_eq!((server.begun.get(), server.answered.get()), (21, 21));
    drop(client);
    connection.await?;
    server.stop().await;
    Ok(())
}

/// A body of several megabytes comes back as it went, while it is still being sent.
async fn is_echoed(version: Version) -> Result {
    const PIECES: usize = 200;
    const PIECE_BYTES: usize = 30_001;
    let server = Server::start(version)?;
    let (mut client, connection) = Client::connect(version, server.address).await?;
    let piece = |n: usize| Bytes::from(vec![n as u8; PIECE_BYTES]);
    let pieces = futures_lite::stream::iter(0..PIECES)
        .map(move |n| Ok::<_, Infallible>(Frame::data(piece(n))));
    let request = Request::post("http://localhost/echo")
        .header("host", "localhost")
        .body(StreamBody::new(pieces))?;
    let mut body = client.send(request).await?.into_body();
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let data = frame?.into_data().unwrap_or_default();
        for byte in data {
            assert_eq!(byte, (received / PIECE_BYTES) as u8, "at {received}");
            received += 1;
        }
    }
    assert_eq!(received, PIECES * PIECE_BYTES);
    drop((client, body));
    connection.await?;
    server.stop().await;
    Ok(())
}
