//! The server as seen from here: where to reach it, what it has used.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use socket2::SockRef;
use workloads::machine::resident_bytes_of;

pub const MESSAGE_BYTES: usize = 64;
/// What is sent there, and comes back.
pub const MESSAGE: [u8; MESSAGE_BYTES] = [7; MESSAGE_BYTES];
/// How long an answer may take before the server is given up. None takes a hundredth of it.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A server in another process.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    process: String,
    cpu_clock: ClockId,
}

impl Server {
    pub fn new(address: &str, process: &str) -> io::Result<Self> {
        let id = process.parse().map_err(io::Error::other)?;
        Ok(Self {
            address: address.parse().map_err(io::Error::other)?,
            process: process.to_owned(),
            cpu_clock: clock_getcpuclockid(Pid::from_raw(id))?,
        })
    }

    /// CPU time of the whole process, in nanoseconds and up to this moment: threads that have ended or that the
    /// kernel runs for it are part of it.
    pub fn cpu(&self) -> io::Result<Duration> {
        Ok(clock_gettime(self.cpu_clock)?.into())
    }

    pub fn resident_bytes(&self) -> u64 {
        resident_bytes_of(&self.process)
    }

    /// A connection without Nagle's delay, on which no call blocks for long.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        reset_when_closed(&stream)?;
        Ok(stream)
    }

    /// The same when a first message has come back: one newcomer at a time, so that the queue of the listening socket
    /// never overflows.
    pub fn connect_and_greet(&self) -> io::Result<TcpStream> {
        let mut stream = self.connect()?;
        exchange(&mut stream)?;
        Ok(stream)
    }
}

/// Sends a message and waits until as much has come back.
pub fn exchange(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(&MESSAGE)?;
    stream.read_exact(&mut [0; MESSAGE_BYTES])
}

/// Lets `socket` vanish when it is closed, instead of waiting for a minute with its port: a few rounds would use up
/// all ports.
pub fn reset_when_closed<'a>(socket: impl Into<SockRef<'a>>) -> io::Result<()> {
    socket.into().set_linger(Some(Duration::ZERO))
}
