//! A TCP echo server with read timeouts.
//!
//! ```console
//! $ cargo run --release -p examples --bin echo -- --port 7500 --read-timeout 10s
//! listening on 127.0.0.1:7500
//! $ echo 'is anybody there?' | nc -N 127.0.0.1 7500
//! is anybody there?
//! ^C
//! $ cargo run --release -p examples --bin echo -- --demo
//! talker: "hello" came back after ..
//! talker: "is anybody there?" came back after ..
//! talker: "goodbye" came back after ..
//! silent client: the server hung up after ..
//! ```
//!
//! The clients of `--demo` are tasks beside the server. One of them sends; the other connects and
//! sends nothing, until the server's read timeout closes its connection.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Parser;
use examples::serving::Serving;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::{LocalExecutor, spawn_local};

/// Sends back what it is sent.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// How long a client may send nothing.
    #[arg(long, default_value = "10m")]
    read_timeout: humantime::Duration,

    /// Serve two clients of its own, on any port and with a read timeout of 200 ms, and end.
    #[arg(long)]
    demo: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if options.demo {
        return Ok(LocalExecutor::default().run(demo())?);
    }
    options.serving.run("", move |shard| {
        shard.serve_each(move |stream| async move {
            if let Err(error) = echo(stream, *options.read_timeout).await {
                eprintln!("a connection has failed: {error}");
            }
        })
    })?;
    Ok(())
}

/// Sends received bytes back, until the client closes or has sent nothing for too long.
async fn echo(mut stream: TcpStream, read_timeout: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(read_timeout))?;
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => return Ok(()),
            Ok(bytes) => stream.write_all(&buffer[..bytes]).await?,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

async fn demo() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = spawn_local(async move {
        for _ in 0..2 {
            let stream = listener.accept().await?;
            spawn_local(echo(stream, Duration::from_millis(200))).detach();
        }
        Ok::<_, io::Error>(())
    });
    // Both at once: each is a task of this executor.
    let talker = spawn_local(talk(address));
    let silent = spawn_local(keep_silent(address));
    server.await?;
    talker.await?;
    silent.await
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
        let echoed = String::from_utf8_lossy(&echoed);
        println!("talker: \"{echoed}\" came back after {:?}", asked.elapsed());
    }
    // Closing sends the end of the stream; the server's next read returns no bytes.
    stream.close().await
}

async fn keep_silent(server: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    let connected = Instant::now();
    stream.read_exact(&mut [0; 16]).await.unwrap_err();
    println!(
        "silent client: the server hung up after {:?}",
        connected.elapsed()
    );
    Ok(())
}
