//! axum on hyper, with one executor per CPU.
//!
//! ```console
//! $ cargo run --release -p examples --bin axum_server -- --port 8080 --shards 1 --request-timeout 1s
//! listening on http://127.0.0.1:8080
//! $ curl -s http://127.0.0.1:8080/
//! 1 hits on this shard
//! $ curl -s --data-binary 'a body' http://127.0.0.1:8080/echo; echo
//! a body
//! $ curl -s http://127.0.0.1:8080/slow/5
//! waited 5 ms
//! $ curl -s -w '%{http_code}\n' http://127.0.0.1:8080/slow/60000
//! Operation timed out after 1s
//! 504
//! ^C
//! ended
//! ```
//!
//! `axum::serve` needs tokio's runtime. A `Router` does not: it is a service of tower, which hyper
//! serves on the sockets and timers of the executor. tower's `TimeoutLayer` is not used: its timers
//! are tokio's, so connections would have to be polled in a tokio context (`glommio-tokio`). The
//! same limit around the router is a timer of the executor.
//!
//! A handler that waits for something of the executor's, which is not `Send`, wraps it: see `sleep`.
//!
//! With `--tls` the same router is served by HTTP/1.1 and HTTP/2, of which each client chooses one,
//! and by HTTP/3, at the UDP port of the same number (`curl --insecure --http3-only`).

#![forbid(unsafe_code)]

mod app;
mod http3;
mod tls;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::header::ALT_SVC;
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Router};
use clap::Parser;
use examples::serving::{Serving, Shard};
use futures_lite::future::zip;
use futures_lite::{AsyncRead, AsyncWrite};
use futures_rustls::TlsAcceptor;
use glommio::net::TcpStream;
use glommio::{future, timer};
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo};
use glommio_quic::{ShardOptions, Shards};
use http3::Http3;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use send_wrapper::SendWrapper;
use tls::Tls;
use tower::ServiceExt;

/// Serves axum with one executor per CPU.
#[derive(Clone, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// Requests of one executor at a time; more are refused with status 503.
    #[arg(long, default_value_t = 1000)]
    max_requests: usize,

    /// How long a handler may take, until status 504.
    #[arg(long, default_value = "10s")]
    request_timeout: humantime::Duration,

    /// How long to wait for more of a body, or for the client to take more of a response. Longer
    /// than a handler may take, since hyper reads meanwhile.
    #[arg(long, default_value = "30s")]
    io_timeout: humantime::Duration,

    /// Serve HTTP/1.1, HTTP/2 and HTTP/3, all with TLS, in place of plain HTTP/1.1.
    #[arg(long)]
    tls: bool,

    /// File of the certificates, in PEM. The default is one of `localhost` for tests.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/server.pem"))]
    certificate: PathBuf,

    /// File of the key, in PEM. The default is no secret.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/server.key"))]
    key: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let tls = (options.tls).then(|| Tls::read(&options.certificate, &options.key));
    let tls = tls.transpose()?;
    let scheme = if options.tls { "https://" } else { "http://" };
    let ends = options.serving.run_at(scheme, |address, shards| {
        // QUIC has the UDP port of the same number.
        let tls = match &tls {
            Some(tls) => Some((tls.clone(), ShardOptions::new().bind(address, shards)?)),
            None => None,
        };
        let options = options.clone();
        Ok(move |shard: Shard| serve(shard, options, tls))
    })?;
    ends.into_iter().collect::<io::Result<()>>()?;
    println!("ended");
    Ok(())
}

