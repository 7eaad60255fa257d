//! A durable log in simulations, on a node that loses its power.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use glommio::simulation::Simulation;
use glommio::timer::sleep;
use timelog::durable::{Config, Log};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// One life of a node: appends rows, whose timestamps count up, until the power goes off.
async fn append(confirmed: Rc<Cell<usize>>, is_synced: bool) -> Result<(), String> {
    let config = Config::default().commit_delay(MILLISECOND);
    let opened = Log::<u64>::open("/ticks", config).await;
    let (log, _) = opened.map_err(|error| format!("opening: {error}"))?;
    let snapshot = log.snapshot();
    let mut count = 0;
    for (ts, value) in snapshot.range(..) {
        if (ts, *value) != (count as i64, count as u64 * 3) {
            return Err(format!("row {count} is {ts}, {value}"));
        }
        count += 1;
    }
    drop(snapshot);
    if count < confirmed.get() {
        return Err(format!("{} confirmed, and {count} there", confirmed.get()));
    }
    loop {
        let mut commit = None;
        for _ in 0..10 {
            let appended = log.append(count as i64, count as u64 * 3);
            commit = Some(appended.map_err(|refused| refused.to_string())?);
            count += 1;
        }
        if let Some(commit) = commit.filter(|_| is_synced) {
            commit.await.map_err(|error| error.to_string())?;
        } else {
            sleep(MILLISECOND).await;
        }
        // Without waiting for the commit, that is not true yet.
        confirmed.set(count);
    }
}

fn append_with_power_cuts(seed: u64, is_synced: bool) -> Result<(u64, usize), String> {
    let confirmed = Rc::new(Cell::new(0));
    let kept = Rc::clone(&confirmed);
    let simulation = Simulation::builder()
        .seed(seed)
        .disk(|disk| disk.lost_unsynced(true).torn_writes(true))
        .node("store", 1, move || append(Rc::clone(&kept), is_synced))
        .restarts(
            "store",
            50 * MILLISECOND..500 * MILLISECOND,
            MILLISECOND..100 * MILLISECOND,
        );
    match simulation.run_for(3 * SECOND) {
        Ok(report) => Ok((report.digest(), confirmed.get())),
        Err(failure) => Err(failure.to_string()),
    }
}

#[test]
fn a_durable_log_has_what_it_has_confirmed() {
    for seed in 0..2 {
        let run = || append_with_power_cuts(seed, true).unwrap_or_else(|text| panic!("{text}"));
        let (digest, confirmed) = run();
        assert!(confirmed > 300, "{confirmed}");
        assert_eq!(run(), (digest, confirmed), "seed {seed} again");
    }
    let found = (0..20).any(|seed| append_with_power_cuts(seed, false).is_err());
    assert!(found, "what is not awaited is not durable");
}
