//! A file transfer over UDP that loses datagrams: selective repeat, with a timer per datagram.
//!
//! ```console
//! $ head -c 700001 /dev/urandom >some.bin
//! $ cargo run --release -p examples --bin reliable_udp -- receive copy.bin --port 7200 --loss 5
//! listening on 127.0.0.1:7200
//! $ cargo run --release -p examples --bin reliable_udp -- send some.bin 127.0.0.1:7200 --loss 5 --seed 2
//! sent 700001 bytes in ..: .. segments, .. sent again, .. dropped by the link
//! sha256 ..
//! $ cmp some.bin copy.bin && echo 'the same'
//! the same
//! ```
//!
//! Each side drops `--loss` percent of the datagrams that it is about to send, chosen by a
//! generator with `--seed`, so that what a bad link does can be seen on a good one.
//!
//! # Protocol
//!
//! The datagrams, the window and the estimate of round trips are those of
//! [`examples::reliable_udp`]. A segment is a byte that is 1 for the last one, and its bytes; the
//! last segment holds the SHA-256 of all bytes before. Each segment in flight is an item of a
//! [`DelayQueue`]: its ack removes it, and if it comes out instead it is sent again, with twice the
//! time. The receiver takes the first sender that it hears, keeps what comes too early, and writes
//! in order.
//!
//! The receiver acknowledges the segment that completes the file when the file is written, synced
//! and checked, and not before: a sender that ends well has delivered, even if the receiver is
//! killed at that moment. While the sync goes on, the sender repeats that segment.
//!
//! There is no congestion control: the window is what the sender is told. That will do on a link of
//! one's own, and not on the internet.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use examples::reliable_udp::ack::WINDOW_MAX;
use examples::reliable_udp::reassembly::{Arrival, Reassembly};
use examples::reliable_udp::rto::Rto;
use examples::reliable_udp::window::Window;
use examples::reliable_udp::wire::{DATAGRAM_BYTES_MAX, Datagram, SEGMENT_BYTES_MAX, Salt};
use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::LocalExecutor;
use glommio::io::{
    BufferedFile, Directory, StreamReader, StreamReaderBuilder, StreamWriter, StreamWriterBuilder,
};
use glommio::net::UdpSocket;
use glommio::timer::DelayQueue;
use glommio::timer::delay_queue::{Expired, Key};
use sha2::{Digest, Sha256};

/// Sends a file over UDP, or receives one.
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    role: Role,

    /// Percent of the datagrams of this side that are dropped.
    #[arg(long, global = true, default_value_t = 0, value_parser = clap::value_parser!(u8).range(..100))]
    loss: u8,

    /// Of the generator that chooses them.
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Sends a file.
    Send {
        file: PathBuf,
        receiver: SocketAddr,

        /// How often a segment is sent before the transfer is given up.
        #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
        attempts: u32,
    },
    /// Receives one file, and ends.
    Receive {
        file: PathBuf,

        /// Port to listen on; 0 takes a free one.
        #[arg(long, default_value_t = 7200)]
        port: u16,

        /// How long to stay after the last segment, for a sender that has missed an ack.
        #[arg(long, default_value = "2s")]
        linger: humantime::Duration,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    Ok(LocalExecutor::default().run(run(options))?)
}

async fn run(options: Options) -> io::Result<()> {
    let link = |socket| Link {
        socket,
        percent: options.loss,
        random: fastrand::Rng::with_seed(options.seed),
        dropped: 0,
    };
    match options.role {
        Role::Send {
            file,
            receiver,
            attempts,
        } => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect(receiver).await?;
            let file = BufferedFile::open(&file).await?;
            let bytes = file.file_size().await?;
            let mut sender = Sender {
                file: StreamReaderBuilder::new(file).build(),
                link: link(socket),
                window: Window::new(WINDOW),
                unacknowledged: DelayQueue::new(),
                rto: Rto::new(RTO_INITIAL),
                attempts,
                sent_again: 0,
                hash: Sha256::new(),
                digest: None,
            };
            sender.send(bytes).await
        }
        Role::Receive { file, port, linger } => {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
            println!("listening on {}", socket.local_addr()?);
            receive(file, link(socket), *linger).await
        }
    }
}

