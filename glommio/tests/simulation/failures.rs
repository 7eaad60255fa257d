//! How a simulation fails, and what it tells.

use std::sync::mpsc::{Receiver, Sender};

use glommio::simulation::{
    self, Failure, FailureKind, Fault, Network, Report, Simulation, SimulationBuilder,
};

use super::{HOUR, SECOND, power_cut};
use crate::common::aborts_in_child;
use crate::common::prelude::*;

fn kind_of(builder: glommio::simulation::SimulationBuilder) -> (FailureKind, Option<String>) {
    let failure = builder.run().expect_err("it fails");
    (failure.kind().clone(), failure.node().map(str::to_owned))
}

#[run_test]
fn a_panic_is_told_with_its_node_time_and_seed() {
    let fails = || {
        Simulation::builder()
            .seed(42)
            .node("idle", 1, pending::<()>)
            .client("broken", || async {
                simulation::note("so far so good");
                sleep(SECOND).await;
                spawn_local(async { panic!("as planned") }).await;
            })
            .run()
            .expect_err("it panics")
    };
    let failure = fails();
    assert_eq!(*failure.kind(), FailureKind::Panic("as planned".into()));
    assert_eq!(failure.node(), Some("broken"));
    assert_eq!((failure.seed(), failure.elapsed()), (42, SECOND));
    let text = failure.to_string();
    for part in [
        "so far so good",
        "broken panicked: as planned",
        "to repeat this: .seed(42)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(failure.digest(), fails().digest());
}

#[run_test]
fn the_trace_names_nodes_paths_addresses_and_packets() {
    let failure = Simulation::builder()
        .seed(1)
        .node("server", 1, || async {
            let listener = TcpListener::bind("0.0.0.0:7000")?;
            let _stream = listener.accept().await?;
            pending::<io::Result<()>>().await
        })
        .client("client", || async {
            let file = BufferedFile::create("/journal").await?;
            file.write_at(vec![1; 1000], 0).await?;
            file.fdatasync().await?;
            let mut stream = TcpStream::connect("server:7000").await?;
            stream.write_all(&[1; 100]).await?;
            sleep(SECOND).await;
            BufferedFile::open("/missing").await?;
            Ok::<_, GlommioError<()>>(())
        })
        .run()
        .expect_err("a file is missing");
    let text = failure.to_string();
    for parts in [
        &["client", "open /journal begins"][..],
        &["client", "write /journal, 1000 bytes: 1000"],
        &["client", "sync /journal: 0"],
        &["client", "syn from", ":7000, 0 bytes: delivered"],
        &["client", "tcp from", "to server", "100 bytes: sent"],
        &["client", "open /missing: No such file or directory"],
    ] {
        let has_all = |line: &str| parts.iter().all(|part| line.contains(part));
        assert!(text.lines().any(has_all), "{parts:?}: {text}");
    }
}

#[run_test]
fn an_error_that_is_returned_is_a_failure() {
    let failed = kind_of(Simulation::builder().client("client", || async { Err::<(), _>("no") }));
    let error = FailureKind::Error("\"no\"".into());
    assert_eq!(failed, (error, Some("client".into())));
}

#[run_test]
fn a_wait_for_what_never_comes_is_found() {
    let failed = kind_of(Simulation::builder().client("client", pending::<()>));
    assert_eq!(failed, (FailureKind::NothingLeft, None));
}

#[run_test]
fn a_loop_that_waits_for_nothing_is_found() {
    let failed = kind_of(Simulation::builder().client("client", || async {
        let limit = glommio::time::now() + SECOND;
        while glommio::time::now() < limit {
            yield_now().await;
        }
    }));
    assert_eq!(failed, (FailureKind::Busy, None));
}

#[run_test]
fn a_loop_over_loopback_is_no_loop_that_waits_for_nothing() {
    const ROUNDS: usize = 30_000;
    let talks = || async {
        let listener = TcpListener::bind("127.0.0.1:7000")?;
        let echo = spawn_local(async move {
            let mut stream = listener.accept().await?;
            let mut byte = [0];
            while stream.read(&mut byte).await? == 1 {
                stream.write_all(&byte).await?;
            }
            Ok::<_, io::Error>(())
        });
        let mut stream = TcpStream::connect("127.0.0.1:7000").await?;
        for _ in 0..ROUNDS {
            stream.write_all(&[7]).await?;
            stream.read_exact(&mut [0]).await?;
        }
        stream.close().await?;
        echo.await
    };
    let run = Simulation::builder().client("client", talks).run();
    run.expect("each round is an operation that ends");
    let few = Simulation::builder().client("client", talks).busy_after(10);
    assert_eq!(kind_of(few), (FailureKind::Busy, None));
}

#[run_test]
fn a_client_that_does_not_end_is_a_failure_that_names_it() {
    let ticks = || async {
        loop {
            sleep(20 * SECOND).await;
        }
    };
    let stuck = || {
        Simulation::builder()
            .node("server", 1, ticks)
            .client("done", || async {})
            .client("stuck", ticks)
    };
    let unfinished = (FailureKind::Unfinished(vec!["stuck".into()]), None);
    assert_eq!(kind_of(stuck().time_limit(HOUR)), unfinished);
    assert_eq!(kind_of(stuck()), unfinished, "within a day");
    let failure = stuck().run_for(60 * SECOND).expect_err("it is not over");
    assert_eq!(*failure.kind(), unfinished.0);
    assert_eq!(failure.elapsed(), 60 * SECOND);
    let told = failure.to_string();
    assert!(told.contains("clients have not ended: stuck"), "{told}");
    if cfg!(feature = "debugging") {
        let stuck = failure.waiting().iter();
        let stuck: Vec<_> = stuck
            .filter(|it| it.starts_with("stuck, shard 0"))
            .collect();
        assert_eq!(stuck.len(), 1, "{told}");
    }
}

#[run_test]
fn what_cannot_be_set_up_is_named() {
    let says =
        |builder: glommio::simulation::SimulationBuilder, part: &str| match kind_of(builder).0 {
            FailureKind::Setup(text) => assert!(text.contains(part), "{part}: {text}"),
            other => panic!("{other:?}"),
        };
    let idle = pending::<()>;
    says(
        Simulation::builder().node("a", 1, idle).node("a", 1, idle),
        "two nodes",
    );
    says(Simulation::builder().node("a", 0, idle), "at least one");
    let cut = |node: &str| power_cut(node, SECOND);
    says(
        Simulation::builder()
            .at(SECOND, cut("b"))
            .node("a", 1, idle),
        "no node \"b\"",
    );
    says(
        Simulation::builder()
            .node("a", 1, idle)
            .restarts("a", SECOND..SECOND, SECOND..HOUR),
        "empty range",
    );
    says(
        Simulation::builder().client("a", move || async move {
            simulation::inject(SECOND, cut("nowhere"));
            sleep(HOUR).await;
        }),
        "no node \"nowhere\"",
    );
    let drifts = Fault::Drift {
        node: "a".into(),
        ppm: i32::MIN,
    };
    says(
        Simulation::builder()
            .client("a", || sleep(HOUR))
            .at(SECOND, drifts),
        "ppm",
    );
}

#[run_test]
fn a_failure_before_the_start_names_no_seed_to_repeat_it_with() {
    let setup = Simulation::builder().seed(42).node("a", 0, pending::<()>);
    let failure = setup.run().expect_err("it has no shard");
    assert_eq!(failure.seed(), 0);
    let text = failure.to_string();
    assert!(text.ends_with("give it at least one"), "{text}");
}

#[run_test]
fn a_link_with_numbers_out_of_range_is_named() {
    let wrong = [
        (Network::default().loss(2.0), "from 0 to 1, not 2"),
        (Network::default().loss(f64::NAN), "from 0 to 1, not NaN"),
        (Network::default().latency(SECOND..SECOND / 2), "1s..500ms"),
    ];
    for (network, part) in wrong {
        let link = Fault::Link {
            from: "a".into(),
            to: "b".into(),
            network,
        };
        let setup = || Simulation::builder().node("b", 1, pending::<()>);
        let planned = setup().client("a", || async {}).at(HOUR, link.clone());
        let injected = setup().client("a", move || {
            simulation::inject(SECOND, link.clone());
            sleep(HOUR)
        });
        for builder in [planned, injected] {
            match kind_of(builder).0 {
                FailureKind::Setup(text) => assert!(text.contains(part), "{part}: {text}"),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[run_test]
fn a_simulation_inside_of_one_is_refused_and_the_outer_one_tells() {
    let (kind, node) = kind_of(Simulation::builder().client("outer", || async {
        let _ = Simulation::builder().client("inner", || async {}).run();
    }));
    let FailureKind::Panic(text) = kind else {
        panic!("{kind:?}");
    };
    assert!(
        text.contains("simulation is running on this thread already"),
        "{text}"
    );
    assert_eq!(node.as_deref(), Some("outer"));
}

#[run_test]
fn a_panicking_destructor_at_the_end_is_not_lost_in_an_abort() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a destructor");
        }
    }
    // At the end all that is left is dropped, which is not a part of what is simulated.
    Simulation::builder()
        .node("idle", 1, || async {
            let _bomb = Bomb;
            pending::<()>().await;
        })
        .client("client", || sleep(SECOND))
        .run()
        .expect("the clients are over by then");
}

#[run_test]
fn a_blocking_call_that_panics_panics_where_it_is_awaited() {
    let (kind, _) = kind_of(Simulation::builder().client("client", || async {
        executor().spawn_blocking(|| panic!("in a call")).await;
    }));
    assert_eq!(kind, FailureKind::Panic("in a call".into()));
}

/// A server that fails when it starts for the third time, with faults of all kinds.
fn fails_at_the_third_start(simulation: SimulationBuilder) -> Result<Report, Failure> {
    let starts = Rc::new(Cell::new(0));
    let pause = |node: &str| Fault::Pause {
        node: node.into(),
        length: SECOND,
    };
    simulation
        .seed(7)
        .node("other", 1, pending::<()>)
        .node("server", 1, move || {
            starts.set(starts.get() + 1);
            let starts = starts.get();
            async move {
                sleep(SECOND).await;
                if starts == 3 {
                    Err("the third start")
                } else {
                    Ok(())
                }
            }
        })
        .client("client", move || async move {
            for _ in 0..10 {
                sleep(SECOND).await;
                simulation::inject(SECOND / 2, pause("server"));
            }
            sleep(HOUR).await;
        })
        .at(3 * SECOND, pause("other"))
        .at(4 * SECOND, Fault::Heal)
        .restarts("other", SECOND..2 * SECOND, SECOND..2 * SECOND)
        .restarts("server", 2 * SECOND..20 * SECOND, SECOND..2 * SECOND)
        .run()
}

#[run_test]
fn the_faults_that_suffice_for_a_failure_are_found() {
    let first = fails_at_the_third_start(Simulation::builder()).expect_err("it fails");
    let minimised = Simulation::minimise(fails_at_the_third_start).expect_err("it fails");
    assert_eq!(minimised.of(), first.faults().len());
    assert!(minimised.of() > 10 && minimised.runs() > 1);
    let cuts_server =
        |fault: &Fault| matches!(fault, Fault::PowerCut { node, .. } if node == "server");
    let faults = minimised.faults();
    assert!(
        faults.len() == 2 && faults.iter().all(|(_, it)| cuts_server(it)),
        "{faults:?}"
    );
    assert_eq!(minimised.failure().kind(), first.kind());
    assert_eq!(minimised.failure().faults(), faults);
    let text = minimised.to_string();
    assert!(
        text.contains(&format!("2 of {} faults suffice", minimised.of())),
        "{text}"
    );
}

#[run_test]
fn a_failure_without_faults_needs_none_and_a_success_is_one() {
    let minimised = Simulation::minimise(|simulation| {
        simulation
            .client("client", || async {
                sleep(10 * SECOND).await;
                Err::<(), _>("at any rate")
            })
            .node("node", 1, pending::<()>)
            .restarts("node", SECOND..2 * SECOND, SECOND..2 * SECOND)
            .run()
    });
    let minimised = minimised.expect_err("it fails");
    assert!(minimised.of() > 0 && minimised.faults().is_empty());
    assert_eq!(minimised.runs(), 2);
    let report =
        Simulation::minimise(|simulation| simulation.client("client", || sleep(SECOND)).run());
    assert_eq!(report.expect("nothing fails").elapsed(), SECOND);
}

/// The simulation cannot go on, nor say so.
#[test]
fn a_blocking_call_that_waits_for_another_one_is_told_with_that_one() {
    let told = aborts_in_child(|| {
        let client = || async {
            let (to_one, one) = mpsc::channel();
            let (to_other, other) = mpsc::channel();
            let meets = |to: Sender<()>, from: Receiver<()>| {
                executor().spawn_blocking(move || {
                    // One that has waited in vain is gone.
                    let _ = to.send(());
                    // Longer than it takes to be told.
                    from.recv_timeout(15 * SECOND).is_ok()
                })
            };
            let [one, other] = [meets(to_other, one), meets(to_one, other)].map(spawn_local);
            assert_ne!(one.await, other.await, "one of them comes later");
        };
        let run = Simulation::builder().seed(42).client("client", client);
        run.run().expect("it goes on in the end");
        std::process::abort();
    });
    for part in [
        "has not returned for 5s",
        "it cannot wait for ",
        "The seed is 42",
        " on client",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}
