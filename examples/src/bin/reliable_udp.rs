//! A file transfer over UDP that loses datagrams: selective repeat, with a timer per datagram.
//!
//! ```console
//! $ cargo run --release -p examples --bin reliable_udp -- receive copy.bin --port 7200 --loss 5
//! $ cargo run --release -p examples --bin reliable_udp -- send some.bin 127.0.0.1:7200 --loss 5
//! ```
//!
//! Each side drops `--loss` percent of the datagrams that it is about to send, chosen by a
//! generator with `--seed`, so that what a bad link does can be seen on a good one.
//!
//! # Protocol
//!
//! Numbers are little-endian. A *segment* is `D`, the transfer (8 bytes, random), the number of the
//! segment (4 bytes), a byte that is 1 for the last one, and its bytes. The last segment holds the
//! SHA-256 of all bytes before. An *ack* is `A`, the transfer, and the number of the segment: each
//! segment is acknowledged by itself, whenever it comes. The sender has a window of segments that
//! are sent and not acknowledged. Each is an item of a [`DelayQueue`]: its ack removes it, and if
//! it comes out instead it is sent again, with twice the time. The receiver keeps what comes too
//! early, and writes in order.
//!
//! The receiver acknowledges the segment that completes the file when the file is written, synced
//! and checked, and not before: a sender that ends well has delivered, even if the receiver is
//! killed at that moment. While the sync goes on, the sender repeats that segment.
//!
//! There is no congestion control: the window is what the sender is told. That will do on a link of
//! one's own, and not on the internet.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use futures_lite::future::or;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::io::{
    BufferedFile, Directory, StreamReader, StreamReaderBuilder, StreamWriter, StreamWriterBuilder,
};
use glommio::net::UdpSocket;
use glommio::timer::DelayQueue;
use glommio::timer::delay_queue::{Expired, Key};
use glommio::{LocalExecutorBuilder, Placement};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

/// Sends a file over UDP, or receives one.
#[derive(Debug, Parser)]
#[command(name = "reliable_udp")]
struct Options {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Sends a file.
    Send {
        file: PathBuf,
        receiver: SocketAddr,

        /// Segments that are sent and not acknowledged.
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
        window: u16,

        /// How often a segment is sent before the transfer is given up.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        attempts: u32,

        #[command(flatten)]
        loss: Loss,
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

        #[command(flatten)]
        loss: Loss,
    },
}

/// How bad the link is.
#[derive(Clone, Debug, Args)]
struct Loss {
    /// Percent of the datagrams of this side that are dropped.
    #[arg(long = "loss", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..100))]
    percent: u8,

    /// Of the generator that chooses them.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("reliable_udp")
        .spawn(move || run(options))?;
    Ok(executor.join()??)
}

async fn run(options: Options) -> io::Result<()> {
    match options.role {
        Role::Send {
            file,
            receiver,
            window,
            attempts,
            loss,
        } => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect(receiver).await?;
            let file = BufferedFile::open(&file).await?;
            let bytes = file.file_size().await?;
            let mut sender = Sender {
                file: StreamReaderBuilder::new(file).build(),
                link: Link::new(socket, &loss),
                transfer: fastrand::u64(..),
                window: u32::from(window),
                attempts,
                segments: Segments::default(),
                round_trip: RoundTrip::default(),
                next: 0,
                bytes_read: 0,
                sent_again: 0,
                hash: Sha256::new(),
                digest: None,
            };
            sender.send(bytes).await
        }
        Role::Receive {
            file,
            port,
            linger,
            loss,
        } => receive(file, port, *linger, &loss).await,
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
    fn new(socket: UdpSocket, loss: &Loss) -> Link {
        Link {
            socket,
            percent: loss.percent,
            random: fastrand::Rng::with_seed(loss.seed),
            dropped: 0,
        }
    }

    fn drops(&mut self) -> bool {
        let is_lost = self.random.u8(..100) < self.percent;
        self.dropped += u64::from(is_lost);
        is_lost
    }
}

struct Sender {
    file: StreamReader,
    link: Link,
    transfer: u64,
    window: u32,
    attempts: u32,
    segments: Segments,
    round_trip: RoundTrip,
    /// The number of the next new segment.
    next: u32,
    bytes_read: u64,
    sent_again: u64,
    hash: Sha256,
    /// After the last segment.
    digest: Option<String>,
}

/// Those that were sent and not acknowledged.
#[derive(Default)]
struct Segments {
    /// Each comes out when its time for an ack is over.
    unacknowledged: DelayQueue<Segment>,
    keys: BTreeMap<u32, Key>,
}

