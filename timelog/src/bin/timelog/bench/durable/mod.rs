//! Durable logs next to bare files, and to fjall and redb.
//!
//! What is compared runs in turns in each round, on one disk.

mod peers;
mod published;
mod row;

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{fs, io};

use glommio::io::{Directory, DmaFile, OpenOptions};
use glommio::timer::sleep;
use glommio::{LocalExecutor, spawn_local};
use support::process::thread_time;
use timelog::durable::{Config, Log};

use super::bars::Wanted;
pub use published::measure as measure_published;
pub use row::Row;

const UNIT: usize = 4096;
const FILE_BYTES: usize = 64 << 20;

/// How many parts [`measure`] has.
pub const PARTS: usize = 5;

/// Measures all, with files in `folder`: on the disk that is to be measured. Recovery is of eight times
/// so many rows.
pub fn measure(
    folder: &Path,
    rounds: usize,
    size: usize,
    mut tick: impl FnMut(),
) -> io::Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(folder)?;
    let path = |name: &str| folder.path().join(name);
    let mut rows = Vec::new();
    LocalExecutor::default().run(async {
        rows.extend(commit_latency(&path("latency"), rounds).await);
        tick();
        rows.extend(synced_bandwidth(&path("bandwidth"), rounds).await);
        tick();
        rows.extend(with_maintenance(&path("maintenance"), rounds, size).await);
        tick();
        rows.extend(recovery(&path("recovery"), rounds, size).await);
        tick();
    });
    rows.extend(peers::measure(folder.path(), rounds));
    tick();
    Ok(rows)
}

/// A file of zeros.
async fn bare_file(path: &Path) -> DmaFile {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true);
    let file = file.dma_open(path).await.expect("it can be made");
    for position in (0..FILE_BYTES).step_by(1 << 20) {
        let mut buffer = file.alloc_dma_buffer(1 << 20);
        buffer.as_bytes_mut().fill(0);
        file.write_all_at(buffer, position as u64)
            .await
            .expect("there is space");
    }
    file.fdatasync().await.expect("it is synced");
    file
}

async fn write_synced(file: &DmaFile, bytes: usize, position: usize) {
    let mut buffer = file.alloc_dma_buffer(bytes);
    buffer.as_bytes_mut().fill(7);
    file.write_all_at(buffer, position as u64)
        .await
        .expect("there is space");
    file.fdatasync().await.expect("it is synced");
}

async fn commit_latency(folder: &Path, rounds: usize) -> [Row; 3] {
    const WRITES: usize = 40;
    let (log, _) = Log::<u64>::open(folder, Config::default())
        .await
        .expect("it is new");
    let file = bare_file(&folder.join("bare")).await;
    // Until the next file is prepared.
    sleep(Duration::from_secs(1)).await;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let start = Instant::now();
        for write in 0..WRITES {
            let place = (round * WRITES + write) * UNIT % FILE_BYTES;
            write_synced(&file, UNIT, place).await;
        }
        let of_bare = start.elapsed().as_secs_f64() / WRITES as f64 * 1e6;
        let start = Instant::now();
        for write in 0..WRITES {
            let ts = (round * WRITES + write) as i64;
            log.append(ts, 7)
                .expect("it is open")
                .await
                .expect("it is written");
        }
        let of_ours = start.elapsed().as_secs_f64() / WRITES as f64 * 1e6;
        bare.push(of_bare);
        ours.push(of_ours);
    }
    log.close().await.expect("it is written");
    let ratio = Row::ratio("– over bare", &ours, &bare, Wanted::Time(2.0));
    [
        Row::new("4 KiB written and synced, bare", "µs", bare),
        Row::new("append and commit, one at a time", "µs", ours),
        ratio,
    ]
}

/// Until no file of the write-ahead log waits for a checkpoint: what is measured next has the device
/// alone.
async fn settle(log: &Log<u64>) {
    let start = Instant::now();
    while log.stats().full_wal_files > 0 {
        assert!(
            start.elapsed().as_secs() < 60,
            "a checkpoint takes too long"
        );
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_millis(100)).await;
}

