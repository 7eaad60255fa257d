//! A store of trades on a TCP port, that survives being killed.
//!
//! ```console
//! $ cargo run --release -p examples --bin tick_store -- ticks
//! listening on 127.0.0.1:7600
//! $ nc 127.0.0.1 7600                             # in another terminal
//! PUT 1000 10050 3
//! OK 1
//! PUT 1700 10060 1
//! OK 2
//! RANGE 0 2000
//! 1000 10050 3
//! 1700 10060 1
//! END 2
//! WINDOWS 0 2000 1000
//! 1000 2 10050 10060 10050 10060 4
//! END 1
//! ```
//!
//! # Commands
//!
//! A line each. Timestamps are integers, in milliseconds if `--keep` is used; ranges go from the first
//! timestamp up to the second, which is not part of them.
//!
//! | command | answer |
//! |---|---|
//! | `PUT timestamp price size` | `OK n`, when the trade is on the device: the n-th operation |
//! | `RANGE from to` | a line `timestamp price size` for each trade, in order of time, and `END` with their number |
//! | `WINDOWS from to width` | a line `start trades low high open close size` for each window that has trades, and `END` |
//! | `COUNT from to` | `COUNT n` |
//! | `DELETE from to` | `OK n`, when that is on the device |
//!
//! Answers come in the order of the commands, which need not wait for them: a client that sends many
//! trades at once has them written together. An answer to a question may show trades of other
//! clients that are not on the device yet.
//!
//! # How it works
//!
//! ```text
//!   line ──▶ command ──▶ timelog::durable::Log ──▶ Commit ─┐
//!                            └── snapshot ──▶ rows ────────┴▶ answers, in their order ──▶ client
//! ```
//!
//! `timelog::durable` does what the example `kv_log` shows in the small: groups, syncs, recovery, the
//! lock. A question is answered from a snapshot, so a slow reader neither blocks nor sees writes.

#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use futures_lite::future::or;
use futures_lite::io::{ReadHalf, WriteHalf, split};
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use glommio::channels::local_channel::{self, LocalReceiver, LocalSender};
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement, signal, spawn_local, yield_if_needed};
use timelog::durable::{Commit, Config, Log};
use timelog::{Snapshot, TimeUnit, Ts};

/// Keeps trades, and answers questions about them over TCP.
#[derive(Clone, Debug, Parser)]
#[command(name = "tick_store")]
struct Options {
    /// The directory of the log. It is made if it is not there.
    directory: PathBuf,

    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7600)]
    port: u16,

    /// How long the first trade of a group waits for others.
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    delay: Duration,

    /// How long trades are kept; for ever without it.
    #[arg(long, value_parser = humantime::parse_duration)]
    keep: Option<Duration>,
}

/// Price and size.
type Trade = (i64, u32);

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    signal::block(&[libc::SIGINT])?;
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("tick_store")
        .spawn(move || run(options))?;
    executor.join()?.map_err(|error| error.to_string().into())
}

async fn run(options: Options) -> Result<(), Box<dyn Error + Send + Sync>> {
    let memory = timelog::Config::default().unit(TimeUnit::Millis);
    let mut config = Config::default().memory(memory).commit_delay(options.delay);
    if let Some(age) = options.keep {
        config = config.keep(age);
    }
    let opened = Log::<Trade>::open(&options.directory, config).await;
    let (log, found) = opened.map_err(|error| error.to_string())?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let listener = TcpListener::bind(address).map_err(io::Error::from)?;
    println!(
        "listening on {}",
        listener.local_addr().map_err(io::Error::from)?
    );
    println!(
        "{} rows from {} checkpoints, {} operations replayed",
        log.snapshot().count(..),
        found.checkpoints,
        found.replayed
    );
    let interrupted = async { signal::ctrl_c().await.map_err(io::Error::from) };
    or(interrupted, accept(&listener, &log)).await?;
    log.close().await.map_err(|error| error.to_string())?;
    println!("closed");
    Ok(())
}

