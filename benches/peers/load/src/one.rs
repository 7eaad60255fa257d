//! One connection: a message to and fro from a blocking socket, or as many bytes as go through it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use workloads::report_all;

use crate::measured::{Measured, record};
use crate::server::{MESSAGE, MESSAGE_BYTES, PATIENCE, Server, exchange};

const BLOCK_BYTES: usize = 64 << 10;

/// 64 bytes there and back on one TCP connection.
pub fn stream(case: &str, server: &Server) -> io::Result<()> {
    let mut stream = server.connect()?;
    converse(case, server, || exchange(&mut stream))
}

/// A datagram of 64 bytes there and back. Loopback drops datagrams only when a receive buffer is full, which one
/// datagram in flight cannot do.
pub fn datagrams(case: &str, server: &Server) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server.address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    converse(case, server, || {
        socket.send(&MESSAGE)?;
        match socket.recv(&mut [0; MESSAGE_BYTES])? {
            MESSAGE_BYTES => Ok(()),
            bytes => Err(io::Error::other(format!("an answer of {bytes} bytes"))),
        }
    })
}

fn converse(
    case: &str,
    server: &Server,
    mut trip: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let measured = Measured::steadily(server, |latency| {
        let begin = Instant::now();
        trip()?;
        record(latency, begin);
        Ok(1)
    })?;
    measured.report_latency(case);
    measured.report_cpu(case);
    Ok(())
}

/// Writes blocks of 64 KiB, which the server reads.
pub fn send(case: &str, server: &Server) -> io::Result<()> {
    let mut stream = server.connect()?;
    let block = vec![7; BLOCK_BYTES];
    transfer(case, server, || {
        stream.write_all(&block)?;
        Ok(BLOCK_BYTES)
    })
}

/// Reads, up to 64 KiB at a time, what the server writes in blocks of that size.
pub fn receive(case: &str, server: &Server) -> io::Result<()> {
    let mut stream = server.connect()?;
    let mut block = vec![7; BLOCK_BYTES];
    transfer(case, server, || match stream.read(&mut block)? {
        0 => Err(io::Error::other("the server has closed the connection")),
        bytes => Ok(bytes),
    })
}

/// `<case>-rate`, GB/s; `<case>-cpu`, ms of the server for each GB. What is in the socket buffers when the clock starts
/// and stops is the same few megabytes.
fn transfer(
    case: &str,
    server: &Server,
    mut step: impl FnMut() -> io::Result<usize>,
) -> io::Result<()> {
    let measured = Measured::steadily(server, |_| Ok(step()? as u64))?;
    let gigabytes = measured.count as f64 / 1e9;
    let seconds = measured.elapsed.as_secs_f64();
    let cpu_ms = measured.cpu.as_secs_f64() * 1e3;
    report_all(
        case,
        [("rate", gigabytes / seconds), ("cpu", cpu_ms / gigabytes)],
    );
    Ok(())
}
