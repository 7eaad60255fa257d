//! Durable logs beside bare files, and with the feature `peers` beside fjall and redb.
//!
//! `cargo bench -p timelog --features durable --bench durable -- [FOLDER] [PART]`. Each figure is the median of
//! rounds that alternate between what is compared, with the smallest and the largest. The folder is
//! to be on the disk that is measured; the parts are `latency`, `bandwidth`, `maintenance`, `recovery`
//! and `peers`.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::io::{Directory, DmaFile, OpenOptions};
use glommio::timer::sleep;
use glommio::{LocalExecutor, spawn_local};
use timelog::durable::{Config, Log};

const UNIT: usize = 4096;
const FILE_BYTES: usize = 64 << 20;

fn main() {
    let arguments = std::env::args().skip(1);
    let arguments: Vec<String> = arguments.filter(|it| !it.starts_with("--")).collect();
    let folder = arguments
        .first()
        .map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(folder).expect("the folder can be written to");
    let path = |name: &str| folder.path().join(name);
    let is_wanted = |name: &str| arguments.get(1).is_none_or(|part| part == name);
    LocalExecutor::default().run(async {
        if is_wanted("latency") {
            commit_latency(&path("latency")).await;
        }
        if is_wanted("bandwidth") {
            synced_bandwidth(&path("bandwidth")).await;
        }
        if is_wanted("maintenance") {
            beside_maintenance(&path("maintenance")).await;
        }
        if is_wanted("recovery") {
            recovery(&path("recovery")).await;
        }
    });
    #[cfg(feature = "peers")]
    if is_wanted("peers") {
        peers::run(folder.path());
    }
}

