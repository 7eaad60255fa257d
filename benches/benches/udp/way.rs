//! What the workloads ask of a way to send and receive datagrams.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use support::process::thread_time;

/// A datagram of the streams, in bytes.
pub const DATAGRAM: usize = 1_200;

/// How many of them are sent by one call.
pub const SEGMENTS: usize = 54;

/// One of this length ends a stream.
pub const END: usize = 1;

/// A way to send and receive, on its runtime if it has one.
pub trait Way: Sized + 'static {
    /// Runs `work` to its end.
    fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T>;
    /// Takes a socket that [`socket`] has made, within [`run`](Self::run).
    fn new(socket: UdpSocket) -> io::Result<Self>;
    /// Waits until a datagram is there, and leaves it there.
    async fn wait(&mut self) -> io::Result<()>;
    /// Waits for datagrams, and takes as many as the way can at a time.
    async fn receive(&mut self) -> io::Result<Received>;
    /// Sends [`SEGMENTS`] datagrams to the peer by one call.
    async fn send(&mut self) -> io::Result<()>;
    /// As [`receive`](Self::receive), and sends each back.
    async fn answer(&mut self) -> io::Result<Received>;
}

/// What was received.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    /// Without the one that ends a stream.
    pub datagrams: u64,
    /// Whether that one was among them.
    pub is_over: bool,
}

impl Received {
    /// Counts a message of so many bytes, which is one datagram or several of `segment` bytes.
    pub fn count(&mut self, length: usize, segment: usize) {
        if length == END {
            self.is_over = true;
        } else {
            self.datagrams += length.div_ceil(segment) as u64;
        }
    }
}

/// A socket with the options that all have here.
pub fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let fd = &socket.as_fd();
    setsockopt(fd, sockopt::RcvBuf, &(4 << 20))?;
    setsockopt(fd, sockopt::UdpGroSegment, &true)?;
    setsockopt(fd, sockopt::IpRecvTos, &true)?;
    setsockopt(fd, sockopt::Ipv4PacketInfo, &true)?;
    setsockopt(fd, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

/// What was done, and in what time of its thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub datagrams: u64,
    /// Of those that were to arrive.
    pub lost: u64,
    pub elapsed: Duration,
    pub cpu: Duration,
}

/// Of the thread that made it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begin: Instant,
    cpu: Duration,
}

impl Clock {
    pub fn start() -> Clock {
        Clock {
            begin: Instant::now(),
            cpu: thread_time(),
        }
    }

    /// Adds what has passed, in which so many datagrams were handled.
    pub fn stop(self, datagrams: u64, sample: &mut Sample) {
        sample.datagrams += datagrams;
        sample.elapsed += self.begin.elapsed();
        sample.cpu += thread_time() - self.cpu;
    }
}
