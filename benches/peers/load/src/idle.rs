//! Connections on which nothing happens.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use workloads::machine::raise_descriptor_limit;
use workloads::report;

use crate::server::Server;

/// Until the server has forgotten that there was something to do.
const SETTLE: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(3);
/// Descriptors that are no connections, here and there.
const OTHERS: u64 = 64;

/// `<case>-memory`, bytes: resident memory of the server for each of `count` connections, on each of which one message
/// has come back and the next is waited for. `<case>-cpu`, µs: its CPU time in a second in which none comes.
pub fn measure(case: &str, server: &Server, count: usize) -> io::Result<()> {
    let limit = raise_descriptor_limit();
    let wanted = count as u64 + OTHERS;
    if limit < wanted {
        return Err(io::Error::other(format!(
            "left out: {count} connections take {wanted} descriptors, and {limit} are allowed (ulimit -Hn)"
        )));
    }
    // What the first connection brings along is not paid again by the others.
    let first = server.connect_and_greet()?;
    let resident_before = server.resident_bytes();
    let mut crowd = Vec::with_capacity(count);
    for _ in 0..count {
        crowd.push(server.connect_and_greet()?);
    }
    let resident = server.resident_bytes().saturating_sub(resident_before);
    report(&format!("{case}-memory"), resident as f64 / count as f64);

    thread::sleep(SETTLE);
    let cpu_before = server.cpu()?;
    let begin = Instant::now();
    thread::sleep(WATCHED);
    let (cpu, measured) = (server.cpu()? - cpu_before, begin.elapsed());
    let us = cpu.as_secs_f64() * 1e6;
    report(&format!("{case}-cpu"), us / measured.as_secs_f64());
    drop(first);
    Ok(())
}
