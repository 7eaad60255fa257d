//! The node loses its power, or the process is killed, in the middle of anything: what is found afterwards.
//!
//! `TIMELOG_CRASHES=1000 cargo test --release -p timelog --features simulation --test simulated power` has as many
//! histories of several crashes each. `TIMELOG_SEED` is the first one.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use futures_lite::future::poll_once;
use glommio::simulation::{Fault, Simulation, SimulationBuilder, inject, starts};
use glommio::spawn_local;
use glommio::timer::sleep;
use timelog::durable::{Config, Error, Log, Mesh, Sharded, info, read};

use super::model::Model;
use super::{
    MILLISECOND, PATH, WAL_BYTES, cases, open, read_files, rows, run, run_on, settle, small,
};

const ACTIONS: usize = 120;

fn config(random: &mut Rng) -> Config {
    let delays = [Duration::ZERO, Duration::from_micros(200)];
    small()
        .wal_file_bytes(4096 * random.u64(2..8))
        .commit_delay(delays[random.usize(..2)])
        .commit_bytes(random.usize(100..5000))
}

/// Opens the log, holds it against the model, and works with it.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "lives come one after the other"
)]
async fn live(model: &RefCell<Model>, random: &mut Rng) -> Log<u64> {
    let (log, _) = open(config(random)).await.expect("a crash is no damage");
    let mut model = model.borrow_mut();
    model.recovered(&log);
    for _ in 0..ACTIONS {
        model.act(&log, random).await;
        model.look().await;
    }
    if random.bool() {
        log.clone().close().await.expect("nothing fails");
        model.confirmed = model.last();
    }
    log
}

/// Lives that end in the middle of anything, on disks that lose what was not synced.
fn histories(crashes: impl Fn(SimulationBuilder) -> SimulationBuilder + Sync) {
    let summary = Simulation::seeds(cases(6), |simulation| {
        let model = Rc::new(RefCell::new(Model::default()));
        let seen = Rc::clone(&model);
        let main = move || {
            let model = Rc::clone(&model);
            async move {
                let mut random = Rng::with_seed(glommio::rng_seed());
                loop {
                    drop(live(&model, &mut random).await);
                }
            }
        };
        let run = crashes(simulation.disk(|disk| disk.lost_unsynced(true)));
        let run = run.node("log", 1, main).run_for(400 * MILLISECOND);
        assert!(run.is_err() || seen.borrow().confirmed > 0);
        run
    });
    println!("{summary}");
    summary.assert_passed();
}

const BETWEEN: std::ops::Range<Duration> = MILLISECOND..Duration::from_millis(100);
const OFF: std::ops::Range<Duration> = MILLISECOND..Duration::from_millis(5);

#[test]
fn what_was_confirmed_is_there_after_a_power_cut() {
    histories(|it| {
        it.disk(|disk| disk.torn_writes(true))
            .restarts("log", BETWEEN, OFF)
    });
}

/// A process is killed, the next one reads what has not reached the device yet, and then the power
/// fails.
#[test]
fn what_was_confirmed_is_there_after_a_kill() {
    histories(|it| {
        it.kills("log", BETWEEN, OFF)
            .restarts("log", 2 * BETWEEN.start..2 * BETWEEN.end, OFF)
    });
}

/// Of each writer there is a prefix that has all that was confirmed, also in the middle of checkpoints, copies, closing
/// and opening.
#[test]
fn what_shards_confirmed_is_there_after_a_power_cut() {
    let summary = Simulation::seeds(cases(6), |simulation| {
        let confirmed = Rc::new(RefCell::new([0; 2]));
        let (seen, meshes) = (
            Rc::clone(&confirmed),
            Rc::new(RefCell::new(BTreeMap::new())),
        );
        let main = move || {
            let (confirmed, meshes) = (Rc::clone(&confirmed), Rc::clone(&meshes));
            async move {
                for life in 0.. {
                    let mesh = meshes
                        .borrow_mut()
                        .entry((starts(), life))
                        .or_insert_with(|| Mesh::new(2))
                        .clone();
                    live_on_shards(mesh, life, &confirmed).await;
                }
            }
        };
        let simulation = simulation.disk(|disk| disk.lost_unsynced(true).torn_writes(true));
        let simulation = simulation
            .node("log", 2, main)
            .restarts("log", BETWEEN, OFF);
        let run = simulation.run_for(400 * MILLISECOND);
        assert!(run.is_err() || *seen.borrow() > [0; 2]);
        run
    });
    println!("{summary}");
    summary.assert_passed();
}

