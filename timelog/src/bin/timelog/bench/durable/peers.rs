//! The same commits by other stores: a row at a time, each synced, and 1,000 rows a sync.
//!
//! Each has a second first, for what it prepares in the background when it is new. Ours does that while
//! its executor runs.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use glommio::LocalExecutor;
use glommio::timer::sleep;
use timelog::durable::{Config, Log};

use super::row::Row;

const TABLE: redb::TableDefinition<'_, (i64, u64), u64> = redb::TableDefinition::new("rows");

const COMMITS: i64 = 20;
const AT_FIRST: Duration = Duration::from_secs(1);

/// A store with rows that are numbered.
trait Store {
    /// Commits so many rows from a number on.
    fn commit(&mut self, first: i64, rows: i64);

    /// As many again, `COMMITS` times, one after the other.
    fn commit_all(&mut self, first: i64, rows: i64) {
        for first in (first..).step_by(rows as usize).take(COMMITS as usize) {
            self.commit(first, rows);
        }
    }

    fn settle(&mut self) {
        thread::sleep(AT_FIRST);
    }
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

impl Ours {
    async fn append(&self, first: i64, rows: i64) {
        let rows = (first..first + rows).map(|ts| (ts, 7));
        let commit = self.1.extend(rows).expect("it is open");
        commit.await.expect("it is written");
    }
}

impl Store for Ours {
    fn commit(&mut self, first: i64, rows: i64) {
        self.0.run(self.append(first, rows));
    }

    fn commit_all(&mut self, first: i64, rows: i64) {
        // By one task, as a program of an executor does it.
        self.0.run(async {
            for first in (first..).step_by(rows as usize).take(COMMITS as usize) {
                self.append(first, rows).await;
            }
        });
    }

    fn settle(&mut self) {
        self.0.run(sleep(AT_FIRST));
    }
}

pub fn measure(folder: &Path, rounds: usize) -> Vec<Row> {
    let mut measured = Vec::new();
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
    for (_, store) in &mut stores {
        store.commit(0, 1);
        store.settle();
    }
    let mut next = 1;
    for rows in [1, 1000] {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            for ((_, store), figures) in stores.iter_mut().zip(&mut figures) {
                let start = Instant::now();
                store.commit_all(next, rows);
                figures.push(start.elapsed().as_secs_f64() / COMMITS as f64 * 1e6);
                next += COMMITS * rows;
            }
        }
        for ((name, _), figures) in stores.iter().zip(figures) {
            let what = format!("{rows} rows a synced commit, {name}");
            measured.push(Row::new(&what, "µs", figures));
        }
    }
    measured
}
