//! Logs on simulated disks that lose their power, fail, are full or were damaged, against a model of their operations.

mod damage;
mod faults;
mod limits;
mod model;
mod power;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::StreamExt;
use glommio::io::{BufferedFile, Directory};
use glommio::simulation::{Simulation, SimulationBuilder};
use glommio::timer::sleep;
use timelog::Ts;
use timelog::durable::{Config, Error, Log, Recovery};

/// Where the log is on the disk of its node.
const PATH: &str = "/log";
/// A few blocks.
const WAL_BYTES: usize = 20 << 10;
const MILLISECOND: Duration = Duration::from_millis(1);

/// Files of a few blocks, memtables of sixteen rows, and maintenance all the time.
fn small() -> Config {
    let memory = timelog::Config::default()
        .page_bytes(64)
        .memtable_bytes(256);
    Config::default()
        .memory(memory)
        .wal_file_bytes(WAL_BYTES as u64)
        .wake_up(10 * MILLISECOND)
}

async fn open(config: Config) -> Result<(Log<u64>, Recovery), Error> {
    Log::open(PATH, config).await
}

/// Adds a node whose future is the last to end, and gives what that gives.
fn run_on<F: Future<Output: 'static> + 'static>(
    simulation: SimulationBuilder,
    main: impl Fn() -> F + 'static,
) -> F::Output {
    let output = Rc::new(RefCell::new(None));
    let given = Rc::clone(&output);
    let main = move || {
        let (main, given) = (main(), Rc::clone(&given));
        async move { *given.borrow_mut() = Some(main.await) }
    };
    let run = simulation.client("log", main).run();
    run.unwrap_or_else(|failure| panic!("{failure}"));
    output.take().expect("it has ended")
}

fn run<F: Future<Output: 'static> + 'static>(
    seed: u64,
    main: impl Fn() -> F + 'static,
) -> F::Output {
    run_on(Simulation::builder().seed(seed), main)
}

/// Until maintenance has converted all full files and prepared the next one: nothing but what wakes it takes time.
async fn settle() {
    sleep(60 * MILLISECOND).await;
}

fn rows(log: &Log<u64>) -> Vec<(Ts, u64)> {
    let snapshot = log.snapshot();
    snapshot.range(..).map(|(ts, value)| (ts, *value)).collect()
}

/// The content of all files of a directory.
type Files = BTreeMap<String, Vec<u8>>;

async fn read_files() -> Files {
    let directory = Directory::open(PATH).await.unwrap();
    let mut entries = directory.read_dir().unwrap();
    let mut files = Files::new();
    while let Some(entry) = entries.next().await {
        let name = entry.unwrap().file_name().to_str().unwrap().to_owned();
        let file = BufferedFile::open(format!("{PATH}/{name}")).await.unwrap();
        let bytes = file.file_size().await.unwrap() as usize;
        files.insert(name, file.read_at(0, bytes).await.unwrap().to_vec());
        file.close().await.unwrap();
    }
    files
}

async fn write_files(files: &Files) {
    Directory::create(PATH).await.unwrap();
    for (name, bytes) in files {
        let file = BufferedFile::create(format!("{PATH}/{name}"))
            .await
            .unwrap();
        if !bytes.is_empty() {
            assert_eq!(file.write_at(bytes.clone(), 0).await.unwrap(), bytes.len());
        }
        file.close().await.unwrap();
    }
}

/// Runs where the log has these files.
fn run_with<F: Future<Output: 'static> + 'static>(
    files: &Files,
    main: impl Fn() -> F + Copy + 'static,
) -> F::Output {
    let files = Rc::new(files.clone());
    run(1, move || {
        let files = Rc::clone(&files);
        async move {
            write_files(&files).await;
            main().await
        }
    })
}

/// Opens the log that these files are, with a memtable that is soon filled.
fn opened(files: &Files) -> Result<(Vec<(Ts, u64)>, Recovery), Error> {
    run_with(files, || async {
        let (log, found) = open(small().memory(timelog::Config::default())).await?;
        Ok((rows(&log), found))
    })
}

/// As many cases as an environment variable says.
fn cases(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    };
    let first = number("TIMELOG_SEED", 1);
    first..first + number("TIMELOG_CRASHES", default)
}
