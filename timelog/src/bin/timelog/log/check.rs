//! `timelog check` and `timelog salvage`.

use std::io;
use std::path::Path;

use serde_json::json;
use timelog::Raw;
use timelog::durable::{Error, read, salvage};

use super::common::{Place, failed, logs, progress};

pub async fn check(place: &Place, quiet: bool) -> io::Result<bool> {
    let (mut rows, mut damage) = (0, Vec::new());
    let (_, logs) = match logs(&place.log).await {
        Ok(found) => found,
        Err(error) => {
            report(place, 0, &[error.to_string()]);
            return Ok(false);
        }
    };
    let bar = progress(logs.len() as u64, quiet);
    for log in logs {
        match read::<Raw>(&log).await {
            Ok((snapshot, _)) => rows += snapshot.count(..),
            Err(error @ (Error::Corrupt { .. } | Error::Format { .. })) => {
                damage.push(error.to_string());
                // All that is lost, where the first one ends an opening.
                if let Ok(salvaged) = salvage::<Raw>(&log).await {
                    rows += salvaged.snapshot.count(..);
                    let losses = salvaged.losses.iter().map(ToString::to_string);
                    damage.extend(losses.filter(|it| *it != damage[0]).collect::<Vec<_>>());
                }
            }
            Err(error) => return Err(failed(error)),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    report(place, rows, &damage);
    Ok(damage.is_empty())
}

fn report(place: &Place, rows: u64, damage: &[String]) {
    if place.json {
        println!("{}", json!({"rows": rows, "damage": damage}));
        return;
    }
    match damage.len() {
        0 => println!("whole: {rows} rows"),
        count => {
            println!("damaged in {count} places, {rows} rows can be read:");
            damage.iter().for_each(|it| println!("  {it}"));
        }
    }
}

pub async fn salvage_into(place: &Place, into: &Path) -> io::Result<bool> {
    let (info, logs) = logs(&place.log).await?;
    let (mut rows, mut losses) = (0, Vec::new());
    if info.shards > 0 {
        std::fs::create_dir_all(into)?;
    }
    for log in logs {
        let salvaged = salvage::<Raw>(&log).await.map_err(failed)?;
        let name = log.file_name().filter(|_| info.shards > 0);
        let into = name.map_or(into.to_owned(), |name| into.join(name));
        salvaged.write(into).await.map_err(failed)?;
        rows += salvaged.snapshot.count(..);
        losses.extend(salvaged.losses.iter().map(ToString::to_string));
    }
    report(place, rows, &losses);
    Ok(losses.is_empty())
}
