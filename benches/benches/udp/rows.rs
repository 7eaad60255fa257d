//! What is compared.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use benches::thread::bind_to;
use support::process::thread_time;

#[cfg(feature = "peers")]
use super::theirs;
use super::{Cpus, Sample, bare, counterpart, ours, ring};

pub struct Row {
    pub name: &'static str,
    pub measure: fn(Cpus, Duration) -> io::Result<Sample>,
}

/// Counts what arrives until the stream ends, and the time of its thread from the first datagram on.
pub type Receive = fn(UdpSocket) -> io::Result<(u64, Timing)>;

/// Sends to the peer of the socket for so long, and counts what it has sent.
pub type Send = fn(UdpSocket, Duration) -> io::Result<u64>;

/// Answers each datagram until one ends it, and counts them.
pub type Answer = fn(UdpSocket) -> io::Result<(u64, Timing)>;

/// Fills its own socket and times how it is emptied, for so long.
pub type Empty = fn(Duration) -> io::Result<(u64, Timing)>;

#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    pub elapsed: Duration,
    pub cpu: Duration,
}

macro_rules! row {
    ($name:literal, $kind:ident($how:expr)) => {
        Row {
            name: $name,
            measure: |cpus, length| $kind(cpus, length, $how),
        }
    };
}

pub const ROWS: &[Row] = &[
    row!("waiting: bare recvmsg with GRO", empty(bare::empty)),
    row!("waiting: bare recvmmsg with GRO", empty(bare::empty_many)),
    row!(
        "waiting: bare multishot recvmsg with GRO",
        empty(ring::empty)
    ),
    row!("waiting: ours, recv_many", empty(ours::empty)),
    row!("waiting: ours, recv_from", empty(ours::empty_singly)),
    #[cfg(feature = "peers")]
    row!("waiting: tokio with quinn-udp", empty(theirs::empty)),
    row!("receive: bare recvmsg with GRO", receive(bare::receive)),
    row!(
        "receive: bare recvmmsg with GRO",
        receive(bare::receive_many)
    ),
    row!(
        "receive: bare multishot recvmsg with GRO",
        receive(ring::receive)
    ),
    row!("receive: ours, recv_many", receive(ours::receive)),
    #[cfg(feature = "peers")]
    row!("receive: tokio with quinn-udp", receive(theirs::receive)),
    row!("send: bare sendmsg with GSO", send(bare::send)),
    row!("send: ours, send_segments", send(ours::send)),
    #[cfg(feature = "peers")]
    row!("send: tokio with quinn-udp", send(theirs::send)),
    row!("64 peers: bare recvmmsg", listen(bare::receive_many)),
    row!("64 peers: bare multishot recvmsg", listen(ring::receive)),
    row!("64 peers: ours, recv_many", listen(ours::receive)),
    row!(
        "64 peers: ours, recv_many every 50 µs",
        listen(ours::receive_together)
    ),
    #[cfg(feature = "peers")]
    row!("64 peers: tokio with quinn-udp", listen(theirs::receive)),
    row!(
        "64 peers answered: bare recvmmsg, sendmsg",
        answer(bare::answer)
    ),
    row!(
        "64 peers answered: bare recvmmsg, sendmmsg",
        answer(bare::answer_many)
    ),
    row!(
        "64 peers answered: ours, recv_many, send_many",
        answer(ours::answer)
    ),
    row!(
        "64 peers answered: ours, told nothing",
        answer(ours::answer_untold)
    ),
    #[cfg(feature = "peers")]
    row!(
        "64 peers answered: tokio with quinn-udp",
        answer(theirs::answer)
    ),
];

/// How often one of the peers sends, of those that do not wait for answers.
const PACE: Duration = Duration::from_micros(5);

fn empty(cpus: Cpus, length: Duration, empty: Empty) -> io::Result<Sample> {
    let (datagrams, timing) = on(cpus.measured, move || empty(length))?;
    Ok(sample(datagrams, 0, timing))
}

fn receive(cpus: Cpus, length: Duration, receive: Receive) -> io::Result<Sample> {
    let receiver = bare::socket()?;
    let to = receiver.local_addr()?;
    let sender = thread::spawn(move || {
        on(cpus.other, move || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.connect(to)?;
            let sent = bare::send(socket.try_clone()?, length);
            counterpart::end(&socket);
            sent
        })
    });
    let (datagrams, timing) = on(cpus.measured, move || receive(receiver))?;
    let sent = sender.join().expect("it does not panic")?;
    Ok(sample(datagrams, sent - datagrams, timing))
}

fn send(cpus: Cpus, length: Duration, send: Send) -> io::Result<Sample> {
    let receiver = bare::socket()?;
    let to = receiver.local_addr()?;
    let receiver = thread::spawn(move || on(cpus.other, move || bare::receive_many(receiver)));
    let (datagrams, timing) = on(cpus.measured, move || {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(to)?;
        let end = socket.try_clone()?;
        let clock = Clock::start();
        let sent = send(socket, length);
        let timing = clock.stop();
        counterpart::end(&end);
        Ok((sent?, timing))
    })?;
    let (arrived, _) = receiver.join().expect("it does not panic")?;
    Ok(sample(datagrams, datagrams - arrived, timing))
}

fn listen(cpus: Cpus, length: Duration, receive: Receive) -> io::Result<Sample> {
    let receiver = bare::socket()?;
    let to = receiver.local_addr()?;
    let peers = thread::spawn(move || on(cpus.other, move || counterpart::tell(to, length, PACE)));
    let (datagrams, timing) = on(cpus.measured, move || receive(receiver))?;
    let sent = peers.join().expect("it does not panic")?;
    Ok(sample(datagrams, sent - datagrams, timing))
}

fn answer(cpus: Cpus, length: Duration, answer: Answer) -> io::Result<Sample> {
    let server = bare::socket()?;
    let to = server.local_addr()?;
    let peers = thread::spawn(move || on(cpus.other, move || counterpart::ask(to, length)));
    let (datagrams, timing) = on(cpus.measured, move || answer(server))?;
    let lost = peers.join().expect("it does not panic")?;
    Ok(sample(datagrams, lost, timing))
}

fn sample(datagrams: u64, lost: u64, timing: Timing) -> Sample {
    Sample {
        datagrams,
        lost,
        elapsed: timing.elapsed,
        cpu: timing.cpu,
    }
}

/// On a new thread, which has this CPU.
fn on<T: std::marker::Send + 'static>(
    cpu: usize,
    run: impl FnOnce() -> io::Result<T> + std::marker::Send + 'static,
) -> io::Result<T> {
    let thread = thread::spawn(move || {
        bind_to(cpu)?;
        run()
    });
    thread.join().expect("it does not panic")
}

/// Of the thread that made it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begin: std::time::Instant,
    cpu: Duration,
}

impl Clock {
    pub fn start() -> Clock {
        Clock {
            begin: std::time::Instant::now(),
            cpu: thread_time(),
        }
    }

    pub fn stop(self) -> Timing {
        Timing {
            elapsed: self.begin.elapsed(),
            cpu: thread_time() - self.cpu,
        }
    }
}

impl std::ops::AddAssign for Timing {
    fn add_assign(&mut self, other: Timing) {
        self.elapsed += other.elapsed;
        self.cpu += other.cpu;
    }
}
