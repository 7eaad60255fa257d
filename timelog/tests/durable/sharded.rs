//! A log for each executor, written by key.

use std::cell::Cell;
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use glommio::timer::sleep;
use glommio::{LocalExecutorPoolBuilder, PoolPlacement, spawn_local};
use timelog::durable::{Config, Error, Log, Mesh, Sharded};
use timelog::{Ts, WriteErrorKind};

use super::history::Value;
use super::limits::FULL;
use super::{Killed, child, crashes};

fn quick() -> Config {
    Config::default()
        .wal_file_bytes(64 << 10)
        .wake_up(Duration::from_millis(1))
}

/// Runs a future on each of so many executors; what each gave, by their order, or its panic.
fn on_each<F, T>(
    shards: usize,
    run: impl FnOnce(Mesh<Value>) -> F + Clone + Send + 'static,
) -> Vec<Result<T, glommio::GlommioError<()>>>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let mesh = Mesh::new(shards);
    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards));
    let pool = pool.on_all_shards(move || run(mesh));
    pool.expect("they can be started").join_all()
}

/// As [`on_each`], with a log that is open, and closed at the end.
fn with_log<F, T>(
    shards: usize,
    folder: &Path,
    config: Config,
    run: impl FnOnce(Sharded<Value>) -> F + Clone + Send + 'static,
) -> Vec<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let folder = folder.to_owned();
    let each = on_each(shards, move |mesh| async move {
        let opened = Sharded::open(mesh, folder, config).await;
        let (log, _) = opened.expect("nothing fails");
        let result = run(log.clone()).await;
        log.close().await.expect("nothing fails");
        result
    });
    each.into_iter()
        .map(|it| it.expect("nothing panics"))
        .collect()
}

/// The shard that failed, and why.
fn cause(error: &Error) -> (usize, &Error) {
    match error {
        Error::Shard { shard, cause } => (*shard, cause),
        _ => panic!("{error}"),
    }
}

const KEYS: u64 = 12;

fn key(key: u64) -> [u8; 8] {
    key.to_le_bytes()
}

/// What all wrote is read from anywhere in one order, also when it is opened again.
#[test]
fn all_shards_read_what_any_has_written() {
    const EACH: u64 = 600;
    for shards in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let row = |shard: usize, number: u64| {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
            (
                (number + mixed) as Ts,
                [number % KEYS, (shard as u64) << 32 | number],
            )
        };
        with_log(shards, folder.path(), quick(), move |log| async move {
            let mut commits = Vec::new();
            for number in 0..EACH {
                let (ts, value) = row(log.shard_id(), number);
                commits.push(log.append(key(value[0]), ts, value).await.unwrap());
                if number % 100 == 99 {
                    // What was sent from here before is there.
                    let own = log.snapshots().await.unwrap();
                    let own = own
                        .range(..)
                        .filter(|(_, it)| it[1] >> 32 == log.shard_id() as u64);
                    assert_eq!(own.count() as u64, number + 1);
                }
            }
            for (number, commit) in commits.into_iter().enumerate() {
                assert_eq!(commit.shard(), log.shard_of(key(number as u64 % KEYS)));
                commit.await.unwrap();
            }
        });
        let mut wanted: Vec<(Ts, Value)> = (0..shards)
            .flat_map(|shard| (0..EACH).map(move |number| row(shard, number)))
            .collect();
        wanted.sort_unstable();
        let wanted = Rc::new(wanted);
        let found = with_log(shards, folder.path(), quick(), |log| async move {
            let all = log.snapshots().await.unwrap();
            for (shard, own) in all.iter().enumerate() {
                assert!(
                    own.range(..)
                        .all(|(_, it)| log.shard_of(key(it[0])) == shard)
                );
            }
            let rows: Vec<_> = all.range(..).map(|(ts, value)| (ts, *value)).collect();
            assert!(rows.is_sorted_by_key(|row| row.0));
            assert_eq!(all.count(100..200), all.range(100..200).count() as u64);
            assert_eq!(
                (all.first(), all.last()),
                (Some(rows[0].0), rows.last().map(|it| it.0))
            );
            assert!(
                all.range(..)
                    .rev()
                    .eq(all.range(..).collect::<Vec<_>>().into_iter().rev())
            );
            rows
        });
        for mut rows in found {
            rows.sort_unstable();
            assert_eq!(rows, *wanted);
        }
    }
}

