//! The process dies at any operation of the disk, or its power fails: what is found afterwards.
//!
//! `TIMELOG_CRASHES=1000 cargo test --release -p timelog --features durable --lib power` has as many
//! histories of several crashes each. `TIMELOG_SEED` is the first one.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;

use super::super::copy::read_in;
use super::super::disk::Folder;
use super::super::simulation::{Call, Disk};
use super::super::{Config, Error, Log};
use super::model::Model;
use super::{cases, open, rows, run, settle, small};

/// Crashes of one history.
const LIVES: usize = 6;
const ACTIONS: usize = 120;

struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TIMELOG_SEED={} TIMELOG_CRASHES=1", self.0);
        }
    }
}

fn config(random: &mut Rng) -> Config {
    let delays = [Duration::ZERO, Duration::from_micros(200)];
    small()
        .wal_file_bytes(4096 * random.u64(2..8))
        .commit_delay(delays[random.usize(..2)])
        .commit_bytes(random.usize(100..5000))
}

/// Opens the log, holds it against the model, and works until the disk dies.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "lives come one after the other"
)]
async fn live(disk: Rc<Disk>, model: &RefCell<Model>, config: Config, mut random: Rng) -> Log<u64> {
    let (log, _) = open(&disk, config).await.expect("a crash is no damage");
    let mut model = model.borrow_mut();
    model.recovered(&log);
    for _ in 0..ACTIONS {
        model.act(&log, &mut random).await;
        model.look().await;
    }
    if random.bool() {
        log.clone().close().await.expect("nothing fails");
        model.confirmed = model.last();
    }
    log
}

/// How often it died, and how much was confirmed.
fn histories(
    crashes: std::ops::Range<u64>,
    crash: impl Fn(&Disk, u64) -> Rc<Disk>,
) -> (usize, u64) {
    let (mut deaths, mut confirmed) = (0, 0);
    for seed in crashes {
        let _seed = Seed(seed);
        let mut random = Rng::with_seed(seed);
        let mut disk = Disk::new(seed);
        let model = RefCell::new(Model::default());
        for _ in 0..LIVES {
            // Early, so that opening is hit, or late.
            let most = [30, 200, 800][random.usize(..3)];
            disk.dies_after(random.u64(1..most));
            let (config, random) = (config(&mut random), random.fork());
            let lived = run(disk.run(live(Rc::clone(&disk), &model, config, random)));
            deaths += usize::from(lived.is_none());
            disk = crash(&disk, seed);
        }
        // Twice, and with a crash in between.
        for _ in 0..2 {
            let opened = run(open(&disk, small())).expect("a crash is no damage");
            model.borrow_mut().recovered(&opened.0);
            disk = crash(&disk, seed);
        }
        confirmed += model.borrow().confirmed;
    }
    (deaths, confirmed)
}

#[test]
fn what_was_confirmed_is_there_after_a_power_cut() {
    let (deaths, confirmed) = histories(cases(20), |disk, seed| disk.after_power_cut(seed));
    println!("{deaths} power cuts, {confirmed} operations confirmed");
    assert!(deaths > 0 && confirmed > 0);
}

#[test]
fn what_was_confirmed_is_there_after_a_kill() {
    let (deaths, confirmed) = histories(cases(20), |disk, seed| disk.after_kill(seed));
    println!("{deaths} kills, {confirmed} operations confirmed");
    assert!(deaths > 0 && confirmed > 0);
}

/// A process is killed, the next one reads what has not reached the device yet, and then the power
/// fails.
#[test]
fn what_was_recovered_is_there_after_a_power_cut() {
    let (deaths, confirmed) = histories(cases(20), |disk, seed| {
        if Rng::with_seed(seed ^ disk.calls()).bool() {
            disk.after_kill(seed)
        } else {
            disk.after_power_cut(seed)
        }
    });
    println!("{deaths} crashes, {confirmed} operations confirmed");
    assert!(deaths > 0 && confirmed > 0);
}

/// The next process finds what was written and not synced, and may have shown it to others.
#[test]
fn what_was_found_once_stays() {
    for seed in 0..8 {
        let disk = Disk::new(seed);
        run(async {
            let (log, _) = open(&disk, small()).await.expect("it is new");
            disk.fails_after(Call::Sync, 0, ErrorKind::Other);
            let commit = log.append(1, 1).expect("it is open");
            commit.await.expect_err("it was not synced");
        });
        let disk = disk.after_kill(seed);
        let (log, _) = run(open(&disk, small())).expect("a crash is no damage");
        assert_eq!(log.seq().0, 1);
        let disk = disk.after_power_cut(seed);
        let (log, _) = run(open(&disk, small())).expect("a crash is no damage");
        assert_eq!(log.seq().0, 1);
    }
}

