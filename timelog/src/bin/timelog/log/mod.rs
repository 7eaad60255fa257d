//! The commands for logs in files: of any type of values, and with shards or without.

mod check;
mod common;
mod load;
mod output;

use std::io;
use std::path::PathBuf;

use clap::Subcommand;
use glommio::LocalExecutor;
use serde_json::{Value, json};
use timelog::Raw;
use timelog::durable::{Config, Log, info};

use common::{Place, failed, logs};

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
            "unit": whole.unit.to_string(),
            "shards": whole.shards,
            "logs": logs,
        });
        println!("{text:#}");
        return Ok(());
    }
    println!(
        "values      {} of {} bytes\ntimestamps  {}",
        whole.type_name, whole.value_bytes, whole.unit
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
