//! What users do with a log.

use std::path::Path;
use std::time::Duration;

use glommio::LocalExecutor;
use glommio::timer::sleep;
use timelog::durable::{Error, Log};
use timelog::{Record, TimeUnit, WriteErrorKind};

use super::history::Value;
use super::{Killed, child, quick};

fn run<T>(future: impl Future<Output = T>) -> T {
    LocalExecutor::default().run(future)
}

/// Until it is so, or for ever: the test harness says which test hangs.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Opens a log, says so, and waits.
pub fn hold(folder: &Path) {
    run(async {
        let opened = Log::<Value>::open(folder, quick()).await;
        println!("open");
        std::future::pending::<()>().await;
        drop(opened);
    });
}

#[test]
fn a_log_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = child("hold", folder.path());
    let mut process = Killed(command.spawn().unwrap());
    let mut line = String::new();
    let mut output = std::io::BufReader::new(process.0.stdout.take().unwrap());
    while !line.starts_with("open") {
        line.clear();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    }
    // It ends with its output.
    let listening = std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    run(async {
        let error = Log::<Value>::open(folder.path(), quick())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        process.0.kill().unwrap();
        process.0.wait().unwrap();
        let (log, _) = Log::<Value>::open(folder.path(), quick()).await.unwrap();
        let error = Log::<Value>::open(folder.path(), quick())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        log.close().await.unwrap();
        let (log, _) = Log::<Value>::open(folder.path(), quick()).await.unwrap();
        log.close().await.unwrap();
    });
    listening.join().unwrap().unwrap();
}

#[test]
fn the_floor_rises_by_age() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let memory = timelog::Config::default().unit(TimeUnit::Millis);
        let config = quick().memory(memory).keep(Duration::from_secs(60));
        let (log, _) = Log::<u64>::open(folder.path(), config.clone())
            .await
            .unwrap();
        let now = TimeUnit::Millis.now();
        drop(log.append(now - 120_000, 1).unwrap());
        // Nothing is older than the newest row by so much.
        sleep(Duration::from_millis(20)).await;
        assert_eq!(log.snapshot().count(..), 1);
        // A row from the future does not make others older than they are.
        drop(log.extend([(now - 30_000, 2), (i64::MAX, 3)]).unwrap());
        until(|| log.snapshot().count(..) == 2).await;
        let refused = log.append(now - 120_000, 4).unwrap_err();
        assert!(matches!(
            refused.error,
            Error::Write(WriteErrorKind::BelowFloor { .. })
        ));
        log.close().await.unwrap();
        let (log, _) = Log::<u64>::open(folder.path(), config).await.unwrap();
        assert_eq!(log.snapshot().count(..), 2);
        assert!(log.append(now - 120_000, 4).is_err(), "the floor is kept");
        log.close().await.unwrap();
    });
}

/// Also below zero: timestamps that are halved towards zero once had it look forever, or delete all.
#[test]
fn the_floor_rises_by_size() {
    for first in [i64::MIN, -10_000, -2, 0] {
        let folder = tempfile::tempdir().unwrap();
        run(async {
            let config = quick().keep_bytes(1600);
            let (log, _) = Log::<u64>::open(folder.path(), config).await.unwrap();
            let rows = (first..first + 10_000).map(|ts| (ts, 0));
            drop(log.extend(rows).unwrap());
            until(|| log.snapshot().count(..) == 100).await;
            assert_eq!(log.snapshot().first(), Some(first + 9_900));
            // More of one timestamp than are to be kept: they stay together.
            let rows = (0..500).map(|value| (first + 20_000, value));
            drop(log.extend(rows).unwrap());
            until(|| log.snapshot().first() == Some(first + 20_000)).await;
            assert_eq!(log.snapshot().count(..), 500);
            log.close().await.unwrap();
        });
    }
}

/// What is deleted takes no space for long.
#[test]
fn deleted_rows_leave_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = || -> u64 {
        let files = std::fs::read_dir(folder.path()).unwrap();
        files
            .map(|it| it.unwrap().metadata().map_or(0, |it| it.len()))
            .sum()
    };
    run(async {
        let (log, _) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
        for round in 0..40 {
            let start = round * 10_000;
            drop(
                log.extend((start..start + 10_000).map(|ts| (ts, 0)))
                    .unwrap(),
            );
            log.sync().await.unwrap();
            drop(log.delete(..start).unwrap());
        }
        log.sync().await.unwrap();
        // The file that is written to may have grown while no other was ready, and goes with the next
        // write.
        let mut more = 0;
        while log.stats().full_wal_files > 0 || bytes() >= 4 << 20 {
            log.append(400_000, 0).unwrap().await.unwrap();
            more += 1;
            sleep(Duration::from_millis(1)).await;
        }
        log.close().await.unwrap();
        let (log, _) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
        assert_eq!(log.snapshot().count(..), 10_000 + more);
        log.close().await.unwrap();
    });
}

