//! A TCP echo server with read timeouts, and its clients, in one program.
//!
//! Server and clients are two executors, each on its own thread, that meet over loopback. One
//! client sends; the other connects and sends nothing, until the server's read timeout closes its
//! connection.
//!
//! ```console
//! $ cargo run -p examples --bin echo
//! ```

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::{GlommioError, LocalExecutorBuilder, Placement, spawn_local};

fn main() -> Result<(), GlommioError<()>> {
    // Port 0 lets the kernel choose; the server reports the port.
    let (report_address, address) = mpsc::channel();
    let server = LocalExecutorBuilder::new(Placement::Unbound)
        .name("server")
        .spawn(move || serve(CLIENTS, report_address))?;
    let Ok(address) = address.recv() else {
        // The server ended before it could listen; its error says why.
        server.join()??;
        return Ok(());
    };
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
    server.join()??;
    println!("both executors have ended");
    Ok(())
}

/// Serves `connections` connections, each in its own task, then ends.
async fn serve(connections: usize, report_address: mpsc::Sender<SocketAddr>) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    println!("server: listening on {address}");
    report_address.send(address).map_err(io::Error::other)?;

    let mut echoes = Vec::new();
    for _ in 0..connections {
        echoes.push(spawn_local(echo(listener.accept().await?)));
    }
    for echo in echoes {
        echo.await?;
    }
    Ok(())
}

/// Sends received bytes back, until the client closes or has sent nothing for too long.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let client = stream.peer_addr()?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) => {
                println!("server: {client} has closed");
                return Ok(());
            }
            Ok(bytes) => stream.write_all(&buffer[..bytes]).await?,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                println!("server: {client} was silent for {READ_TIMEOUT:?}, hanging up");
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

const CLIENTS: usize = 2;
const READ_TIMEOUT: Duration = Duration::from_millis(200);