/// Logs that are closed and opened again show the same, whatever was done.
#[test]
fn a_reopened_log_shows_what_was_accepted() {
    for seed in cases(60) {
        let _seed = Seed(seed);
        let mut random = Rng::with_seed(seed);
        let disk = Disk::new(seed);
        let model = RefCell::new(Model::default());
        for _ in 0..5 {
            let config = config(&mut random);
            let random = random.fork();
            let accepted = run(async {
                let log = live(Rc::clone(&disk), &model, config, random).await;
                let accepted = log.seq().0;
                // It may be closed.
                let closed = log.close().await;
                assert!(matches!(closed, Ok(()) | Err(Error::Closed)), "{closed:?}");
                accepted
            });
            model.borrow_mut().confirmed = accepted;
        }
        let opened = run(open(&disk, small())).expect("it was closed");
        model.borrow_mut().recovered(&opened.0);
    }
}

/// A sync that began before a group was written makes nothing of it durable, though it ends after.
#[test]
fn groups_in_flight_are_confirmed_by_their_own_sync() {
    for seed in 0..40 {
        let disk = Disk::new(seed);
        let confirmed = Cell::new(0);
        run(disk.run(async {
            let config = small().wal_file_bytes(1 << 20).commit_bytes(100);
            let (log, _) = open(&disk, config).await.expect("it is new");
            settle(&log).await;
            disk.dies_after(10 + seed);
            loop {
                let group = |ts| log.extend(vec![(ts, 0); 8]).expect("it is open");
                let commits: Vec<_> = (0..8).map(group).collect();
                for commit in commits {
                    confirmed.set(commit.await.expect("nothing fails").0);
                }
            }
        }));
        for cut in 0..6 {
            let disk = disk.after_power_cut(cut);
            let (log, _) = run(open(&disk, small())).expect("a crash is no damage");
            let found = log.seq().0;
            assert!(found >= confirmed.get(), "{found} of {}", confirmed.get());
        }
    }
}

/// A delete of rows that recovery loads as pages hides those before it, and none after it.
#[test]
fn a_delete_between_rows_in_order_stays_between_them() {
    let disk = Disk::new(1);
    run(async {
        let (log, _) = open(&disk, small()).await.expect("it is new");
        drop(log.extend((0..8).map(|ts| (ts, 0))).expect("it is open"));
        drop(log.delete(2..).expect("it is open"));
        drop(log.extend((8..16).map(|ts| (ts, 1))).expect("it is open"));
        log.close().await.expect("nothing fails");
    });
    let (log, _) = run(open(&disk, small())).expect("it was closed");
    let found: Vec<_> = rows(&log).into_iter().map(|row| row.0).collect();
    let wanted: Vec<_> = (0..2).chain(8..16).collect();
    assert_eq!(found, wanted);
}

/// It is seen that it is none.
#[test]
fn a_backup_that_was_cut_short_is_no_log() {
    let disk = Disk::new(1);
    let (mut whole, mut none) = (0, 0);
    for calls in (1..30).step_by(2) {
        let copy = Disk::new(calls);
        copy.dies_after(calls);
        let (is_done, wanted) = run(async {
            let (log, _) = open(&disk, small()).await.expect("it is whole");
            drop(
                log.extend((0..200).map(|ts| (ts, calls)))
                    .expect("it is open"),
            );
            let folder = Folder::simulated(Rc::clone(&copy));
            let done = copy.run(log.backup_in(&folder)).await;
            let wanted = rows(&log);
            log.close().await.expect("nothing fails");
            (done.is_some(), wanted)
        });
        let folder = Folder::simulated(copy.after_power_cut(calls));
        match run(read_in::<u64>(&folder)) {
            Ok((snapshot, _)) => {
                let found = snapshot.range(..).map(|(ts, value)| (ts, *value));
                assert!(found.eq(wanted));
                whole += 1;
            }
            Err(error) => {
                assert!(!is_done, "it was confirmed: {error}");
                none += 1;
            }
        }
    }
    assert!(whole > 0 && none > 0, "{whole} whole, {none} none");
}