async fn live_on_shards(mesh: Mesh<[u64; 2]>, life: u64, confirmed: &RefCell<[u64; 2]>) {
    let opened = Sharded::open(mesh, PATH, small()).await;
    let (log, _) = opened.expect("a crash is no damage");
    let least = *confirmed.borrow();
    let all = log.snapshots().await.expect("both are there");
    let counts = [0, 1].map(|writer| {
        let rows = all.range(..).map(|row| *row.1);
        let numbers = rows.filter(|row| row[0] == writer).map(|row| row[1]);
        let count = numbers.clone().count() as u64;
        assert!(numbers.eq(0..count), "something is missing");
        count
    });
    assert!(
        counts[0] >= least[0] && counts[1] >= least[1],
        "{counts:?} of {least:?}"
    );
    let writer = log.shard_id();
    let mut commits = VecDeque::new();
    for number in counts[writer]..counts[writer] + 60 {
        let key = (writer as u64).to_le_bytes();
        let commit = log
            .append(key, number as i64, [writer as u64, number])
            .await;
        commits.push_back(commit.expect("both are there"));
        if number % 3 == 0 {
            commits
                .pop_front()
                .expect("there is one")
                .await
                .expect("nothing fails");
            confirmed.borrow_mut()[writer] = number + 1 - commits.len() as u64;
        }
    }
    for commit in commits {
        commit.await.expect("nothing fails");
    }
    match life % 3 {
        0 => log.log().checkpoint().await.expect("nothing fails"),
        1 if writer == 0 => {
            let copy = format!("/copy-{}-{life}", starts());
            log.backup(copy).await.expect("nothing fails");
        }
        _ => {}
    }
    log.close().await.expect("nothing fails");
}

/// The next process finds what was written and not synced, and may have shown it to others.
#[test]
fn what_was_found_once_stays() {
    for seed in 0..8 {
        let simulation = Simulation::builder().seed(seed).disk(|disk| {
            let second = 1000 * MILLISECOND;
            disk.lost_unsynced(true).sync_latency(second..=second)
        });
        let found = run_on(simulation, || async {
            let (log, _) = open(small()).await.expect("a crash is no damage");
            if starts() == 1 {
                let mut commit = log.append(1, 1).expect("it is open");
                sleep(500 * MILLISECOND).await;
                assert!(poll_once(&mut commit).await.is_none(), "it is not synced");
                let (node, off_for) = ("log".to_owned(), MILLISECOND);
                inject(Duration::ZERO, Fault::Kill { node, off_for });
                sleep(MILLISECOND).await;
            }
            assert_eq!(log.seq().0, 1);
            if starts() == 2 {
                let (node, off_for) = ("log".to_owned(), MILLISECOND);
                inject(Duration::ZERO, Fault::PowerCut { node, off_for });
                sleep(MILLISECOND).await;
            }
            starts()
        });
        assert_eq!(found, 3);
    }
}

/// A process is killed that has replaced the manifest, which is not durable yet; the next one loses the
/// power while it opens the log.
#[test]
fn what_is_not_listed_is_removed_when_that_is_durable() {
    const SYNC: Duration = Duration::from_secs(1);
    for seed in 0..50 {
        let simulation = Simulation::builder().seed(seed);
        let simulation = simulation.disk(|disk| disk.lost_unsynced(true).sync_latency(SYNC..=SYNC));
        let found = run_on(simulation, move || async move {
            let (node, off_for) = ("log".to_owned(), MILLISECOND);
            if starts() == 2 {
                let node = node.clone();
                let delay = SYNC * seed as u32 / 8;
                inject(delay, Fault::PowerCut { node, off_for });
            }
            let opened = open(small().wake_up(SYNC)).await;
            let (log, _) = opened.expect("a crash is no damage");
            if starts() == 1 {
                for ts in 0..2 {
                    let commit = log.append(ts, 0).expect("it is open");
                    commit.await.expect("nothing fails");
                    sleep(20 * SYNC).await;
                    // The second one takes the place of the first one.
                    let edition = async || info(PATH).await.expect("it is there").edition;
                    let before = edition().await;
                    let log = log.clone();
                    let written = spawn_local(async move { log.checkpoint().await });
                    while ts == 1 && edition().await == before {
                        sleep(SYNC / 10).await;
                    }
                    if ts == 1 {
                        let node = node.clone();
                        inject(Duration::ZERO, Fault::Kill { node, off_for });
                    }
                    written.await.expect("nothing fails");
                }
            }
            if starts() < 3 {
                sleep(20 * SYNC).await;
            }
            rows(&log).len()
        });
        assert_eq!(found, 2);
    }
}

/// Logs that are closed and opened again show the same, whatever was done.
#[test]
fn a_reopened_log_shows_what_was_accepted() {
    for seed in cases(4) {
        run(seed, move || async move {
            let (mut random, model) = (Rng::with_seed(seed), RefCell::new(Model::default()));
            for _ in 0..5 {
                let log = live(&model, &mut random).await;
                let accepted = log.seq().0;
                // It may be closed.
                let closed = log.close().await;
                assert!(matches!(closed, Ok(()) | Err(Error::Closed)), "{closed:?}");
                model.borrow_mut().confirmed = accepted;
            }
            let (log, _) = open(small()).await.expect("it was closed");
            model.borrow_mut().recovered(&log);
        });
    }
}

