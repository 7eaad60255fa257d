//! `timelog load`.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use serde_json::json;
use timelog::durable::{Config, Error, Log};
use timelog::{Layout, Raw, TimeUnit, WriteErrorKind};

use super::common::{Place, create, failed, logs, progress};

/// Rows of a batch, and bytes: of wide values fewer, as more than so many may not wait for the device.
const BATCH_ROWS: usize = 4096;
const BATCH_BYTES: usize = 4 << 20;

#[derive(Args)]
pub struct Load {
    #[command(flatten)]
    place: Place,
    /// CSV as `timelog dump` writes it, or stdin.
    file: Option<PathBuf>,
    /// Makes the log if there is none, of this type of number.
    #[arg(long)]
    r#type: Option<String>,
    /// The unit of its timestamps then.
    #[arg(long, default_value = "nanos")]
    unit: TimeUnit,
}

pub async fn load(options: &Load, quiet: bool) -> io::Result<()> {
    let path = &options.place.log;
    if let Some(name) = &options.r#type {
        create(path, name, options.unit).await?;
    }
    let (info, _) = logs(path).await?;
    if info.shards > 0 {
        let text = "it has shards: which one has a row is known by the program that uses it";
        return Err(io::Error::other(text));
    }
    let layout = Layout::new(&info.type_name, info.value_bytes);
    let opened = Log::<Raw>::open(path, Config::default()).await;
    let (log, _) = opened.map_err(failed)?;
    let loaded = rows_of(options, &log, &layout, info.value_bytes, quiet).await;
    let closed = log.close().await.map_err(failed);
    let rows = loaded?;
    closed?;
    match options.place.json {
        true => println!("{}", json!({"rows": rows})),
        false => println!("{rows} rows loaded"),
    }
    Ok(())
}

/// Adds rows in batches, each of which is durable before the next.
async fn rows_of(
    options: &Load,
    log: &Log<Raw>,
    layout: &Layout,
    value_bytes: usize,
    quiet: bool,
) -> io::Result<u64> {
    let (input, bar): (Box<dyn io::Read>, ProgressBar) = match &options.file {
        Some(path) => {
            let file = File::open(path)?;
            let bar = progress(file.metadata()?.len(), quiet);
            (Box::new(file), bar)
        }
        None => (Box::new(io::stdin()), progress(0, true)),
    };
    let mut input = csv::Reader::from_reader(bar.wrap_read(input));
    let mut wanted = vec!["timestamp".to_owned()];
    wanted.extend(layout.names());
    if input.headers()?.iter().ne(wanted.iter().map(|it| &it[..])) {
        let text = format!("line 1: expected {}", wanted.join(","));
        return Err(io::Error::other(text));
    }
    let batch_rows = BATCH_ROWS.min(BATCH_BYTES / (8 + value_bytes));
    let (mut rows, mut batch, mut lines) = (0, Vec::new(), Vec::new());
    let mut record = csv::StringRecord::new();
    loop {
        let is_read = input.read_record(&mut record)?;
        if is_read {
            let line = record.position().map_or(0, |it| it.line());
            let wrong = |text: &str, wanted: &str| {
                io::Error::other(format!(
                    "line {line}: {text:?}, expected {wanted}; {rows} rows are loaded"
                ))
            };
            let ts = record[0]
                .parse()
                .map_err(|_| wrong(&record[0], "an integer of 64 bits"))?;
            let mut value = vec![0; value_bytes];
            for (column, text) in layout.columns().iter().zip(record.iter().skip(1)) {
                let parsed = column.parse(text, &mut value);
                parsed.map_err(|wanted| wrong(text, &wanted))?;
            }
            batch.push((ts, Raw(value.into())));
            lines.push(line);
        }
        if batch.len() == batch_rows || !is_read {
            let added = batch.len() as u64;
            let commit = log.extend(std::mem::take(&mut batch));
            let commit = commit.map_err(|refused| match refused.error {
                Error::Write(WriteErrorKind::BelowFloor { index, ts, floor }) => {
                    let line = lines[index];
                    io::Error::other(format!(
                        "line {line}: {ts} is below the floor {floor}; {rows} rows are loaded"
                    ))
                }
                error => failed(error),
            });
            commit?.await.map_err(failed)?;
            lines.clear();
            rows += added;
        }
        if !is_read {
            bar.finish_and_clear();
            return Ok(rows);
        }
    }
}
