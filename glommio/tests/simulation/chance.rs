//! What the seed decides in the place of threads and a kernel, and what it leaves as it is promised.

use futures_lite::future;
use glommio::simulation::{self, Simulation, SimulationBuilder};

use super::{MILLISECOND, SECOND};
use crate::common::prelude::*;

/// The order in which tasks run that were spawned one after the other.
fn order_of_tasks(simulation: SimulationBuilder, tasks: usize) -> Vec<usize> {
    let log = Log::default();
    let seen = log.clone();
    let simulation = simulation.client("client", move || {
        let log = seen.clone();
        async move {
            let tasks = (0..tasks).map(|number| {
                let log = log.clone();
                spawn_local(async move {
                    // The first poll is that of the task which spawns.
                    executor().yield_now().await;
                    log.push(number);
                })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await;
            }
        }
    });
    simulation.run().expect("nothing fails");
    log.take()
}

#[run_test]
fn tasks_of_a_queue_run_in_their_order_unless_that_is_random() {
    let mut orders = BTreeSet::new();
    for seed in 0..rounds(40) as u64 {
        let simulation = || Simulation::builder().seed(seed);
        assert!(order_of_tasks(simulation(), 100).into_iter().eq(0..100));
        let random = || simulation().random_task_order(true);
        orders.insert(order_of_tasks(random(), 3));
        let mut many = order_of_tasks(random(), 1000);
        assert_eq!(many, order_of_tasks(random(), 1000), "seed {seed} again");
        assert!(!many.is_sorted());
        // None goes ahead of more than it may, and none is forgotten or runs twice.
        assert!(many.iter().enumerate().all(|(place, &it)| it < place + 16));
        many.sort_unstable();
        assert!(many.into_iter().eq(0..1000));
    }
    assert_eq!(orders.len(), 6, "each order of three comes up: {orders:?}");
}

/// A task that always goes to the end of the line leaves the others their turns, whatever the order.
#[run_test]
fn a_task_that_yields_again_and_again_does_not_keep_others_waiting_for_ever() {
    for seed in 0..50 {
        Simulation::builder()
            .seed(seed)
            .random_task_order(true)
            .client("client", || async {
                let is_over = Rc::new(Cell::new(false));
                let seen = Rc::clone(&is_over);
                let yielding = spawn_local(async move {
                    while !seen.get() {
                        executor().yield_now().await;
                    }
                });
                spawn_local(async move {
                    executor().yield_now().await;
                    is_over.set(true);
                })
                .await;
                yielding.await;
            })
            .run()
            .expect("nothing fails");
    }
}

/// Whether a socket that has data is read at once, or a turn later, is up to the seed; nothing is lost either
/// way.
#[run_test]
fn an_attempt_at_a_socket_may_come_too_early() {
    let (mut at_once, mut later) = (0, 0);
    for seed in 0..300 {
        let polls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&polls);
        Simulation::builder()
            .seed(seed)
            .client("client", move || {
                let polls = Rc::clone(&counted);
                async move {
                    let listener = TcpListener::bind("127.0.0.1:0")?;
                    let mut client = TcpStream::connect(listener.local_addr()?).await?;
                    let mut server = listener.accept().await?;
                    client.write_all(b"x").await?;
                    let mut byte = [0];
                    let mut read = Box::pin(server.read(&mut byte));
                    let read = future::poll_fn(|cx| {
                        polls.set(polls.get() + 1);
                        read.as_mut().poll(cx)
                    });
                    assert_eq!(read.await?, 1);
                    assert_eq!(&byte, b"x");
                    let socket = UdpSocket::bind("127.0.0.1:0")?;
                    socket.send_to(b"y", socket.local_addr()?).await?;
                    assert_eq!(socket.recv_from(&mut byte).await?.0, 1);
                    assert_eq!(&byte, b"y");
                    assert_eq!(simulation::elapsed().as_nanos(), 0, "it is no longer");
                    Ok::<_, io::Error>(())
                }
            })
            .run()
            .expect("nothing fails");
        match polls.get() {
            1 => at_once += 1,
            _ => later += 1,
        }
    }
    assert!(at_once > 200 && later > 5, "{at_once} {later}");
}

