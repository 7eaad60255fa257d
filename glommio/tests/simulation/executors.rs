//! What executors do in a simulation: as outside of one.

use glommio::channels::channel_mesh::MeshBuilder;
use glommio::channels::shared_channel;
use glommio::simulation::{self, Simulation};
use glommio::time;
use glommio::timer::interval;

use super::{HOUR, MILLISECOND, SECOND};
use crate::common::prelude::*;

#[run_test]
fn an_hour_takes_no_time_and_ends_exactly() {
    let report = Simulation::builder()
        .client("client", || async {
            let start = time::now();
            sleep(HOUR).await;
            assert_eq!(time::now() - start, HOUR);
            assert_eq!(simulation::elapsed(), HOUR);
        })
        .run()
        .expect("nothing fails");
    assert_eq!(report.elapsed(), HOUR);
}

#[run_test]
fn deadlines_of_all_nodes_come_in_their_order() {
    let log = Log::default();
    let mut builder = Simulation::builder();
    for node in 0..5_u32 {
        let log = log.clone();
        builder = builder.client(format!("node {node}"), move || {
            let log = log.clone();
            async move {
                for n in 0..20 {
                    sleep((node + 1) * SECOND).await;
                    assert_eq!(simulation::elapsed(), (n + 1) * (node + 1) * SECOND);
                    log.push(simulation::elapsed());
                }
            }
        });
    }
    builder.run().expect("nothing fails");
    let times = log.take();
    assert_eq!(times.len(), 100);
    assert!(times.is_sorted());
}

#[run_test]
fn run_for_ends_at_its_time_whatever_is_left() {
    let log = Log::default();
    let seen = log.clone();
    let report = Simulation::builder()
        .node("server", 1, move || {
            let log = seen.clone();
            async move {
                let mut ticks = interval(SECOND);
                while ticks.next().await.is_some() {
                    log.push(simulation::elapsed());
                }
            }
        })
        .run_for(10 * SECOND + MILLISECOND)
        .expect("nothing fails");
    assert_eq!(report.elapsed(), 10 * SECOND + MILLISECOND);
    assert_eq!(log.take().len(), 11);
}

/// Without clients, the end is when nothing can happen any more.
#[run_test]
fn without_clients_it_ends_when_nothing_is_left() {
    let report = Simulation::builder()
        .node("server", 3, || sleep(SECOND))
        .run()
        .expect("nothing fails");
    assert_eq!(report.elapsed(), SECOND);
}

#[run_test]
fn what_the_seed_decides_changes_the_order_of_nodes() {
    let mut orders = BTreeSet::new();
    for seed in 0..30 {
        let log = Log::default();
        let mut builder = Simulation::builder().seed(seed);
        for name in ["a", "b", "c"] {
            let log = log.clone();
            builder = builder.client(name, move || {
                let log = log.clone();
                async move { log.push(name) }
            });
        }
        builder.run().expect("nothing fails");
        orders.insert(log.take());
    }
    assert_eq!(orders.len(), 6, "each order of three comes up: {orders:?}");
}

#[run_test]
fn shards_of_a_node_talk_over_a_mesh() {
    for seed in 0..10 {
        let log = Log::default();
        let seen = log.clone();
        let mesh = MeshBuilder::full(3, 4);
        Simulation::builder()
            .seed(seed)
            .node("node", 3, move || {
                let (mesh, log) = (mesh.clone(), seen.clone());
                async move {
                    let (senders, mut receivers) = mesh.join().await.expect("all three join");
                    let me = senders.peer_id();
                    let mut reading = Vec::new();
                    for (peer, receiver) in receivers.streams() {
                        let log = log.clone();
                        reading.push(spawn_local(async move {
                            let items: Vec<u32> = receiver.collect().await;
                            log.push((peer, me, items));
                        }));
                    }
                    for n in 0..100 {
                        for peer in (0..3).filter(|&peer| peer != me) {
                            senders.send_to(peer, n).await.expect("it receives");
                        }
                        if n % 10 == 0 {
                            sleep(MILLISECOND).await;
                        }
                    }
                    drop(senders);
                    join_all(reading).await;
                }
            })
            .run()
            .expect("nothing fails");
        let mut received = log.take();
        received.sort();
        assert_eq!(received.len(), 6);
        assert!(
            received
                .iter()
                .all(|(_, _, items)| items.iter().copied().eq(0..100))
        );
    }
}