#[test]
fn rows_of_a_key_stay_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    with_log(2, folder.path(), quick(), |log| async move {
        let own = log.shard_id() as u64;
        for number in 0..500 {
            drop(log.append("key", 7, [own, number]).await.unwrap());
        }
        let all = log.snapshots().await.unwrap();
        let numbers = all
            .at(log.shard_of("key"))
            .filter(|it| it[0] == own)
            .map(|it| it[1]);
        assert!(numbers.eq(0..500));
    });
}

trait At {
    fn at(&self, shard: usize) -> impl Iterator<Item = Value>;
}

impl At for timelog::Snapshots<Value> {
    fn at(&self, shard: usize) -> impl Iterator<Item = Value> {
        self[shard].range(..).map(|(_, value)| *value)
    }
}

/// Writers wait for the device of the shard that they write to.
#[test]
fn a_busy_shard_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let config = quick().pending_bytes(4 << 10);
    let refused = with_log(2, folder.path(), config, |log| async move {
        let writers: Vec<_> = (0..20)
            .map(|writer| {
                let log = log.clone();
                spawn_local(async move {
                    let mut last = None;
                    for number in 0..100 {
                        let rows = (0..50).map(|row| (row, [writer, number]));
                        last = Some(log.extend(key(writer), rows).await.unwrap());
                    }
                    last.unwrap().await.unwrap();
                })
            })
            .collect();
        for writer in writers {
            writer.await;
        }
        // A batch for which there is never space.
        let mut refused = Vec::new();
        for key_ in 0..KEYS {
            let rows = (0..300).map(|row| (row, [key_, 0]));
            let error = match log.extend(key(key_), rows).await {
                Ok(commit) => commit.await.unwrap_err(),
                Err(error) => error,
            };
            assert!(
                matches!(cause(&error.error), (_, Error::Busy { .. })),
                "{error}"
            );
            assert_eq!(error.rejected.len(), 300);
            refused.push(cause(&error.error).0);
        }
        refused
    });
    assert!(refused.iter().all(|it| it.contains(&0) && it.contains(&1)));
    let counts = with_log(2, folder.path(), quick(), |log| async move {
        log.snapshots().await.unwrap().count(..)
    });
    assert_eq!(counts, [200_000; 2]);
}

#[test]
fn deletes_and_floors_are_for_all() {
    let folder = tempfile::tempdir().unwrap();
    with_log(3, folder.path(), quick(), |log| async move {
        let own = log.shard_id();
        for number in 0..100_u64 {
            drop(
                log.append(key(number), number as Ts, [number; 2])
                    .await
                    .unwrap(),
            );
        }
        log.sync().await.unwrap();
        // Of all that have been written, when the last one deletes.
        while log.snapshots().await.unwrap().count(90..) < 30 {
            sleep(Duration::from_millis(1)).await;
        }
        if own == 0 {
            log.delete(20..30).await.unwrap();
            log.raise_floor(10).await.unwrap();
            // Again.
            log.raise_floor(10).await.unwrap();
        }
        while log.snapshots().await.unwrap().count(..30) > 30 {
            sleep(Duration::from_millis(1)).await;
        }
        let all = log.snapshots().await.unwrap();
        assert_eq!((all.first(), all.count(..)), (Some(10), 240));
        for number in 0..KEYS {
            let written = log.append(key(number), 9, [number; 2]).await;
            let refused = match written {
                Ok(commit) => commit.await.unwrap_err(),
                Err(refused) => refused,
            };
            let (shard, why) = cause(&refused.error);
            assert_eq!(shard, log.shard_of(key(number)));
            assert!(
                matches!(why, Error::Write(WriteErrorKind::BelowFloor { .. })),
                "{why}"
            );
            assert_eq!(refused.rejected, [(9, [number; 2])]);
        }
        let error = log.delete(5..5).await.unwrap_err();
        assert!(
            matches!(error, Error::Write(WriteErrorKind::EmptyRange)),
            "{error}"
        );
    });
}

