//! The commands for logs in files: of any type of values, and with shards or without.

mod check;
mod load;
mod output;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use glommio::LocalExecutor;
use serde_json::{Value, json};
use timelog::durable::{Config, Info, Log, info, read};
use timelog::{Layout, Raw, Record, Snapshots, TimeUnit};

use output::{Range, Rows};

#[derive(Args)]
pub struct Place {
    /// The directory of the log.
    log: PathBuf,
    /// JSON instead of text for people.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Says what a log has, without reading its rows.
    Info(Place),
    /// Reads all of a log and says what of it is damaged. Also while it is written to.
    Check(Place),
    /// Writes all rows of a log, in the order of time.
    Dump(output::Dump),
    /// Counts or writes the rows of a range of time.
    Query(output::Query),
    /// Adds the rows of a CSV file to a log.
    Load(load::Load),
    /// Writes all that is visible as one checkpoint, so that a log takes the least space.
    Compact(Place),
    /// Writes what can be read of a damaged log as a new log.
    Salvage {
        #[command(flatten)]
        place: Place,
        /// The directory of the new log, without one yet. Of a log with shards each has one in it.
        into: PathBuf,
    },
}

/// Whether all was well: `check` and `salvage` find damage without a failure of their own.
pub fn run(command: &Command, quiet: bool) -> io::Result<bool> {
    LocalExecutor::default().run(async {
        match command {
            Command::Info(place) => print_info(place).await.map(|()| true),
            Command::Check(place) => check::check(place, quiet).await,
            Command::Dump(options) => output::dump(options, quiet).await.map(|()| true),
            Command::Query(options) => output::query(options, quiet).await.map(|()| true),
            Command::Load(options) => load::load(options, quiet).await.map(|()| true),
            Command::Compact(place) => compact(place).await.map(|()| true),
            Command::Salvage { place, into } => check::salvage_into(place, into).await,
        }
    })
}

fn failed(error: timelog::durable::Error) -> io::Error {
    io::Error::other(error)
}

/// The log of a directory, and the directories of its shards, or that one.
async fn logs(path: &Path) -> io::Result<(Info, Vec<PathBuf>)> {
    let whole = info(path).await.map_err(failed)?;
    let shards = (0..whole.shards).map(|shard| path.join(format!("shard-{shard}")));
    let mut logs: Vec<_> = shards.collect();
    if logs.is_empty() {
        logs.push(path.to_owned());
    }
    Ok((whole, logs))
}

/// All rows of a log.
async fn rows(path: &Path) -> io::Result<Rows> {
    let (info, logs) = logs(path).await?;
    let mut snapshots = Vec::new();
    for log in logs {
        let (snapshot, _) = read::<Raw>(log).await.map_err(failed)?;
        snapshots.push(snapshot);
    }
    let snapshots: Snapshots<Raw> = snapshots.into_iter().collect();
    let layout = Layout::new(&info.type_name, info.value_bytes);
    Ok(Rows {
        snapshots,
        layout,
        #[cfg(feature = "arrow")]
        unit: info.unit,
    })
}

fn unit_name(unit: TimeUnit) -> String {
    format!("{unit:?}").to_lowercase()
}

async fn print_info(place: &Place) -> io::Result<()> {
    let (whole, paths) = logs(&place.log).await?;
    let mut each = Vec::new();
    for path in &paths {
        each.push((path, info(path).await.map_err(failed)?));
    }
    if place.json {
        let logs: Vec<Value> = each
            .iter()
            .map(|(path, info)| {
                let files = info.files.iter();
                let files = files.map(|(name, bytes)| json!({"name": name, "bytes": bytes}));
                json!({
                    "path": path,
                    "identity": format!("{:016x}", info.identity),
                    "edition": info.edition,
                    "last": info.last.0,
                    "closed": info.is_closed,
                    "checkpoint_rows": info.checkpoint_rows,
                    "files": files.collect::<Vec<_>>(),
                })
            })
            .collect();
        let text = json!({
            "type": whole.type_name,
            "value_bytes": whole.value_bytes,
            "unit": unit_name(whole.unit),
            "shards": whole.shards,
            "logs": logs,
        });
        println!("{text:#}");
        return Ok(());
    }
    println!(
        "values      {} of {} bytes\ntimestamps  {}",
        whole.type_name,
        whole.value_bytes,
        unit_name(whole.unit)
    );
    for (path, info) in &each {
        let state = if info.is_closed {
            "closed"
        } else {
            "open, or not closed"
        };
        println!(
            "{}\n  identity {:016x}, edition {}, {state}, last operation {}, {} rows in checkpoints",
            path.display(),
            info.identity,
            info.edition,
            info.last,
            info.checkpoint_rows
        );
        for (name, bytes) in &info.files {
            println!("  {bytes:>12} {name}");
        }
    }
    Ok(())
}

fn bytes_of(logs: &[PathBuf]) -> io::Result<u64> {
    let mut bytes = 0;
    for log in logs {
        for file in std::fs::read_dir(log)? {
            bytes += file?.metadata()?.len();
        }
    }
    Ok(bytes)
}

async fn compact(place: &Place) -> io::Result<()> {
    let (_, logs) = logs(&place.log).await?;
    let before = bytes_of(&logs)?;
    for path in &logs {
        // With no file prepared that is larger than it has to be.
        let config = Config::default().wal_file_bytes(8 << 10);
        let (log, _) = Log::<Raw>::open(path, config).await.map_err(failed)?;
        let done = log.checkpoint().await;
        log.close().await.and(done).map_err(failed)?;
    }
    let after = bytes_of(&logs)?;
    if place.json {
        println!("{}", json!({"bytes_before": before, "bytes_after": after}));
    } else {
        println!("{before} bytes before, {after} after");
    }
    Ok(())
}

/// Makes a log of a type that has a name, unless there is one.
async fn create(path: &Path, type_name: &str, unit: TimeUnit) -> io::Result<()> {
    async fn open<V: Record>(path: &Path, unit: TimeUnit) -> io::Result<()> {
        let config = Config::default().memory(timelog::Config::default().unit(unit));
        let (log, _) = Log::<V>::open(path, config).await.map_err(failed)?;
        log.close().await.map_err(failed)
    }
    macro_rules! of {
        ($($number:ident)*) => {
            match type_name {
                $(stringify!($number) => open::<$number>(path, unit).await,)*
                _ => Err(io::Error::other(format!("{type_name} is no number: make the log with the program that uses it"))),
            }
        };
    }
    of!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 bool)
}

/// A range of time from options.
pub(super) fn range(range: &Range) -> (std::ops::Bound<i64>, std::ops::Bound<i64>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    (
        range.from.map_or(Unbounded, Included),
        range.to.map_or(Unbounded, Excluded),
    )
}
