//! What a seed decides, whatever ran before it on the thread.

use std::time::SystemTime;

use glommio::select;
use glommio::simulation::{self, Simulation};

use super::{MILLISECOND, SECOND, power_cut};
use crate::common::prelude::*;

/// Which branch came first each time.
fn branches(seed: u64) -> Vec<bool> {
    let log = Log::default();
    let seen = log.clone();
    let client = move || {
        let log = seen.clone();
        async move {
            for _ in 0..20 {
                log.push(select! {
                    _ = ready(()) => true,
                    _ = ready(()) => false,
                });
            }
        }
    };
    let run = Simulation::builder().seed(seed).client("client", client);
    run.run().expect("nothing fails");
    log.take()
}

#[run_test]
fn select_goes_by_the_seed_alone() {
    let first: Vec<_> = (0..50).map(branches).collect();
    for seed in (0..50).rev() {
        assert_eq!(branches(seed), first[seed as usize], "seed {seed} later");
        let alone = std::thread::spawn(move || branches(seed));
        assert_eq!(alone.join().unwrap(), first[seed as usize], "seed {seed}");
    }
    let orders: BTreeSet<_> = first.iter().collect();
    assert!(orders.len() > 40, "seeds give other orders: {orders:?}");
}

#[run_test]
fn executors_have_the_same_ids_in_each_life_of_each_node() {
    let log = Log::default();
    let seen = log.clone();
    let main = move || {
        let log = seen.clone();
        async move { log.push((simulation::starts(), executor().id())) }
    };
    let cut = power_cut("one", SECOND);
    Simulation::builder()
        .node("one", 2, main.clone())
        .node("other", 3, main)
        .at(SECOND, cut)
        .run_for(3 * SECOND)
        .expect("nothing fails");
    let mut ids = log.take();
    ids.sort_unstable();
    let expected = [(1, 1), (1, 1), (1, 2), (1, 2), (1, 3), (2, 1), (2, 2)];
    assert_eq!(ids, expected);
}

/// A deadline in a file, which passes while the node has no power.
#[run_test]
fn the_date_goes_on_while_a_node_is_off_and_drifts_with_its_clock() {
    let dates = |ppm: i32| {
        let log = Log::default();
        let seen = log.clone();
        let node = "one".into();
        Simulation::builder()
            .node("one", 1, move || {
                seen.push(glommio::time::system_now());
                pending::<()>()
            })
            .at(Duration::ZERO, simulation::Fault::Drift { node, ppm })
            .at(SECOND, power_cut("one", 3599 * SECOND))
            .run_for(2 * 3600 * SECOND)
            .expect("nothing fails");
        let dates = log.take();
        assert_eq!(dates.len(), 2);
        (dates[0], dates[1].duration_since(dates[0]).unwrap())
    };
    let new_year = SystemTime::UNIX_EPOCH + 1_577_836_800 * SECOND;
    assert_eq!(dates(0), (new_year, 3600 * SECOND));
    assert_eq!(dates(1_000_000), (new_year, 7200 * SECOND));
}

#[run_test]
fn a_node_that_is_off_for_longer_than_it_runs_returns_each_time() {
    let log = Log::default();
    let seen = log.clone();
    Simulation::builder()
        .node("server", 1, move || {
            seen.push(simulation::elapsed());
            pending::<()>()
        })
        .restarts("server", SECOND..2 * SECOND, 5 * SECOND..10 * SECOND)
        .run_for(600 * SECOND)
        .expect("nothing fails");
    let starts = log.take();
    // A life and the time without power take 6 to 12 s.
    assert!(
        (50..=101).contains(&starts.len()),
        "{} starts",
        starts.len()
    );
    for (one, next) in starts.iter().zip(&starts[1..]) {
        assert!(*next - *one >= 6 * SECOND, "it ran, and was off");
    }
}

async fn echo() -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7000")?;
    let mut stream = listener.accept().await?;
    let mut buffer = [0; 1024];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

/// How many of `rounds` answers to messages of 100 bytes came in parts.
fn answers_in_parts(split: f64, rounds: usize) -> usize {
    let log = Log::default();
    let seen = log.clone();
    let ask = move || {
        let log = seen.clone();
        async move {
            sleep(MILLISECOND).await;
            let mut stream = TcpStream::connect("server:7000").await?;
            for round in 0..rounds {
                let message = [round as u8; 100];
                stream.write_all(&message).await?;
                let mut answer = Vec::new();
                let mut reads = 0;
                while answer.len() < message.len() {
                    let mut buffer = [0; 100];
                    let count = stream.read(&mut buffer).await?;
                    assert_ne!(count, 0, "the server has not ended");
                    answer.extend_from_slice(&buffer[..count]);
                    reads += 1;
                }
                assert_eq!(answer, message);
                log.push(reads > 1);
            }
            stream.close().await
        }
    };
    let run = Simulation::builder()
        .seed(7)
        .network(|network| network.split(split))
        .node("server", 1, echo)
        .client("client", ask)
        .run();
    run.expect("nothing fails");
    log.take().into_iter().filter(|it| *it).count()
}

#[run_test]
fn a_reader_gets_a_part_of_little_data_by_chance() {
    assert_eq!(answers_in_parts(0.0, 200), 0);
    let parts = answers_in_parts(1.0 / 16.0, 200);
    assert!((1..200).contains(&parts), "{parts} of 200");
}

fn is_buggified(seed: u64) -> usize {
    let log = Log::default();
    let seen = log.clone();
    let client = move || {
        let log = seen.clone();
        async move {
            for _ in 0..100 {
                if glommio::buggify!(0.5) {
                    log.push(());
                }
            }
        }
    };
    let run = Simulation::builder().seed(seed).client("client", client);
    run.run().expect("nothing fails");
    log.take().len()
}

#[run_test]
fn places_for_faults_are_active_in_some_seeds_and_the_same_each_time() {
    let counts: Vec<_> = (0..200).map(is_buggified).collect();
    assert!(
        counts
            .iter()
            .eq(&(0..200).map(is_buggified).collect::<Vec<_>>())
    );
    let active = counts.iter().filter(|it| **it > 0).count();
    // A quarter, of which each has a half of 100.
    assert!((25..=80).contains(&active), "{active} of 200");
    assert!(counts.iter().all(|it| *it == 0 || (20..=80).contains(it)));
    assert!(!glommio::buggify!(1.0), "no simulation runs");
}
