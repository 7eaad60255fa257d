//! Disks whose operations fail.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future::poll_once;
use glommio::simulation::{self, Fault, Simulation, SimulationBuilder, inject, starts};
use glommio::timer::sleep;
use timelog::durable::{Config, Error};

use super::{MILLISECOND, open, opened, read_files, rows, run, run_on, settle, small, write_files};

const HOUR: Duration = Duration::from_secs(3600);

/// With files that do not become full, and maintenance only when it is woken.
fn quiet() -> Config {
    small().wal_file_bytes(8 << 20).wake_up(HOUR)
}

/// With a disk that loses what was not synced, of which so many operations fail from [`FAILS_AT`] on.
fn failing(seed: u64, rate: f64) -> SimulationBuilder {
    let disk = simulation::Disk::default();
    let disk = disk.lost_unsynced(true).errors(rate);
    let node = "log".to_owned();
    let fault = Fault::DiskChange { node, disk };
    let simulation = Simulation::builder().seed(seed);
    let simulation = simulation.disk(|disk| disk.lost_unsynced(true));
    simulation.at(FAILS_AT, fault)
}

const FAILS_AT: Duration = Duration::from_secs(1);

/// The operation of the first failure, which it is of.
fn poisoned(error: &Error) -> &'static str {
    match error {
        Error::Poisoned { cause } => match &**cause {
            Error::Io { operation, .. } => operation,
            _ => panic!("{error}"),
        },
        _ => panic!("{error}"),
    }
}

/// A sync that failed is not tried again: it would succeed, and what it was for is lost.
#[test]
fn after_a_failed_write_or_sync_nothing_is_accepted() {
    let mut failed = Vec::new();
    for seed in 0..16 {
        let (confirmed, what) = (Rc::new(Cell::new(0)), Rc::new(Cell::new("")));
        let of_first = Rc::clone(&what);
        let main = move || {
            let (confirmed, what) = (Rc::clone(&confirmed), Rc::clone(&what));
            async move {
                if starts() == 2 {
                    let (log, _) = open(small()).await.unwrap();
                    let found = log.seq().0;
                    assert!((confirmed.get()..=confirmed.get() + 1).contains(&found));
                    return;
                }
                // Without maintenance, which has operations of its own.
                let (log, _) = open(quiet()).await.unwrap();
                sleep(FAILS_AT - MILLISECOND * (seed as u32 % 5)).await;
                let error = loop {
                    let commit = log.append(confirmed.get() as i64, confirmed.get()).unwrap();
                    match commit.await {
                        Ok(seq) => confirmed.set(seq.0),
                        Err(error) => break error,
                    }
                };
                what.set(poisoned(&error));
                inject(Duration::ZERO, Fault::Calm);
                sleep(MILLISECOND).await;
                let refused = log.append(0, 7).expect_err("it takes no more");
                assert_eq!(refused.rejected, 7);
                assert_eq!(poisoned(&refused.error), what.get());
                let error = log.sync().await.expect_err("nothing is synced again");
                assert_eq!(poisoned(&error), what.get());
                assert_eq!(rows(&log).len() as u64, confirmed.get() + 1, "reads go on");
                let error = log.close().await.expect_err("it says so");
                assert_eq!(poisoned(&error), what.get());
                let (node, off_for) = ("log".to_owned(), MILLISECOND);
                inject(Duration::ZERO, Fault::PowerCut { node, off_for });
                sleep(HOUR).await;
            }
        };
        run_on(failing(seed, 0.5), main);
        failed.push(of_first.get());
    }
    assert!(
        failed.contains(&"write") && failed.contains(&"sync"),
        "{failed:?}"
    );
}

/// All that waits for a group that fails is told, that of the next group too.
#[test]
fn every_commit_that_waits_is_told_of_a_failure() {
    run_on(failing(1, 1.0), || async {
        let (log, _) = open(quiet()).await.unwrap();
        sleep(FAILS_AT).await;
        let mut commits = Vec::new();
        while let Ok(commit) = log.append(0, 0) {
            commits.push(commit);
            sleep(Duration::from_micros(1)).await;
        }
        assert!(
            commits.len() > 1,
            "the second came before the first had failed"
        );
        for commit in commits {
            let error = commit.await.expect_err("it failed");
            assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        }
    });
}

/// Without descriptors no checkpoint is written and no file begun: the one that is open grows.
#[test]
fn without_descriptors_nothing_is_lost() {
    let files = run(1, || async {
        let (log, _) = open(small()).await.unwrap();
        let (node, length) = ("log".to_owned(), HOUR);
        inject(Duration::ZERO, Fault::NoDescriptors { node, length });
        for ts in 0..100 {
            log.append(ts, 0).unwrap().await.unwrap();
        }
        let error = log
            .checkpoint()
            .await
            .expect_err("there are no descriptors");
        assert!(error.to_string().contains("Too many open files"), "{error}");
        let error = log.stats().maintenance_error.expect("it tried");
        assert!(error.to_string().starts_with("cannot "), "{error}");
        let opened = open(small())
            .await
            .expect_err("there are none for it either");
        assert!(
            opened.to_string().starts_with("cannot open /log: "),
            "{opened}"
        );
        inject(Duration::ZERO, Fault::Calm);
        sleep(MILLISECOND).await;
        log.checkpoint().await.unwrap();
        settle().await;
        assert!(log.stats().maintenance_error.is_none());
        log.close().await.unwrap();
        read_files().await
    });
    let (found, recovery) = opened(&files).unwrap();
    assert_eq!(found.len(), 100);
    assert!(recovery.checkpoint_rows >= 100, "{recovery:?}");
}

