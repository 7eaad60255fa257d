//! What happens to nodes: power cuts, pauses, clocks that drift, resources that are used up.

use glommio::simulation::{self, Fault, Simulation};
use glommio::time;

use super::{HOUR, MILLISECOND, SECOND, pause, power_cut};
use crate::common::prelude::*;

#[run_test]
fn a_node_whose_power_is_cut_starts_again_and_its_tasks_are_gone() {
    let log = Log::default();
    let seen = log.clone();
    let cut = power_cut("server", 3 * SECOND);
    Simulation::builder()
        .node("server", 2, move || {
            let log = seen.clone();
            async move {
                log.push(("start", simulation::elapsed()));
                spawn_local(sleep(HOUR)).detach();
                sleep(10 * SECOND).await;
                log.push(("end", simulation::elapsed()));
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

#[run_test]
fn destructors_run_at_a_power_cut_and_a_panic_of_one_harms_nothing() {
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
        .restarts("server", 2 * SECOND..3 * SECOND, SECOND..2 * SECOND)
        .run_for(60 * SECOND)
        .expect("nothing fails");
    assert!(
        dropped.get() >= 2 * 12,
        "one in five seconds: {}",
        dropped.get()
    );
}

/// A call in flight at a power cut has never been made, or its result is lost: both come up.
#[run_test]
fn a_blocking_call_goes_with_the_power() {
    let mut lost = [0; 2];
    for seed in 0..100 {
        let made = Rc::new(Cell::new(0));
        let count = Rc::clone(&made);
        let cut = power_cut("server", HOUR);
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
        lost[(begun - calls.get()) as usize] += 1;
    }
    assert!(lost.iter().all(|&seeds| seeds >= 20), "{lost:?}");
}

#[run_test]
fn a_node_that_stands_still_finds_that_time_has_gone_by() {
    let log = Log::default();
    let seen = log.clone();
    let pause = pause("server", 60 * SECOND);
    Simulation::builder()
        .node("server", 1, move || {
            let log = seen.clone();
            async move {
                let start = time::now();
                for _ in 0..5 {
                    sleep(SECOND).await;
                    executor().spawn_blocking(|| {}).await;
                    log.push((time::now() - start).as_secs());
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
#[run_test]
fn a_power_cut_ends_a_pause_and_a_pause_without_power_does_nothing() {
    let log = Log::default();
    let seen = log.clone();
    let pause = || pause("server", 60 * SECOND);
    let cut = power_cut("server", 2 * SECOND);
    Simulation::builder()
        .node("server", 1, move || {
            let log = seen.clone();
            async move {
                loop {
                    sleep(SECOND).await;
                    executor().spawn_blocking(|| {}).await;
                    log.push(simulation::elapsed().as_secs());
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

#[run_test]
fn clocks_that_drift_wait_longer_or_shorter() {
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

#[run_test]
fn an_injected_fault_happens_at_its_time() {
    let log = Log::default();
    let seen = log.clone();
    Simulation::builder()
        .node("server", 1, move || {
            seen.push(simulation::elapsed());
            pending::<()>()
        })
        .client("client", || async {
            sleep(SECOND).await;
            let cut = power_cut("server", SECOND);
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

/// A service that accepts and writes files goes on when there are descriptors again, and a connection that found none is
/// not lost.
#[run_test]
fn without_descriptors_all_that_opens_one_fails_and_nothing_is_lost() {
    for seed in 0..10 {
        let refused = Rc::new(Cell::new(0));
        let counted = Rc::clone(&refused);
        let report = Simulation::builder()
            .seed(seed)
            .node("server", 1, move || {
                let refused = Rc::clone(&counted);
                async move {
                    let listener = TcpListener::bind("0.0.0.0:7000")?;
                    let file = BufferedFile::create("/data").await.expect("it has some");
                    loop {
                        match listener.accept().await {
                            Ok(mut stream) => {
                                stream.write_all(b"hello").await?;
                                stream.close().await?;
                            }
                            Err(error) => {
                                assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
                                refused.set(refused.get() + 1);
                                let opened = BufferedFile::open("/data").await;
                                let errno = opened.map(drop).unwrap_err().raw_os_error();
                                assert_eq!(errno, Some(libc::EMFILE));
                                let bound = UdpSocket::bind("0.0.0.0:0").map(drop);
                                let errno = bound.unwrap_err().raw_os_error();
                                assert_eq!(errno, Some(libc::EMFILE));
                                // What is open works.
                                let written = file.write_at(vec![1; 10], 0).await;
                                assert_eq!(written.expect("it is open"), 10);
                                sleep(50 * MILLISECOND).await;
                            }
                        }
                    }
                    #[allow(unreachable_code, reason = "it has a type")]
                    Ok::<_, std::io::Error>(())
                }
            })
            .client("client", || async {
                sleep(2 * SECOND).await;
                let mut stream = TcpStream::connect("server:7000").await?;
                let mut text = String::new();
                stream.read_to_string(&mut text).await?;
                assert_eq!(text, "hello");
                assert!(
                    simulation::elapsed() >= 6 * SECOND,
                    "there were none before"
                );
                Ok::<_, std::io::Error>(())
            })
            .at(
                SECOND,
                Fault::NoDescriptors {
                    node: "server".into(),
                    length: 5 * SECOND,
                },
            )
            .run();
        let report = report.expect("nothing else fails");
        assert!(report.elapsed() < 7 * SECOND, "{report:?}");
        assert!(refused.get() > 0);
    }
}

#[run_test]
fn without_memory_rings_refuse_and_a_node_starts_when_there_is_some() {
    let log = Log::default();
    let seen = log.clone();
    let no_memory = Fault::NoMemory {
        node: "node".into(),
        length: 10 * SECOND,
    };
    let cut = power_cut("node", SECOND);
    Simulation::builder()
        .node("node", 2, move || {
            let log = seen.clone();
            async move {
                log.push(simulation::elapsed());
                loop {
                    sleep(SECOND).await;
                    let opened = BufferedFile::create("/data").await;
                    match opened {
                        Ok(file) => drop(file.close().await),
                        Err(error) => {
                            assert_eq!(error.raw_os_error(), Some(libc::ENOMEM));
                            log.push(simulation::elapsed());
                        }
                    }
                }
                #[allow(unreachable_code, reason = "it has a type")]
                Ok::<_, std::io::Error>(())
            }
        })
        .at(5 * SECOND + MILLISECOND, no_memory)
        .at(9 * SECOND, cut)
        .run_for(30 * SECOND)
        .expect("nothing else fails");
    let times = log.take();
    let starts = [Duration::ZERO, Duration::ZERO];
    assert_eq!(times[..2], starts);
    let restarts = [15 * SECOND + MILLISECOND; 2];
    assert_eq!(times[times.len() - 2..], restarts, "{times:?}");
    // At six, seven and eight, more or less: operations took their time before.
    assert!((6..=10).contains(&times.len()), "{times:?}");
}