#[test]
fn the_number_of_shards_stays() {
    let folder = tempfile::tempdir().unwrap();
    let open = |shards| {
        let path = folder.path().to_owned();
        on_each(shards, move |mesh| async move {
            let (log, _) = Sharded::open(mesh, path, quick()).await?;
            log.close().await
        })
    };
    let is_whole = |results: Vec<Result<Result<(), Error>, _>>| {
        results.into_iter().for_each(|it| it.unwrap().unwrap());
    };
    let errors = |results: Vec<Result<Result<(), Error>, _>>| {
        let errors = results.into_iter().map(|it| it.unwrap().unwrap_err());
        errors.collect::<Vec<_>>()
    };
    is_whole(open(2));
    for error in errors(open(3)) {
        assert!(
            matches!(cause(&error), (0, Error::Format { .. })),
            "{error}"
        );
        assert!(
            error.to_string().ends_with("the log has 2 shards, not 3"),
            "{error}"
        );
    }
    is_whole(open(2));
    let name = folder.path().join("SHARDS");
    for (content, wanted) in [
        (Some("format 2 shards 2"), "this program reads 1"),
        (Some("format 1 shards x"), "it is no number of shards"),
        (Some(""), "it is no number of shards"),
        (None, "there are directories of shards"),
    ] {
        match content {
            Some(content) => std::fs::write(&name, content).unwrap(),
            None => std::fs::remove_file(&name).unwrap(),
        }
        for error in errors(open(2)) {
            assert!(error.to_string().ends_with(wanted), "{error}");
        }
    }
    std::fs::write(&name, "format 1 shards 2").unwrap();
    is_whole(open(2));
}

/// A shard that cannot be opened is named by all, and the others are closed.
#[test]
fn a_shard_that_cannot_be_opened_is_named_by_all() {
    let folder = tempfile::tempdir().unwrap();
    with_log(3, folder.path(), quick(), |log| async move {
        let commit = log.append("key", 1, [1; 2]).await.unwrap();
        commit.await.unwrap();
    });
    let shard = folder.path().join("shard-1");
    let files = std::fs::read_dir(&shard)
        .unwrap()
        .map(|it| it.unwrap().path());
    let wal = files.filter(|it| it.to_string_lossy().contains("wal-"));
    let wal = wal.min().unwrap();
    let whole = std::fs::read(&wal).unwrap();
    std::fs::write(&wal, b"nonsense").unwrap();
    let path = folder.path().to_owned();
    let opened = on_each(3, move |mesh| async move {
        Sharded::open(mesh, path, quick()).await.map(|_| ())
    });
    for error in opened {
        let error = error.unwrap().unwrap_err();
        let (1, Error::Corrupt { path, .. }) = cause(&error) else {
            panic!("{error}")
        };
        assert_eq!(*path, wal);
    }
    std::fs::write(&wal, whole).unwrap();
    let counts = with_log(3, folder.path(), quick(), |log| async move {
        log.snapshots().await.unwrap().count(..)
    });
    assert_eq!(counts, [3; 3]);
}

/// The executor of a shard panics while others wait for it, and those go on with what they have.
#[test]
fn a_shard_that_is_gone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let ended = on_each(3, move |mesh| async move {
        let (log, _) = Sharded::open(mesh, path, quick()).await.unwrap();
        if log.shard_id() == 1 {
            panic!("as if it had a defect");
        }
        let of_it = (0..).find(|it| log.shard_of(key(*it)) == 1).unwrap();
        let refused = loop {
            let sent = log.append(key(of_it), 7, [of_it; 2]).await;
            match sent {
                // On its way when the shard ended.
                Ok(commit) => match commit.await {
                    Ok(_) => {}
                    Err(refused) => assert!(matches!(cause(&refused.error), (1, Error::Closed))),
                },
                Err(refused) => break refused,
            }
        };
        assert!(
            matches!(cause(&refused.error), (1, Error::Closed)),
            "{refused}"
        );
        assert_eq!(refused.rejected, [(7, [of_it; 2])]);
        let error = log.snapshots().await.unwrap_err();
        assert!(matches!(cause(&error), (1, Error::Closed)), "{error}");
        let error = log.sync().await.unwrap_err();
        assert!(matches!(cause(&error), (1, Error::Closed)), "{error}");
        for number in 0..KEYS {
            if log.shard_of(key(number)) != 1 {
                let commit = log.append(key(number), 7, [number; 2]).await.unwrap();
                commit.await.unwrap();
            }
        }
        log.close().await.unwrap();
    });
    let panicked: Vec<_> = ended.iter().map(Result::is_err).collect();
    assert_eq!(panicked, [false, true, false]);
}

