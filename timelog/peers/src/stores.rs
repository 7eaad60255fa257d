//! What is compared, behind one trait.

use std::ops::Range;
use std::path::Path;

use glommio::LocalExecutor;
use redb::ReadableDatabase;
use timelog::durable::{Config, Log};

/// A timestamp and a value, which no other row has.
pub type Row = (i64, u64);

pub const STORES: [&str; 5] = ["timelog", "fjall", "redb", "sled", "SQLite"];

/// Rows in the order of their timestamps, of which several may be equal.
pub trait Store {
    /// Commits each of the batches, one after the other: it is on the device before the next.
    fn commit(&mut self, batches: &[Vec<Row>]);
    /// How many rows the ranges have in all, and the sum of their values.
    fn read(&mut self, ranges: &[Range<i64>]) -> (u64, u64);
    /// Deletes all rows before a timestamp, in one synced commit.
    fn delete_before(&mut self, ts: i64);
    fn close(self: Box<Self>);
}

/// Opens one of `STORES`, which is made if it is not there.
pub fn open(store: &str, folder: &Path) -> Box<dyn Store> {
    match store {
        "timelog" => Box::new(Ours::open(folder)),
        "fjall" => Box::new(Fjall::open(folder)),
        "redb" => Box::new(Redb(
            redb::Database::create(folder.join("redb")).expect("it can be opened"),
        )),
        "sled" => Box::new(Sled(
            sled::Config::new()
                .path(folder.join("sled"))
                .flush_every_ms(None)
                .open()
                .expect("it can be opened"),
        )),
        _ => Box::new(Sqlite::open(folder)),
    }
}

fn add((count, sum): (u64, u64), value: u64) -> (u64, u64) {
    (count + 1, sum + value)
}

struct Ours(LocalExecutor, Log<u64>);

impl Ours {
    fn open(folder: &Path) -> Self {
        let executor = LocalExecutor::default();
        let opened = executor.run(Log::open(folder, Config::default()));
        Self(executor, opened.expect("it can be opened").0)
    }
}

impl Store for Ours {
    fn commit(&mut self, batches: &[Vec<Row>]) {
        self.0.run(async {
            for batch in batches {
                let commit = self.1.extend(batch.iter().copied()).expect("it is open");
                commit.await.expect("it is written");
            }
        });
    }

    fn read(&mut self, ranges: &[Range<i64>]) -> (u64, u64) {
        let snapshot = self.0.run(async { self.1.snapshot() });
        let rows = ranges
            .iter()
            .flat_map(|range| snapshot.range(range.clone()));
        rows.fold((0, 0), |found, row| add(found, *row.1))
    }

    fn delete_before(&mut self, ts: i64) {
        self.0.run(async {
            let commit = self.1.delete(..ts).expect("it is open");
            commit.await.expect("it is written");
        });
    }

    fn close(self: Box<Self>) {
        let Self(executor, log) = *self;
        executor.run(log.close()).expect("it is written");
    }
}

/// Of 16 bytes, in the order of rows.
fn key(ts: i64, value: u64) -> [u8; 16] {
    let ts = (ts as u64) ^ (1 << 63);
    ((u128::from(ts) << 64) | u128::from(value)).to_be_bytes()
}

fn keys(range: &Range<i64>) -> Range<[u8; 16]> {
    key(range.start, 0)..key(range.end, 0)
}

