//! Clients that send the head of a request in part, or nothing of it, many thousands at a time.
//!
//! A server has one timeout for each of them. What they cost is what its connections take in memory
//! and what accepting, waiting, timing out and closing take of the CPU.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use benches::server::{Server, bind_to};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::Options;

/// What the test yields.
pub const FIGURES: &[&str] = &[
    "memory per connection, B",
    "CPU per connection, µs",
    "the last was cut off late by, ms",
];

/// The longest that the head of a request may take.
pub const LIMIT: Duration = Duration::from_secs(10);

/// What a server is started with for it.
pub const ARGUMENTS: &[&str] = &["--header-timeout", "10s"];

/// Until the server has accepted all, and read what they have sent.
const SETTLE: Duration = Duration::from_millis(500);

/// So many connect at a time, with a pause behind them.
const BATCH: u32 = 64;
const PAUSE: Duration = Duration::from_millis(10);

/// What has not been cut off by then never will.
const PATIENCE: Duration = Duration::from_secs(30);

/// Descriptors that are no connections, here and there.
const OTHERS: u64 = 64;

/// Allows this process, and the servers that it starts, descriptors for so many clients.
///
/// # Errors
///
/// If the hard limit is lower.
pub fn allow_descriptors(clients: u32) -> Result<(), String> {
    let wanted = u64::from(clients) + OTHERS;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    if hard < wanted {
        return Err(format!(
            "{clients} slow clients take {wanted} descriptors, and {hard} are allowed (ulimit -Hn); see --slow-clients"
        ));
    }
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard).map_err(|error| error.to_string())
}

/// Connects all, and waits until each was cut off.
///
/// # Errors
///
/// If one was cut off early, or not at all.
pub fn measure(server: &Server, options: &Options) -> Result<Vec<f64>, String> {
    bind_to(1)?;
    let address = server.address.trim_start_matches("http://");
    let address = address.trim_end_matches('/');
    let failed = |error: std::io::Error| format!("slow clients: {error}");
    // What the first connection brings along is not paid again by the others.
    let first = connect(address, 0).map_err(failed)?;
    thread::sleep(SETTLE / 10);
    let memory_before = server.resident_bytes()?;
    let cpu_before = server.cpu_ns()?;
    let begin = Instant::now();
    let mut clients = Vec::with_capacity(options.slow_clients as usize);
    for index in 1..options.slow_clients {
        clients.push(connect(address, index).map_err(failed)?);
        // Not faster than the server accepts: where its queue is full, a client waits for a second.
        if index.is_multiple_of(BATCH) {
            thread::sleep(PAUSE);
        }
    }
    thread::sleep(SETTLE);
    let memory = server.resident_bytes()? - memory_before;
    if begin.elapsed() > LIMIT {
        return Err("connecting has taken too long: too few CPUs, or too many clients".into());
    }
    let count = clients.len() as f64;
    let mut latest = Duration::ZERO;
    for (mut stream, connected) in [first].into_iter().chain(clients) {
        // A few words about it, the end of the stream or a reset.
        let mut words = Vec::new();
        if let Err(error) = stream.read_to_end(&mut words)
            && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
        {
            return Err(format!("a slow client is still there after {PATIENCE:?}"));
        }
        let Some(late) = connected.elapsed().checked_sub(LIMIT) else {
            return Err(format!("cut off after {:?}", connected.elapsed()));
        };
        latest = latest.max(late);
    }
    let cpu_us = (server.cpu_ns()? - cpu_before) / 1e3;
    Ok(vec![
        memory / count,
        cpu_us / count,
        latest.as_secs_f64() * 1e3,
    ])
}

/// A client, and when it began to connect.
fn connect(address: &str, index: u32) -> std::io::Result<(TcpStream, Instant)> {
    let begin = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    if index.is_multiple_of(2) {
        stream.write_all(b"GET / HTTP/1.1\r\nx-slow: ")?;
    }
    Ok((stream, begin))
}
