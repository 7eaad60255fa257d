//! One message to and fro, from a blocking socket.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use crate::measured::{Measured, record};
use crate::server::{MESSAGE, MESSAGE_BYTES, PATIENCE, Server, exchange};

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
        let bytes = socket.recv(&mut [0; MESSAGE_BYTES])?;
        if bytes == MESSAGE_BYTES {
            Ok(())
        } else {
            Err(io::Error::other(
                "the answer is not as long as the question",
            ))
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
