//! What a test does while nodes run, and many seeds of it.

use glommio::simulation::{self, FailureKind, Fault, Simulation, SimulationBuilder};

use super::{HOUR, MILLISECOND, SECOND, power_cut};
use crate::common::prelude::*;

fn cut(node: &str) -> Fault {
    power_cut(node, SECOND)
}

#[run_test]
fn a_hook_hears_of_each_start_before_the_node_runs() {
    let log = Log::default();
    let (of_hook, of_node) = (log.clone(), log.clone());
    Simulation::builder()
        .node("a", 2, move || {
            of_node.push(("runs".to_owned(), simulation::starts()));
            pending::<()>()
        })
        .node("b", 1, pending::<()>)
        .on_start(move |name, count| of_hook.push((name.to_owned(), count)))
        .at(SECOND, cut("a"))
        .run_for(5 * SECOND)
        .expect("nothing fails");
    let log = log.take();
    let expected = [
        ("a", 1),
        ("b", 1),
        ("runs", 1),
        ("runs", 1),
        ("a", 2),
        ("runs", 2),
        ("runs", 2),
    ];
    assert!(
        log.iter()
            .map(|(name, count)| (&**name, *count))
            .eq(expected),
        "{log:?}"
    );
}

/// A node that counts seconds.
fn counting(builder: SimulationBuilder, count: &Rc<Cell<u64>>) -> SimulationBuilder {
    let count = Rc::clone(count);
    builder.node("clock", 1, move || {
        let count = Rc::clone(&count);
        async move {
            loop {
                sleep(SECOND).await;
                count.set(count.get() + 1);
            }
        }
    })
}

#[run_test]
fn invariants_are_checked_each_interval_and_change_nothing() {
    let count = Rc::new(Cell::new(0));
    let without = counting(Simulation::builder().seed(1), &count).run_for(10 * SECOND);
    let (checks, seen) = (Rc::new(Cell::new(0)), Rc::clone(&count));
    let counted = Rc::clone(&checks);
    count.set(0);
    let with = counting(Simulation::builder().seed(1), &count)
        .invariant(SECOND / 2, move || {
            counted.set(counted.get() + 1);
            assert!(seen.get() <= 10);
        })
        .run_for(10 * SECOND);
    assert_eq!(
        without.expect("nothing fails").digest(),
        with.expect("nothing fails").digest()
    );
    assert!((10..=21).contains(&checks.get()), "{}", checks.get());
    let limited = |interval, is_panic: bool| {
        let count = Rc::new(Cell::new(0));
        let seen = Rc::clone(&count);
        let check = move || match seen.get() {
            7.. if is_panic => panic!("more than six"),
            7.. => Err("more than six"),
            _ => Ok(()),
        };
        let run = counting(Simulation::builder(), &count).invariant(interval, check);
        run.run_for(10 * SECOND).expect_err("it breaks")
    };
    for (is_panic, text) in [(true, "more than six"), (false, "\"more than six\"")] {
        let failure = limited(SECOND / 3, is_panic);
        assert_eq!(*failure.kind(), FailureKind::Invariant(text.into()));
        assert_eq!(failure.elapsed(), 7 * SECOND, "when it broke");
        let failure = limited(4 * SECOND, is_panic);
        assert_eq!(failure.elapsed(), 7 * SECOND, "nothing has changed since");
        // Also at the end, if there was no time before.
        assert_eq!(
            *limited(HOUR, is_panic).kind(),
            FailureKind::Invariant(text.into())
        );
    }
    let run = Simulation::builder()
        .invariant(std::time::Duration::ZERO, || ())
        .run();
    assert!(matches!(run.unwrap_err().kind(), FailureKind::Setup(_)));
}

#[run_test]
fn a_run_ends_when_what_is_waited_for_is_there_or_its_limit_has_passed() {
    let run = |wanted: u64| {
        let count = Rc::new(Cell::new(0));
        let seen = Rc::clone(&count);
        let simulation =
            counting(Simulation::builder().seed(1), &count).client("stuck", pending::<()>);
        simulation
            .time_limit(60 * SECOND)
            .run_until(move || seen.get() == wanted)
    };
    assert_eq!(run(5).expect("it comes").elapsed(), 5 * SECOND);
    let failure = run(61).unwrap_err();
    assert_eq!(*failure.kind(), FailureKind::NotReached);
    assert_eq!(failure.elapsed(), 60 * SECOND);
    let idle = Simulation::builder()
        .node("idle", 1, pending::<()>)
        .run_until(|| false);
    assert_eq!(*idle.unwrap_err().kind(), FailureKind::NotReached);
}

