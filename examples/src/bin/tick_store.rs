//! A store of trades on a TCP port, on several executors, that survives being killed.
//!
//! ```console
//! $ cargo run --release -p examples --bin tick_store -- ticks --port 7600
//! listening on 127.0.0.1:7600
//! $ printf 'PUT ABC 1000 10050 3\nRANGE 0 2000\nCOUNT 0 500\n' | nc -N 127.0.0.1 7600
//! OK 1
//! 1000 ABC 10050 3
//! END 1
//! COUNT 0
//! ^C
//! closed
//! ```
//!
//! A command is a line. A symbol has up to 8 bytes. Timestamps are integers, in milliseconds if `--keep` is
//! used; ranges go from the first timestamp up to the second, which is not part of them.
//!
//! | command | answer |
//! |---|---|
//! | `PUT symbol timestamp price size` | `OK n`, when the trade is on the device: the n-th operation of its shard |
//! | `RANGE from to` | a line `timestamp symbol price size` for each trade, in order of time, and `END` with their number |
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
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use examples::serving::{Serving, Shard};
use futures_lite::io::{BufReader, WriteHalf, split};
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use glommio::channels::local_channel::{self, LocalReceiver};
use glommio::net::TcpStream;
use glommio::{spawn_local, yield_if_needed};
use timelog::durable::{Config, Error as LogError, Mesh, ShardCommit, Sharded};
use timelog::{Snapshots, TimeUnit, Ts};

/// Keeps trades, and answers questions about them over TCP.
#[derive(Clone, Debug, Parser)]
struct Options {
    /// The directory of the logs, one for each executor. It is made if it is not there. The number of
    /// executors cannot be changed later.
    directory: PathBuf,

    #[command(flatten)]
    serving: Serving,

    /// How long the first trade of a group waits for others.
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    delay: Duration,

    /// How long trades are kept; for ever without it.
    #[arg(long, value_parser = humantime::parse_duration)]
    keep: Option<Duration>,
}

/// Symbol, price and size.
type Trade = ([u8; 8], i64, u32);

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    let serving = &mut options.serving;
    let mesh = Mesh::new(*serving.shards.get_or_insert(2));
    for ended in serving.run("", move |shard| run(shard, options, mesh))? {
        ended?;
    }
    println!("closed");
    Ok(())
}

async fn run(shard: Shard, options: Options, mesh: Mesh<Trade>) -> Result<(), LogError> {
    let memory = timelog::Config::default().unit(TimeUnit::Millis);
    let mut config = Config::default().memory(memory).commit_delay(options.delay);
    if let Some(age) = options.keep {
        config = config.keep(age);
    }
    let (log, found) = Sharded::open(mesh, &options.directory, config).await?;
    eprintln!("shard {}: {found:?}", log.shard_id());
    let serve = |client| {
        let log = log.clone();
        // A client that is gone is not an error of the store.
        async move { drop(serve(client, log).await) }
    };
    shard.serve_each(serve).await;
    log.close().await
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
                let (mut text, mut count) = (String::new(), 0);
                for (ts, (symbol, price, size)) in snapshot.range(range) {
                    let symbol = String::from_utf8_lossy(symbol).replace('\0', "");
                    text += &format!("{ts} {symbol} {price} {size}\n");
                    count += 1;
                    if text.len() >= PIECE_BYTES {
                        to.write_all(text.as_bytes()).await?;
                        text.clear();
                    }
                    // Others have their turn after each row.
                    yield_if_needed().await;
                }
                text + &format!("END {count}\n")
            }
        };
        to.write_all(text.as_bytes()).await?;
    }
    to.close().await
}

/// Answers of one client that wait at the most; more commands are not read.
const MANY: usize = 1024;
const MOST_BYTES: u64 = 256;
const MOST_SIZE: i64 = u32::MAX as i64;
/// Text that is sent at once.
const PIECE_BYTES: usize = 32 << 10;

const USAGE: &str = "ERROR this wants PUT symbol timestamp price size, RANGE from to, COUNT from to, or DELETE from to\n";
