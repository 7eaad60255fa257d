//! Many connections, each with a message on its way.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use crate::measured::{Measured, record};
use crate::poller::Poller;
use crate::server::{MESSAGE, MESSAGE_BYTES, Server};

/// 64 bytes there and back on each of `count` connections, the next at once when the answer is there.
pub fn echo(case: &str, server: &Server, count: usize) -> io::Result<()> {
    let mut poller = Poller::new()?;
    let mut crowd = Vec::with_capacity(count);
    for key in 0..count {
        let stream = server.connect_and_greet()?;
        stream.set_nonblocking(true)?;
        poller.add(&stream, key)?;
        crowd.push(Connection {
            stream,
            asked: Instant::now(),
            received_bytes: 0,
        });
    }
    for connection in &mut crowd {
        connection.ask()?;
    }
    let measured = Measured::steadily(server, |latency| {
        let mut answers = 0;
        for key in poller.wait()? {
            let connection = &mut crowd[key];
            if connection.has_answer()? {
                record(latency, connection.asked);
                connection.ask()?;
                answers += 1;
            }
        }
        Ok(answers)
    })?;
    measured.report_latency(case);
    measured.report_rate(case);
    measured.report_cpu(case);
    Ok(())
}

struct Connection {
    stream: TcpStream,
    asked: Instant,
    /// Of the answer.
    received_bytes: usize,
}

impl Connection {
    fn ask(&mut self) -> io::Result<()> {
        self.asked = Instant::now();
        self.received_bytes = 0;
        // One message in flight always fits the buffer.
        self.stream.write_all(&MESSAGE)
    }

    /// Reads what has come, and says whether all of it has.
    fn has_answer(&mut self) -> io::Result<bool> {
        let missing_bytes = MESSAGE_BYTES - self.received_bytes;
        match self.stream.read(&mut [0; MESSAGE_BYTES][..missing_bytes])? {
            0 => Err(io::Error::other("the server has closed a connection")),
            bytes => {
                self.received_bytes += bytes;
                Ok(bytes == missing_bytes)
            }
        }
    }
}