/// No file or task queue stays behind.
#[test]
fn many_openings_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let mut queues = Vec::new();
        for round in 0..60 {
            let (log, _) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
            assert_eq!(log.seq().0, round);
            drop(log.append(round as i64, round).unwrap());
            log.close().await.unwrap();
            let names = std::fs::read_dir(folder.path()).unwrap().count();
            assert!(names < 30, "{names} files");
            queues.push(glommio::executor().all_task_queue_stats(Vec::new()).len());
        }
        assert_eq!(queues.first(), queues.last());
    });
}

#[test]
fn values_of_all_widths_come_back() {
    fn check<V: Record + PartialEq + std::fmt::Debug>(value: V, name: &str) {
        assert_eq!(V::type_name(), name);
        let folder = tempfile::tempdir().unwrap();
        run(async {
            for round in 0..2 {
                let (log, _) = Log::<V>::open(folder.path(), quick()).await.unwrap();
                if round == 0 {
                    drop(log.append(i64::MIN, value.clone()).unwrap());
                    drop(log.append(i64::MAX, value.clone()).unwrap());
                } else {
                    let snapshot = log.snapshot();
                    let wanted = [(i64::MIN, &value), (i64::MAX, &value)];
                    assert!(snapshot.range(..).eq(wanted));
                    log.checkpoint().await.unwrap();
                }
                log.close().await.unwrap();
            }
        });
    }
    check((), "()");
    check(-7_i8, "i8");
    check(true, "bool");
    check(u128::MAX, "u128");
    check(f64::MIN_POSITIVE, "f64");
    check([u16::MAX; 3], "[u16; 3]");
    check((1_u8, (-2_i64, [3_u32; 2])), "(u8, (i64, [u32; 2]))");
    check([9_u8; 60_000], "[u8; 60000]");
}

#[test]
fn wrong_configurations_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = [
        ("wal_file_bytes", quick().wal_file_bytes(1)),
        ("pending_bytes", quick().pending_bytes(1)),
        ("wake_up", quick().wake_up(Duration::ZERO)),
        ("wal_file_bytes", quick().wal_file_bytes(u64::MAX)),
        ("commit_bytes", quick().commit_bytes(0)),
        ("commit_bytes", quick().commit_bytes(usize::MAX)),
        ("pending_bytes", quick().pending_bytes(usize::MAX)),
        ("wake_up", quick().wake_up(Duration::MAX)),
        ("commit_delay", quick().commit_delay(Duration::MAX)),
        ("keep", quick().keep(Duration::ZERO)),
        ("keep_bytes", quick().keep_bytes(1)),
        (
            "page_bytes",
            quick().memory(timelog::Config::default().page_bytes(1)),
        ),
    ];
    for (field, config) in wrong {
        let error = run(Log::<u64>::open(folder.path(), config)).unwrap_err();
        assert!(error.to_string().starts_with(field), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// What was accepted is loaded, whatever may be unflushed; and what is refused now is accepted later.
#[test]
fn a_log_with_a_small_memory_limit_is_opened_again_and_goes_on() {
    for limit in [16, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let memory = timelog::Config::default().memory_limit_bytes(limit);
        let config = quick().memory(memory);
        run(async {
            for life in 0..3 {
                let opened = Log::<u64>::open(folder.path(), config.clone()).await;
                let (log, _) = opened.unwrap();
                assert_eq!(log.snapshot().count(..), 100 * life);
                let mut refused = 0;
                for ts in 0..100 {
                    while let Err(error) = log.append(ts, 0) {
                        let kind = error.error;
                        let is_full = matches!(kind, Error::Write(WriteErrorKind::Full { .. }));
                        assert!(is_full, "{kind}");
                        refused += 1;
                        sleep(Duration::from_millis(1)).await;
                    }
                }
                assert_eq!(refused > 0, limit == 16);
                log.checkpoint().await.unwrap();
                log.close().await.unwrap();
            }
        });
    }
}

/// One that waits for another end does not keep the executor, nor its thread.
#[test]
fn a_pipe_or_a_directory_in_the_place_of_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let open = || run(async { Log::<u64>::open(folder.path(), quick()).await.map(|_| ()) });
    open().unwrap();
    let files = std::fs::read_dir(folder.path()).unwrap();
    let files: Vec<_> = files.map(|it| it.unwrap().path()).collect();
    assert!(files.len() > 2);
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let other = file.with_file_name(format!("other-{name}"));
        std::fs::rename(&file, &other).unwrap();
        for is_pipe in [true, false] {
            if is_pipe {
                let made = std::process::Command::new("mkfifo").arg(&file).status();
                assert!(made.unwrap().success());
            } else {
                std::fs::remove_file(&file).unwrap();
                std::fs::create_dir(&file).unwrap();
            }
            let error = open().unwrap_err();
            assert!(
                matches!(&error, Error::Corrupt { path, .. } if *path == file),
                "{error}"
            );
            let read = run(timelog::durable::read::<u64>(folder.path()));
            assert!(read.is_err());
        }
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&other, &file).unwrap();
    }
    open().unwrap();
}