struct Segment {
    number: u32,
    datagram: Vec<u8>,
    sent: Instant,
    attempts: u32,
    timeout: Duration,
}

enum Event {
    Datagram(io::Result<usize>),
    Overdue(Expired<Segment>),
}

impl Sender {
    async fn send(&mut self, bytes: u64) -> io::Result<()> {
        let begin = Instant::now();
        let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec}")
            .map_err(io::Error::other)?;
        let progress = ProgressBar::new(bytes).with_style(style);
        let mut buffer = [0; ACK_BYTES];
        loop {
            while self.digest.is_none() && self.has_window() {
                self.send_next().await?;
            }
            progress.set_position(self.bytes_read);
            if self.segments.keys.is_empty() {
                break;
            }
            // Neither future loses anything when it is dropped because the other one was ready.
            let datagram = async {
                let received = self.link.socket.recv(&mut buffer).await;
                Event::Datagram(received.map_err(io::Error::from))
            };
            let overdue =
                async { Event::Overdue(self.segments.unacknowledged.next_expired().await) };
            match or(datagram, overdue).await {
                Event::Datagram(Ok(length)) => self.acknowledge(&buffer[..length]),
                // From a port that is not open, yet or any more: what was sent is lost.
                Event::Datagram(Err(error)) if is_refused(&error) => {}
                Event::Datagram(Err(error)) => return Err(error),
                Event::Overdue(segment) => self.repeat(segment.into_inner()).await?,
            }
        }
        progress.finish_and_clear();
        let elapsed = begin.elapsed();
        println!(
            "sent {bytes} bytes in {} segments, {} sent again, {} dropped by the link, {elapsed:.1?}, {}/s",
            self.next,
            self.sent_again,
            self.link.dropped,
            HumanBytes((bytes as f64 / elapsed.as_secs_f64()) as u64),
        );
        println!("sha256 {}", self.digest.as_deref().unwrap_or_default());
        Ok(())
    }

    /// Whether the oldest segment without an ack is near enough.
    fn has_window(&self) -> bool {
        let oldest = self.segments.keys.keys().next();
        oldest.is_none_or(|oldest| self.next - oldest < self.window)
    }

    /// Sends the next piece of the file, or the checksum when there is no more.
    async fn send_next(&mut self) -> io::Result<()> {
        let mut datagram = vec![0; HEADER_BYTES + PAYLOAD_BYTES];
        let payload = &mut datagram[HEADER_BYTES..];
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
            self.bytes_read += length as u64;
        }
        datagram.truncate(HEADER_BYTES + length);
        datagram[0] = b'D';
        datagram[1..9].copy_from_slice(&self.transfer.to_le_bytes());
        datagram[9..13].copy_from_slice(&self.next.to_le_bytes());
        datagram[13] = u8::from(is_last);
        let segment = Segment {
            number: self.next,
            datagram,
            sent: Instant::now(),
            attempts: 0,
            timeout: self.round_trip.timeout(),
        };
        self.next = (self.next.checked_add(1))
            .ok_or_else(|| io::Error::other("a file of more than 4 billion segments"))?;
        self.transmit(segment).await
    }

    async fn repeat(&mut self, mut segment: Segment) -> io::Result<()> {
        self.segments.keys.remove(&segment.number);
        if segment.attempts >= self.attempts {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "no ack of segment {} after {} attempts: does the receiver run?",
                    segment.number, segment.attempts
                ),
            ));
        }
        self.sent_again += 1;
        segment.timeout = (segment.timeout * 2).min(TIMEOUT_MAX);
        self.transmit(segment).await
    }

    async fn transmit(&mut self, mut segment: Segment) -> io::Result<()> {
        segment.attempts += 1;
        segment.sent = Instant::now();
        if !self.link.drops() {
            let sent = self.link.socket.send(&segment.datagram).await;
            match sent.map_err(io::Error::from) {
                Err(error) if !is_refused(&error) => return Err(error),
                _ => {}
            }
        }
        let (number, timeout) = (segment.number, segment.timeout);
        let key = self.segments.unacknowledged.insert(segment, timeout);
        self.segments.keys.insert(number, key);
        Ok(())
    }

    fn acknowledge(&mut self, datagram: &[u8]) {
        let Some((transfer, number)) = parse_ack(datagram) else {
            return;
        };
        if transfer != self.transfer {
            return;
        }
        let key = self.segments.keys.remove(&number);
        let Some(segment) = key.and_then(|key| self.segments.unacknowledged.remove(key)) else {
            // The second ack of a segment that was sent twice.
            return;
        };
        // Of a segment that was sent twice it is not known which one was acknowledged.
        if segment.attempts == 1 {
            self.round_trip.measured(segment.sent.elapsed());
        }
    }
}