/// A socket whose sends may be lost.
struct Link {
    socket: UdpSocket,
    percent: u8,
    random: fastrand::Rng,
    dropped: u64,
}

impl Link {
    fn drops(&mut self) -> bool {
        let is_lost = self.random.u8(..100) < self.percent;
        self.dropped += u64::from(is_lost);
        is_lost
    }
}

struct Sender {
    file: StreamReader,
    link: Link,
    window: Window<Key>,
    /// Segments by their numbers. Each comes out when its time for an ack is over.
    unacknowledged: DelayQueue<u64>,
    rto: Rto,
    attempts: u32,
    sent_again: u64,
    hash: Sha256,
    /// After the last segment.
    digest: Option<String>,
}

enum Event {
    Datagram(io::Result<usize>),
    Overdue(Expired<u64>),
}

impl Sender {
    async fn send(&mut self, bytes: u64) -> io::Result<()> {
        let begin = Instant::now();
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            while self.digest.is_none() && !self.window.is_full() {
                self.send_next().await?;
            }
            if self.window.span() == 0 {
                break;
            }
            // Neither future loses anything when it is dropped because the other one was ready.
            let datagram = async {
                let received = self.link.socket.recv(&mut buffer).await;
                Event::Datagram(received.map_err(io::Error::from))
            };
            let overdue = async { Event::Overdue(self.unacknowledged.next_expired().await) };
            match or(datagram, overdue).await {
                Event::Datagram(Ok(length)) => self.acknowledge(&buffer[..length]),
                // From a port that is not open, yet or any more: what was sent is lost.
                Event::Datagram(Err(error)) if is_refused(&error) => {}
                Event::Datagram(Err(error)) => return Err(error),
                Event::Overdue(segment) => self.repeat(segment.into_inner()).await?,
            }
        }
        println!(
            "sent {bytes} bytes in {:.1?}: {} segments, {} sent again, {} dropped by the link",
            begin.elapsed(),
            self.window.next(),
            self.sent_again,
            self.link.dropped,
        );
        println!("sha256 {}", self.digest.as_deref().unwrap_or_default());
        Ok(())
    }

    /// Sends the next piece of the file, or the checksum when there is no more.
    async fn send_next(&mut self) -> io::Result<()> {
        let mut segment = vec![0; SEGMENT_BYTES_MAX];
        let payload = &mut segment[1..];
        let mut length = 0;
        while length < payload.len() {
            match self.file.read(&mut payload[length..]).await? {
                0 => break,
                count => length += count,
            }
        }
        let is_last = length == 0;
        if is_last {
            let digest = self.hash.finalize_reset();
            payload[..digest.len()].copy_from_slice(digest.as_slice());
            length = digest.len();
            self.digest = Some(hex(digest.as_slice()));
        } else {
            self.hash.update(&payload[..length]);
        }
        segment.truncate(1 + length);
        segment[0] = u8::from(is_last);
        let segment = Rc::from(segment);
        let sequence = self.window.next();
        let timer = (self.unacknowledged).insert(sequence, self.rto.timeout(0));
        (self.window).push(Rc::clone(&segment), Instant::now(), timer);
        self.transmit(sequence, 0, &segment).await
    }

    async fn repeat(&mut self, sequence: u64) -> io::Result<()> {
        let Some(flight) = self.window.flight(sequence) else {
            return Ok(());
        };
        let again = flight.resent + 1;
        if again >= self.attempts {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "no ack of segment {sequence} after {again} attempts: does the receiver run?"
                ),
            ));
        }
        let timer = (self.unacknowledged).insert(sequence, self.rto.timeout(again));
        flight.resend(Instant::now(), timer);
        let segment = Rc::clone(&flight.segment);
        self.sent_again += 1;
        self.transmit(sequence, again, &segment).await
    }

    async fn transmit(&mut self, sequence: u64, resent: u32, segment: &[u8]) -> io::Result<()> {
        if self.link.drops() {
            return Ok(());
        }
        let datagram = Datagram::Data {
            sequence,
            resent: u8::try_from(resent).unwrap_or(u8::MAX),
            segment,
        };
        let sent = self.link.socket.send(&datagram.encode(SALT)).await;
        match sent.map_err(io::Error::from) {
            Err(error) if !is_refused(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn acknowledge(&mut self, datagram: &[u8]) {
        let Ok(Datagram::Ack(ack)) = Datagram::decode(datagram, SALT) else {
            return;
        };
        let mut timers = Vec::new();
        // One of what was never sent is not from the receiver of this file.
        let sent_at = self.window.acknowledge(&ack, &mut timers);
        for timer in timers {
            self.unacknowledged.remove(timer);
        }
        if let Ok(Some(sent_at)) = sent_at {
            self.rto.sampled(sent_at.elapsed());
        }
    }
}

async fn receive(path: PathBuf, mut link: Link, linger: Duration) -> io::Result<()> {
    let mut copy = Some(Copy {
        file: StreamWriterBuilder::new(BufferedFile::create(&path).await?).build(),
        path,
        hash: Sha256::new(),
    });
    let mut digest = String::new();
    let mut reassembly = Reassembly::new(WINDOW_MAX);
    let mut only_sender = None;
    let mut in_order = Vec::new();
    let (mut segments, mut bytes, mut twice, mut out_of_order) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    loop {
        // When all has come, only segments come whose ack was lost.
        if copy.is_none() {
            link.socket.set_read_timeout(Some(linger))?;
        }
        let (length, sender) = match link.socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(_) if copy.is_none() => break,
            Err(error) => return Err(error.into()),
        };
        let Ok(Datagram::Data {
            sequence, segment, ..
        }) = Datagram::decode(&buffer[..length], SALT)
        else {
            continue;
        };
        if *only_sender.get_or_insert(sender) != sender {
            continue;
        }
        match reassembly.receive(sequence, segment, |it| in_order.push(it.to_vec())) {
            Arrival::InOrder => {}
            Arrival::Ahead => out_of_order += 1,
            Arrival::Duplicate => twice += 1,
            Arrival::Beyond => continue,
        }
        for segment in in_order.drain(..) {
            segments += 1;
            match segment.split_first() {
                Some((0, payload)) => {
                    if let Some(copy) = &mut copy {
                        copy.hash.update(payload);
                        copy.file.write_all(payload).await?;
                        bytes += payload.len() as u64;
                    }
                }
                Some((_, checksum)) => {
                    // The ack that completes the transfer is a promise: the file is there.
                    if let Some(copy) = copy.take() {
                        digest = copy.finish(&hex(checksum)).await?;
                    }
                }
                None => {}
            }
        }
        if !link.drops() {
            let ack = Datagram::Ack(reassembly.ack()).encode(SALT);
            link.socket.send_to(&ack, sender).await?;
        }
    }
    println!(
        "received {bytes} bytes in {segments} segments, {out_of_order} out of order, {twice} twice, {} acks dropped by the link",
        link.dropped
    );
    println!("sha256 {digest}");
    Ok(())
}

/// The file that is received, until it is complete.
struct Copy {
    path: PathBuf,
    file: StreamWriter,
    hash: Sha256,
}

impl Copy {
    /// Brings the file to the device, name and all, and returns its digest.
    ///
    /// # Errors
    ///
    /// That of the file, or that the digest is not the `expected` one.
    async fn finish(mut self, expected: &str) -> io::Result<String> {
        // Writes what is left, and syncs.
        self.file.close().await?;
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = Directory::open(directory).await?;
        directory.sync().await?;
        directory.close().await?;
        let found = hex(self.hash.finalize().as_slice());
        if found != expected {
            return Err(io::Error::other("the checksums differ"));
        }
        Ok(found)
    }
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Segments from the oldest without an ack on.
const WINDOW: usize = 64;

/// Of all datagrams of this program.
const SALT: Salt = Salt(u64::from_le_bytes(*b"transfer"));

/// Before an ack has been measured: links of one's own are short.
const RTO_INITIAL: Duration = Duration::from_millis(200);