/// Each way in which a handle can end, and futures that are dropped.
#[test]
fn a_closed_shard_says_so() {
    let folder = tempfile::tempdir().unwrap();
    with_log(2, folder.path(), quick(), |log| async move {
        // None of what is given up hinders anything.
        for number in 0..200 {
            drop(log.append(key(number), 1, [number; 2]).await.unwrap());
            let append = log.append(key(number), 1, [number; 2]);
            drop(futures_lite::future::poll_once(append).await);
            drop(futures_lite::future::poll_once(log.snapshots()).await);
            drop(futures_lite::future::poll_once(log.sync()).await);
        }
    });
    let path = folder.path().to_owned();
    let closed = on_each(2, move |mesh| async move {
        let again = mesh.clone();
        let (log, _) = Sharded::open(mesh, &path, quick()).await.unwrap();
        let error = Sharded::open(again, &path, quick()).await.unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let other = log.clone();
        let commit = log.append(key(1), 1, [1; 2]).await.unwrap();
        let closing = spawn_local(log.close());
        commit.await.unwrap();
        closing.await.unwrap();
        for number in 0..KEYS {
            let refused = other.append(key(number), 1, [number; 2]).await.unwrap_err();
            assert!(
                matches!(cause(&refused.error).1, Error::Closed),
                "{refused}"
            );
            assert_eq!(refused.rejected.len(), 1);
        }
        assert!(matches!(
            cause(&other.snapshots().await.unwrap_err()).1,
            Error::Closed
        ));
        assert!(matches!(
            cause(&other.sync().await.unwrap_err()).1,
            Error::Closed
        ));
        let own = other.shard_id();
        let error = other.close().await.unwrap_err();
        assert!(matches!(cause(&error), (shard, Error::Closed) if shard == own));
    });
    closed.into_iter().for_each(|it| it.unwrap());
    // Dropped without being closed: nothing hangs, and it can be opened again.
    let path = folder.path().to_owned();
    let dropped = on_each(2, move |mesh| async move {
        let (log, _) = Sharded::open(mesh, &path, quick()).await.unwrap();
        let commit = log
            .append(key(log.shard_id() as u64), 1, [1; 2])
            .await
            .unwrap();
        drop(log);
        // The other executor may have ended before.
        if let Err(refused) = commit.await {
            assert!(
                matches!(cause(&refused.error).1, Error::Closed),
                "{refused}"
            );
        }
    });
    dropped.into_iter().for_each(|it| it.unwrap());
    with_log(2, folder.path(), quick(), |_| async {});
}

/// Writes rows of a writer on each shard, and says what is confirmed.
pub fn write_until_killed(folder: &Path) {
    with_log(2, folder, quick(), |log| async move {
        let writer = log.shard_id() as u64;
        let snapshots = log.snapshots().await.expect("both are there");
        let number = snapshots
            .range(..)
            .filter(|(_, it)| it[0] == writer)
            .count();
        let number = Cell::new(number as u64);
        println!("open");
        let mut commits = std::collections::VecDeque::new();
        loop {
            let next = number.get();
            number.set(next + 1);
            let commit = log.append(key(writer), next as Ts, [writer, next]).await;
            commits.push_back(commit.expect("both are there"));
            if commits.len() == 16 {
                let oldest = commits.pop_front().expect("there are some");
                oldest.await.expect("nothing fails");
                let mut output = std::io::stdout().lock();
                writeln!(output, "confirmed {writer} {}", next - 15).expect("the test listens");
            }
        }
    });
}