#[run_test]
fn a_condition_is_asked_after_each_turn_and_may_inject_a_fault() {
    let (count, asked) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (seen, turns) = (Rc::clone(&count), Rc::clone(&asked));
    let report = counting(Simulation::builder().seed(1), &count)
        .run_until(move || {
            turns.set(turns.get() + 1);
            if seen.get() == 3 {
                seen.set(100);
                simulation::inject(SECOND / 2, cut("clock"));
            }
            seen.get() == 105
        })
        .expect("it comes");
    assert_eq!(report.coverage()["power cut"], 1);
    // Three, off for one from the half of the next, and five.
    assert_eq!(report.elapsed(), 9 * SECOND + SECOND / 2);
    assert!(asked.get() > 8);
}

/// Sends to itself through all that may go wrong, and tells each second how much has arrived.
async fn send_and_count(log: Log<(u64, usize)>) -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:7000")?;
    socket.set_read_timeout(Some(50 * MILLISECOND))?;
    loop {
        let mut count = 0;
        for _ in 0..10 {
            socket.send_to(&[1], "echo:7000").await?;
            count += usize::from(socket.recv_from(&mut [0]).await.is_ok());
        }
        log.push((simulation::elapsed().as_secs(), count));
        sleep(SECOND).await;
    }
}

#[test]
fn in_the_calm_nothing_goes_wrong() {
    for seed in 0..rounds(4) as u64 {
        let _watchdog = watchdog();
        let log = Log::default();
        let seen = log.clone();
        let drift = Fault::Drift {
            node: "source".into(),
            ppm: 500_000,
        };
        let is_buggy = Rc::new(Cell::new(false));
        let buggy = Rc::clone(&is_buggy);
        let failure = Simulation::builder()
            .seed(seed)
            .network(|it| it.loss(0.3))
            .disk(|it| it.errors(0.5))
            .node("echo", 1, || async {
                let socket = UdpSocket::bind("0.0.0.0:7000")?;
                loop {
                    let (count, from) = socket.recv_from(&mut [0]).await?;
                    socket.send_to(&[1][..count], from).await?;
                }
                #[allow(unreachable_code, reason = "it has a type")]
                io::Result::Ok(())
            })
            .node("source", 1, move || send_and_count(seen.clone()))
            .client("end", move || {
                let buggy = Rc::clone(&buggy);
                async move {
                    sleep(61 * SECOND).await;
                    for _ in 0..1000 {
                        buggy.set(buggy.get() || glommio::buggify!());
                    }
                    sleep(59 * SECOND).await;
                    Err::<(), _>("it is over")
                }
            })
            .at(10 * SECOND, drift)
            .restarts("echo", 5 * SECOND..10 * SECOND, SECOND..20 * SECOND)
            .pauses("echo", 5 * SECOND..10 * SECOND, SECOND..20 * SECOND)
            .partitions(5 * SECOND..10 * SECOND, SECOND..20 * SECOND)
            .recovers(60 * SECOND, HOUR)
            .run()
            .unwrap_err();
        let calm = failure
            .faults()
            .iter()
            .position(|(_, it)| *it == Fault::Calm);
        let later = &failure.faults()[calm.expect("it has come") + 1..];
        assert!(later.iter().all(|(_, it)| *it == Fault::Heal), "{later:?}");
        let log = log.take();
        let is_whole = |(_, count): &(u64, usize)| *count == 10;
        assert!(!log.iter().take_while(|it| it.0 < 60).all(is_whole));
        let in_the_calm: Vec<_> = log.iter().filter(|it| it.0 > 63).collect();
        assert!(
            in_the_calm.len() > 50 && in_the_calm.iter().all(|it| is_whole(it)),
            "{log:?}"
        );
        assert!(!is_buggy.get());
    }
}

#[run_test]
fn who_does_not_recover_is_found() {
    let run = |waits_for_ever: bool| {
        Simulation::builder()
            .seed(1)
            .node("server", 1, pending::<()>)
            .client("client", move || async move {
                sleep(if waits_for_ever { HOUR } else { 61 * SECOND }).await;
            })
            .recovers(60 * SECOND, 10 * SECOND)
            .run()
    };
    run(false).expect("it recovers");
    let failure = run(true).unwrap_err();
    assert_eq!(
        *failure.kind(),
        FailureKind::Unfinished(vec!["client".into()])
    );
    assert_eq!(failure.elapsed(), 70 * SECOND);
}