/// A sync that began before a group was written makes nothing of it durable, though it ends after.
#[test]
fn groups_in_flight_are_confirmed_by_their_own_sync() {
    for seed in 0..8 {
        let confirmed = Rc::new(Cell::new(0));
        let main = move || {
            let confirmed = Rc::clone(&confirmed);
            async move {
                let config = small().wal_file_bytes(1 << 20).commit_bytes(100);
                let (log, _) = open(config).await.expect("a crash is no damage");
                let found = log.seq().0;
                assert!(found >= confirmed.get(), "{found} of {}", confirmed.get());
                loop {
                    let group = |ts| log.extend(vec![(ts, 0); 8]).expect("it is open");
                    let commits: Vec<_> = (0..8).map(group).collect();
                    for commit in commits {
                        confirmed.set(commit.await.expect("nothing fails").0);
                    }
                }
            }
        };
        let simulation = Simulation::builder().seed(seed).node("log", 1, main);
        let simulation = simulation.disk(|disk| disk.lost_unsynced(true));
        let run = simulation.restarts("log", 10 * MILLISECOND..20 * MILLISECOND, OFF);
        run.run_for(60 * MILLISECOND)
            .unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// A delete of rows that recovery loads as pages hides those before it, and none after it.
#[test]
fn a_delete_between_rows_in_order_stays_between_them() {
    run(1, || async {
        let (log, _) = open(small()).await.expect("it is new");
        drop(log.extend((0..8).map(|ts| (ts, 0))).expect("it is open"));
        drop(log.delete(2..).expect("it is open"));
        drop(log.extend((8..16).map(|ts| (ts, 1))).expect("it is open"));
        log.close().await.expect("nothing fails");
        let (log, _) = open(small()).await.expect("it was closed");
        let found = rows(&log).into_iter().map(|row| row.0);
        assert!(found.eq((0..2).chain(8..16)));
    });
}

/// It is seen that it is none.
#[test]
fn a_backup_that_was_cut_short_is_no_log() {
    let (mut whole, mut none) = (0, 0);
    for seed in 0..20 {
        let is_done = Rc::new(Cell::new(false));
        let simulation = Simulation::builder().seed(seed);
        let simulation = simulation.disk(|disk| disk.lost_unsynced(true).torn_writes(true));
        let is_whole = run_on(simulation, move || {
            let is_done = Rc::clone(&is_done);
            async move {
                let (log, _) = open(small()).await.expect("a crash is no damage");
                if starts() == 1 {
                    let added = log
                        .extend((0..200).map(|ts| (ts, seed)))
                        .expect("it is open");
                    added.await.expect("nothing fails");
                    settle().await;
                    let (node, off_for) = ("log".to_owned(), MILLISECOND);
                    inject(
                        Duration::from_micros(500 * seed),
                        Fault::PowerCut { node, off_for },
                    );
                    log.backup("/copy").await.expect("nothing fails");
                    is_done.set(true);
                    std::future::pending::<()>().await;
                }
                match read::<u64>("/copy").await {
                    Ok((snapshot, _)) => {
                        assert!(snapshot.range(..).eq(log.snapshot().range(..)));
                        true
                    }
                    Err(error) => {
                        assert!(!is_done.get(), "it was confirmed: {error}");
                        false
                    }
                }
            }
        });
        whole += u32::from(is_whole);
        none += u32::from(!is_whole);
    }
    assert!(whole > 0 && none > 0, "{whole} whole, {none} none");
}

/// One that no other was ready to relieve, or that a large batch went to, does not take its space forever.
#[test]
fn a_file_that_has_grown_is_not_used_again() {
    async fn longest() -> usize {
        let files = read_files().await.into_iter();
        let wals = files.filter(|(name, _)| name.starts_with("wal"));
        wals.map(|(_, bytes)| bytes.len()).max().unwrap_or(0)
    }
    run(1, || async {
        let (log, _) = open(small()).await.unwrap();
        settle().await;
        log.extend((0..4000).map(|ts| (ts, 0)))
            .unwrap()
            .await
            .unwrap();
        assert!(longest().await > 3 * WAL_BYTES, "it goes to one file");
        for ts in 4000..4020 {
            log.append(ts, 0).unwrap().await.unwrap();
            settle().await;
        }
        let longest = longest().await;
        assert!(longest <= 2 * WAL_BYTES, "{longest}");
        assert_eq!(rows(&log).len(), 4020);
        log.close().await.unwrap();
    });
}
