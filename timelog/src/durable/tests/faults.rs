//! A disk whose operations fail.

use std::io::ErrorKind;
use std::time::Duration;

use futures_lite::future::poll_once;
use glommio::timer::sleep;

use super::super::simulation::{Call, Disk};
use super::super::{Config, Error};
use super::{open, rows, run, settle, small};

/// With files that do not become full, and maintenance only when it is woken.
fn quiet() -> Config {
    small()
        .wal_file_bytes(8 << 20)
        .wake_up(Duration::from_secs(3600))
}

/// Whether it is of the first failure, and names what failed.
fn is_poisoned(error: &Error, what: &str) -> bool {
    let Error::Poisoned { cause } = error else {
        return false;
    };
    matches!(&**cause, Error::Io { operation, .. } if *operation == what)
}

#[test]
fn after_a_failed_write_or_sync_nothing_is_accepted() {
    for (call, what) in [(Call::Write, "write"), (Call::Sync, "sync")] {
        for calls in 0..6 {
            let disk = Disk::new(calls);
            let confirmed = run(async {
                // Without maintenance, which has operations of its own.
                let (log, _) = open(&disk, quiet()).await.unwrap();
                settle(&log).await;
                disk.fails_after(call, calls, ErrorKind::StorageFull);
                let mut confirmed = 0;
                let error = loop {
                    let commit = log.append(confirmed as i64, confirmed).unwrap();
                    match commit.await {
                        Ok(seq) => confirmed = seq.0,
                        Err(error) => break error,
                    }
                };
                assert_eq!(confirmed, calls, "the others were not affected");
                assert!(is_poisoned(&error, what), "{error}");
                let refused = log.append(0, 7).expect_err("it takes no more");
                assert_eq!(refused.rejected, 7);
                assert!(is_poisoned(&refused.error, what), "{}", refused.error);
                let error = log.sync().await.expect_err("nothing is synced again");
                assert!(is_poisoned(&error, what), "{error}");
                assert_eq!(rows(&log).len() as u64, confirmed + 1, "reads go on");
                sleep(Duration::from_millis(5)).await;
                assert_eq!(disk.failed(), 1, "it is not tried again");
                let error = log.close().await.expect_err("it says so");
                assert!(is_poisoned(&error, what), "{error}");
                confirmed
            });
            let disk = disk.after_power_cut(calls);
            let (log, _) = run(open(&disk, small())).unwrap();
            let found = log.seq().0;
            assert!((confirmed..=confirmed + 1).contains(&found), "{found}");
        }
    }
}

/// All that waits for a group that fails is told, that of the next group too.
#[test]
fn every_commit_that_waits_is_told_of_a_failure() {
    run(async {
        let disk = Disk::new(1);
        let (log, _) = open(&disk, quiet()).await.unwrap();
        disk.fails_after(Call::Sync, 0, ErrorKind::Other);
        let mut commits = Vec::new();
        while let Ok(commit) = log.append(0, 0) {
            commits.push(commit);
            glommio::executor().yield_now().await;
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
    let disk = Disk::new(1);
    run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        disk.fails_after(Call::Open, 0, ErrorKind::Other);
        for ts in 0..100 {
            log.append(ts, 0).unwrap().await.unwrap();
        }
        let error = log
            .checkpoint()
            .await
            .expect_err("there are no descriptors");
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let error = log.stats().maintenance_error.expect("it tried");
        assert!(error.to_string().starts_with("cannot "), "{error}");
        disk.heals();
        log.checkpoint().await.unwrap();
        sleep(Duration::from_millis(20)).await;
        assert!(log.stats().maintenance_error.is_none());
        log.close().await.unwrap();
    });
    let (log, found) = run(open(&disk, small())).unwrap();
    assert_eq!(rows(&log).len(), 100);
    assert!(found.checkpoint_rows >= 100, "{found:?}");
}

#[test]
fn a_failure_while_opening_changes_nothing() {
    let disk = Disk::new(1);
    run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        for ts in 0..200 {
            log.append(ts, 0).unwrap().await.unwrap();
        }
    });
    for call in [Call::Open, Call::Read, Call::Write, Call::Sync, Call::Names] {
        for calls in 0.. {
            let disk = disk.after_kill(calls);
            disk.fails_after(call, calls, ErrorKind::PermissionDenied);
            let opened = run(async { open(&disk, small()).await.map(|_| ()) });
            let is_over = opened.is_ok();
            if let Err(error) = opened {
                assert!(
                    matches!(error, Error::Io { .. }),
                    "{call:?} {calls}: {error}"
                );
            }
            disk.heals();
            let (log, _) = run(open(&disk, small())).unwrap();
            assert_eq!(rows(&log).len(), 200, "{call:?} {calls}");
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_commit_that_is_dropped_loses_nothing() {
    let disk = Disk::new(1);
    run(async {
        let (log, _) = open(&disk, small()).await.unwrap();
        for ts in 0..50 {
            let mut commit = log.append(ts, 0).unwrap();
            for _ in 0..ts % 3 {
                assert!(poll_once(&mut commit).await.is_none_or(|it| it.is_ok()));
            }
            drop(commit);
        }
        // The handle as well: the log closes itself.
        drop(log);
        sleep(Duration::from_millis(20)).await;
    });
    let (log, _) = run(open(&disk, small())).unwrap();
    assert_eq!(rows(&log).len(), 50);
}

/// The group waits for its delay or its size, whichever is first, and no group waits for `sync`.
#[test]
fn a_group_waits_for_its_delay_or_its_size() {
    run(async {
        let disk = Disk::new(1);
        let config = quiet()
            .commit_delay(Duration::from_secs(3600))
            .commit_bytes(1000);
        let (log, _) = open(&disk, config).await.unwrap();
        settle(&log).await;
        let calls = disk.calls();
        let mut commit = log.append(0, 0).unwrap();
        sleep(Duration::from_millis(5)).await;
        assert!(poll_once(&mut commit).await.is_none());
        assert_eq!(disk.calls(), calls, "it waits for others");
        let large = log.extend((0..100).map(|ts| (ts, 0))).unwrap();
        large.await.unwrap();
        commit.await.unwrap();
        assert_eq!(disk.calls(), calls + 4, "too much for one group");
        drop(log.append(0, 0).unwrap());
        sleep(Duration::from_millis(5)).await;
        log.sync().await.unwrap();
        assert_eq!(disk.calls(), calls + 6, "one write and one sync");
        let waiting = log.append(0, 0).unwrap();
        log.close().await.unwrap();
        waiting.await.unwrap();
    });
}

#[test]
fn what_waits_for_the_device_is_bounded() {
    run(async {
        let disk = Disk::new(1);
        let config = quiet().pending_bytes(4 << 10);
        let (log, _) = open(&disk, config).await.unwrap();
        let refused = log.extend((0..1000).map(|ts| (ts, 0))).unwrap_err();
        assert_eq!(refused.rejected.len(), 1000);
        assert!(
            matches!(refused.error, Error::Busy { .. }),
            "{}",
            refused.error
        );
        let mut accepted = 0;
        while log.append(accepted, 0).is_ok() {
            accepted += 1;
        }
        assert!((100..1000).contains(&accepted), "{accepted}");
        log.sync().await.unwrap();
        drop(log.append(accepted, 0).expect("there is space again"));
        assert_eq!(
            rows(&log).len() as i64,
            accepted + 1,
            "a refused write changes nothing"
        );
    });
}
