//! Faults that happen again and again: at which moments, and which of them in a seed.

use glommio::io::rename;
use glommio::simulation::{self, Fault, Simulation, SimulationBuilder};

use super::{HOUR, MILLISECOND, SECOND};
use crate::common::prelude::*;

/// What a node has done last, and when; noted as it loses its power.
struct Last {
    what: Cell<(&'static str, Duration)>,
    at_cut: Log<(&'static str, Duration)>,
}

impl Last {
    fn set(&self, what: &'static str) {
        self.what.set((what, simulation::elapsed()));
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        let (what, since) = self.what.get();
        self.at_cut.push((what, simulation::elapsed() - since));
    }
}

/// Rests for most of the time, and each second does something that may be interrupted.
async fn works_now_and_then(last: Last) -> io::Result<()> {
    let file = BufferedFile::create("/data").await?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    loop {
        last.set("rest");
        sleep(SECOND).await;
        last.set("write");
        file.write_at(vec![1; 5000], 0).await?;
        last.set("rest");
        sleep(SECOND).await;
        last.set("sync");
        file.fdatasync().await?;
        last.set("synced");
        sleep(SECOND).await;
        BufferedFile::create("/new").await?.close().await?;
        last.set("rest");
        sleep(SECOND).await;
        rename("/new", "/old").await?;
        last.set("renamed");
        sleep(SECOND).await;
        socket.send_to(&[1], "10.0.0.1:9").await?;
        last.set("sent");
        sleep(SECOND).await;
    }
}

#[test]
fn power_cuts_come_within_operations_and_right_after_them() {
    let at_cut = Log::default();
    let seeds = rounds(4);
    for seed in 0..seeds as u64 {
        let _watchdog = watchdog();
        let log = at_cut.clone();
        let main = move || {
            works_now_and_then(Last {
                what: Cell::new(("start", Duration::ZERO)),
                at_cut: log.clone(),
            })
        };
        Simulation::builder()
            .seed(seed)
            .node("server", 1, main)
            .restarts("server", 20 * SECOND..60 * SECOND, SECOND..2 * SECOND)
            .run_for(HOUR)
            .expect("nothing fails");
    }
    let mut cuts = BTreeMap::new();
    let all = at_cut.take();
    for (what, since) in &all {
        let is_right_after = *since <= 2 * MILLISECOND;
        let what = if is_right_after { what } else { "rest" };
        *cuts.entry(what).or_insert(0) += 1;
    }
    assert!((60 * seeds..180 * seeds).contains(&all.len()), "{cuts:?}");
    // All of them together take a thousandth of the time.
    for what in ["write", "sync", "synced", "renamed", "sent"] {
        let count = cuts.get(what).copied().unwrap_or_default();
        assert!(count > all.len() / 20, "{what}: {cuts:?}");
    }
    assert!(cuts["rest"] > all.len() / 20, "and at any time: {cuts:?}");
}

/// Three nodes that send to each other, and fail after some time.
fn group(builder: SimulationBuilder) -> SimulationBuilder {
    let node = || async {
        let socket = UdpSocket::bind("0.0.0.0:7000")?;
        let mut buffer = [0; 8];
        socket.set_read_timeout(Some(SECOND / 10))?;
        let file = BufferedFile::create("/data").await?;
        for round in 0_u64..60 {
            sleep(SECOND).await;
            for other in ["a", "b", "c"] {
                let sent = socket.send_to(&round.to_le_bytes(), (other, 7000)).await;
                sent.map(drop)?;
            }
            while socket.recv_from(&mut buffer).await.is_ok() {}
            file.write_at(buffer.to_vec(), 0).await?;
            file.fdatasync().await?;
        }
        Err(io::Error::other("it is over"))
    };
    let builder = builder.network(|it| it.loss(0.1).latency(MILLISECOND..5 * MILLISECOND));
    builder
        .node("a", 1, node)
        .node("b", 1, node)
        .node("c", 1, node)
}

/// The same faults at the same times, without the chance that they came by: all else is the same.
#[run_test]
fn faults_that_came_by_chance_do_the_same_if_they_are_planned() {
    for seed in 0..10 {
        let by_chance = group(Simulation::builder().seed(seed))
            .restarts("a", 10 * SECOND..40 * SECOND, SECOND..2 * SECOND)
            .pauses("b", SECOND..9 * SECOND, SECOND / 10..2 * SECOND)
            .partitions(SECOND..9 * SECOND, SECOND / 10..2 * SECOND)
            .run()
            .expect_err("it ends with an error");
        let faults = by_chance.faults().to_vec();
        let of_kind = |is: fn(&Fault) -> bool| faults.iter().filter(|(_, it)| is(it)).count();
        assert!(of_kind(|it| matches!(it, Fault::Pause { .. })) > 3);
        let partitions = of_kind(|it| matches!(it, Fault::Partition { .. }));
        let healed = of_kind(|it| matches!(it, Fault::Heal));
        assert!(partitions > 3 && (partitions - 1..=partitions).contains(&healed));
        let mut planned = group(Simulation::builder().seed(seed));
        for (at, fault) in faults {
            planned = planned.at(at, fault);
        }
        let planned = planned.run().expect_err("it ends with an error");
        assert_eq!(planned.digest(), by_chance.digest(), "seed {seed}");
    }
}

#[run_test]
fn a_partition_has_nodes_on_both_sides() {
    let failure = group(Simulation::builder().seed(1))
        .partitions(SECOND..2 * SECOND, SECOND..2 * SECOND)
        .run()
        .expect_err("it ends with an error");
    let mut sides = BTreeSet::new();
    for (_, fault) in failure.faults() {
        if let Fault::Partition { groups } = fault {
            assert!(groups.iter().all(|it| !it.is_empty()), "{groups:?}");
            assert_eq!(groups.iter().flatten().count(), 3, "{groups:?}");
            sides.extend(groups.iter().cloned());
        }
    }
    assert!(sides.len() >= 6, "each node is cut off: {sides:?}");
}

/// Whether datagrams from one node to another get lost.
fn are_some_lost(seed: u64) -> bool {
    let count = Rc::new(Cell::new(0));
    let counted = Rc::clone(&count);
    Simulation::builder()
        .seed(seed)
        .swarm(true)
        .network(|it| it.loss(0.5))
        .node("sink", 1, move || {
            let counted = Rc::clone(&counted);
            async move {
                let socket = UdpSocket::bind("0.0.0.0:7000")?;
                while socket.recv_from(&mut [0]).await.is_ok() {
                    counted.set(counted.get() + 1);
                }
                io::Result::Ok(())
            }
        })
        .client("source", || async {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            for _ in 0..50 {
                sleep(MILLISECOND).await;
                socket.send_to(&[1], "sink:7000").await?;
            }
            sleep(SECOND).await;
            io::Result::Ok(())
        })
        .run()
        .expect("nothing fails");
    count.get() < 50
}

/// With some of what can go wrong left out, in each seed another part.
#[test]
fn a_swarm_leaves_out_kinds_of_faults() {
    let mut kinds = BTreeSet::new();
    for seed in 0..rounds(12) as u64 {
        let _watchdog = watchdog();
        let run = || {
            group(Simulation::builder().seed(seed).swarm(true))
                .restarts("a", 10 * SECOND..20 * SECOND, SECOND..2 * SECOND)
                .pauses("b", SECOND..9 * SECOND, SECOND / 10..2 * SECOND)
                .run()
                .expect_err("it ends with an error")
        };
        let failure = run();
        assert_eq!(failure.digest(), run().digest(), "seed {seed} again");
        let has = |is: fn(&Fault) -> bool| failure.faults().iter().any(|(_, it)| is(it));
        let is_cut = has(|it| matches!(it, Fault::PowerCut { .. }));
        let is_paused = has(|it| matches!(it, Fault::Pause { .. }));
        kinds.insert((is_cut, is_paused));
    }
    assert_eq!(kinds.len(), 4, "none, each, and both: {kinds:?}");
    let lossy: BTreeSet<_> = (0..10).map(are_some_lost).collect();
    assert_eq!(lossy.len(), 2, "with loss and without");
}