#[run_test]
fn a_channel_between_nodes_carries_what_is_sent() {
    let (sender, receiver) = shared_channel::new_bounded(2);
    let ends = std::cell::RefCell::new((Some(sender), Some(receiver)));
    let ends = std::rc::Rc::new(ends);
    let other = ends.clone();
    Simulation::builder()
        .client("sender", move || {
            let sender = ends.borrow_mut().0.take().expect("it starts once");
            async move {
                let sender = sender.connect().await;
                for n in 0..1000 {
                    sender.send(n).await.expect("it receives");
                }
            }
        })
        .client("receiver", move || {
            let receiver = other.borrow_mut().1.take().expect("it starts once");
            async move {
                let receiver = receiver.connect().await;
                for n in 0..1000 {
                    assert_eq!(receiver.recv().await, Some(n));
                }
            }
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn slices_end_also_of_tasks_that_only_look_at_the_executor() {
    for seed in 0..20 {
        Simulation::builder()
            .seed(seed)
            .client("client", || async {
                let greedy = spawn_local(async {
                    while !executor().need_preempt() {}
                    executor().yield_now().await;
                    time::now()
                });
                let start = time::now();
                assert_eq!(
                    greedy.await,
                    start,
                    "its time is not that of the simulation"
                );
            })
            .run()
            .expect("nothing fails");
    }
}

#[run_test]
fn a_paused_clock_cannot_be_driven_by_hand_but_settles() {
    Simulation::builder()
        .client("client", || async {
            let start = time::now();
            time::pause();
            time::resume();
            time::advance(SECOND).await;
            assert_eq!(time::now() - start, SECOND);
            let ran = spawn_local(async { 1 });
            time::advance(std::time::Duration::ZERO).await;
            assert_eq!(futures_lite::future::poll_once(ran).await, Some(1));
        })
        .run()
        .expect("nothing fails");
}

#[run_test]
fn outside_of_a_simulation_the_clock_is_the_systems() {
    let before = Instant::now();
    Simulation::builder()
        .client("client", || sleep(HOUR))
        .run()
        .expect("nothing fails");
    glommio::LocalExecutor::default().run(async {
        let start = Instant::now();
        sleep(MILLISECOND).await;
        assert!(start.elapsed() >= MILLISECOND);
        assert!(time::now() > before);
    });
}

#[glommio::test(simulated)]
async fn a_test_may_be_a_simulation() {
    let start = time::now();
    sleep(HOUR).await;
    assert_eq!(time::now() - start, HOUR);
}

#[glommio::test(simulated)]
#[should_panic(expected = "to repeat this: GLOMMIO_SEED=")]
async fn a_test_that_is_a_simulation_tells_its_seed() {
    spawn_local(async { panic!("as planned") }).await
}

#[glommio::test(simulated)]
async fn a_test_that_is_a_simulation_may_return_a_result() -> Result<(), std::io::Error> {
    sleep(HOUR).await;
    Ok(())
}

/// Whose turn it is follows from how long the turns before took by the simulated clock, and from
/// nothing that the machine does.
#[run_test]
fn long_turns_are_charged_the_same_whenever_they_run() {
    let order = |seed| {
        let log = Log::default();
        let seen = log.clone();
        Simulation::builder()
            .seed(seed)
            .client("client", move || long_turns(seen.clone()))
            .run()
            .expect("nothing fails");
        log.take()
    };
    for seed in 0..20 {
        assert_eq!(order(seed), order(seed), "seed {seed}");
    }
}

async fn long_turns(log: Log<usize>) {
    let tasks = [800, 900, 1000].map(|shares| {
        let latency = Latency::Matters(5 * MILLISECOND);
        let queue = executor().create_task_queue(Shares::Static(shares), latency, "long");
        let log = log.clone();
        let turns = async move {
            for turn in 0..500 {
                // Each look at the clock takes up to 33 microseconds.
                for _ in 0..100 * (turn % 3 + 1) {
                    time::now();
                }
                log.push(shares);
                executor().yield_now().await;
            }
        };
        spawn_in(queue, turns)
    });
    join_all(tasks).await;
}
