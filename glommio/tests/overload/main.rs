//! Refusing work, through the public API. What is late is late because of a task that computes for
//! a time, so a busy machine makes it later still; nothing here depends on it being early.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_lite::future::yield_now;
use glommio::overload::LoadShedder;
use glommio::timer::sleep;
use glommio::{
    Latency, LocalExecutor, LocalExecutorBuilder, Shares, Task, executor, spawn_local,
    spawn_local_into,
};

#[macro_use(run_test)]
extern crate glommio_macros;

fn run(test: impl Future<Output = ()>) {
    LocalExecutor::default().run(test);
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const PATIENCE: Duration = Duration::from_secs(60);

fn compute(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Keeps the thread for `time` again and again.
async fn hog(time: Duration) {
    loop {
        compute(time);
        yield_now().await;
    }
}

fn late() -> Task<()> {
    spawn_local(hog(ms(2)))
}

/// A short interval, and a target that the hog exceeds by itself.
fn shed() -> LoadShedder {
    LoadShedder::builder()
        .target(ms(1))
        .interval(ms(10))
        .build()
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "still not: {what}");
        sleep(ms(1)).await;
    }
}

#[run_test]
async fn a_late_executor_refuses_until_it_is_late_no_more() {
    let shed = shed();
    let hog = late();
    until("a refusal", || shed.admit().is_err()).await;
    let refusal = shed.admit().expect_err("it is as late as before");
    assert!(refusal.delay() > ms(1));
    assert!(shed.is_overloaded());
    assert!(
        refusal.to_string().contains("later than 1.0ms"),
        "{refusal}"
    );
    hog.cancel().await;
    until("an end of overload", || {
        shed.admit().is_ok() && !shed.is_overloaded()
    })
    .await;
}

/// The hog of another queue delays requests as well.
#[run_test]
async fn what_other_queues_do_is_lateness() {
    let other =
        executor().create_task_queue(Shares::Static(1000), Latency::NotImportant, "another");
    let shed = shed();
    let hog = spawn_local_into(hog(ms(2)), other).expect("the queue is there");
    until("a refusal", || shed.admit().is_err()).await;
    hog.cancel().await;
}

#[run_test]
async fn one_long_poll_is_no_overload() {
    let shed = LoadShedder::builder()
        .target(ms(1))
        .interval(ms(100))
        .build();
    assert!(shed.admit().is_ok());
    yield_now().await;
    compute(ms(150));
    until("a measurement", || shed.delay() >= ms(100)).await;
    assert!(shed.admit().is_ok());
    assert!(!shed.is_overloaded());
}

/// However long the work takes, an executor that sleeps in between has no queue.
#[run_test]
async fn an_executor_that_sleeps_is_not_overloaded() {
    // Long enough that the machine leaves it some sleeps that end in time.
    let shed = LoadShedder::builder()
        .target(ms(1))
        .interval(ms(100))
        .build();
    for _ in 0..30 {
        assert!(shed.admit().is_ok());
        compute(ms(4));
        sleep(ms(3)).await;
    }
    assert!(!shed.is_overloaded());
}

/// Measuring must not keep the thread busy, or wake it.
#[run_test]
async fn a_shed_that_is_not_asked_does_nothing() {
    let shed = shed();
    assert!(shed.admit().is_ok());
    sleep(ms(10)).await;
    // Reading them resets them.
    let _ = executor().executor_stats();
    sleep(ms(50)).await;
    let polls = executor().executor_stats().tasks_executed();
    assert!(polls <= 1, "{polls} polls in 50 ms");
    assert!(shed.delay() < PATIENCE);
}

#[run_test]
async fn those_who_wait_go_on_when_it_is_over() {
    let shed = Rc::new(shed());
    shed.ready().await;
    let hog = late();
    until("a refusal", || shed.admit().is_err()).await;
    let is_ready = Rc::new(Cell::new(false));
    // One is given up while it waits, one is never polled again, and one goes on.
    let mut given_up = Box::pin(shed.ready());
    poll_fn(|cx| {
        let _ = given_up.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
    drop(given_up);
    std::mem::forget(Box::pin(shed.ready()));
    let waits = spawn_local({
        let (shed, is_ready) = (Rc::clone(&shed), Rc::clone(&is_ready));
        async move {
            shed.ready().await;
            is_ready.set(true);
        }
    });
    hog.cancel().await;
    until("the one that waits", || is_ready.get()).await;
    waits.await;
}

/// It may outlive its executor, be dropped in the middle of a measurement, and be asked anywhere.
#[test]
fn it_ends_whenever_its_owner_likes() {
    let executor = LocalExecutor::default();
    let shed = executor.run(async {
        for _ in 0..100 {
            let shed = shed();
            assert!(shed.admit().is_ok());
            let shed = Rc::new(shed);
            let last = Rc::clone(&shed);
            spawn_local(async move { drop(last) }).detach();
        }
        std::mem::forget(LoadShedder::new());
        shed()
    });
    assert!(shed.admit().is_ok());
    executor.run(async { assert!(shed.admit().is_ok()) });
    drop(executor);
    std::thread::sleep(ms(20));
    assert!(shed.admit().is_ok());
    assert!(shed.admit().is_ok());
    println!("{shed:?}");
}

#[test]
#[should_panic(expected = "no LocalExecutor is running on this thread")]
fn it_needs_an_executor() {
    let _ = LoadShedder::new();
}

/// The timer with which it measures is as late as the slack allows, and the executor sleeps.
#[test]
fn timer_slack_is_no_lateness() {
    let executor = LocalExecutorBuilder::default().timer_slack(ms(30));
    let requests = executor.spawn(|| async {
        let shed = shed();
        let hog = late();
        until("an overload", || shed.admit().is_err()).await;
        hog.cancel().await;
        // Refused at first, and not for ever.
        until("an end of overload", || shed.admit().is_ok()).await;
        for _ in 0..20 {
            sleep(ms(1)).await;
            // A busy machine may take the CPU for longer than the target, but not for an interval.
            assert!(shed.admit().is_ok());
        }
    });
    requests.expect("threads are free").join().expect("it ends");
}