/// Of each key a prefix that has all that was confirmed.
#[test]
fn what_shards_confirmed_is_there_after_a_process_was_killed() {
    let mut random = Rng::with_seed(2);
    let folder = tempfile::tempdir().unwrap();
    let mut confirmed = [0; 2];
    for _ in 0..crashes(6) {
        let mut command = child("write-shards", folder.path(), None);
        let mut process = Killed(command.spawn().unwrap());
        let output = BufReader::new(process.0.stdout.take().unwrap());
        let lines = random.usize(..600);
        for (line, text) in output.lines().enumerate() {
            let text = text.unwrap_or_default();
            if let Some((writer, number)) = text
                .strip_prefix("confirmed ")
                .and_then(|it| it.split_once(' '))
                && let (Ok(writer), Ok(number)) = (writer.parse::<usize>(), number.parse::<u64>())
            {
                confirmed[writer] = confirmed[writer].max(number + 1);
            }
            if line == lines {
                process.0.kill().unwrap();
            }
        }
        process.0.wait().unwrap();
        let found = with_log(2, folder.path(), quick(), |log| async move {
            let all = log.snapshots().await.unwrap();
            let of = |writer| {
                let values = all.range(..).map(|(_, it)| *it);
                let numbers = values.filter(move |it| it[0] == writer).map(|it| it[1]);
                let count = numbers.clone().count() as u64;
                assert!(numbers.eq(0..count), "something is missing");
                count
            };
            [of(0), of(1)]
        });
        assert_eq!(found[0], found[1]);
        for (found, confirmed) in found[0].iter().zip(confirmed) {
            assert!(*found >= confirmed, "{found} of {confirmed}");
        }
    }
    assert!(confirmed[0] > 0 && confirmed[1] > 0, "{confirmed:?}");
}

/// On a small filesystem that becomes full: each shard ends its writes with its own error, and reads
/// go on.
pub fn fill(folder: &Path) {
    let confirmed = on_each(2, {
        let folder = folder.to_owned();
        move |mesh| async move {
            let (log, _) = Sharded::open(mesh, folder, quick())
                .await
                .expect("there is space");
            let own = log.shard_id() as u64;
            let mut confirmed = [0; 2];
            let mut failed = [false; 2];
            let mut number = 0;
            while failed != [true; 2] {
                number += 1;
                let key_ = number % KEYS;
                let shard = log.shard_of(key(key_));
                let rows = (0..200).map(|row| (row, [own, number]));
                let written = match log.extend(key(key_), rows).await {
                    Ok(commit) => commit.await,
                    Err(refused) => Err(refused),
                };
                match written {
                    Ok(_) => confirmed[shard] += 200,
                    Err(refused) => {
                        let (named, why) = cause(&refused.error);
                        assert_eq!(named, shard);
                        assert!(matches!(why, Error::Poisoned { .. }), "{refused}");
                        assert!(refused.to_string().contains("No space left"), "{refused}");
                        failed[shard] = true;
                    }
                }
            }
            let all = log.snapshots().await.expect("reads go on");
            assert!(all.count(..) >= confirmed[0] + confirmed[1]);
            let error = log.close().await.expect_err("it was told");
            assert!(
                matches!(cause(&error), (shard, Error::Poisoned { .. }) if shard as u64 == own)
            );
            confirmed
        }
    });
    std::fs::remove_file(folder.join("ballast")).expect("it is there");
    let confirmed = confirmed.into_iter().map(|it| it.expect("nothing panics"));
    let confirmed: u64 = confirmed.flatten().sum();
    let counts = with_log(2, folder, quick(), |log| async move {
        log.snapshots().await.expect("both are there").count(..)
    });
    assert!(counts[0] >= confirmed, "{} of {confirmed}", counts[0]);
    println!("{FULL}{confirmed}");
}

/// A log of one shard is a log: its directory can be opened alone.
#[test]
fn a_shard_is_a_log() {
    let folder = tempfile::tempdir().unwrap();
    with_log(2, folder.path(), quick(), |log| async move {
        let own = log.shard_id() as u64;
        log.log().append(7, [own; 2]).unwrap().await.unwrap();
    });
    for shard in 0..2 {
        glommio::LocalExecutor::default().run(async {
            let path = folder.path().join(format!("shard-{shard}"));
            let (log, _) = Log::<Value>::open(path, quick()).await.unwrap();
            assert!(log.snapshot().range(..).eq([(7, &[shard; 2])]));
            log.close().await.unwrap();
        });
    }
}
