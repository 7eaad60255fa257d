//! How a simulation fails, and what it tells.

use std::future::pending;

use futures_lite::future::yield_now;
use glommio::simulation::{self, FailureKind, Fault, Simulation};
use glommio::timer::sleep;
use glommio::{executor, spawn_local};

use super::{HOUR, SECOND};
use crate::common::watchdog;

fn kind_of(builder: glommio::simulation::SimulationBuilder) -> (FailureKind, Option<String>) {
    let failure = builder.run().expect_err("it fails");
    (failure.kind().clone(), failure.node().map(str::to_owned))
}

#[test]
fn a_panic_is_told_with_its_node_time_and_seed() {
    let _watchdog = watchdog();
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
        "GLOMMIO_SEED=42",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(failure.digest(), fails().digest());
}

#[test]
fn an_error_that_is_returned_is_a_failure() {
    let _watchdog = watchdog();
    let failed = kind_of(Simulation::builder().client("client", || async { Err::<(), _>("no") }));
    let error = FailureKind::Error("\"no\"".into());
    assert_eq!(failed, (error, Some("client".into())));
}

#[test]
fn a_wait_for_what_never_comes_is_found() {
    let _watchdog = watchdog();
    let failed = kind_of(Simulation::builder().client("client", pending::<()>));
    assert_eq!(failed, (FailureKind::NothingLeft, None));
}

#[test]
fn a_loop_that_waits_for_nothing_is_found() {
    let _watchdog = watchdog();
    let failed = kind_of(Simulation::builder().client("client", || async {
        let limit = glommio::time::now() + SECOND;
        while glommio::time::now() < limit {
            yield_now().await;
        }
    }));
    assert_eq!(failed, (FailureKind::Busy, None));
}

#[test]
fn what_cannot_be_set_up_is_named() {
    let _watchdog = watchdog();
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
    let cut = |node: &str| Fault::PowerCut {
        node: node.into(),
        off_for: SECOND,
    };
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

#[test]
fn a_simulation_inside_of_one_is_refused_and_the_outer_one_tells() {
    let _watchdog = watchdog();
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

#[test]
fn a_panicking_destructor_at_the_end_is_not_lost_in_an_abort() {
    let _watchdog = watchdog();
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

#[test]
fn a_blocking_call_that_panics_panics_where_it_is_awaited() {
    let _watchdog = watchdog();
    let (kind, _) = kind_of(Simulation::builder().client("client", || async {
        executor().spawn_blocking(|| panic!("in a call")).await;
    }));
    assert_eq!(kind, FailureKind::Panic("in a call".into()));
}
