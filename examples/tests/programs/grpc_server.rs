//! The example `grpc_server`, asked by tonic's client over hyper's, on an executor of the test.

use std::time::{Duration, Instant};

use crate::servers::{PATIENCE, Server};
use examples::greeting::greeter_client::GreeterClient;
use examples::greeting::{CountRequest, GreetRequest};
use glommio::net::TcpStream;
use glommio::{LocalExecutor, future, spawn_local};
use glommio_hyper::{GlommioExecutor, GlommioIo};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::{Request, Response, Uri};
use tonic::Code;
use tonic::body::Body;
use tower::Service;

type Error = Box<dyn std::error::Error>;
type Result<T = ()> = std::result::Result<T, Error>;

fn start(arguments: &[&str]) -> Server {
    Server::of("grpc_server", arguments)
}

fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    let in_time = LocalExecutor::default().run(future::timeout(PATIENCE, test));
    let result = in_time.expect("the test does not hang");
    result.expect("the test's operations succeed")
}

/// A client on one connection, without tonic's transport.
async fn connect(
    server: &Server,
) -> Result<
    GreeterClient<
        impl Service<Request<Body>, Response = Response<Incoming>, Error = hyper::Error, Future: Send>
        + Clone,
    >,
> {
    let stream = TcpStream::connect(server.address).await?;
    stream.set_nodelay(true)?;
    let io = GlommioIo::new(stream);
    let (sender, connection) = http2::handshake(GlommioExecutor::new(), io).await?;
    spawn_local(connection).detach();
    let service = tower::service_fn(move |request| {
        let mut sender = sender.clone();
        async move { sender.send_request(request).await }
    });
    let origin: Uri = format!("http://{}", server.address).parse()?;
    Ok(GreeterClient::with_origin(service, origin))
}

fn named(name: &str) -> GreetRequest {
    GreetRequest {
        name: name.to_owned(),
        pause_millis: 0,
    }
}

#[test]
fn calls_and_their_errors() {
    let server = start(&["--shards", "2"]);
    run(async {
        let mut client = connect(&server).await?;
        let reply = client.greet(named("rust")).await?;
        assert_eq!(reply.into_inner().text, "hello, rust");
        let error = client.greet(named("")).await.expect_err("it needs one");
        assert_eq!(error.code(), Code::InvalidArgument);
        assert_eq!(error.message(), "a greeting needs a name");
        Ok(())
    });
    assert_eq!(server.interrupt(), "ended\n");
}

#[test]
fn deadlines_of_the_client_and_of_the_server() {
    let server = start(&["--shards", "1", "--request-timeout", "100ms"]);
    run(async {
        let mut client = connect(&server).await?;
        let slow = |pause_millis| {
            tonic::Request::new(GreetRequest {
                pause_millis,
                ..named("rust")
            })
        };
        // Of the server.
        let error = client.greet(slow(3_600_000)).await.expect_err("it is late");
        assert_eq!(error.code(), Code::DeadlineExceeded);
        // Of the client, and so of the server's as well: it comes first.
        let mut request = slow(3_600_000);
        request.set_timeout(Duration::from_millis(1));
        let begin = Instant::now();
        let error = client.greet(request).await.expect_err("it is late");
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(begin.elapsed() >= Duration::from_millis(1));
        // Nonsense is no deadline.
        let mut request = slow(1);
        request
            .metadata_mut()
            .insert("grpc-timeout", "soon".parse()?);
        client.greet(request).await?;
        Ok(())
    });
    server.interrupt();
}

#[test]
fn requests_above_the_limit_are_refused() {
    let server = start(&["--shards", "1", "--max-requests", "0"]);
    run(async {
        let mut client = connect(&server).await?;
        let error = client
            .greet(named("rust"))
            .await
            .expect_err("none is allowed");
        assert_eq!(error.code(), Code::ResourceExhausted);
        Ok(())
    });
    server.interrupt();
}

#[test]
fn streams_that_have_begun_go_on_at_the_end() {
    let server = start(&["--shards", "1"]);
    run(async {
        let mut client = connect(&server).await?;
        let request = CountRequest {
            count: 10,
            pause_millis: 20,
        };
        let begin = Instant::now();
        let mut numbers = client.count(request).await?.into_inner();
        assert!(numbers.message().await?.is_some());
        server.press_ctrl_c();
        let mut received = 1;
        while numbers.message().await?.is_some() {
            received += 1;
        }
        assert_eq!(received, 10);
        assert!(begin.elapsed() >= Duration::from_millis(200));
        Ok(())
    });
    assert_eq!(server.ended(), "ended\n");
}
