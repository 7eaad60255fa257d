//! The twin of the example `http_server` on tokio: the same hyper and the same answers, on one
//! thread.
//!
//! Like the example it serves on a thread of its own, beside `main`: the C library's allocator and
//! system call wrappers take short cuts in a process of one thread, which a server with a thread
//! per CPU does not have. It has hyper's header timeout as the example does. tokio's sockets have
//! no timeouts; with `--io-timeout 90s` they are in a `TimeoutStream` of the crate `tokio-io-timeout`,
//! which does for them what the example's read and write timeouts do.
//!
//! `--http2`, `--header-timeout 3s` and `--io-timeout 90s` are those of the example.

#[path = "../../../../examples/src/bin/http_server/service.rs"]
mod service;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;
use tokio_io_timeout::TimeoutStream;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let server = thread::spawn(move || run(options).map_err(|error| error.to_string()));
    server.join().expect("serving does not panic")?;
    Ok(())
}

struct Options {
    is_http2: bool,
    header_timeout: Duration,
    io_timeout: Option<Duration>,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Options {
            is_http2: false,
            header_timeout: Duration::from_secs(10),
            io_timeout: None,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--http2" => options.is_http2 = true,
                "--header-timeout" => options.header_timeout = seconds(arguments.next())?,
                "--io-timeout" => options.io_timeout = Some(seconds(arguments.next())?),
                _ => return Err(format!("there is no option {argument}")),
            }
        }
        Ok(options)
    }
}

fn seconds(argument: Option<String>) -> Result<Duration, String> {
    let text = argument.unwrap_or_default();
    let seconds = text.strip_suffix('s').and_then(|text| text.parse().ok());
    let seconds = seconds.ok_or("a timeout wants seconds, such as 3s")?;
    Ok(Duration::from_secs(seconds))
}

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    // Spawned, since the future of `block_on` itself is woken in another way than a task.
    runtime.block_on(async { spawn_local(serve(options)).await? })
}

async fn serve(options: Options) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let mut http1 = http1::Builder::new();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout);
    let mut http2 = http2::Builder::new(LocalTasks);
    http2.timer(TokioTimer::new());
    loop {
        let (stream, _) = listener.accept().await?;
        // Each way has a task without what the others need.
        match (options.is_http2, options.io_timeout) {
            (false, None) => {
                let http = http1.clone();
                spawn_local(async move { converse1(prepared(stream)?, http).await });
            }
            (false, Some(limit)) => {
                let http = http1.clone();
                spawn_local(async move { converse1(limited(stream, limit)?, http).await });
            }
            (true, None) => {
                let http = http2.clone();
                spawn_local(async move { converse2(prepared(stream)?, http).await });
            }
            (true, Some(limit)) => {
                let http = http2.clone();
                spawn_local(async move { converse2(limited(stream, limit)?, http).await });
            }
        }
    }
}

/// Its errors end a connection and nothing else.
type Conversation = Result<(), Box<dyn Error>>;

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn limited(stream: TcpStream, limit: Duration) -> io::Result<Pin<Box<TimeoutStream<TcpStream>>>> {
    let mut stream = TimeoutStream::new(prepared(stream)?);
    stream.set_read_timeout(Some(limit));
    stream.set_write_timeout(Some(limit));
    Ok(Box::pin(stream))
}

/// It refuses no request.
const ADMITTED: Result<(), Infallible> = Ok(());

async fn converse1<S>(stream: S, http: http1::Builder) -> Conversation
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request| service::respond(request, ADMITTED, tokio::time::sleep));
    http.serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

async fn converse2<S>(stream: S, http: http2::Builder<LocalTasks>) -> Conversation
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let service = service_fn(|request| service::respond(request, ADMITTED, tokio::time::sleep));
    http.serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

/// Tasks of this thread, as those of the example are.
#[derive(Clone, Copy)]
struct LocalTasks;

impl<F> hyper::rt::Executor<F> for LocalTasks
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        spawn_local(async move { drop(future.await) });
    }
}