/// While it is written to, by another handle and another thread.
#[test]
fn a_log_is_read_and_copied_beside_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    run(async {
        let config = quick().wal_file_bytes(256 << 10);
        let (log, _) = Log::<u64>::open(path("log"), config).await.unwrap();
        let mut confirmed = 0;
        for round in 0..30 {
            let rows = (0..2_000).map(|row| (round * 2_000 + row, row as u64));
            confirmed = log.extend(rows).unwrap().await.unwrap().0;
            drop(log.delete(round * 2_000..round * 2_000 + 10).unwrap());
            let path = path("log");
            let reading = std::thread::spawn(move || {
                let read = run(timelog::durable::read::<u64>(path));
                read.unwrap().0.count(..)
            });
            let rows = (0..2_000).map(|row| (1_000_000 + row, row as u64));
            drop(log.extend(rows).unwrap());
            while !reading.is_finished() {
                drop(log.append(2_000_000, 0).unwrap());
                sleep(Duration::from_millis(1)).await;
            }
            let found = reading.join().unwrap();
            assert!(
                found >= log.snapshot().count(..=1_000_000 - 1),
                "{found} in round {round}"
            );
        }
        assert!(confirmed > 0);
        let wanted = log.snapshot();
        let seq = log.backup(path("copy")).await.unwrap();
        let error = log.backup(path("copy")).await.unwrap_err();
        assert!(error.to_string().contains("there is one"), "{error}");
        log.close().await.unwrap();
        let (copy, _) = Log::<u64>::open(path("copy"), quick()).await.unwrap();
        assert_eq!(copy.seq(), seq);
        assert!(copy.snapshot().range(..).eq(wanted.range(..)));
        copy.close().await.unwrap();
        let info = timelog::durable::info(path("copy")).await.unwrap();
        assert_eq!((&info.type_name[..], info.is_closed), ("u64", true));
        assert_eq!(info.last, seq);
    });
}

/// Each way in which a handle can end.
#[test]
fn a_closed_log_says_so() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (log, _) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
        let other = log.clone();
        let commit = log.append(1, 1).unwrap();
        log.close().await.unwrap();
        assert_eq!(commit.await.unwrap().0, 1);
        assert!(matches!(
            other.append(2, 2).unwrap_err().error,
            Error::Closed
        ));
        assert!(matches!(
            other.checkpoint().await.unwrap_err(),
            Error::Closed
        ));
        assert_eq!(other.snapshot().count(..), 1);
        assert!(matches!(other.close().await.unwrap_err(), Error::Closed));
    });
    // The executor ends, and with it what waits.
    let mut commit = None;
    let executor = LocalExecutor::default();
    executor.run(async {
        let (log, _) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
        commit = Some(log.append(2, 2).unwrap());
    });
    drop(executor);
    let outcome = futures_lite::future::block_on(commit.unwrap());
    assert!(matches!(outcome, Ok(_) | Err(Error::Closed)));
}

/// Rows that lie in order in a checkpoint become pages of the log, and are not flushed again.
#[test]
fn rows_in_order_are_recovered_as_pages() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let (log, _) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
        let batches = 0..10;
        for batch in batches {
            let rows = (batch * 10_000..(batch + 1) * 10_000).map(|ts| (ts, ts as u64));
            log.extend(rows).unwrap().await.unwrap();
        }
        drop(log.delete(500..600).unwrap());
        log.checkpoint().await.unwrap();
        log.close().await.unwrap();
        let (log, found) = Log::<u64>::open(folder.path(), quick()).await.unwrap();
        assert_eq!(found.checkpoint_rows, 99_900);
        let memory = log.stats().memory;
        let moved = memory.rows_flushed + memory.memtable_rows as u64;
        assert!(moved < 4096, "{moved} at the end, less than a page");
        let rows = log.snapshot();
        assert_eq!((rows.count(..), rows.count(400..700)), (99_900, 200));
        assert!(rows.range(..).all(|(ts, value)| ts as u64 == *value));
        log.delete(..1_000).unwrap().await.unwrap();
        assert_eq!(log.snapshot().count(..), 99_000);
        log.close().await.unwrap();
    });
}
