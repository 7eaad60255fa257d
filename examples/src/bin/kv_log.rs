//! A key-value store that survives being killed: all that it knows is a file to which it appends.
//!
//! ```console
//! $ cargo run --release -p examples --bin kv_log -- data.log
//! keys: 0, bytes: 0
//! SET colour blue
//! OK
//! GET colour
//! blue
//! ```
//!
//! # How it works
//!
//! ```text
//!   SET, DEL ──▶ record ──▶ │ group │ ──first record + 2 ms, or 64 records──▶ write, fdatasync ──▶ OK
//!                           └───────┘                                         the next group gathers
//! ```
//!
//! `OK` says that the record is on the device. Bringing it there takes the device as long for one
//! record as for many, so records are gathered: until a deadline after the first of them, or until
//! the group is full. While a group is being written the next one gathers. Answers come in the
//! order of the commands, also those of `GET`, so a value that was read is one that
//! is safe.
//!
//! # After a crash
//!
//! A record has its length and a checksum. At the start the file is read from its beginning; where
//! a record is not whole, which can only be at the end of what was being written, the file is cut.
//! Nothing that was answered with `OK` comes after that.
//!
//! What it lacks: the file only grows, since nothing removes records that are out of date, and the
//! keys have to fit into memory.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use futures_lite::{AsyncBufReadExt, AsyncReadExt, StreamExt};
use glommio::channels::local_channel::{self, LocalReceiver, LocalSender};
use glommio::channels::oneshot;
use glommio::future::timeout_at;
use glommio::io::{
    BufferedFile, Directory, DmaFile, OpenOptions, StreamReader, StreamReaderBuilder, stdin,
};
use glommio::{GlommioError, LocalExecutorBuilder, Placement, spawn_local};

/// With the operation and the file, which an `io::Error` cannot tell.
type Result<T, E = GlommioError<()>> = std::result::Result<T, E>;

/// Keeps keys and their values in a file, and takes commands from the standard input.
#[derive(Clone, Debug, Parser)]
#[command(name = "kv_log")]
struct Options {
    /// The file. It is made if it is not there.
    file: PathBuf,

    /// How long the first record of a group waits for others.
    #[arg(long, default_value = "2ms", value_parser = humantime::parse_duration)]
    delay: Duration,

    /// How many records a group has at the most.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    group: u16,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("kv_log")
        .spawn(move || run(options))?;
    executor.join()??;
    Ok(())
}

async fn run(options: Options) -> Result<()> {
    let path = options.file.clone();
    let file = open(&path).await?;
    // Of this process alone, until it ends in whatever way: before the end of the file is cut.
    let lock = DmaFile::open(&path).await?;
    let _guard = lock.try_lock_exclusive().await.map_err(|error| {
        io::Error::other(format!(
            "{} is in use by another process: {error}",
            path.display()
        ))
    })?;
    let (mut keys, end) = recover(&path, &file).await?;
    println!("keys: {}, bytes: {end}", keys.len());

    let (appends, to_append) = local_channel::new_bounded(MANY);
    let (answers, to_print) = local_channel::new_bounded(MANY);
    let writing = spawn_local(write_groups(file, end, to_append, options));
    let printing = spawn_local(print(to_print));
    let mut lines = stdin().lines();
    while let Some(line) = lines.next().await {
        let answer = match execute(&line?, &mut keys, &appends).await {
            Ok(answer) => answer,
            // The writer has ended, and says why.
            Err(WriterEnded) => break,
        };
        if answers.send(answer).await.is_err() {
            break;
        }
    }
    // Each waits for the end of what it gets.
    drop((appends, answers));
    printing.await;
    writing.await
}

/// The answer to a command, now or when its record is on the device.
enum Answer {
    Now(String),
    WhenSafe(oneshot::Receiver<()>),
}

struct WriterEnded;

async fn execute(
    line: &str,
    keys: &mut Keys,
    appends: &LocalSender<Append>,
) -> Result<Answer, WriterEnded> {
    let mut words = line.splitn(3, ' ');
    let record = match (words.next(), words.next(), words.next()) {
        (Some("GET"), Some(key), None) => {
            let value = keys.get(key).map_or("NONE", String::as_str);
            return Ok(Answer::Now(value.to_owned()));
        }
        (Some("SET"), Some(key), Some(value)) => {
            keys.insert(key.to_owned(), value.to_owned());
            Record::of(key, Some(value))
        }
        (Some("DEL"), Some(key), None) => {
            if keys.remove(key).is_none() {
                return Ok(Answer::Now("NONE".to_owned()));
            }
            Record::of(key, None)
        }
        _ => return Ok(Answer::Now(USAGE.to_owned())),
    };
    let (safe, answer) = oneshot::oneshot();
    match appends.send(Append { record, safe }).await {
        Ok(()) => Ok(Answer::WhenSafe(answer)),
        Err(_) => Err(WriterEnded),
    }
}