async fn serve(shard: Shard, options: Options, tls: Option<(Tls, Shards)>) -> io::Result<()> {
    let answers = Answers {
        app: app::app(options.max_requests, sleep),
        limit: *options.request_timeout,
        alt_svc: (tls.as_ref()).map(|(_, shards)| glommio_h3::alt_svc(shards.local_addr().port())),
    };
    let (acceptor, http3) = match tls {
        Some((tls, shards)) => {
            let most = options.serving.max_connections;
            let http3 = Http3::start(tls.quic, shards.take()?, most, answers.clone())?;
            (Some(tls.tcp), Some(http3))
        }
        None => (None, None),
    };
    // Their limits are for clients that are slow, and a handler that panics ends its connection.
    let connections = Connections::builder()
        .keep_alive(*options.io_timeout / 2, *options.io_timeout / 2)
        .build();
    let server = Rc::new(Server {
        answers,
        http1: connections.http1(),
        http2: connections.http2(GlommioExecutor::new()),
        connections: connections.clone(),
        acceptor,
        io_timeout: *options.io_timeout,
    });
    shard
        .serve_each(|stream| Rc::clone(&server).converse(Box::new(stream)))
        .await;
    let grace = *options.serving.grace;
    let http3 = async {
        match http3 {
            Some(http3) => http3.end(grace).await,
            None => 0,
        }
    };
    let (of_tcp, of_quic) = zip(connections.shutdown_within(grace), http3).await;
    let closed = of_tcp + of_quic;
    if closed > 0 {
        eprintln!("{closed} connections were closed before they had finished");
    }
    Ok(())
}

/// What answers requests, whatever protocol they come by.
#[derive(Clone)]
struct Answers {
    app: Router,
    limit: Duration,
    /// Tells clients that there is HTTP/3.
    alt_svc: Option<HeaderValue>,
}

impl Answers {
    fn answer<B>(
        &self,
        request: Request<B>,
    ) -> impl Future<Output = Result<Response, Infallible>> + use<B>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        // A service is ready once: each request has a clone of its own.
        let answered = self.app.clone().oneshot(request);
        let (limit, alt_svc) = (self.limit, self.alt_svc.clone());
        async move {
            let mut response = match future::timeout(limit, answered).await {
                Ok(answered) => answered?,
                Err(late) => (StatusCode::GATEWAY_TIMEOUT, format!("{late}\n")).into_response(),
            };
            if let Some(alt_svc) = alt_svc {
                response.headers_mut().insert(ALT_SVC, alt_svc);
            }
            Ok(response)
        }
    }
}

/// What the connections over TCP of one executor share.
struct Server {
    answers: Answers,
    http1: http1::Builder,
    http2: http2::Builder<GlommioExecutor>,
    connections: Connections,
    acceptor: Option<TlsAcceptor>,
    io_timeout: Duration,
}

impl Server {
    /// Answers the requests of one connection, until either side ends it. A client that leaves or
    /// sends nonsense ends its own connection and nothing else.
    ///
    /// The stream is in a box since the task would hold it twice: an argument of an `async fn` keeps
    /// its memory to the end, although it has been moved into the connection.
    async fn converse(self: Rc<Self>, stream: Box<TcpStream>) {
        let limit = Some(self.io_timeout);
        // They fail on a connection that the client has closed already.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_read_timeout(limit);
        let _ = stream.set_write_timeout(limit);
        let Some(acceptor) = &self.acceptor else {
            return self.speak_http1(stream).await;
        };
        let accepted = future::timeout(self.io_timeout, acceptor.accept(stream));
        let Ok(Ok(stream)) = accepted.await else {
            return;
        };
        let is_http2 = matches!(stream.get_ref().1.alpn_protocol(), Some(b"h2"));
        match is_http2 {
            true => self.speak_http2(Box::new(stream)).await,
            false => self.speak_http1(Box::new(stream)).await,
        }
    }

    async fn speak_http1(&self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let answers = self.answers.clone();
        let service = service_fn(move |request: Request<Incoming>| answers.answer(request));
        let connection = self.http1.serve_connection(GlommioIo::new(stream), service);
        drop(self.connections.watch(connection).await);
    }

    async fn speak_http2(&self, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) {
        let answers = self.answers.clone();
        let service = service_fn(move |request: Request<Incoming>| answers.answer(request));
        let connection = self.http2.serve_connection(GlommioIo::new(stream), service);
        drop(self.connections.watch(connection).await);
    }
}

/// A timer of the executor, for a handler that has to be `Send`: it says so, and panics if it is
/// polled or dropped on another thread after all.
fn sleep(duration: Duration) -> SendWrapper<impl Future<Output = ()>> {
    SendWrapper::new(timer::sleep(duration))
}
