//! What the commands share.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use timelog::durable::{Config, Info, Log, info, read};
use timelog::{Layout, Raw, Record, Snapshots, TimeUnit};

#[derive(Args)]
pub struct Place {
    /// The directory of the log.
    pub log: PathBuf,
    /// JSON instead of text for people.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Range {
    /// The least timestamp.
    #[arg(long, allow_negative_numbers = true)]
    pub from: Option<i64>,
    /// The timestamp that rows must be before.
    #[arg(long, allow_negative_numbers = true)]
    pub to: Option<i64>,
}

/// The rows of a log, of any type.
pub struct Rows {
    pub snapshots: Snapshots<Raw>,
    pub layout: Layout,
    #[cfg(feature = "arrow")]
    pub unit: timelog::TimeUnit,
}

pub fn progress(rows: u64, quiet: bool) -> ProgressBar {
    let target = match quiet {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    };
    let style = ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} ({eta} left)");
    ProgressBar::with_draw_target(Some(rows), target)
        .with_style(style.expect("the template is well-formed"))
}

pub fn failed(error: timelog::durable::Error) -> io::Error {
    io::Error::other(error)
}

/// The log of a directory, and the directories of its shards, or that one.
pub async fn logs(path: &Path) -> io::Result<(Info, Vec<PathBuf>)> {
    let whole = info(path).await.map_err(failed)?;
    let shards = (0..whole.shards).map(|shard| path.join(format!("shard-{shard}")));
    let mut logs: Vec<_> = shards.collect();
    if logs.is_empty() {
        logs.push(path.to_owned());
    }
    Ok((whole, logs))
}

/// All rows of a log.
pub async fn rows(path: &Path) -> io::Result<Rows> {
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

/// Makes a log of a type that has a name, unless there is one.
pub async fn create(path: &Path, type_name: &str, unit: TimeUnit) -> io::Result<()> {
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
pub fn range(range: &Range) -> (std::ops::Bound<i64>, std::ops::Bound<i64>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    (
        range.from.map_or(Unbounded, Included),
        range.to.map_or(Unbounded, Excluded),
    )
}
