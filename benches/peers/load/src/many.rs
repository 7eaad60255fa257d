//! Many connections: each with a message on its way, or that come and go, or on which nothing happens.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::{Domain, Socket, Type};
use workloads::machine::raise_descriptor_limit;
use workloads::report_all;

use crate::measured::{Measured, record};
use crate::server::{MESSAGE, MESSAGE_BYTES, PATIENCE, Server, reset_when_closed};

/// 64 bytes there and back on each of `count` connections, the next at once when the answer is there.
pub fn echo(case: &str, server: &Server, count: usize) -> io::Result<()> {
    let mut poller = Poller::new()?;
    let mut crowd = Vec::with_capacity(count);
    for key in 0..count {
        let stream = server.connect_and_greet()?;
        stream.set_nonblocking(true)?;
        poller.add(&stream, key)?;
        // When it asked last, and how much of the answer has come.
        crowd.push((stream, Instant::now(), 0));
    }
    let ask = |(stream, asked, received): &mut (TcpStream, Instant, usize)| {
        (*asked, *received) = (Instant::now(), 0);
        // One message in flight always fits the buffer.
        stream.write_all(&MESSAGE)
    };
    crowd.iter_mut().try_for_each(ask)?;
    let measured = Measured::steadily(server, |latency| {
        let mut answers = 0;
        for key in poller.wait()? {
            let (stream, asked, received) = &mut crowd[key];
            match stream.read(&mut [0; MESSAGE_BYTES][*received..])? {
                0 => return Err(io::Error::other("the server has closed a connection")),
                bytes => *received += bytes,
            }
            if *received == MESSAGE_BYTES {
                record(latency, *asked);
                ask(&mut crowd[key])?;
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

/// Connections on their way at any time. More would overflow the queue of a listening socket, which holds 128 in some
/// of the crates, and a connection that finds it full tries again a second later.
const AT_ONCE: usize = 32;

/// Connects, waits until the server has accepted and closed the connection, and connects again.
pub fn come_and_go(case: &str, server: &Server) -> io::Result<()> {
    let connect = |poller: &Poller, key| -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        reset_when_closed(&socket)?;
        // Loopback answers within the call: it never waits.
        socket.connect(&server.address.into())?;
        poller.add(&socket, key)?;
        Ok(socket)
    };
    let mut poller = Poller::new()?;
    let sockets = (0..AT_ONCE).map(|key| connect(&poller, key));
    let mut sockets: Vec<Socket> = sockets.collect::<io::Result<_>>()?;
    // A key lives on in the socket that takes the place of one that was closed.
    let mut closed = Vec::with_capacity(AT_ONCE);
    let measured = Measured::steadily(server, |_| {
        closed.extend(poller.wait()?);
        let count = closed.len();
        for key in closed.drain(..) {
            if let Some(error) = sockets[key].take_error()? {
                return Err(error);
            }
            sockets[key] = connect(&poller, key)?;
        }
        Ok(count as u64)
    })?;
    measured.report_rate(case);
    measured.report_cpu(case);
    Ok(())
}

/// Until the server has forgotten that there was something to do.
const SETTLE: Duration = Duration::from_secs(1);
const WATCHED: Duration = Duration::from_secs(3);

/// `<case>-memory`, bytes: resident memory of the server for each of `count` connections, on each of which one message
/// has come back and the next is waited for. `<case>-cpu`, µs: its CPU time in a second in which none comes.
pub fn idle(case: &str, server: &Server, count: usize) -> io::Result<()> {
    // With some that are no connections.
    let (limit, wanted) = (raise_descriptor_limit(), count as u64 + 64);
    if limit < wanted {
        return Err(io::Error::other(format!(
            "left out: {count} connections take {wanted} descriptors, and {limit} are allowed (ulimit -Hn)"
        )));
    }
    // What the first connection brings along is not paid again by the others.
    let _first = server.connect_and_greet()?;
    let before = server.resident_bytes();
    let crowd = (0..count).map(|_| server.connect_and_greet());
    let _crowd: Vec<TcpStream> = crowd.collect::<io::Result<_>>()?;
    let added = server.resident_bytes().saturating_sub(before);
    report_all(case, [("memory", added as f64 / count as f64)]);

    thread::sleep(SETTLE);
    let (cpu_before, begin) = (server.cpu()?, Instant::now());
    thread::sleep(WATCHED);
    let (cpu, measured) = (server.cpu()? - cpu_before, begin.elapsed());
    let us = cpu.as_secs_f64() * 1e6;
    report_all(case, [("cpu", us / measured.as_secs_f64())]);
    Ok(())
}

/// An epoll descriptor and space for its events.
struct Poller {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Poller {
    fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            events: vec![EpollEvent::empty(); 256],
        })
    }

    /// Has `key` reported whenever `socket` receives something, or is closed by the peer. Each arrival is told once:
    /// the load never leaves anything unread.
    fn add(&self, socket: impl AsFd, key: usize) -> io::Result<()> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.epoll.add(socket, EpollEvent::new(flags, key as u64))?;
        Ok(())
    }

    /// Waits for news, and passes on the keys of those that have any; an error if there are none for a long time.
    fn wait(&mut self) -> io::Result<impl Iterator<Item = usize> + '_> {
        let timeout = EpollTimeout::try_from(PATIENCE).expect("a few seconds fit");
        match self.epoll.wait(&mut self.events, timeout)? {
            0 => Err(io::Error::other("the server does not answer any more")),
            count => Ok(self.events[..count].iter().map(|it| it.data() as usize)),
        }
    }
}
