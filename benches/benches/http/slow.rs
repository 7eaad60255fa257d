//! Clients that send the head of a request in part, or nothing of it, many thousands at a time.
//!
//! A server has one timeout for each of them. What they cost is what its connections take in memory
//! and what accepting, waiting, timing out and closing take of the CPU.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use benches::bench::figures;
use benches::figures::Measured;
use benches::process::{Server, bind_to};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The longest that the head of a request may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What a server is started with for it.
pub const ARGUMENTS: &[&str] = &["--header-timeout", "10s"];

const CLIENTS: usize = 10_000;

/// Until the server has accepted all, and read what they have sent.
const SETTLE: Duration = Duration::from_millis(500);

/// So many connect at a time, with a pause behind them.
const BATCH: usize = 64;
const PAUSE: Duration = Duration::from_millis(10);

/// What has not been cut off by then never will.
const PATIENCE: Duration = Duration::from_secs(30);

/// Allows this process, and the servers that it starts, descriptors for the clients and some others.
///
/// # Errors
/// If the hard limit is lower.
pub fn allow_descriptors() -> Result<(), String> {
    let wanted = CLIENTS as u64 + 64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    if hard < wanted {
        return Err(format!(
            "{CLIENTS} slow clients take {wanted} descriptors, and {hard} are allowed (ulimit -Hn)"
        ));
    }
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard).map_err(|error| error.to_string())
}

/// Connects all, and waits until each was cut off.
///
/// # Errors
/// If one was cut off early, or not at all.
pub fn measure(server: &Server) -> Result<Vec<Measured>, String> {
    connect_all(server).map_err(|error| format!("slow clients: {error}"))
}

fn connect_all(server: &Server) -> io::Result<Vec<Measured>> {
    bind_to(1)?;
    let address = server.address.trim_start_matches("http://");
    let address = address.trim_end_matches('/');
    // What the first connection brings along is not paid again by the others.
    let first = connect(address, 0)?;
    thread::sleep(SETTLE / 10);
    let (memory_before, cpu_before) = (server.resident_bytes()?, server.cpu()?);
    let begin = Instant::now();
    let mut clients = Vec::with_capacity(CLIENTS);
    for index in 1..CLIENTS {
        clients.push(connect(address, index)?);
        // Not faster than the server accepts: where its queue is full, a client waits for a second.
        if index.is_multiple_of(BATCH) {
            thread::sleep(PAUSE);
        }
    }
    thread::sleep(SETTLE);
    let memory = server.resident_bytes()? - memory_before;
    if begin.elapsed() > LIMIT {
        return Err(io::Error::other("connecting has taken too long"));
    }
    let count = clients.len() as f64;
    let mut latest = Duration::ZERO;
    for (mut stream, connected) in [first].into_iter().chain(clients) {
        // A few words about it, the end of the stream or a reset.
        let read = stream.read_to_end(&mut Vec::new());
        if let Err(error) = read
            && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        {
            return Err(io::Error::other("one is still there after 30 s"));
        }
        let after = connected.elapsed();
        let late = after.checked_sub(LIMIT);
        latest =
            latest.max(late.ok_or_else(|| io::Error::other(format!("cut off after {after:?}")))?);
    }
    let cpu_us = (server.cpu()? - cpu_before).as_secs_f64() * 1e6;
    let late_ms = latest.as_secs_f64() * 1e3;
    Ok(figures(
        "slow",
        [
            ("memory", memory / count),
            ("cpu", cpu_us / count),
            ("late", late_ms),
        ],
    ))
}

/// A client, and when it began to connect.
fn connect(address: &str, index: usize) -> io::Result<(TcpStream, Instant)> {
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if index.is_multiple_of(2) {
        stream.write_all(b"GET / HTTP/1.1\r\nx-slow: ")?;
    }
    Ok((stream, begin))
}
