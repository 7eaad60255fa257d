//! One connection, as many bytes as go through it. What is in the socket buffers when the clock starts and stops is
//! the same few megabytes.

use std::io::{self, Read, Write};

use workloads::report;

use crate::measured::Measured;
use crate::server::Server;

const BLOCK_BYTES: usize = 64 << 10;

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

/// `<case>-rate`, GB/s; `<case>-cpu`, ms of the server for each GB.
fn transfer(
    case: &str,
    server: &Server,
    mut step: impl FnMut() -> io::Result<usize>,
) -> io::Result<()> {
    let measured = Measured::steadily(server, |_| Ok(step()? as u64))?;
    let gigabytes = measured.count as f64 / 1e9;
    let seconds = measured.elapsed.as_secs_f64();
    report(&format!("{case}-rate"), gigabytes / seconds);
    let cpu_ms = measured.cpu.as_secs_f64() * 1e3;
    report(&format!("{case}-cpu"), cpu_ms / gigabytes);
    Ok(())
}