/// Prints the answers in their order.
async fn print(answers: LocalReceiver<Answer>) {
    while let Some(answer) = answers.recv().await {
        match answer {
            Answer::Now(text) => println!("{text}"),
            Answer::WhenSafe(safe) => match safe.await {
                Ok(()) => println!("OK"),
                Err(_) => return,
            },
        }
    }
}

/// A record on its way, and whom to tell when it is on the device.
struct Append {
    record: Record,
    safe: oneshot::Sender<()>,
}

/// Gathers records, and writes them group by group. Ends when no more are to come, or with the
/// first error: what was not acknowledged by then never is. Records of which only a part fits on the
/// device are cut off by the next start.
async fn write_groups(
    file: BufferedFile,
    mut end: u64,
    appends: LocalReceiver<Append>,
    options: Options,
) -> Result<()> {
    let (mut group, most) = (Vec::new(), usize::from(options.group));
    while appends.recv_many(&mut group, most).await > 0 {
        let deadline = Instant::now() + options.delay;
        while group.len() < most {
            // No more in time, or no more at all.
            let left = most - group.len();
            let more = appends.recv_many(&mut group, left);
            let Ok(1..) = timeout_at(deadline, more).await else {
                break;
            };
        }
        let (records, safe): (Vec<_>, Vec<_>) =
            group.drain(..).map(|it| (it.record.0, it.safe)).unzip();
        let records = records.concat();
        let length = records.len() as u64;
        file.write_all_at(records, end).await?;
        end += length;
        file.fdatasync().await?;
        for safe in safe {
            // The task that prints the answer may have ended.
            let _ = safe.send(());
        }
    }
    file.close().await
}

/// Opens or makes the file.
async fn open(path: &Path) -> Result<BufferedFile> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    let file = options.buffered_open(path).await?;
    // So that the name of a new file outlives a power failure, too.
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = Directory::open(directory.unwrap_or(Path::new("."))).await?;
    directory.sync().await?;
    directory.close().await?;
    Ok(file)
}

/// Keys and their values.
type Keys = HashMap<String, String>;

/// Reads what is in the file: the keys, and where the next record goes.
async fn recover(path: &Path, file: &BufferedFile) -> Result<(Keys, u64)> {
    let size = file.file_size().await?;
    let mut reader = StreamReaderBuilder::new(BufferedFile::open(path).await?)
        .with_buffer_size(256 << 10)
        .build();
    let mut keys = Keys::new();
    let mut end = 0;
    while let Some((length, key, value)) = Record::read(&mut reader, size - end).await? {
        match value {
            Some(value) => keys.insert(key, value),
            None => keys.remove(&key),
        };
        end += length;
    }
    reader.close().await?;
    if end < size {
        let torn = size - end;
        println!("{torn} bytes at the end are no whole record, and are cut off");
        file.truncate(end).await?;
        file.fdatasync().await?;
    }
    Ok((keys, end))
}

/// A key and its new value, as bytes:
///
/// ```text
///   checksum of all that follows   length of the key   length of the value   key   value
///   u32, little endian             u32                 u32, its maximum: removed
/// ```
struct Record(Vec<u8>);

/// How long a record is, its key and its value.
type Read = (u64, String, Option<String>);

impl Record {
    fn of(key: &str, value: Option<&str>) -> Record {
        let mut bytes = vec![0; 4];
        let length = |text: &str| (text.len() as u32).to_le_bytes();
        bytes.extend(length(key));
        bytes.extend(value.map_or(REMOVED.to_le_bytes(), length));
        bytes.extend(key.as_bytes());
        bytes.extend(value.unwrap_or_default().as_bytes());
        let checksum = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        Record(bytes)
    }

    /// The next record of those `left` bytes. `None`: there is none, or it is not whole.
    async fn read(reader: &mut StreamReader, left: u64) -> io::Result<Option<Read>> {
        const HEAD: usize = 12;
        if left < HEAD as u64 {
            return Ok(None);
        }
        let mut bytes = vec![0; HEAD];
        reader.read_exact(&mut bytes).await?;
        let number = |at: usize| {
            let number = bytes[at..at + 4].try_into();
            u32::from_le_bytes(number.expect("four bytes"))
        };
        let [checksum, key, value] = [number(0), number(4), number(8)];
        let value_bytes = if value == REMOVED { 0 } else { value };
        let length = HEAD as u64 + u64::from(key) + u64::from(value_bytes);
        // Before any memory is taken: a length that is no length may be anything.
        if length > left {
            return Ok(None);
        }
        bytes.resize(length as usize, 0);
        reader.read_exact(&mut bytes[HEAD..]).await?;
        if crc32fast::hash(&bytes[4..]) != checksum {
            return Ok(None);
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (key, rest) = bytes[HEAD..].split_at(key as usize);
        Ok(Some((
            length,
            text(key),
            (value != REMOVED).then(|| text(rest)),
        )))
    }
}

/// In place of the length of a value: the key has none any more.
const REMOVED: u32 = u32::MAX;

/// Commands that wait for their records at the most; more are not read.
const MANY: usize = 1024;

const USAGE: &str = "ERROR this wants GET key, SET key value, or DEL key";
