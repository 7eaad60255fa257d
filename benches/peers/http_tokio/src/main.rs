//! The twin of the example `http_server` on tokio: the same hyper and the same answers, on one
//! thread.
//!
//! Like the example it serves on a thread of its own, beside `main`: the C library's allocator and
//! system call wrappers take short cuts in a process of one thread, which a server with a thread
//! per CPU does not have. It has hyper's header timeout as the example does; tokio's sockets have
//! no read and write timeouts, so in that it does less.
//!
//! `--http2` and `--header-timeout 3s` are those of the example.

#[path = "../../../../examples/src/bin/http_server/service.rs"]
mod service;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::thread;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::spawn_local;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse()?;
    let server = thread::spawn(move || run(options).map_err(|error| error.to_string()));
    server.join().expect("serving does not panic")?;
    Ok(())
}

struct Options {
    is_http2: bool,
    header_timeout: Duration,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Options {
            is_http2: false,
            header_timeout: Duration::from_secs(10),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--http2" => options.is_http2 = true,
                "--header-timeout" => {
                    let text = arguments.next().unwrap_or_default();
                    let seconds = text.strip_suffix('s').and_then(|text| text.parse().ok());
                    let seconds = seconds.ok_or("--header-timeout wants seconds, such as 3s")?;
                    options.header_timeout = Duration::from_secs(seconds);
                }
                _ => return Err(format!("there is no option {argument}")),
            }
        }
        Ok(options)
    }
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
        // Its errors end a connection and nothing else.
        if options.is_http2 {
            let http2 = http2.clone();
            spawn_local(async move { converse2(stream, http2).await.map_err(drop) });
        } else {
            let http1 = http1.clone();
            spawn_local(async move { converse1(stream, http1).await.map_err(drop) });
        }
    }
}

/// It refuses no request.
const ADMITTED: Result<(), Infallible> = Ok(());

async fn converse1(stream: TcpStream, http: http1::Builder) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
    let service = service_fn(|request| service::respond(request, ADMITTED, tokio::time::sleep));
    http.serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

async fn converse2(
    stream: TcpStream,
    http: http2::Builder<LocalTasks>,
) -> Result<(), Box<dyn Error>> {
    stream.set_nodelay(true)?;
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
