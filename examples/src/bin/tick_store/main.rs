//! A store of trades on a TCP port, on several executors, that survives being killed.
//!
//! ```console
//! $ cargo run --release -p examples --bin tick_store -- ticks
//! listening on 127.0.0.1:7600
//! $ nc 127.0.0.1 7600                             # in another terminal
//! PUT ABC 1000 10050 3
//! OK 1
//! PUT XYZ 1700 10060 1
//! OK 1
//! RANGE 0 2000
//! 1000 ABC 10050 3
//! 1700 XYZ 10060 1
//! END 2
//! WINDOWS 0 2000 1000
//! 1000 2 10050 10060 10050 10060 4
//! END 1
//! ```
//!
//! # Commands
//!
//! A line each. A symbol has up to 8 bytes. Timestamps are integers, in milliseconds if `--keep` is used;
//! ranges go from the first timestamp up to the second, which is not part of them.
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
//! # How it works
//!
//! ```text
//!   line ──▶ command ──▶ Sharded ──▶ log of the symbol's shard ──▶ ShardCommit ─┐
//!                           └── snapshots of all shards ──▶ rows, merged ───────┴▶ answers, in order
//! ```
//!
//! Any executor accepts clients. `timelog::durable` does what the example `kv_log` shows in the small:
//! groups, syncs, recovery, the lock. A question is answered from snapshots, so a slow reader
//! neither blocks nor sees writes.

#![forbid(unsafe_code)]

mod answers;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use answers::{Answer, Trade, send};
use clap::Parser;
use futures_lite::future::or;
use futures_lite::io::{ReadHalf, split};
use futures_lite::{AsyncBufReadExt, AsyncReadExt};
use glommio::channels::local_channel::{self, LocalSender};
use glommio::net::{TcpListener, TcpStream};
use glommio::sync::{CancellationToken, ForeignCancellation};
use glommio::timer::sleep;
use glommio::{LocalExecutorPoolBuilder, PoolPlacement, spawn_local};
use signal_hook::{consts::SIGINT, iterator::Signals, low_level};
use timelog::TimeUnit;
use timelog::durable::{Config, Mesh, Sharded};

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

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT])?;
    let shutdown = CancellationToken::new();
    let ending = shutdown.foreign_child();
    let shards = usize::from(options.shards);
    let mesh = Mesh::new(shards);
    let address = Arc::default();
    let executors = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards))
        .name("tick_store")
        .on_all_shards(move || async move {
            let ended = run(options, mesh, address, ending).await;
            if ended.is_err() {
                // The program ends with all of its executors.
                let _ = low_level::raise(SIGINT);
            }
            ended
        })?;
    signals.forever().next();
    shutdown.cancel();
    for ended in executors.join_all() {
        ended?.map_err(|error| error.to_string())?;
    }
    println!("closed");
    Ok(())
}

type Ended = Result<(), Box<dyn Error + Send + Sync>>;

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
    let listener = listen(&address, options.port)?;
    println!(
        "shard {}: {} rows from {} checkpoints, {} operations replayed",
        log.shard_id(),
        log.log().snapshot().count(..),
        found.checkpoints,
        found.replayed
    );
    let ending = ending.attach();
    let interrupted = async {
        ending.cancelled().await;
        Ok(())
    };
    or(interrupted, accept(&listener, &log)).await?;
    Ok(log.close().await?)
}

/// Listens where the first executor does, which says so.
fn listen(address: &Mutex<Option<SocketAddr>>, port: u16) -> io::Result<TcpListener> {
    let mut address = address.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address.unwrap_or(wanted))?;
    if address.is_none() {
        let first = listener.local_addr()?;
        println!("listening on {first}");
        *address = Some(first);
    }
    Ok(listener)
}

async fn accept(listener: &TcpListener, log: &Sharded<Trade>) -> io::Result<()> {
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

async fn serve(client: TcpStream, log: Sharded<Trade>) -> io::Result<()> {
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
    log: &Sharded<Trade>,
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

async fn execute(line: &str, log: &Sharded<Trade>) -> Answer {
    let answered = match line.strip_prefix("PUT ") {
        Some(rest) => put(rest, log).await,
        None => ask(line, log).await,
    };
    match answered {
        Ok(Some(answer)) => answer,
        Ok(None) => Answer::Now(USAGE.to_owned()),
        Err(error) => Answer::Now(format!("ERROR {error}\n")),
    }
}

/// Adds a trade, as soon as the device of its shard keeps up. `None` if it is none.
async fn put(line: &str, log: &Sharded<Trade>) -> Result<Option<Answer>, timelog::durable::Error> {
    let (symbol, numbers) = line.trim_start().split_once(' ').unwrap_or_default();
    let numbers: Option<Vec<i64>> = numbers
        .split_ascii_whitespace()
        .map(|it| it.parse().ok())
        .collect();
    let (1..=8, Some(&[ts, price, size])) = (symbol.len(), numbers.as_deref()) else {
        return Ok(None);
    };
    let Ok(size) = u32::try_from(size) else {
        return Ok(None);
    };
    let mut padded = [0; 8];
    padded[..symbol.len()].copy_from_slice(symbol.as_bytes());
    let sent = log.append(symbol, ts, (padded, price, size)).await;
    sent.map(|commit| Some(Answer::Committed(commit)))
        .map_err(|refused| refused.error)
}

/// Does any other command.
async fn ask(line: &str, log: &Sharded<Trade>) -> Result<Option<Answer>, timelog::durable::Error> {
    let mut words = line.split_ascii_whitespace();
    let command = words.next().unwrap_or_default();
    let numbers: Option<Vec<i64>> = words.map(|word| word.parse().ok()).collect();
    Ok(Some(match (command, numbers.as_deref()) {
        ("DELETE", Some(&[from, to])) => {
            log.delete(from..to).await?;
            Answer::Now("OK\n".to_owned())
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

/// Answers of one client that wait at the most; more commands are not read.
const MANY: usize = 1024;
const MOST_BYTES: u64 = 256;

const USAGE: &str = "ERROR this wants PUT symbol timestamp price size, RANGE from to, WINDOWS from to width, \
                     COUNT from to, or DELETE from to\n";
