//! What executors do, for Prometheus: its text format, over HTTP.
//!
//! ```console
//! $ cargo run --release -p examples --features metrics --bin metrics -- --threads 2 --port 9100
//! $ curl http://127.0.0.1:9100/metrics
//! ```
//!
//! Some executors work: their tasks sleep, wake each other and make blocking calls. One more, on
//! the main thread, serves the metrics of all, itself included. It needs no library for HTTP: the
//! head of a response is text, too.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::metrics::prometheus_text;
use glommio::net::{TcpListener, TcpStream, UnixListener};
use glommio::signal::{self, Signals};
use glommio::timer::sleep;
use glommio::{
    LocalExecutor, LocalExecutorPoolBuilder, PoolPlacement, TaskBuilder, executor, spawn_local,
};
use libc::{SIGINT, SIGTERM};

/// Serves the metrics of the executors of this process.
#[derive(Debug, Parser)]
#[command(name = "metrics")]
struct Options {
    /// Executors that work, beside the one that serves.
    #[arg(long, default_value_t = 2)]
    threads: u16,

    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 9100)]
    port: u16,

    /// A Unix socket, to be made, that says the same to each client: for `glommio_top`.
    #[arg(long)]
    socket: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    // Before there are other threads, which inherit it.
    signal::block(&[SIGINT, SIGTERM])?;
    let workers = usize::from(options.threads);
    // They end with the process.
    let _workers = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(workers))
        .name("worker")
        .on_all_shards(work)?;
    LocalExecutor::default().run(async {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)))?;
        println!("listening on http://{}/", listener.local_addr()?);
        let signals = Signals::new(&[SIGINT, SIGTERM])?;
        let serve = async {
            accept_each(&listener, |stream| async move {
                // A client that leaves or sends nonsense ends its own connection and nothing else.
                let _ = answer(stream).await;
            })
            .await
        };
        let socket = options.socket.map(Socket::bind).transpose()?;
        let _telling = socket.map(|socket| spawn_local(socket.tell_each()));
        or(serve, until_signalled(&signals)).await
    })
}

/// Accepts connections for ever and has each served by a task of its own.
///
/// An error of `accept` is no reason to end: the listener remains usable.
async fn accept_each<F>(listener: &TcpListener, serve: impl Fn(TcpStream) -> F) -> !
where
    F: Future<Output = ()> + 'static,
{
    loop {
        match listener.accept().await {
            // A task whose handle is dropped is cancelled; this one runs on by itself.
            Ok(stream) => drop(spawn_local(serve(stream)).detach()),
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// A Unix socket, whose name goes with it.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    fn bind(path: PathBuf) -> glommio::Result<Self, ()> {
        let listener = UnixListener::bind(&path)?;
        Ok(Socket { listener, path })
    }

    /// Says to each client what there is, for ever.
    async fn tell_each(self) {
        loop {
            match self.listener.accept().await {
                Ok(mut stream) => {
                    let tell = async move {
                        stream.set_write_timeout(Some(PATIENCE))?;
                        stream.write_all(prometheus_text().as_bytes()).await?;
                        stream.close().await
                    };
                    spawn_local(tell).detach();
                }
                Err(error) => {
                    // Out of descriptors, most likely. They come back as connections end.
                    eprintln!("cannot accept: {error}");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn until_signalled(signals: &Signals) -> Result<(), Box<dyn Error>> {
    signals.recv().await?;
    Ok(())
}

/// The tasks of an executor that has something to count.
async fn work() {
    for n in 1..=20_u64 {
        let ticking = TaskBuilder::new().name("ticks").spawn_local(async move {
            loop {
                sleep(Duration::from_millis(n)).await;
                executor().yield_now().await;
            }
        });
        ticking.detach();
    }
    loop {
        let blocked_for = Duration::from_millis(20);
        executor()
            .spawn_blocking(move || std::thread::sleep(blocked_for))
            .await;
    }
}

/// Answers the one request of a connection.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(&mut stream).await?;
    let (status, body) = match head.split(' ').take(2).collect::<Vec<_>>()[..] {
        ["GET", "/metrics" | "/"] => ("200 OK", prometheus_text()),
        ["GET", _] => ("404 Not Found", "there is GET /metrics\n".to_owned()),
        _ => ("400 Bad Request", "there is GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.close().await
}

/// Reads up to the empty line at the end of a request's head.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut bytes = [0; 512];
        let count = stream.read(&mut bytes).await?;
        head.extend(&bytes[..count]);
        if count == 0 || head.len() > HEAD_BYTES_MAX {
            let text = "a head that does not end, or is too long";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
    }
    String::from_utf8(head).map_err(io::Error::other)
}

const PATIENCE: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: usize = 8 << 10;