#[test]
fn a_failure_while_opening_changes_nothing() {
    let files = run(1, || async {
        let (log, _) = open(small()).await.unwrap();
        for ts in 0..200 {
            log.append(ts, 0).unwrap().await.unwrap();
        }
        settle().await;
        read_files().await
    });
    let mut failed = Vec::new();
    for seed in 0..100 {
        let files = files.clone();
        failed.extend(run_on(failing(seed, 0.05), move || {
            let files = files.clone();
            async move {
                write_files(&files).await;
                sleep(FAILS_AT).await;
                let (node, length) = ("log".to_owned(), MILLISECOND);
                let delay = Duration::from_micros(300 * seed);
                inject(delay, Fault::NoDescriptors { node, length });
                let failed = open(small()).await.err().map(|error| match error {
                    Error::Io { operation, .. } => operation,
                    _ => panic!("{error}"),
                });
                inject(Duration::ZERO, Fault::Calm);
                settle().await;
                let (log, _) = open(small()).await.unwrap();
                assert_eq!(rows(&log).len(), 200);
                failed
            }
        }));
    }
    assert!((10..100).contains(&failed.len()), "{failed:?}");
    for operation in ["open", "create", "read", "write", "sync"] {
        assert!(failed.contains(&operation), "{operation} of {failed:?}");
    }
}

#[test]
fn a_commit_that_is_dropped_loses_nothing() {
    let files = run(1, || async {
        let (log, _) = open(small()).await.unwrap();
        for ts in 0..50 {
            let mut commit = log.append(ts, 0).unwrap();
            for _ in 0..ts % 3 {
                assert!(poll_once(&mut commit).await.is_none_or(|it| it.is_ok()));
            }
            drop(commit);
        }
        // The handle as well: the log closes itself.
        drop(log);
        settle().await;
        read_files().await
    });
    assert_eq!(opened(&files).unwrap().0.len(), 50);
}

/// The group waits for its delay or its size, whichever is first, and no group waits for `sync`.
#[test]
fn a_group_waits_for_its_delay_or_its_size() {
    let syncs_take = 10 * MILLISECOND;
    let simulation = Simulation::builder().seed(1);
    let simulation = simulation.disk(|disk| disk.sync_latency(syncs_take..=syncs_take));
    run_on(simulation, move || async move {
        let (log, _) = open(quiet().commit_delay(HOUR).commit_bytes(1000))
            .await
            .unwrap();
        settle().await;
        let mut commit = log.append(0, 0).unwrap();
        sleep(HOUR / 2).await;
        assert!(
            poll_once(&mut commit).await.is_none(),
            "it waits for others"
        );
        let large = log.extend((0..100).map(|ts| (ts, 0))).unwrap();
        let start = simulation::elapsed();
        large.await.unwrap();
        commit.await.unwrap();
        let took = simulation::elapsed() - start;
        assert!((syncs_take..3 * syncs_take).contains(&took), "{took:?}");
        drop(log.append(0, 0).unwrap());
        sleep(5 * MILLISECOND).await;
        let start = simulation::elapsed();
        log.sync().await.unwrap();
        let took = simulation::elapsed() - start;
        assert!(
            (syncs_take..2 * syncs_take).contains(&took),
            "one write and one sync, {took:?}"
        );
        let waiting = log.append(0, 0).unwrap();
        sleep(HOUR).await;
        waiting.await.unwrap();
        let waiting = log.append(0, 0).unwrap();
        log.close().await.unwrap();
        waiting.await.unwrap();
    });
}

#[test]
fn what_waits_for_the_device_is_bounded() {
    run(1, || async {
        let (log, _) = open(quiet().pending_bytes(4 << 10)).await.unwrap();
        let refused = log.extend((0..1000).map(|ts| (ts, 0))).unwrap_err();
        assert_eq!(refused.rejected.len(), 1000);
        assert!(matches!(refused.error, Error::Busy { .. }), "{refused}");
        let mut accepted = 0;
        while log.append(accepted, 0).is_ok() {
            accepted += 1;
        }
        assert!((100..1000).contains(&accepted), "{accepted}");
        log.sync().await.unwrap();
        drop(log.append(accepted, 0).expect("there is space again"));
        let found = rows(&log).len() as i64;
        assert_eq!(found, accepted + 1, "a refused write changes nothing");
    });
}
