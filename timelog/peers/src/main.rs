//! A durable log next to fjall, redb, sled and SQLite: the same rows, each commit synced.
//!
//! A store is written by one process and read by another, which is new, so that memory and the time
//! of opening are its own. The stores take turns in each round.

mod stores;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs, io};

use clap::Parser;
use stores::{Row, STORES, open};
use support::machine;
use support::process::resident_bytes;
use support::quantiles::Samples;
use support::tables::Table;

#[derive(Parser)]
struct Options {
    /// Rows of each store, a multiple of 1,000.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// On the disk that is to be measured. The system's folder of temporary files by default.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// What a process does that this one has started: `write` or `read`, and which store.
    #[arg(long, hide = true, num_args = 2)]
    part: Option<Vec<String>>,
}

/// What is measured, in the order in which `write` and `read` tell it.
const FIGURES: [&str; 8] = [
    "commit of a row, µs",
    "commit of 1,000 rows, µs",
    "opened and first row read, ms",
    "range of 100 rows, µs",
    "scan, ns a row",
    "delete of the first half, ms",
    "memory after that, MB",
    "files once closed, MB",
];

/// Commits of each size.
const COMMITS: u64 = 100;
/// Between two rows.
const STEP: i64 = 1_000;

/// Rows in the order of arrival: of twenty one is late, by up to a hundred others.
fn rows(first: u64, count: u64) -> Vec<Row> {
    let mut random = fastrand::Rng::with_seed(first);
    let row = |number: u64| {
        let late = if number % 20 == 19 {
            random.i64(1..100) * STEP
        } else {
            0
        };
        (number as i64 * STEP - late, number)
    };
    (first..first + count).map(row).collect()
}

/// Microseconds for each of `count`.
fn us_each(count: u64, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}

fn write(store: &str, folder: &Path, all: u64) -> Vec<f64> {
    let mut store = open(store, folder);
    let batches = |first: u64, batch: u64, count: u64| -> Vec<_> {
        (0..count)
            .map(|number| rows(first + number * batch, batch))
            .collect()
    };
    let (single, loaded) = (all - 1_000, all - 1_000 - COMMITS * 1_000);
    let mut next = 0;
    while next < loaded {
        store.commit(&batches(next, 1_000, 1));
        next += 1_000;
    }
    let many = batches(loaded, 1_000, COMMITS);
    let of_many = us_each(COMMITS, || store.commit(&many));
    let one = batches(single, 1, COMMITS);
    let of_one = us_each(COMMITS, || store.commit(&one));
    store.commit(&[rows(single + COMMITS, 1_000 - COMMITS)]);
    store.close();
    vec![of_one, of_many]
}

fn read(store: &str, folder: &Path, all: u64) -> Vec<f64> {
    let start = Instant::now();
    let mut store = open(store, folder);
    let (first, _) = store.read(&[0..1]);
    let opened = start.elapsed().as_secs_f64() * 1e3;
    assert!(first >= 1);
    let mut random = fastrand::Rng::with_seed(7);
    let end = all as i64 * STEP;
    let ranges = (0..1_000).map(|_| random.i64(0..end - 100 * STEP));
    let ranges: Vec<_> = ranges.map(|from| from..from + 100 * STEP).collect();
    let of_range = us_each(1_000, || {
        let (found, _) = store.read(&ranges);
        assert!(
            (90_000..110_000).contains(&found),
            "{found} rows are in the ranges"
        );
    });
    let scan = us_each(all, || {
        let read = store.read(&[i64::MIN / 2..end]);
        assert_eq!(read, (all, all * (all - 1) / 2));
    });
    let half = end / 2;
    let delete = us_each(1, || store.delete_before(half));
    let (left, _) = store.read(&[i64::MIN / 2..end]);
    assert!(left.abs_diff(all / 2) <= 100, "{left} rows are left");
    let memory = resident_bytes().expect("procfs is mounted") as f64 / 1e6;
    store.close();
    let files = bytes_below(folder).expect("the files are there") as f64 / 1e6;
    vec![opened, of_range, scan * 1e3, delete / 1e3, memory, files]
}

/// Of the device, which may be fewer than the files are long.
fn bytes_below(folder: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += match metadata.is_dir() {
            true => bytes_below(&entry.path())?,
            false => metadata.blocks() * 512,
        };
    }
    Ok(bytes)
}

/// Runs a part in a process of its own.
fn part(what: &str, store: &str, folder: &Path, all: u64) -> Vec<f64> {
    let mut command = Command::new(env::current_exe().expect("it is running"));
    command
        .args(["--part", what, store])
        .arg("--folder")
        .arg(folder);
    let output = command.arg("--rows").arg(all.to_string()).output();
    let output = output.expect("it can be run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{what} {store}: {told}");
    let figures = text.split_whitespace().map(|it| it.parse());
    figures
        .collect::<Result<_, _>>()
        .expect("it prints figures")
}

fn main() {
    let options = Options::parse();
    let folder = options.folder.clone().unwrap_or_else(env::temp_dir);
    if let Some([what, store]) = options.part.as_deref() {
        let work = if what == "write" { write } else { read };
        let figures = work(store, &folder, options.rows);
        return figures.iter().for_each(|figure| println!("{figure}"));
    }
    let load = machine::load();
    let mut measured = vec![Vec::new(); STORES.len()];
    for _ in 0..options.rounds {
        for (store, rounds) in STORES.iter().zip(&mut measured) {
            let folder = tempfile::tempdir_in(&folder).expect("the folder can be written to");
            let mut figures = part("write", store, folder.path(), options.rows);
            figures.extend(part("read", store, folder.path(), options.rows));
            assert_eq!(figures.len(), FIGURES.len());
            rounds.push(figures);
        }
    }
    let mut table = Table::new(["what"].into_iter().chain(STORES));
    for (at, what) in FIGURES.iter().enumerate() {
        let of_store =
            |rounds: &Vec<Vec<f64>>| -> Samples { rounds.iter().map(|it| it[at]).collect() };
        let spreads = measured.iter().map(|rounds| of_store(rounds).spread());
        let cells = spreads.map(|it| it.map_or(String::new(), |it| it.to_string()));
        table.push([(*what).to_owned()].into_iter().chain(cells));
    }
    let (load_after, machine) = (machine::load(), machine::describe());
    println!("{machine}; load averages before {load}, after {load_after}");
    let Options { rows, rounds, .. } = options;
    println!("{rows} rows, {rounds} rounds: the median, the least and the greatest\n");
    print!("{}", table.terminal());
}
