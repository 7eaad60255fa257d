//! An HTTP server: unmodified hyper, on one executor per thread.
//!
//! ```console
//! $ cargo run --release -p examples --bin http_server -- --port 8080 --shards 1
//! listening on http://127.0.0.1:8080
//! $ curl -s http://127.0.0.1:8080/
//! hello from one thread per core
//! $ curl -s http://127.0.0.1:8080/bytes/100000 | wc -c
//! 100000
//! $ curl -s --data-binary 'the same' http://127.0.0.1:8080/echo; echo
//! the same
//! $ curl -s -w '%{http_code} %{time_total} s' http://127.0.0.1:8080/slow/50
//! at last
//! 200 .. s
//! ^C
//! 4 requests on 4 connections, of which 0 ended in an error
//! ```
//!
//! With `--http2` it speaks HTTP/2 in place of HTTP/1, to clients that know (`curl
//! --http2-prior-knowledge`). For a load: `wrk -t1 -c64 -d10s http://127.0.0.1:8080/`, or `oha`, or
//! `h2load` for HTTP/2.
//!
//! Ctrl-C ends the server: it takes no more connections, answers the requests that have begun for up
//! to `--grace`, and prints what it has done. With `--shed` it refuses requests with status 503 while
//! an executor is overloaded (`docs/guide/overload.md`).
//!
//! # Coming from tokio
//!
//! - No task ever moves to another thread, so nothing needs to be `Send`, and there is nothing to
//!   lock.
//! - `TokioIo`, `TokioTimer` and `TokioExecutor` become `GlommioIo`, `GlommioTimer` and
//!   `GlommioExecutor` of the crate `glommio-hyper`. The executor is for HTTP/2 alone.
//! - Sockets have timeouts of their own, as those of `std::net` do: no `timeout` around each read.

#![forbid(unsafe_code)]

mod service;

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use examples::serving::{Serving, Shard};
use glommio::net::TcpStream;
use glommio::overload::LoadShedder;
use glommio::timer::sleep;
use glommio_hyper::{Connections, GlommioExecutor, GlommioIo};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;

/// Serves HTTP with one executor per thread.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// HTTP/2 in place of HTTP/1.1, from the first byte on.
    #[arg(long)]
    http2: bool,

    /// How long the head of a request may take, and how long a connection may be idle before it
    /// comes. With HTTP/2, how long a client may take to begin.
    #[arg(long, default_value = "10s")]
    header_timeout: humantime::Duration,

    /// How long a client of HTTP/2 may be silent until it is asked whether it is there, and then
    /// until it is given up.
    #[arg(long, default_value = "20s")]
    keep_alive: humantime::Duration,

    /// How long to wait for more of a body, or for the client to take more of a response.
    ///
    /// Also the longest that a response may take to begin, since hyper reads meanwhile, to learn
    /// of clients that leave.
    #[arg(long, default_value = "90s")]
    io_timeout: humantime::Duration,

    /// Refuse requests with status 503 while the executor is overloaded.
    #[arg(long)]
    shed: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let counts = options
        .serving
        .run("http://", move |shard| serve(shard, options))?;
    let sum = |at: usize| counts.iter().map(|counts| counts[at]).sum::<u64>();
    let [requests, connections, failures] = [0, 1, 2].map(sum);
    println!(
        "{requests} requests on {connections} connections, of which {failures} ended in an error"
    );
    Ok(())
}

/// What the connections of one executor share.
struct Server {
    protocol: Protocol,
    connections: Connections,
    io_timeout: Duration,
    shed: Option<LoadShedder>,
    /// Requests, connections, and those that ended in an error.
    counts: [Cell<u64>; 3],
}

enum Protocol {
    Http1(http1::Builder),
    Http2(http2::Builder<GlommioExecutor>),
}

/// Serves until the server is to end, and returns what it has counted.
async fn serve(shard: Shard, options: Options) -> [u64; 3] {
    // A handler that panics ends its connection and nothing else.
    let connections = Connections::builder()
        .handshake_timeout(*options.header_timeout)
        .keep_alive(*options.keep_alive, *options.keep_alive)
        .build();
    let server = Rc::new(Server {
        protocol: match options.http2 {
            true => Protocol::Http2(connections.http2(GlommioExecutor::new())),
            false => Protocol::Http1(connections.http1()),
        },
        connections: connections.clone(),
        io_timeout: *options.io_timeout,
        shed: options.shed.then(LoadShedder::new),
        counts: Default::default(),
    });
    let each = |stream| server.clone().converse(Box::new(stream));
    shard.serve_each(each).await;
    // What has not finished by then is closed.
    let closed = connections.shutdown_within(*options.serving.grace).await;
    if closed > 0 {
        eprintln!("{closed} connections were closed before they had finished");
    }
    server.counts.each_ref().map(Cell::get)
}

impl Server {
    /// Answers the requests of one connection, until either side ends it.
    ///
    /// The stream is in a box since the task would hold it twice: an argument of an `async fn` keeps its
    /// memory to the end, although it has been moved into the connection.
    async fn converse(self: Rc<Self>, stream: Box<TcpStream>) {
        let [_, connections, failures] = &self.counts;
        count(connections);
        let Ok(io) = self.prepared(stream) else {
            return count(failures);
        };
        let server = self.clone();
        let service = service_fn(move |request| {
            count(&server.counts[0]);
            let admitted = server.shed.as_ref().map_or(Ok(()), LoadShedder::admit);
            service::respond(request, admitted, sleep)
        });
        let end = match &self.protocol {
            Protocol::Http1(http) => {
                let connection = http.serve_connection(io, service);
                self.connections.watch(connection).await
            }
            Protocol::Http2(http) => {
                let connection = http.serve_connection(io, service);
                self.connections.watch(connection).await
            }
        };
        // A client that leaves, stalls or sends nonsense ends its own connection and nothing else.
        if end.is_err() {
            count(failures);
        }
    }

    /// The stream for hyper, which is not to wait for ever.
    fn prepared(&self, stream: Box<TcpStream>) -> glommio::Result<GlommioIo<Box<TcpStream>>, ()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(self.io_timeout))?;
        stream.set_write_timeout(Some(self.io_timeout))?;
        Ok(GlommioIo::new(stream))
    }
}

fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}
