//! WebSockets on a server of HTTP: hyper has the request, async-tungstenite what comes after.
//!
//! ```console
//! $ cargo run --release -p examples --bin websocket -- --port 8090
//! listening on http://127.0.0.1:8090
//! $ curl -s http://127.0.0.1:8090/echo
//! this speaks WebSocket 13
//! ^C
//! ended, with 0 connections cut off
//! ```
//!
//! A browser that is shown `http://127.0.0.1:8090/` has a page to talk to the server, which echoes;
//! so does any client of WebSockets at `ws://127.0.0.1:8090/echo`. Ctrl-C sends each WebSocket the
//! code 1001 ("going away"), and it has `--grace` to say goodbye.
//!
//! # How the connection changes hands
//!
//! 1. `/echo` asks for an upgrade. The handler spawns the conversation, which waits for the
//!    connection, and answers with status 101.
//! 2. hyper sends the answer, ends its own future of the connection, and passes on the stream.
//! 3. The conversation gets it, with whatever the client has already sent. It is *watched*, as the
//!    connection was: a shutdown waits for it, and a panic in it ends this connection alone.

#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::time::Duration;

use async_tungstenite::WebSocketStream;
use async_tungstenite::tungstenite;
use async_tungstenite::tungstenite::handshake::server::create_response_with_body;
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use clap::Parser;
use examples::serving::{Serving, Shard};
use futures_lite::StreamExt;
use futures_lite::future::or;
use glommio::net::TcpStream;
use glommio::spawn_local;
use glommio_hyper::{Connections, GlommioIo, UpgradedIo};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};

/// Echoes what comes over WebSockets.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// How long a client may be silent.
    #[arg(long, default_value = "90s")]
    idle_timeout: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let closed = options
        .serving
        .run("http://", move |shard| run(shard, options))?;
    println!(
        "ended, with {} connections cut off",
        closed.iter().sum::<usize>()
    );
    Ok(())
}

async fn run(shard: Shard, options: Options) -> usize {
    let connections = Connections::new();
    let serve = |stream| {
        let connections = connections.clone();
        async move {
            if let Err(error) = serve(stream, *options.idle_timeout, &connections).await {
                eprintln!("a connection has failed: {error}");
            }
        }
    };
    shard.serve_each(serve).await;
    connections.shutdown_within(*options.serving.grace).await
}

/// Answers the requests of one connection, until it ends or is upgraded.
async fn serve(
    stream: TcpStream,
    idle_timeout: Duration,
    connections: &Connections,
) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(idle_timeout))?;
    stream.set_write_timeout(Some(idle_timeout))?;
    let watched = connections.clone();
    let service = service_fn(move |request| {
        let response = respond(request, &watched);
        async { Ok::<_, Infallible>(response) }
    });
    // Only a stream that is upgradable can be passed on.
    let io = GlommioIo::new(stream).upgradable();
    let connection = connections.http1().serve_connection(io, service);
    Ok(connections.watch(connection.with_upgrades()).await?)
}

fn respond(request: Request<Incoming>, connections: &Connections) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => {
            let mut response = Response::new(Full::from(PAGE));
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
            response
        }
        (&Method::GET, "/echo") => upgrade(request, connections),
        _ => told(StatusCode::NOT_FOUND, "there are GET / and GET /echo\n"),
    }
}

/// Begins a conversation, if the request asks for one.
fn upgrade(request: Request<Incoming>, connections: &Connections) -> Response<Full<Bytes>> {
    let Ok(response) = create_response_with_body(&request, Full::default) else {
        return told(StatusCode::UPGRADE_REQUIRED, "this speaks WebSocket 13\n");
    };

    // Before the answer, so that a shutdown does not miss it.
    let conversation = connections.watch_upgraded(converse(request, connections.clone()));
    let conversation = async {
        if let Err(error) = conversation.await {
            eprintln!("a conversation has failed: {error}");
        }
    };
    spawn_local(conversation).detach();

    response
}

/// Sends back what comes, until either side ends it.
async fn converse(
    mut request: Request<Incoming>,
    connections: Connections,
) -> tungstenite::Result<()> {
    let upgraded = hyper::upgrade::on(&mut request).await;
    let io = UpgradedIo::new(upgraded.map_err(io::Error::other)?);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX));
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    let ending = connections.ending();
    loop {
        let received = async { socket.next().await };
        let shutdown = async {
            ending.cancelled().await;
            None
        };
        match or(shutdown, received).await {
            Some(message) => {
                let message = message?;
                // Pings are answered, and a close confirmed, by the library.
                if message.is_text() || message.is_binary() {
                    socket.send(message).await?;
                }
            }
            None if ending.is_cancelled() => break,
            None => return Ok(()),
        }
    }
    let goodbye = CloseFrame {
        code: CloseCode::Away,
        reason: "the server ends".into(),
    };
    socket.close(Some(goodbye)).await?;
    // Until the client has confirmed it.
    while let Some(message) = socket.next().await {
        message?;
    }
    Ok(())
}

fn told(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response
}

const PAGE: &str = "<!doctype html>
<title>WebSocket</title>
<form><input autofocus> <button>send</button></form>
<pre></pre>
<script>
const log = line => document.querySelector('pre').append(line + '\\n');
const socket = new WebSocket(`ws://${location.host}/echo`);
socket.onopen = () => log('open');
socket.onmessage = message => log('echo: ' + message.data);
socket.onclose = close => log(`closed: ${close.code} ${close.reason}`);
document.querySelector('form').onsubmit = event => {
  event.preventDefault();
  socket.send(document.querySelector('input').value);
};
</script>
";

const MESSAGE_BYTES_MAX: usize = 16 << 20;
