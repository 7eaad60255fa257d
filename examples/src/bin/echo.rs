//! A TCP echo server with read timeouts.
//!
//! ```console
//! $ cargo run --release -p examples --bin echo -- --port 7500
//! $ nc 127.0.0.1 7500                             # in another terminal
//! $ cargo run -p examples --bin echo -- --demo
//! ```
//!
//! It serves until Ctrl-C. With `--demo` it also runs two clients, on an executor of their own,
//! and ends when they have left. One of them sends; the other connects and sends nothing, until the
//! server's read timeout closes its connection.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement, TaskPanic, spawn_local};

/// Sends back what it is sent.
#[derive(Clone, Debug, Parser)]
#[command(name = "echo")]
struct Options {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7500)]
    port: u16,

    /// How long a client may send nothing.
    #[arg(long, default_value = "10m")]
    read_timeout: humantime::Duration,

    /// Serve two clients of its own, on any port and with a read timeout of 200 ms, and end.
    #[arg(long)]
    demo: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    if options.demo {
        options.port = 0;
        options.read_timeout = DEMO_READ_TIMEOUT.into();
    }
    let connections = options.demo.then_some(DEMO_CLIENTS);
    let (report_address, address) = mpsc::channel();
    let server = LocalExecutorBuilder::new(Placement::Unbound)
        .name("server")
        .on_task_panic(TaskPanic::Isolate)
        .spawn(move || serve(options, connections, report_address))?;
    let Ok(address) = address.recv() else {
        // The server ended before it could listen; its error says why.
        return Ok(server.join()??);
    };
    if connections.is_some() {
        let clients = LocalExecutorBuilder::new(Placement::Unbound)
            .name("clients")
            .spawn(move || async move {
                // Both at once: each is a task of this executor.
                let talker = spawn_local(talk(address));
                let silent = spawn_local(keep_silent(address));
                talker.await?;
                silent.await
            })?;
        clients.join()??;
    }
    server.join()??;
    println!("both executors have ended");
    Ok(())
}

/// Serves that many connections, each in its own task, then ends; without a number, any.
async fn serve(
    options: Options,
    connections: Option<usize>,
    report_address: mpsc::Sender<SocketAddr>,
) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    report_address.send(address).map_err(io::Error::other)?;

    let read_timeout = *options.read_timeout;
    let mut echoes = Vec::new();
    while connections.is_none_or(|connections| echoes.len() < connections) {
        match listener.accept().await {
            Ok(stream) => {
                let connection = spawn_local(async move {
                    if let Err(error) = echo(stream, read_timeout).await {
                        println!("server: a connection has failed: {error}");
                    }
                });
                match connections {
                    Some(_) => echoes.push(connection),
                    // A task whose handle is dropped is cancelled; this one runs on by itself.
                    None => drop(connection.detach()),
                }
            }
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    for echo in echoes {
        echo.await;
    }
    Ok(())
}

/// Sends received bytes back, until the client closes or has sent nothing for too long.
async fn echo(mut stream: TcpStream, read_timeout: Duration) -> io::Result<()> {
    let client = stream.peer_addr()?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(read_timeout))?;
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => {
                println!("server: {client} has closed");
                return Ok(());
            }
            Ok(bytes) => stream.write_all(&buffer[..bytes]).await?,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                println!("server: {client} was silent for {read_timeout:?}, hanging up");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

async fn talk(server: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    // Small messages go out at once instead of waiting for more.
    stream.set_nodelay(true)?;
    for word in ["hello", "is anybody there?", "goodbye"] {
        let asked = Instant::now();
        stream.write_all(word.as_bytes()).await?;
        let mut echoed = vec![0; word.len()];
        stream.read_exact(&mut echoed).await?;
        println!(
            "talker: \"{}\" came back after {:?}",
            String::from_utf8_lossy(&echoed),
            asked.elapsed()
        );
    }
    // Closing sends the end of the stream; the server's next read returns no bytes.
    stream.close().await
}

async fn keep_silent(server: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    let connected = Instant::now();
    let bytes = stream.read(&mut [0; 16]).await?;
    println!(
        "silent client: the server hung up after {:?} ({bytes} bytes read)",
        connected.elapsed()
    );
    Ok(())
}

const DEMO_CLIENTS: usize = 2;
const DEMO_READ_TIMEOUT: Duration = Duration::from_millis(200);
