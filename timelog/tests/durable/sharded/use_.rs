//! What is written from any executor and read from any.

use std::rc::Rc;
use std::time::Duration;

use glommio::spawn_local;
use glommio::timer::sleep;
use timelog::durable::{Error, Log};
use timelog::{Every, Ts, WriteErrorKind};

use super::super::history::Value;
use super::{KEYS, cause, counts, key, quick, refused, try_open, with_log};

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
            let every = Every::ticks(10).unwrap();
            let windows = all.fold(100..200, every, |value| value[0]);
            let sum: u64 = all.range(100..200).map(|(_, value)| value[0]).sum();
            assert_eq!(windows.map(|it| it.sum).sum::<u128>(), sum.into());
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
        let rows = all[log.shard_of("key")].range(..).map(|row| *row.1);
        let numbers = rows.filter(|it| it[0] == own).map(|it| it[1]);
        assert!(numbers.eq(0..500));
    });
}

/// Writers wait for the device of the shard that they write to.
#[test]
fn a_busy_shard_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let config = quick().pending_bytes(4 << 10);
    let each = with_log(2, folder.path(), config, |log| async move {
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
        let mut shards = Vec::new();
        for key_ in 0..KEYS {
            let rows = (0..300).map(|row| (row, [key_, 0]));
            let error = refused(log.extend(key(key_), rows)).await;
            let (shard, why) = cause(&error.error);
            assert!(matches!(why, Error::Busy { .. }), "{error}");
            assert_eq!(error.rejected.len(), 300);
            shards.push(shard);
        }
        shards
    });
    assert!(each.iter().all(|it| it.contains(&0) && it.contains(&1)));
    assert_eq!(counts(2, folder.path()), [200_000; 2]);
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
            let refused = refused(log.append(key(number), 9, [number; 2])).await;
            let (shard, why) = cause(&refused.error);
            assert_eq!(shard, log.shard_of(key(number)));
            let is_below = matches!(why, Error::Write(WriteErrorKind::BelowFloor { .. }));
            assert!(is_below, "{why}");
            assert_eq!(refused.rejected, [(9, [number; 2])]);
        }
        let error = log.delete(5..5).await.unwrap_err();
        assert!(
            matches!(error, Error::Write(WriteErrorKind::EmptyRange)),
            "{error}"
        );
    });
}

/// While it is written to; what was cut short is none.
#[test]
fn a_backup_of_all_shards_is_a_log_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let copy = path("copy");
    with_log(2, &path("log"), quick(), move |log| async move {
        let own = log.shard_id() as u64;
        for number in 0..1_000 {
            let commit = log.append(key(number), number as Ts, [own, number]).await;
            drop(commit.unwrap());
        }
        if own == 0 {
            log.backup(&copy).await.unwrap();
            let error = log.backup(&copy).await.unwrap_err();
            assert!(error.to_string().contains("there is one"), "{error}");
        }
    });
    with_log(2, &path("copy"), quick(), |log| async move {
        let all = log.snapshots().await.unwrap();
        let own = all.range(..).filter(|row| row.1[0] == 0);
        assert!(own.map(|row| row.1[1]).eq(0..1_000));
    });
    std::fs::remove_file(path("copy").join("MANIFEST")).unwrap();
    for error in try_open(2, &path("copy")) {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it is missing"), "{error}");
    }
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