/// Smallest, median, largest.
fn print(what: &str, unit: &str, mut figures: Vec<f64>) {
    figures.sort_by(f64::total_cmp);
    let (least, most) = (figures[0], figures[figures.len() - 1]);
    let median = figures[figures.len() / 2];
    println!("{what:64} {median:10.2} {unit:6} ({least:.2} - {most:.2})");
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

async fn commit_latency(folder: &Path) {
    const ROUNDS: usize = 60;
    const WRITES: usize = 40;
    let (log, _) = Log::<u64>::open(folder, Config::default())
        .await
        .expect("it is new");
    let file = bare_file(&folder.join("bare")).await;
    // Until the next file is prepared.
    sleep(Duration::from_secs(1)).await;
    let (mut bare, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
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
        ratios.push(of_ours / of_bare);
    }
    print("4 KiB written and synced, bare", "us", bare);
    print("append and commit, one at a time", "us", ours);
    print("  ratio of each round", "", ratios);
    log.close().await.expect("it is written");
}

async fn synced_bandwidth(folder: &Path) {
    const ROUNDS: usize = 15;
    const WRITERS: usize = 1000;
    const COMMITS: usize = 40;
    const ROWS: usize = 64;
    let (log, _) = Log::<u64>::open(folder, Config::default())
        .await
        .expect("it is new");
    let file = bare_file(&folder.join("bare")).await;
    sleep(Duration::from_secs(1)).await;
    let bytes = WRITERS * COMMITS * ROWS * 16;
    let (mut bare, mut ours, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let start = Instant::now();
        for position in (0..bytes).step_by(1 << 20) {
            write_synced(&file, 1 << 20, position % FILE_BYTES).await;
        }
        let of_bare = bytes as f64 / start.elapsed().as_secs_f64() / 1e6;
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
        let of_ours = bytes as f64 / start.elapsed().as_secs_f64() / 1e6;
        bare.push(of_bare);
        ours.push(of_ours);
        ratios.push(of_ours / of_bare);
    }
    print("1 MiB written and synced, bare", "MB/s", bare);
    print(
        "1,000 writers, 1 KiB a commit, checkpoints included",
        "MB/s",
        ours,
    );
    print("  ratio of each round", "", ratios);
    log.close().await.expect("it is written");
}

/// The p99 of appends and of a timer, with nothing to maintain and with compaction and checkpoints.
async fn beside_maintenance(folder: &Path) {
    const ROUNDS: usize = 15;
    let memory = timelog::Config::default().l0_segments(2);
    let config = Config::default().memory(memory);
    let (log, _) = Log::<u64>::open(folder, config).await.expect("it is new");
    sleep(Duration::from_secs(1)).await;
    let mut figures = [const { Vec::new() }; 4];
    for round in 0..ROUNDS as i64 {
        for is_busy in [false, true] {
            if is_busy {
                // Late rows over all history, to be merged, and more than a file of them.
                let base = round * 3_000_000;
                for batch in 0..30 {
                    let rows = (0..100_000).map(|row| (base + row * 30 + batch, row as u64));
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
    let names = [
        "append, p99, idle",
        "append, p99, beside maintenance",
        "timer of 1 ms, p99 of its lateness, idle",
        "timer of 1 ms, p99 of its lateness, beside maintenance",
    ];
    for (name, figures) in names.into_iter().zip(figures) {
        print(name, "us", figures);
    }
    log.close().await.expect("it is written");
}

async fn recovery(folder: &Path) {
    const ROUNDS: usize = 7;
    const ROWS: i64 = 8_000_000;
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
            for start in (0..ROWS).step_by(100_000) {
                let rows = (start..start + 100_000).map(|ts| (ts, ts as u64));
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
    for _ in 0..ROUNDS {
        let names = std::fs::read_dir(&folders[0]).expect("it is there");
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
            assert_eq!(log.snapshot().count(..), ROWS as u64);
            figures.push(ROWS as f64 * 16.0 / seconds / 1e6);
            log.close().await.expect("it is whole");
        }
    }
    print(
        "a checkpoint of 128 MB read, bare, 4 reads at a time",
        "MB/s",
        bare,
    );
    let [checkpoint, wal] = figures;
    print(
        "a log of 8 million rows opened, from a checkpoint",
        "MB/s",
        checkpoint,
    );
    print(
        "a log of 8 million rows opened, from the write-ahead log",
        "MB/s",
        wal,
    );
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

/// The same commits by other stores: a row at a time, each synced, and 1,000 rows a sync.
#[cfg(feature = "peers")]
mod peers {
    use std::path::Path;
    use std::time::Instant;

    use glommio::LocalExecutor;
    use timelog::durable::{Config, Log};

    use super::print;

    const ROUNDS: usize = 20;
    const TABLE: redb::TableDefinition<'_, (i64, u64), u64> = redb::TableDefinition::new("rows");

    /// Commits so many groups of rows from a number on.
    trait Store {
        fn commit(&mut self, first: i64, rows: i64);
    }

    struct Fjall(fjall::Database, fjall::Keyspace);

    impl Store for Fjall {
        fn commit(&mut self, first: i64, rows: i64) {
            let mut batch = self.0.batch();
            for ts in first..first + rows {
                let key = [(ts as u64).to_be_bytes(), 0_u64.to_be_bytes()].concat();
                batch.insert(&self.1, key, 7_u64.to_le_bytes());
            }
            let batch = batch.durability(Some(fjall::PersistMode::SyncData));
            batch.commit().expect("it is written");
        }
    }

    struct Redb(redb::Database);

    impl Store for Redb {
        fn commit(&mut self, first: i64, rows: i64) {
            let write = self.0.begin_write().expect("it is open");
            {
                let mut table = write.open_table(TABLE).expect("it is there");
                for ts in first..first + rows {
                    table.insert((ts, 0), 7).expect("it is open");
                }
            }
            write.commit().expect("it is written");
        }
    }

    struct Ours(LocalExecutor, Log<u64>);

    impl Store for Ours {
        fn commit(&mut self, first: i64, rows: i64) {
            let log = &self.1;
            self.0.run(async {
                let rows = (first..first + rows).map(|ts| (ts, 7));
                let commit = log.extend(rows).expect("it is open");
                commit.await.expect("it is written");
            });
        }
    }

    pub fn run(folder: &Path) {
        let database = fjall::Database::builder(folder.join("fjall"))
            .open()
            .expect("it is new");
        let keyspace = database
            .keyspace("rows", fjall::KeyspaceCreateOptions::default)
            .expect("it is new");
        let redb = redb::Database::create(folder.join("redb")).expect("it is new");
        let executor = LocalExecutor::default();
        let opened = executor.run(Log::open(folder.join("ours"), Config::default()));
        let (log, _) = opened.expect("it is new");
        let mut stores: [(&str, Box<dyn Store>); 3] = [
            ("ours", Box::new(Ours(executor, log))),
            ("fjall", Box::new(Fjall(database, keyspace))),
            ("redb", Box::new(Redb(redb))),
        ];
        let mut next = 0;
        for rows in [1, 1000] {
            let mut figures = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                for ((_, store), figures) in stores.iter_mut().zip(&mut figures) {
                    const COMMITS: i64 = 20;
                    let start = Instant::now();
                    for _ in 0..COMMITS {
                        store.commit(next, rows);
                        next += rows;
                    }
                    figures.push(start.elapsed().as_secs_f64() / COMMITS as f64 * 1e6);
                }
            }
            for ((name, _), figures) in stores.iter().zip(figures) {
                print(
                    &format!("{rows} rows a synced commit, {name}"),
                    "us",
                    figures,
                );
            }
        }
    }
}
