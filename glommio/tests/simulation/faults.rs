//! What happens to nodes: power cuts, pauses, clocks that drift.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use glommio::simulation::{self, Fault, Simulation};
use glommio::timer::sleep;
use glommio::{executor, spawn_local, time};

use super::{HOUR, Log, MILLISECOND, SECOND};
use crate::common::watchdog;

#[test]
fn a_node_whose_power_is_cut_starts_again_and_its_tasks_are_gone() {
    let _watchdog = watchdog();
    let log = Log::new();
    let seen = log.clone();
    let cut = Fault::PowerCut {
        node: "server".into(),
        off_for: 3 * SECOND,
    };
    Simulation::builder()
        .node("server", 2, move || {
            let log = seen.clone();
            async move {
                log.add(("start", simulation::elapsed()));
                spawn_local(sleep(HOUR)).detach();
                sleep(10 * SECOND).await;
                log.add(("end", simulation::elapsed()));
            }
        })
        .at(5 * SECOND, cut)
        .run_for(HOUR)
        .expect("nothing fails");
    let at = |what, seconds| (what, seconds * SECOND);
    let expected = [
        ("start", 0),
        ("start", 0),
        ("start", 8),
        ("start", 8),
        ("end", 18),
        ("end", 18),
    ];
    assert_eq!(
        log.take(),
        expected.map(|(what, seconds)| at(what, seconds))
    );
}

#[test]
fn destructors_run_at_a_power_cut_and_a_panic_of_one_harms_nothing() {
    let _watchdog = watchdog();
    struct Counts(Rc<Cell<u32>>, bool);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(!self.1, "a destructor that panics");
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let counted = Rc::clone(&dropped);
    Simulation::builder()
        .node("server", 1, move || {
            let panicking = Counts(Rc::clone(&counted), true);
            let other = Counts(Rc::clone(&counted), false);
            async move {
                let _kept = (panicking, other);
                pending::<()>().await;
            }
        })
        .restarts("server", SECOND..2 * SECOND, SECOND..2 * SECOND)
        .run_for(60 * SECOND)
        .expect("nothing fails");
    assert!(
        dropped.get() >= 2 * 15,
        "some twenty restarts: {}",
        dropped.get()
    );
}

/// A call on another thread ends with its node: what it does later has no effect.
#[test]
fn a_blocking_call_goes_with_the_power() {
    let _watchdog = watchdog();
    for seed in 0..20 {
        let made = Rc::new(Cell::new(0));
        let count = Rc::clone(&made);
        let cut = Fault::PowerCut {
            node: "server".into(),
            off_for: HOUR,
        };
        let (begun, calls) = (
            std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0)),
            made,
        );
        let counted = begun.clone();
        Simulation::builder()
            .seed(seed)
            .node("server", 1, move || {
                let (counted, count) = (counted.clone(), Rc::clone(&count));
                async move {
                    loop {
                        let counted = counted.clone();
                        let call =
                            move || counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        executor().spawn_blocking(call).await;
                        count.set(count.get() + 1);
                    }
                }
            })
            .at(MILLISECOND, cut)
            .run_for(SECOND)
            .expect("nothing fails");
        let begun = begun.load(std::sync::atomic::Ordering::Relaxed);
        assert!(begun >= 4, "a call takes at most 200 us");
        assert!(begun - calls.get() <= 1, "{begun} {}", calls.get());
    }
}

#[test]
fn a_node_that_stands_still_finds_that_time_has_gone_by() {
    let _watchdog = watchdog();
    let log = Log::new();
    let seen = log.clone();
    let pause = Fault::Pause {
        node: "server".into(),
        length: 60 * SECOND,
    };
    Simulation::builder()
        .node("server", 1, move || {
            let log = seen.clone();
            async move {
                let start = time::now();
                for _ in 0..5 {
                    sleep(SECOND).await;
                    executor().spawn_blocking(|| {}).await;
                    log.add((time::now() - start).as_secs());
                }
            }
        })
        .client("client", || sleep(100 * SECOND))
        .at(2 * SECOND + SECOND / 2, pause)
        .run()
        .expect("nothing fails");
    assert_eq!(log.take(), [1, 2, 62, 63, 64]);
}

/// The power goes for the node as a whole, and there is nothing to pause while it is off.
#[test]
fn a_power_cut_ends_a_pause_and_a_pause_without_power_does_nothing() {
    let _watchdog = watchdog();
    let log = Log::new();
    let seen = log.clone();
    let pause = || Fault::Pause {
        node: "server".into(),
        length: 60 * SECOND,
    };
    let cut = Fault::PowerCut {
        node: "server".into(),
        off_for: 2 * SECOND,
    };
    Simulation::builder()
        .node("server", 1, move || {
            let log = seen.clone();
            async move {
                loop {
                    sleep(SECOND).await;
                    executor().spawn_blocking(|| {}).await;
                    log.add(simulation::elapsed().as_secs());
                }
            }
        })
        .at(SECOND + SECOND / 2, pause())
        .at(2 * SECOND, cut)
        .at(3 * SECOND, pause())
        .run_for(7 * SECOND + SECOND / 2)
        .expect("nothing fails");
    assert_eq!(log.take(), [1, 5, 6, 7]);
}

#[test]
fn clocks_that_drift_wait_longer_or_shorter() {
    let _watchdog = watchdog();
    for ppm in [-900_000, -500_000, -1, 0, 1, 100, 500_000, 1_000_000] {
        let drift = Fault::Drift {
            node: "server".into(),
            ppm,
        };
        let ended = Rc::new(Cell::new(Duration::ZERO));
        let end = Rc::clone(&ended);
        Simulation::builder()
            .node("server", 1, move || {
                let end = Rc::clone(&end);
                async move {
                    let start = time::now();
                    sleep(11 * SECOND).await;
                    assert!(time::now() - start >= 11 * SECOND, "never early");
                    assert!(time::now() - start < 11 * SECOND + MILLISECOND);
                    end.set(simulation::elapsed());
                }
            })
            .at(SECOND, drift)
            .run()
            .expect("nothing fails");
        let expected = 1.0 + 10.0 / (1.0 + f64::from(ppm) / 1e6);
        let took = ended.get().as_secs_f64();
        assert!((took - expected).abs() < 1e-3, "{ppm}: {took} {expected}");
    }
}

#[test]
fn an_injected_fault_happens_at_its_time() {
    let _watchdog = watchdog();
    let log = Log::new();
    let seen = log.clone();
    Simulation::builder()
        .node("server", 1, move || {
            seen.add(simulation::elapsed());
            pending::<()>()
        })
        .client("client", || async {
            sleep(SECOND).await;
            let cut = Fault::PowerCut {
                node: "server".into(),
                off_for: SECOND,
            };
            simulation::inject(SECOND, cut.clone());
            // Cut off again, it starts later.
            simulation::inject(SECOND + SECOND / 2, cut);
            sleep(HOUR).await;
        })
        .run()
        .expect("nothing fails");
    let starts = log.take();
    assert_eq!(starts, [Duration::ZERO, 3 * SECOND + SECOND / 2]);
}