/// A wake by another executor is seen in the turn that follows, or in a later one: before or after what the
/// executor does meanwhile.
#[run_test]
fn the_wake_of_another_executor_is_seen_sooner_or_later() {
    let mut seen_after = BTreeSet::new();
    for seed in 0..200 {
        let (sender, receiver) = oneshot::shared::<()>();
        let ends = RefCell::new((Some(sender), Some(receiver)));
        let turns = Rc::new(Cell::new(None));
        let counted = Rc::clone(&turns);
        Simulation::builder()
            .seed(seed)
            .node("node", 2, move || {
                let mut ends = ends.borrow_mut();
                let (sender, receiver) = match ends.1.take() {
                    Some(receiver) => (None, Some(receiver)),
                    None => (ends.0.take(), None),
                };
                let turns = Rc::clone(&counted);
                async move {
                    if let Some(receiver) = receiver {
                        let is_woken = Rc::new(Cell::new(false));
                        let woken = Rc::clone(&is_woken);
                        let waiting = spawn_local(async move {
                            receiver.await.expect("it is sent");
                            woken.set(true);
                        });
                        sleep(SECOND).await;
                        let mut count = 0;
                        while !is_woken.get() {
                            executor().yield_now().await;
                            count += 1;
                        }
                        turns.set(Some(count));
                        waiting.await;
                    } else if let Some(sender) = sender {
                        sleep(SECOND).await;
                        sender.send(()).expect("it waits");
                    }
                }
            })
            .run_for(2 * SECOND)
            .expect("nothing fails");
        seen_after.insert(turns.take().expect("it was woken"));
    }
    assert!(seen_after.len() > 3, "{seen_after:?}");
}

/// Sockets that become ready at the same time are seen in any order.
#[run_test]
fn completions_of_the_same_time_come_in_any_order() {
    let mut orders = BTreeSet::new();
    for seed in 0..100 {
        let log = Log::default();
        let seen = log.clone();
        Simulation::builder()
            .seed(seed)
            .node("server", 1, move || {
                let log = seen.clone();
                async move {
                    let receive = |port: u16| {
                        let log = log.clone();
                        spawn_local(async move {
                            let socket = UdpSocket::bind(("0.0.0.0", port))?;
                            socket.recv_from(&mut [0]).await?;
                            log.push(port);
                            Ok::<_, io::Error>(())
                        })
                    };
                    for task in (1..=3).map(receive).collect::<Vec<_>>() {
                        task.await?;
                    }
                    Ok::<_, io::Error>(())
                }
            })
            .client("client", || async {
                sleep(SECOND).await;
                let socket = UdpSocket::bind("0.0.0.0:0")?;
                for port in 1..=3 {
                    socket.send_to(b"x", ("10.0.0.1", port)).await?;
                }
                sleep(MILLISECOND).await;
                Ok::<_, io::Error>(())
            })
            .run()
            .expect("nothing fails");
        orders.insert(log.take());
    }
    assert_eq!(orders.len(), 6, "each order of three comes up: {orders:?}");
}

/// What is drawn first is no more alike for neighbours than for others.
#[run_test]
fn seeds_that_follow_each_other_have_nothing_in_common() {
    let first = |seed| {
        let drawn = Rc::new(Cell::new(0));
        let kept = Rc::clone(&drawn);
        let main = move || {
            kept.set(simulation::rng_seed());
            std::future::ready(())
        };
        let run = Simulation::builder().seed(seed).client("client", main);
        run.run().expect("nothing fails");
        drawn.get()
    };
    let drawn: Vec<u64> = (0..400).map(first).collect();
    let differing = drawn.windows(2).map(|it| (it[0] ^ it[1]).count_ones());
    let mean = f64::from(differing.sum::<u32>()) / 399.0;
    assert!((mean - 32.0).abs() < 1.5, "bits that differ: {mean}");
    // How often the next seed has the same highest bit.
    let same = drawn.windows(2).filter(|it| it[0] >> 63 == it[1] >> 63);
    let same = same.count();
    assert!((150..250).contains(&same), "{same} of 399");
}
