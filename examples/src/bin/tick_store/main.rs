//! A store of trades on a TCP port, on several executors, that survives being killed.
//!
//! ```console
//! $ cargo run --release -p examples --bin tick_store -- ticks
//! listening on 127.0.0.1:7600
//! $ nc 127.0.0.1 7600                             # in another terminal
//! PUT ABC 1000 10050 3
//! OK 1
//! RANGE 0 2000
//! 1000 ABC 10050 3
//! END 1
//! ```
//!
//! A command is a line. A symbol has up to 8 bytes. Timestamps are integers, in milliseconds if `--keep` is
//! used; ranges go from the first timestamp up to the second, which is not part of them.
//!
//! | command | answer |
//! |---|---|
//! | `PUT symbol timestamp price size` | `OK n`, when the trade is on the device: the n-th operation of its shard |
//! | `RANGE from to` | a line `timestamp symbol price size` for each trade, in order of time, and `END` with their number |
//! | `WINDOWS from to width` | a line `start trades low high open close size` for each window that has trades, and `END` |
//! | `COUNT from to` | `COUNT n` |
//! | `DELETE from to` | `OK`, when that is on the devices |
//!
//! Answers come in the order of the commands, which need not wait for them: a client that sends many
//! trades at once has them written together. An answer to a question may show trades of other
//! clients that are not on the device yet.
//!
//! Any executor accepts clients. A question is answered from snapshots of all shards, merged while they
//! are read, so a slow reader neither blocks nor sees writes.

#![forbid(unsafe_code)]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, mem};

use clap::Parser;
use futures_lite::future::or;
use futures_lite::io::{BufReader, WriteHalf, split};
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use glommio::channels::local_channel::{self, LocalReceiver};
use glommio::net::{TcpListener, TcpStream};
use glommio::sync::{CancellationToken, ForeignCancellation};
use glommio::timer::sleep;
use glommio::{LocalExecutorPoolBuilder, PoolPlacement, spawn_local, yield_if_needed};
use signal_hook::{consts::SIGINT, iterator::Signals, low_level};
use timelog::durable::{Config, Error as LogError, Mesh, ShardCommit, Sharded};
use timelog::{Snapshots, TimeUnit, Ts};

/// Keeps trades, and answers questions about them over TCP.
#[derive(Clone, Debug, Parser)]
#[command(name = "tick_store")]
struct Options {
    /// The directory of the logs. It is made if it is not there.
    directory: PathBuf,

    /// Executors, each with a log of its own. Their number cannot be changed later.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,

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

/// Symbol, price and size.
type Trade = ([u8; 8], i64, u32);
type Ended = Result<(), Box<dyn Error + Send + Sync>>;

fn main() -> Ended {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT])?;
    let shutdown = CancellationToken::new();
    let ending = shutdown.foreign_child();
    let shards = usize::from(options.shards);
    let (mesh, address) = (Mesh::new(shards), Arc::default());
    let executors = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards))
        .name("tick_store")
        .on_all_shards(move || async move {
            let ended = run(options, mesh, address, ending).await;
            // The program ends with all of its executors.
            ended.inspect_err(|_| drop(low_level::raise(SIGINT)))
        })?;
    signals.forever().next();
    shutdown.cancel();
    for ended in executors.join_all() {
        ended??;
    }
    println!("closed");
    Ok(())
}

async fn run(
    options: Options,
    mesh: Mesh<Trade>,
    address: Arc<Mutex<Option<SocketAddr>>>,
    ending: ForeignCancellation,
) -> Ended {
    let memory = timelog::Config::default().unit(TimeUnit::Millis);
    let mut config = Config::default().memory(memory).commit_delay(options.delay);
    if let Some(age) = options.keep {
        config = config.keep(age);
    }
    let (log, found) = Sharded::open(mesh, &options.directory, config).await?;
    let listener = {
        // Where the first executor does, which says so.
        let mut address = address.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listener = TcpListener::bind(address.unwrap_or(wanted))?;
        if address.is_none() {
            println!("listening on {}", address.insert(listener.local_addr()?));
        }
        listener
    };
    println!("shard {}: {found:?}", log.shard_id());
    or(ending.attach().cancelled(), accept(&listener, &log)).await;
    Ok(log.close().await?)
}

