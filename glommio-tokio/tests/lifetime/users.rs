//! The first user, the last one, and what outlives it.

use glommio::{LocalExecutor, LocalExecutorBuilder, Placement, spawn_local};
use glommio_tokio::{Tokio, with_tokio};
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::{await_threads, sleep_of_tokio, take_turn};

#[test]
fn the_thread_starts_with_the_first_user_and_ends_with_the_last() {
    let _turn = take_turn();
    for _ in 0..3 {
        let tokio = Tokio::start().expect("there are resources");
        await_threads(1);
        LocalExecutor::default().run(async {
            let tasks: Vec<_> = (0..10)
                .map(|_| spawn_local(with_tokio(sleep_of_tokio(1))))
                .collect();
            for task in tasks {
                task.await;
            }
        });
        let other = Tokio::start().expect("it runs");
        assert_eq!(other.handle().id(), tokio.handle().id());
        drop(tokio);
        await_threads(1);
        drop(other);
        await_threads(0);
    }
}

#[test]
fn a_future_is_a_user_for_as_long_as_it_lives() {
    let _turn = take_turn();
    let future = with_tokio(async {});
    await_threads(1);
    drop(future);
    await_threads(0);
}

#[test]
fn tasks_and_sockets_end_with_the_last_user() {
    let _turn = take_turn();
    let (dropped, is_dropped) = oneshot::channel::<()>();
    let listener = LocalExecutor::default().run(with_tokio(async {
        tokio::spawn(async move {
            let _dropped = dropped;
            std::future::pending::<()>().await;
        });
        TcpListener::bind("127.0.0.1:0").await.expect("a port")
    }));
    await_threads(0);
    assert!(is_dropped.blocking_recv().is_err(), "the task was dropped");
    // A socket of that runtime says so, in place of waiting for ever.
    LocalExecutor::default().run(async {
        let accepted = with_tokio(async { listener.accept().await }).await;
        let error = accepted.expect_err("its driver is gone");
        assert!(error.to_string().contains("shutdown"), "{error}");
    });
}

#[test]
fn the_thread_is_not_bound_to_the_cpu_of_its_first_user() {
    let _turn = take_turn();
    let of_process = sched_getaffinity(Pid::this()).expect("it runs");
    let executor = LocalExecutorBuilder::new(Placement::Fixed(0)).spawn(|| async {
        let tokio = Tokio::start().expect("there are resources");
        let there = tokio.handle().spawn(async {
            let calling = Pid::from_raw(0);
            sched_getaffinity(calling).expect("it runs")
        });
        there.await.expect("it does not panic")
    });
    let of_thread = executor.expect("CPU 0 is ours").join();
    assert_eq!(of_thread.expect("it does not panic"), of_process);
}
