//! `spawn_blocking_send`: a blocking call whose result is awaited elsewhere.

use std::sync::mpsc::channel;

use crate::common::prelude::*;

fn is_send<T: Send>(value: T) -> T {
    value
}

#[run_test]
async fn it_is_awaited_here_and_on_any_thread() {
    assert_eq!(executor().spawn_blocking_send(|| 1).await, 1);
    let call = is_send(executor().spawn_blocking_send(|| thread::current().id()));
    let awaiter = thread::spawn(move || (block_on(call), thread::current().id()));
    let joined = executor().spawn_blocking(|| awaiter.join()).await;
    let (ran_on, awaited_on) = joined.expect("it does not panic");
    assert_ne!(ran_on, awaited_on);
    assert_ne!(ran_on, thread::current().id());
}

/// The work is under way when the executor goes, and is awaited after that.
#[run_test]
fn it_outlives_its_executor() {
    let (begun, has_begun) = channel();
    let gate = Arc::new(Barrier::new(2));
    let call = {
        let gate = Arc::clone(&gate);
        LocalExecutor::default().run(async move {
            let call = executor().spawn_blocking_send(move || {
                begun.send(()).expect("the test waits");
                gate.wait();
                "late"
            });
            // It runs without having been polled.
            executor().yield_now().await;
            has_begun.recv().expect("it is sent");
            call
        })
    };
    gate.wait();
    assert_eq!(block_on(call), "late");
}

/// One thread is busy, and the executor goes before it comes to the second call.
#[run_test]
fn a_call_that_has_not_begun_panics_where_it_is_awaited() {
    let gate = Arc::new(Barrier::new(2));
    let (first, second) = LocalExecutor::default().run(async {
        let gate = Arc::clone(&gate);
        let (begun, has_begun) = channel();
        let first = executor().spawn_blocking_send(move || {
            begun.send(()).expect("the test waits");
            gate.wait();
        });
        has_begun.recv().expect("it is sent");
        (first, executor().spawn_blocking_send(|| "never"))
    });
    let message = panic_of(|| block_on(second));
    assert!(message.contains("its executor was dropped"), "{message}");
    gate.wait();
    block_on(first);
}

#[run_test]
async fn a_panic_comes_out_at_the_await() {
    for _ in 0..50 {
        let call = executor().spawn_blocking_send(|| panic!("on purpose"));
        // It may be over by now, and does not come out here.
        thread::yield_now();
        let thread = thread::spawn(move || panic_of(|| block_on(call)));
        let message = executor().spawn_blocking(|| thread.join()).await;
        assert_eq!(message.expect("it is caught"), "on purpose");
    }
    // The thread lives on.
    assert_eq!(executor().spawn_blocking_send(|| 1).await, 1);
}

#[run_test]
fn dropping_the_future_does_not_stop_the_work() {
    let (begun, has_begun) = channel();
    let has_run = Arc::new(AtomicBool::new(false));
    LocalExecutor::default().run(async {
        let run = Arc::clone(&has_run);
        drop(executor().spawn_blocking_send(move || {
            run.store(true, Ordering::Release);
            begun.send(()).expect("the test waits");
            bomb()
        }));
        has_begun.recv().expect("it runs");
        assert!(has_run.load(Ordering::Acquire));
        assert_eq!(executor().spawn_blocking_send(|| 2).await, 2);
    });
}

#[test]
fn outside_an_executor_it_says_so() {
    let message = panic_of(|| drop(executor().spawn_blocking_send(|| ())));
    assert!(message.contains("no LocalExecutor"), "{message}");
}