async fn accept(listener: &TcpListener, log: &Sharded<Trade>) {
    loop {
        match listener.accept().await {
            // A client that is gone is not an error of the store.
            Ok(client) => drop(spawn_local(serve(client, log.clone())).detach()),
            Err(error) => {
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Executes the commands of a client, while their answers are sent.
async fn serve(client: TcpStream, log: Sharded<Trade>) -> io::Result<()> {
    let (reader, writer) = split(client);
    let (answers, to_send) = local_channel::new_bounded(MANY);
    let sending = spawn_local(send(writer, to_send));
    let (mut reader, mut line) = (BufReader::new(reader), Vec::new());
    loop {
        line.clear();
        // Not more than a command can have, whatever is sent.
        let mut limited = (&mut reader).take(MOST_BYTES);
        if !matches!(limited.read_until(b'\n', &mut line).await, Ok(1..)) {
            break;
        }
        let answer = match execute(&String::from_utf8_lossy(&line), &log).await {
            Ok(answer) => answer.unwrap_or(Answer::Now(USAGE.to_owned())),
            Err(error) => Answer::Now(format!("ERROR {error}\n")),
        };
        if !line.ends_with(b"\n") || answers.send(answer).await.is_err() {
            break;
        }
    }
    // The sender ends when it has sent the last one.
    drop(answers);
    sending.await
}

/// What a client is told, now or when it is on the device.
enum Answer {
    Now(String),
    Committed(ShardCommit<Trade>),
    Rows(Snapshots<Trade>, Range<Ts>),
    Windows(Snapshots<Trade>, Range<Ts>, Ts),
}

/// Does what a line says, or begins to. `None` if it is no command.
async fn execute(line: &str, log: &Sharded<Trade>) -> Result<Option<Answer>, LogError> {
    let mut words = line.split_ascii_whitespace().peekable();
    let command = words.next().unwrap_or_default();
    let symbol = words.next_if(|_| command == "PUT").unwrap_or_default();
    let numbers: Option<Vec<i64>> = words.map(|word| word.parse().ok()).collect();
    Ok(Some(match (command, numbers.as_deref()) {
        ("PUT", Some(&[ts, price, size @ 0..=MOST_SIZE])) if symbol.len() <= 8 => {
            let mut padded = [0; 8];
            padded[..symbol.len()].copy_from_slice(symbol.as_bytes());
            let sent = log.append(symbol, ts, (padded, price, size as u32)).await;
            Answer::Committed(sent.map_err(|refused| refused.error)?)
        }
        ("DELETE", Some(&[from, to])) => {
            Answer::Now(log.delete(from..to).await.map(|_| "OK\n".to_owned())?)
        }
        ("RANGE", Some(&[from, to])) => Answer::Rows(log.snapshots().await?, from..to),
        ("WINDOWS", Some(&[from, to, width])) if width > 0 => {
            Answer::Windows(log.snapshots().await?, from..to, width)
        }
        ("COUNT", Some(&[from, to])) => {
            let count = log.snapshots().await?.count(from..to);
            Answer::Now(format!("COUNT {count}\n"))
        }
        _ => return Ok(None),
    }))
}

/// Sends the answers in their order.
async fn send(mut to: WriteHalf<TcpStream>, answers: LocalReceiver<Answer>) -> io::Result<()> {
    while let Some(answer) = answers.recv().await {
        let text = match answer {
            Answer::Now(text) => text,
            Answer::Committed(commit) => match commit.await {
                Ok(seq) => format!("OK {}\n", seq.0),
                Err(error) => format!("ERROR {error}\n"),
            },
            Answer::Rows(snapshot, range) => {
                let lines = snapshot.range(range).map(|(ts, (symbol, price, size))| {
                    let symbol = String::from_utf8_lossy(symbol).replace('\0', "");
                    Some(format!("{ts} {symbol} {price} {size}\n"))
                });
                send_all(&mut to, lines).await?
            }
            Answer::Windows(snapshot, range, width) => {
                let rows = snapshot.range(range).map(Some).chain([None]);
                let mut window = Window::default();
                let lines = rows.map(|row| {
                    let start = row.map(|(ts, _)| ts.div_euclid(width).saturating_mul(width));
                    let is_done = window.trades > 0 && Some(window.start) != start;
                    let line = is_done.then(|| mem::take(&mut window).line());
                    if let (Some(start), Some((_, trade))) = (start, row) {
                        window.add(start, trade);
                    }
                    line
                });
                send_all(&mut to, lines).await?
            }
        };
        to.write_all(text.as_bytes()).await?;
    }
    to.close().await
}

/// Sends lines in pieces, and gives the last one with their number. Others have their turn after each row,
/// also where a row is no line yet.
async fn send_all(
    to: &mut WriteHalf<TcpStream>,
    lines: impl Iterator<Item = Option<String>>,
) -> io::Result<String> {
    let (mut text, mut count) = (String::new(), 0);
    for line in lines {
        if let Some(line) = line {
            text += &line;
            count += 1;
        }
        if text.len() >= PIECE_BYTES {
            to.write_all(text.as_bytes()).await?;
            text.clear();
        }
        yield_if_needed().await;
    }
    Ok(text + &format!("END {count}\n"))
}

/// What is known of the trades of a stretch of time.
#[derive(Default)]
struct Window {
    start: Ts,
    trades: u64,
    /// The low, the high, the first and the last.
    prices: [i64; 4],
    size: u64,
}

impl Window {
    fn add(&mut self, start: Ts, &(_, price, size): &Trade) {
        if self.trades == 0 {
            (self.start, self.prices) = (start, [price; 4]);
        }
        let [low, high, open, _] = self.prices;
        self.prices = [low.min(price), high.max(price), open, price];
        self.trades += 1;
        self.size += u64::from(size);
    }

    fn line(&self) -> String {
        let prices = self.prices.map(|it| it.to_string()).join(" ");
        format!("{} {} {prices} {}\n", self.start, self.trades, self.size)
    }
}

/// Answers of one client that wait at the most; more commands are not read.
const MANY: usize = 1024;
const MOST_BYTES: u64 = 256;
const MOST_SIZE: i64 = u32::MAX as i64;
/// Text that is sent at once.
const PIECE_BYTES: usize = 32 << 10;

const USAGE: &str = "ERROR this wants PUT symbol timestamp price size, RANGE from to, WINDOWS from to width, \
                     COUNT from to, or DELETE from to\n";
