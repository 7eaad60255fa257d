//! The same commits by other stores: a row at a time, each synced, and 1,000 rows a sync.

use std::path::Path;
use std::time::Instant;

use glommio::LocalExecutor;
use timelog::durable::{Config, Log};

use super::row::Row;

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
    let mut next = 0;
    for rows in [1, 1000] {
        let mut figures = [const { Vec::new() }; 3];
        for _ in 0..rounds {
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
            let what = format!("{rows} rows a synced commit, {name}");
            measured.push(Row::new(&what, "µs", figures));
        }
    }
    measured
}