fn value(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

struct Fjall(fjall::Database, fjall::Keyspace);

impl Fjall {
    fn open(folder: &Path) -> Self {
        let database = fjall::Database::builder(folder.join("fjall")).open();
        let database = database.expect("it can be opened");
        let keyspace = database.keyspace("rows", fjall::KeyspaceCreateOptions::default);
        Self(database, keyspace.expect("it can be opened"))
    }

    fn write(&self, work: impl FnOnce(&mut fjall::OwnedWriteBatch)) {
        let mut batch = self
            .0
            .batch()
            .durability(Some(fjall::PersistMode::SyncData));
        work(&mut batch);
        batch.commit().expect("it is written");
    }
}

impl Store for Fjall {
    fn commit(&mut self, batches: &[Vec<Row>]) {
        for batch in batches {
            self.write(|write| {
                for (ts, value) in batch {
                    write.insert(&self.1, key(*ts, *value), value.to_le_bytes());
                }
            });
        }
    }

    fn read(&mut self, ranges: &[Range<i64>]) -> (u64, u64) {
        let rows = ranges.iter().flat_map(|range| self.1.range(keys(range)));
        rows.fold((0, 0), |found, row| {
            add(found, value(&row.value().expect("it is whole")))
        })
    }

    fn delete_before(&mut self, ts: i64) {
        self.write(|write| {
            for row in self.1.range(..key(ts, 0)) {
                write.remove(&self.1, row.key().expect("it is whole"));
            }
        });
    }

    fn close(self: Box<Self>) {}
}

struct Redb(redb::Database);

const TABLE: redb::TableDefinition<'_, (i64, u64), u64> = redb::TableDefinition::new("rows");

impl Redb {
    fn write(&self, work: impl FnOnce(&mut redb::Table<'_, (i64, u64), u64>)) {
        let write = self.0.begin_write().expect("it is open");
        work(&mut write.open_table(TABLE).expect("it can be opened"));
        write.commit().expect("it is written");
    }
}

impl Store for Redb {
    fn commit(&mut self, batches: &[Vec<Row>]) {
        for batch in batches {
            self.write(|table| {
                for (ts, value) in batch {
                    table.insert((*ts, *value), value).expect("it is open");
                }
            });
        }
    }

    fn read(&mut self, ranges: &[Range<i64>]) -> (u64, u64) {
        let read = self.0.begin_read().expect("it is open");
        let table = read.open_table(TABLE).expect("it is there");
        let rows = ranges.iter().flat_map(|range| {
            let rows = table.range((range.start, 0)..(range.end, 0));
            rows.expect("it is whole")
        });
        rows.fold((0, 0), |found, row| {
            add(found, row.expect("it is whole").1.value())
        })
    }

    fn delete_before(&mut self, ts: i64) {
        self.write(|table| {
            let kept = table.retain_in(..(ts, 0), |_, _| false);
            kept.expect("it is open");
        });
    }

    fn close(self: Box<Self>) {}
}

struct Sled(sled::Db);

impl Sled {
    fn write(&self, batch: sled::Batch) {
        self.0.apply_batch(batch).expect("it is written");
        self.0.flush().expect("it is synced");
    }
}

impl Store for Sled {
    fn commit(&mut self, batches: &[Vec<Row>]) {
        for batch in batches {
            let mut write = sled::Batch::default();
            for (ts, value) in batch {
                write.insert(&key(*ts, *value), &value.to_le_bytes());
            }
            self.write(write);
        }
    }

    fn read(&mut self, ranges: &[Range<i64>]) -> (u64, u64) {
        let rows = ranges.iter().flat_map(|range| self.0.range(keys(range)));
        rows.fold((0, 0), |found, row| {
            add(found, value(&row.expect("it is whole").1))
        })
    }

    fn delete_before(&mut self, ts: i64) {
        let mut write = sled::Batch::default();
        for row in self.0.range(..key(ts, 0)) {
            write.remove(row.expect("it is whole").0);
        }
        self.write(write);
    }

    fn close(self: Box<Self>) {}
}

struct Sqlite(rusqlite::Connection);

impl Sqlite {
    fn open(folder: &Path) -> Self {
        let connection = rusqlite::Connection::open(folder.join("sqlite"));
        let connection = connection.expect("it can be opened");
        let made = connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS rows (ts INTEGER, seq INTEGER, value INTEGER, PRIMARY KEY (ts, seq))
             WITHOUT ROWID;",
        );
        made.expect("it can be made");
        Self(connection)
    }
}

impl Store for Sqlite {
    fn commit(&mut self, batches: &[Vec<Row>]) {
        for batch in batches {
            let write = self.0.transaction().expect("it is open");
            let insert = write.prepare_cached("INSERT INTO rows VALUES (?1, ?2, ?2)");
            let mut insert = insert.expect("it is well-formed");
            for (ts, value) in batch {
                insert.execute((*ts, *value as i64)).expect("it is open");
            }
            drop(insert);
            write.commit().expect("it is written");
        }
    }

    fn read(&mut self, ranges: &[Range<i64>]) -> (u64, u64) {
        let select = "SELECT ts, value FROM rows WHERE ts >= ?1 AND ts < ?2 ORDER BY ts, seq";
        let mut select = self.0.prepare_cached(select).expect("it is well-formed");
        let mut found = (0, 0);
        for range in ranges {
            let mut rows = select.query((range.start, range.end)).expect("it is whole");
            while let Some(row) = rows.next().expect("it is whole") {
                found = add(found, row.get::<_, i64>(1).expect("a number") as u64);
            }
        }
        found
    }

    fn delete_before(&mut self, ts: i64) {
        let deleted = self.0.execute("DELETE FROM rows WHERE ts < ?1", [ts]);
        deleted.expect("it is written");
    }

    fn close(self: Box<Self>) {
        self.0.close().expect("it is written");
    }
}