/// What this process has asked the device to write, in bytes.
fn written_bytes() -> u64 {
    let counters = fs::read_to_string("/proc/self/io").expect("a process may read its own");
    let line = counters
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok())
        .expect("the kernel counts them")
}

async fn synced_bandwidth(folder: &Path, rounds: usize) -> [Row; 5] {
    const WRITERS: usize = 1000;
    // Some files of the write-ahead log, of which at most one is turned into a checkpoint after a round.
    const COMMITS: usize = 100;
    const ROWS: usize = 64;
    let (log, _) = Log::<u64>::open(folder, Config::default())
        .await
        .expect("it is new");
    let file = bare_file(&folder.join("bare")).await;
    sleep(Duration::from_secs(1)).await;
    let bytes = WRITERS * COMMITS * ROWS * 16;
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    let (mut all_bytes, mut processor) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        settle(&log).await;
        let start = Instant::now();
        for position in (0..bytes).step_by(1 << 20) {
            write_synced(&file, 1 << 20, position % FILE_BYTES).await;
        }
        let of_bare = bytes as f64 / start.elapsed().as_secs_f64() / 1e6;
        let (written, on_processor) = (written_bytes(), thread_time());
        let start = Instant::now();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let log = log.clone();
                spawn_local(async move {
                    for commit in 0..COMMITS {
                        let base = ((round * COMMITS + commit) * WRITERS + writer) * ROWS;
                        let rows = (base..base + ROWS).map(|row| (row as i64, row as u64));
                        let commit = log.extend(rows).expect("it is open");
                        commit.await.expect("it is written");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await;
        }
        let seconds = start.elapsed().as_secs_f64();
        bare.push(of_bare);
        ours.push(bytes as f64 / seconds / 1e6);
        all_bytes.push((written_bytes() - written) as f64 / seconds / 1e6);
        processor.push((thread_time() - on_processor).as_secs_f64() / seconds);
    }
    log.close().await.expect("it is written");
    let ratio = Row::ratio("– of bare", &ours, &bare, Wanted::Rate(0.5));
    let all = "– all bytes that were written meanwhile, of bare";
    let all = Row::ratio(all, &all_bytes, &bare, Wanted::Nothing);
    let what = "1,000 writers, 1 KiB a commit, checkpoints included";
    [
        Row::new("1 MiB written and synced, bare", "MB/s", bare),
        Row::new(what, "MB/s", ours),
        ratio,
        all,
        Row::new("– share of the time that the thread ran", "", processor),
    ]
}

/// The p99 of appends and of a timer, with nothing to maintain and with compaction and checkpoints.
async fn with_maintenance(folder: &Path, rounds: usize, size: usize) -> Vec<Row> {
    let memory = timelog::Config::default().l0_segments(2);
    let config = Config::default().memory(memory);
    let (log, _) = Log::<u64>::open(folder, config).await.expect("it is new");
    sleep(Duration::from_secs(1)).await;
    let mut figures = [const { Vec::new() }; 4];
    for round in 0..rounds as i64 {
        for is_busy in [false, true] {
            if is_busy {
                // Late rows over all history, to be merged, and more than a file of them.
                let base = round * 3 * size as i64;
                for batch in 0..30 {
                    let rows =
                        (0..size as i64 / 10).map(|row| (base + row * 30 + batch, row as u64));
                    drop(log.extend(rows).expect("it is open"));
                    log.sync().await.expect("it is written");
                }
            } else {
                sleep(Duration::from_millis(1500)).await;
            }
            let (mut appends, mut timers) = (Vec::new(), Vec::new());
            for tick in 0..300 {
                let start = Instant::now();
                sleep(Duration::from_millis(1)).await;
                let late = start.elapsed().saturating_sub(Duration::from_millis(1));
                timers.push(late.as_secs_f64() * 1e6);
                let start = Instant::now();
                drop(log.append(i64::MAX / 2 + tick, 7).expect("it is open"));
                appends.push(start.elapsed().as_secs_f64() * 1e6);
            }
            let p99 = |mut times: Vec<f64>| {
                times.sort_by(f64::total_cmp);
                times[times.len() * 99 / 100]
            };
            figures[usize::from(is_busy)].push(p99(appends));
            figures[2 + usize::from(is_busy)].push(p99(timers));
        }
    }
    log.close().await.expect("it is written");
    let [idle, busy, timer_idle, timer_busy] = figures;
    let bar = Wanted::Time(1.2);
    let ratios = [
        Row::ratio("– append, over idle", &busy, &idle, bar),
        Row::ratio("– timer, over idle", &timer_busy, &timer_idle, bar),
    ];
    let figures = [
        ("p99 of an append, idle", idle),
        ("p99 of an append, during maintenance", busy),
        ("p99 of a timer of 1 ms, idle", timer_idle),
        ("p99 of a timer of 1 ms, during maintenance", timer_busy),
    ];
    let figures = figures.map(|(what, figures)| Row::new(what, "µs", figures));
    figures.into_iter().chain(ratios).collect()
}

async fn recovery(folder: &Path, rounds: usize, size: usize) -> Vec<Row> {
    let rows = 8 * size as i64;
    // All of the rows in one file of the write-ahead log.
    let config = Config::default().wal_file_bytes(192 << 20);
    let in_files = |is_checkpoint: bool| {
        let config = config.clone();
        async move {
            let name = if is_checkpoint { "checkpoint" } else { "wal" };
            let folder = folder.join(name);
            Directory::create(folder.parent().expect("it has one"))
                .await
                .expect("it can be made");
            let (log, _) = Log::<u64>::open(&folder, config).await.expect("it is new");
            for start in (0..rows).step_by(size / 10) {
                let rows = (start..start + size as i64 / 10).map(|ts| (ts, ts as u64));
                drop(log.extend(rows).expect("it is open"));
                log.sync().await.expect("it is written");
            }
            if is_checkpoint {
                log.checkpoint().await.expect("it is written");
            }
            log.close().await.expect("it is written");
            folder
        }
    };
    let folders = [in_files(true).await, in_files(false).await];
    let (mut bare, mut figures) = (Vec::new(), [const { Vec::new() }; 2]);
    for _ in 0..rounds {
        let names = fs::read_dir(&folders[0]).expect("it is there");
        let names = names.map(|it| it.expect("it is there").path());
        let path = names.max_by_key(|it| {
            let name = it.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("checkpoint")
        });
        bare.push(read_all(&path.expect("there are files")).await);
        for (folder, figures) in folders.iter().zip(&mut figures) {
            let start = Instant::now();
            let opened = Log::<u64>::open(folder, Config::default()).await;
            let (log, _) = opened.expect("it is whole");
            let seconds = start.elapsed().as_secs_f64();
            assert_eq!(log.snapshot().count(..), rows as u64);
            figures.push(rows as f64 * 16.0 / seconds / 1e6);
            log.close().await.expect("it is whole");
        }
    }
    let [checkpoint, wal] = figures;
    // The device, or as much as is asked for.
    let enough: Vec<f64> = bare.iter().map(|bare| bare.min(1000.0)).collect();
    let bar = Wanted::Rate(0.95);
    let ratios = [&checkpoint, &wal].map(|figures| {
        let what = "– of 1 GB/s, or of bare if that is less";
        Row::ratio(what, figures, &enough, bar)
    });
    let [of_checkpoint, of_wal] = ratios;
    vec![
        Row::new("a checkpoint read, bare", "MB/s", bare),
        Row::new(
            "the same rows opened, from a checkpoint",
            "MB/s",
            checkpoint,
        ),
        of_checkpoint,
        Row::new(
            "the same rows opened, from the write-ahead log",
            "MB/s",
            wal,
        ),
        of_wal,
    ]
}

async fn read_all(path: &Path) -> f64 {
    let file = Rc::new(DmaFile::open(path).await.expect("it is there"));
    let size = file.file_size().await.expect("it is there");
    let start = Instant::now();
    let readers: Vec<_> = (0..4)
        .map(|reader| {
            let file = Rc::clone(&file);
            spawn_local(async move {
                for position in (reader << 20..size).step_by(4 << 20) {
                    file.read_at(position, 1 << 20).await.expect("it is there");
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await;
    }
    size as f64 / start.elapsed().as_secs_f64() / 1e6
}
