//! The example `http_server` with `--http2`, asked by hyper's client on an executor of the test.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::servers::{PATIENCE, Server, is_closed, noise};
use glommio::net::TcpStream;
use glommio::{LocalExecutor, Task, future, spawn_local};
use glommio_hyper::{GlommioExecutor, GlommioIo};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Request, StatusCode};

type Error = Box<dyn std::error::Error>;
type Result<T = ()> = std::result::Result<T, Error>;

fn start(arguments: &[&str]) -> Server {
    let arguments = [&["--port", "0", "--http2"], arguments].concat();
    Server::start(env!("CARGO_BIN_EXE_http_server"), &arguments)
}

fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    let in_time = LocalExecutor::default().run(future::timeout(PATIENCE, test));
    let result = in_time.expect("the test does not hang");
    result.expect("the test's operations succeed")
}

/// One connection. Its own future is a task, whose output tells how it ended.
struct Client {
    sender: SendRequest<Full<Bytes>>,
    connection: Task<hyper::Result<()>>,
}

/// What a request came to.
type Answer = (StatusCode, Bytes);

impl Client {
    async fn connect(server: &Server) -> Result<Client> {
        let stream = TcpStream::connect(server.address).await?;
        stream.set_nodelay(true)?;
        let io = GlommioIo::new(stream);
        let (sender, connection) = http2::handshake(GlommioExecutor::new(), io).await?;
        let connection = spawn_local(connection);
        Ok(Client { sender, connection })
    }

    /// Asks in a task: the request is on its way when this returns or soon after, in the order of
    /// the calls.
    fn ask(&self, request: Request<Full<Bytes>>) -> Task<Result<Answer>> {
        let mut sender = self.sender.clone();
        spawn_local(async move {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let status = response.status();
            Ok((status, response.into_body().collect().await?.to_bytes()))
        })
    }

    fn get(&self, path: &str) -> Task<Result<Answer>> {
        let request = Request::get(format!("http://localhost{path}"));
        self.ask(request.body(Full::default()).expect("it is in order"))
    }
}

#[test]
fn requests_are_answered() {
    let server = start(&[]);
    run(async {
        let client = Client::connect(&server).await?;
        let (status, body) = client.get("/").await?;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(body, "hello from one thread per core\n");
        for (path, expected) in [("/nothing", 404), ("/bytes/many", 400), ("/slow/1", 200)] {
            assert_eq!(client.get(path).await?.0, expected, "{path}");
        }
        let (_, body) = client.get("/bytes/1000000").await?;
        assert_eq!(body.len(), 1_000_000);
        let sent = noise(1 << 20);
        let request = Request::post("http://localhost/echo").body(Full::from(sent.clone()))?;
        let (status, echoed) = client.ask(request).await?;
        assert_eq!(status, StatusCode::OK);
        assert!(echoed == sent, "the bytes differ");
        let Client { sender, connection } = client;
        drop(sender);
        connection.await?;
        Ok(())
    });
    let last = server.interrupt();
    assert!(
        last.starts_with("6 requests on 1 connections, of which 0 "),
        "{last}"
    );
}

/// A hundred streams share a connection, and none waits for another.
#[test]
fn streams_are_answered_at_the_same_time() {
    const STREAMS: u32 = 100;
    const EACH: Duration = Duration::from_millis(200);
    let server = start(&[]);
    run(async {
        let client = Client::connect(&server).await?;
        let begin = Instant::now();
        let path = format!("/slow/{}", EACH.as_millis());
        let answers: Vec<_> = (0..STREAMS).map(|_| client.get(&path)).collect();
        for answer in answers {
            assert_eq!(answer.await?, (StatusCode::OK, Bytes::from("at last\n")));
        }
        assert!(begin.elapsed() >= EACH);
        assert!(begin.elapsed() < EACH * STREAMS / 2, "one after the other");
        Ok(())
    });
    let last = server.interrupt();
    assert!(last.starts_with("100 requests on 1 connections"), "{last}");
}

/// Ctrl-C with streams open: they are answered, new ones are not begun, and the connection ends
/// without an error.
#[test]
fn open_streams_are_answered_when_the_server_ends() {
    const STREAMS: usize = 20;
    let server = start(&["--grace", "60s"]);
    run(async {
        let client = Client::connect(&server).await?;
        let idle = Client::connect(&server).await?;
        assert_eq!(idle.get("/").await?.0, StatusCode::OK);
        let slow: Vec<_> = (0..STREAMS).map(|_| client.get("/slow/700")).collect();
        // It comes behind them, so that they have begun.
        assert_eq!(client.get("/").await?.0, StatusCode::OK);
        server.press_ctrl_c();
        // With no stream open, a connection ends at once.
        idle.connection.await?;
        assert!(
            idle.sender.is_closed(),
            "a client that asks again finds out that it has to connect"
        );
        for answer in slow {
            assert_eq!(answer.await?, (StatusCode::OK, Bytes::from("at last\n")));
        }
        client.connection.await?;
        let late = TcpStream::connect(server.address).await;
        assert!(late.is_err(), "it does not listen any more");
        Ok(())
    });
    let last = server.ended();
    assert!(
        last.starts_with("22 requests on 2 connections, of which 0 "),
        "{last}"
    );
}

/// A stream that takes longer than the grace ends with the server.
#[test]
fn a_stream_that_outlasts_the_grace_is_cut_off() {
    let server = start(&["--grace", "200ms"]);
    run(async {
        let client = Client::connect(&server).await?;
        let slow = client.get("/slow/60000");
        assert_eq!(client.get("/").await?.0, StatusCode::OK);
        let begin = Instant::now();
        server.press_ctrl_c();
        slow.await.expect_err("it is not waited for");
        assert!(
            begin.elapsed() >= Duration::from_millis(200),
            "cut off early"
        );
        // With an error or without: it had been asked to finish.
        let _ = client.connection.await;
        Ok(())
    });
    let last = server.ended();
    assert!(last.starts_with("2 requests on 1 connections"), "{last}");
}

/// What is no HTTP/2 is told so or cut off, and disturbs nothing else.
#[test]
fn other_protocols_end_their_own_connections() {
    let server = start(&[]);
    run(async {
        let client = Client::connect(&server).await?;
        assert_eq!(client.get("/").await?.0, StatusCode::OK);
        let before = server.descriptors();
        for sent in [
            "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "\u{16}\u{3}\u{1}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ] {
            let mut other = server.connect();
            other.write_all(sent.as_bytes())?;
            let mut answer = Vec::new();
            // An end or a reset.
            let _ = other.read_to_end(&mut answer);
            assert!(is_closed(&mut other));
        }
        server.await_descriptors(before);
        assert_eq!(client.get("/").await?.0, StatusCode::OK);
        Ok(())
    });
}