/// Fails in every third seed, if the power has been cut twice.
fn fails_now_and_then(
    simulation: SimulationBuilder,
) -> Result<simulation::Report, simulation::Failure> {
    let (starts, is_bad) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(None)));
    simulation
        .seed(12_345)
        .node("server", 1, move || {
            starts.set(starts.get() + 1);
            let (starts, is_bad) = (starts.get(), Rc::clone(&is_bad));
            async move {
                let is_bad = *(is_bad.borrow_mut())
                    .get_or_insert_with(|| glommio::rng_seed().is_multiple_of(3));
                glommio::sometimes!(starts > 2, "two power cuts");
                glommio::sometimes!(starts > 1000, "a thousand power cuts");
                sleep(SECOND).await;
                assert!(!is_bad || starts < 3, "a bug");
                pending::<()>().await;
            }
        })
        .restarts("server", SECOND..20 * SECOND, SECOND..2 * SECOND)
        .run_for(200 * SECOND)
}

#[run_test]
fn many_seeds_have_a_summary_with_the_shortest_plan() {
    let seen = Mutex::new(BTreeSet::new());
    let summary = Simulation::seeds(0..60, |simulation| {
        let run = fails_now_and_then(simulation);
        let seed = run
            .as_ref()
            .map_or_else(|failure| failure.seed(), |report| report.seed());
        seen.lock().expect("nothing panics").insert(seed);
        run
    });
    assert!(
        seen.into_inner()
            .expect("nothing panics")
            .into_iter()
            .eq(0..60),
        "and no other"
    );
    assert_eq!(summary.count(), 60);
    let failed = summary.failed_seeds();
    assert!(
        (8..32).contains(&failed.len()) && failed.is_sorted(),
        "{failed:?}"
    );
    let shortest = summary.shortest().expect("some have failed");
    assert_eq!(shortest.faults().len(), 2, "{shortest}");
    assert!(failed.contains(&shortest.failure().seed()));
    assert_eq!(summary.coverage()["two power cuts"], 60);
    assert_eq!(summary.coverage()["power cut"], 60);
    assert_eq!(
        summary.never().collect::<Vec<_>>(),
        ["a thousand power cuts"]
    );
    let text = summary.to_string();
    for part in [
        "60 seeds, ",
        "GLOMMIO_SEED=",
        "faults suffice",
        "a thousand power cuts: in 0 seeds",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let panics = std::panic::catch_unwind(|| summary.assert_passed());
    assert!(panics.is_err());
    Simulation::seeds(0..5, |it| it.client("client", || sleep(SECOND)).run()).assert_passed();
}

#[run_test(in_child_with(&[("GLOMMIO_SEED", "77")]))]
fn the_seed_of_the_environment_is_run_alone() {
    let run = |simulation: SimulationBuilder| {
        let run = simulation.client("client", || sleep(SECOND)).run();
        assert_eq!(run.as_ref().map(simulation::Report::seed).ok(), Some(77));
        run
    };
    let summary = Simulation::seeds(0..1000, run);
    assert_eq!(summary.count(), 1);
}

/// In the environment it changes nothing where the program has set another one.
#[run_test(in_child)]
fn a_failure_tells_the_seed_as_it_is_to_be_given() {
    let stuck = |simulation: SimulationBuilder| simulation.client("client", pending::<()>).run();
    let told = |simulation| format!("{:?}", stuck(simulation).unwrap_err());
    assert!(told(Simulation::builder().seed(42)).ends_with("to repeat this: .seed(42)"));
    let drawn = told(Simulation::builder());
    let (_, drawn) = drawn.rsplit_once("GLOMMIO_SEED=").expect(&drawn);
    drawn.parse::<u64>().expect("it is a number");
    // Seeds that are run one after the other are those of the environment.
    let summary = Simulation::seeds(0..2, |simulation| stuck(simulation.seed(42)));
    assert!(summary.to_string().contains("GLOMMIO_SEED=0"), "{summary}");
    let minimised = Simulation::minimise(|simulation| stuck(simulation.seed(42))).unwrap_err();
    assert!(minimised.to_string().contains(".seed(42)"), "{minimised}");
}