async fn accept(listener: &TcpListener, log: &Log<Trade>) -> io::Result<()> {
    loop {
        match listener.accept().await {
            Ok(client) => {
                let log = log.clone();
                spawn_local(async move {
                    // A client that is gone is not an error of the store.
                    let _ = serve(client, log).await;
                })
                .detach();
            }
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// What a client is told, now or when it is on the device.
enum Answer {
    Now(String),
    Committed(Commit),
    Rows(Snapshot<Trade>, Range<Ts>),
    Windows(Snapshot<Trade>, Range<Ts>, Ts),
}

async fn serve(client: TcpStream, log: Log<Trade>) -> io::Result<()> {
    let (lines, writer) = split(client);
    let (answers, to_send) = local_channel::new_bounded(MANY);
    let sending = spawn_local(send(writer, to_send));
    let read = read(lines, &log, &answers).await;
    // The sender ends when it has sent the last one.
    drop(answers);
    read.and(sending.await)
}

async fn read(
    client: ReadHalf<TcpStream>,
    log: &Log<Trade>,
    answers: &LocalSender<Answer>,
) -> io::Result<()> {
    let mut lines = futures_lite::io::BufReader::new(client);
    let mut line = Vec::new();
    loop {
        line.clear();
        // Not more than a command can have, whatever is sent.
        let mut limited = (&mut lines).take(MOST_BYTES);
        if limited.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let answer = execute(text.trim(), log).await;
        if !line.ends_with(b"\n") || answers.send(answer).await.is_err() {
            return Ok(());
        }
    }
}

async fn execute(line: &str, log: &Log<Trade>) -> Answer {
    let mut words = line.split_ascii_whitespace();
    let command = words.next().unwrap_or_default();
    let numbers: Option<Vec<i64>> = words.map(|word| word.parse().ok()).collect();
    match (command, numbers.as_deref()) {
        ("PUT", Some(&[ts, price, size])) if (0..=u32::MAX.into()).contains(&size) => {
            put(log, ts, (price, size as u32)).await
        }
        ("DELETE", Some(&[from, to])) => match log.delete(from..to) {
            Ok(commit) => Answer::Committed(commit),
            Err(error) => refuse(&error),
        },
        ("RANGE", Some(&[from, to])) => Answer::Rows(log.snapshot(), from..to),
        ("WINDOWS", Some(&[from, to, width])) if width > 0 => {
            Answer::Windows(log.snapshot(), from..to, width)
        }
        ("COUNT", Some(&[from, to])) => {
            let count = log.snapshot().count(from..to);
            Answer::Now(format!("COUNT {count}\n"))
        }
        _ => Answer::Now(USAGE.to_owned()),
    }
}

/// Accepts a trade, as soon as the device keeps up.
async fn put(log: &Log<Trade>, ts: Ts, mut trade: Trade) -> Answer {
    loop {
        match log.append(ts, trade) {
            Ok(commit) => return Answer::Committed(commit),
            Err(refused) => match refused.error {
                timelog::durable::Error::Busy { .. } => {
                    if let Err(error) = log.sync().await {
                        return refuse(&error);
                    }
                    trade = refused.rejected;
                }
                error => return refuse(&error),
            },
        }
    }
}

fn refuse(error: &timelog::durable::Error) -> Answer {
    Answer::Now(format!("ERROR {error}\n"))
}

/// Sends the answers in their order.
async fn send(mut client: WriteHalf<TcpStream>, answers: LocalReceiver<Answer>) -> io::Result<()> {
    while let Some(answer) = answers.recv().await {
        match answer {
            Answer::Now(text) => client.write_all(text.as_bytes()).await?,
            Answer::Committed(commit) => {
                let text = match commit.await {
                    Ok(seq) => format!("OK {}\n", seq.0),
                    Err(error) => format!("ERROR {error}\n"),
                };
                client.write_all(text.as_bytes()).await?;
            }
            Answer::Rows(snapshot, range) => {
                let mut output = Output::to(&mut client);
                for (ts, (price, size)) in snapshot.range(range) {
                    output.line(format_args!("{ts} {price} {size}")).await?;
                }
                output.end().await?;
            }
            Answer::Windows(snapshot, range, width) => {
                let mut output = Output::to(&mut client);
                let mut window: Option<Window> = None;
                for (ts, trade) in snapshot.range(range) {
                    let start = ts.div_euclid(width).saturating_mul(width);
                    if let Some(done) = window.take_if(|it| it.start != start) {
                        output.line(format_args!("{done}")).await?;
                    }
                    window
                        .get_or_insert_with(|| Window::new(start, trade))
                        .add(trade);
                }
                if let Some(done) = window {
                    output.line(format_args!("{done}")).await?;
                }
                output.end().await?;
            }
        }
    }
    client.close().await
}

/// What is known of the trades of a stretch of time.
struct Window {
    start: Ts,
    trades: u64,
    low: i64,
    high: i64,
    open: i64,
    close: i64,
    size: u64,
}

impl Window {
    fn new(start: Ts, &(price, _): &Trade) -> Self {
        Window {
            start,
            trades: 0,
            low: price,
            high: price,
            open: price,
            close: price,
            size: 0,
        }
    }

    fn add(&mut self, &(price, size): &Trade) {
        self.trades += 1;
        self.low = self.low.min(price);
        self.high = self.high.max(price);
        self.close = price;
        self.size += u64::from(size);
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Window {
            start,
            trades,
            low,
            high,
            open,
            close,
            size,
        } = self;
        write!(f, "{start} {trades} {low} {high} {open} {close} {size}")
    }
}

/// Lines that are sent in pieces, and counted.
struct Output<'c> {
    client: &'c mut WriteHalf<TcpStream>,
    text: String,
    lines: u64,
}

impl<'c> Output<'c> {
    fn to(client: &'c mut WriteHalf<TcpStream>) -> Self {
        Output {
            client,
            text: String::new(),
            lines: 0,
        }
    }

    async fn line(&mut self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.text, "{line}").expect("a string takes everything");
        self.lines += 1;
        if self.text.len() >= PIECE_BYTES {
            self.client.write_all(self.text.as_bytes()).await?;
            self.text.clear();
        }
        // Others have their turn, however many rows there are.
        yield_if_needed().await;
        Ok(())
    }

    async fn end(mut self) -> io::Result<()> {
        writeln!(self.text, "END {}", self.lines).expect("a string takes everything");
        self.client.write_all(self.text.as_bytes()).await
    }
}

/// Answers of one client that wait at the most; more commands are not read.
const MANY: usize = 1024;
const MOST_BYTES: u64 = 256;
const PIECE_BYTES: usize = 32 << 10;

const USAGE: &str = "ERROR this wants PUT timestamp price size, RANGE from to, WINDOWS from to width, \
                     COUNT from to, or DELETE from to\n";
