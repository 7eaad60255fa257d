//! A log on a disk in memory, which dies, fails or is damaged, against a model of its operations.

mod damage;
mod faults;
mod files;
mod model;
mod power;

use std::rc::Rc;
use std::time::Duration;

use glommio::LocalExecutor;
use glommio::timer::sleep;

use super::disk::Folder;
use super::simulation::Disk;
use super::{Config, Error, Log, Recovery};
use crate::Ts;

/// A few blocks.
const WAL_BYTES: usize = 20 << 10;

/// Files of a few blocks, memtables of sixteen rows, and maintenance all the time.
fn small() -> Config {
    let memory = crate::Config::default().page_bytes(64).memtable_bytes(256);
    Config::default()
        .memory(memory)
        .wal_file_bytes(WAL_BYTES as u64)
        .wake_up(Duration::from_millis(1))
}

async fn open(disk: &Rc<Disk>, config: Config) -> Result<(Log<u64>, Recovery), Error> {
    Log::open_in(Folder::simulated(Rc::clone(disk)), config, None).await
}

/// On an executor that ends with it, as a process does.
fn run<T>(future: impl Future<Output = T>) -> T {
    LocalExecutor::default().run(future)
}

/// Until maintenance has converted all full files and prepared the next one.
async fn settle(log: &Log<u64>) {
    let core = &log.shared.core;
    while core.lacks_next_wal() || core.full_wals() > 0 {
        sleep(Duration::from_millis(1)).await;
    }
}

fn rows(log: &Log<u64>) -> Vec<(Ts, u64)> {
    let snapshot = log.snapshot();
    snapshot.range(..).map(|(ts, value)| (ts, *value)).collect()
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