/// The time that an ack takes, smoothed as TCP does it.
#[derive(Default)]
struct RoundTrip {
    smoothed: Option<(Duration, Duration)>,
}

impl RoundTrip {
    fn measured(&mut self, took: Duration) {
        let (mean, deviation) = self.smoothed.unwrap_or((took, took / 2));
        let difference = mean.abs_diff(took);
        self.smoothed = Some(((mean * 7 + took) / 8, (deviation * 3 + difference) / 4));
    }

    fn timeout(&self) -> Duration {
        match self.smoothed {
            None => TIMEOUT_FIRST,
            Some((mean, deviation)) => (mean + deviation * 4).clamp(TIMEOUT_MIN, TIMEOUT_MAX),
        }
    }
}

async fn receive(path: PathBuf, port: u16, linger: Duration, loss: &Loss) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    println!("listening on {}", socket.local_addr()?);
    let mut link = Link::new(socket, loss);
    let mut copy = Some(Copy {
        file: StreamWriterBuilder::new(BufferedFile::create(&path).await?).build(),
        path,
        hash: Sha256::new(),
    });
    let mut digest = String::new();
    let mut transfer = None;
    let mut early: BTreeMap<u32, (bool, Vec<u8>)> = BTreeMap::new();
    let (mut next, mut bytes, mut twice, mut out_of_order) = (0_u32, 0_u64, 0_u64, 0_u64);
    let mut buffer = vec![0; HEADER_BYTES + PAYLOAD_BYTES];
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
        let Some((of, number, is_last, payload)) = parse_segment(&buffer[..length]) else {
            continue;
        };
        let is_near = number < next.saturating_add(EARLY_MAX);
        if *transfer.get_or_insert(of) != of || !is_near {
            continue;
        }
        if number < next || early.contains_key(&number) {
            twice += 1;
        } else {
            out_of_order += u64::from(number > next);
            early.insert(number, (is_last, payload.to_vec()));
        }
        while let Some((is_last, payload)) = early.remove(&next) {
            next += 1;
            if is_last {
                // The ack that completes the transfer is a promise: the file is there.
                if let Some(copy) = copy.take() {
                    digest = copy.finish(&hex(&payload)).await?;
                }
            } else if let Some(copy) = &mut copy {
                copy.hash.update(&payload);
                copy.file.write_all(&payload).await?;
                bytes += payload.len() as u64;
            }
        }
        if !link.drops() {
            link.socket.send_to(&ack(of, number), sender).await?;
        }
    }
    println!(
        "received {bytes} bytes in {next} segments, {out_of_order} out of order, {twice} twice, {} acks dropped by the link",
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

fn ack(transfer: u64, number: u32) -> [u8; ACK_BYTES] {
    let mut ack = [0; ACK_BYTES];
    ack[0] = b'A';
    ack[1..9].copy_from_slice(&transfer.to_le_bytes());
    ack[9..].copy_from_slice(&number.to_le_bytes());
    ack
}

fn parse_ack(datagram: &[u8]) -> Option<(u64, u32)> {
    let (transfer, rest) = datagram.strip_prefix(b"A")?.split_first_chunk()?;
    let number = rest.try_into().ok()?;
    Some((u64::from_le_bytes(*transfer), u32::from_le_bytes(number)))
}

fn parse_segment(datagram: &[u8]) -> Option<(u64, u32, bool, &[u8])> {
    let (transfer, rest) = datagram.strip_prefix(b"D")?.split_first_chunk()?;
    let (number, rest) = rest.split_first_chunk()?;
    let (is_last, payload) = rest.split_first()?;
    let (transfer, number) = (u64::from_le_bytes(*transfer), u32::from_le_bytes(*number));
    Some((transfer, number, *is_last == 1, payload))
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const HEADER_BYTES: usize = 14;
/// With the headers of UDP and IP it fits a packet of Ethernet.
const PAYLOAD_BYTES: usize = 1200;
const ACK_BYTES: usize = 13;
/// Before an ack has been measured, and the bounds after.
const TIMEOUT_FIRST: Duration = Duration::from_millis(200);
const TIMEOUT_MIN: Duration = Duration::from_millis(10);
const TIMEOUT_MAX: Duration = Duration::from_millis(500);
/// How far ahead a segment may be: more than any window.
const EARLY_MAX: u32 = 8192;
