//! Clocks that are driven by hand: `pause`, `advance`, `resume`.

use glommio::time;
use glommio::timer::sleep_until;

use super::{HOUR, SECOND, run_paused};
use crate::common::prelude::*;

#[run_test(run_paused)]
async fn an_advance_stops_at_each_deadline_on_the_way() {
    let start = time::now();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let times = Rc::clone(&seen);
    spawn_local(async move {
        loop {
            sleep(SECOND).await;
            times.borrow_mut().push(time::now() - start);
        }
    })
    .detach();
    time::advance(10 * SECOND).await;
    assert_eq!(time::now() - start, 10 * SECOND);
    let expected: Vec<_> = (1..=10).map(|n| n * SECOND).collect();
    assert_eq!(*seen.borrow(), expected, "the last one, too");
    time::advance(SECOND / 2).await;
    assert_eq!(seen.borrow().len(), 10);
    assert_eq!(time::now() - start, 10 * SECOND + SECOND / 2);
}

/// Also what follows from it: a chain of tasks, each of which wakes the next.
#[run_test(run_paused)]
async fn what_is_due_at_the_end_of_an_advance_has_happened() {
    let reached = Rc::new(Cell::new(0));
    let count = Rc::clone(&reached);
    let deadline = time::now() + SECOND;
    spawn_local(async move {
        sleep_until(deadline).await;
        for _ in 0..100 {
            let count = Rc::clone(&count);
            spawn_local(async move {
                yield_now().await;
                count.set(count.get() + 1);
            })
            .await;
        }
    })
    .detach();
    time::advance(SECOND).await;
    assert_eq!(reached.get(), 100);
    assert_eq!(time::now(), deadline);
}

#[run_test(run_paused)]
async fn an_advance_by_nothing_waits_until_only_the_clock_can_go_on() {
    let start = time::now();
    let done = Rc::new(Cell::new(false));
    let is_done = Rc::clone(&done);
    spawn_local(async move {
        for _ in 0..100 {
            yield_now().await;
        }
        is_done.set(true);
        sleep(SECOND).await;
    })
    .detach();
    time::advance(Duration::ZERO).await;
    assert!(done.get());
    assert_eq!(time::now(), start);
}

#[run_test(run_paused)]
async fn several_advances_at_a_time_end_at_their_times() {
    let start = time::now();
    let short = async {
        time::advance(SECOND).await;
        time::now() - start
    };
    let long = async {
        time::advance(HOUR).await;
        time::now() - start
    };
    assert_eq!(zip(long, short).await, (HOUR, SECOND));
}

#[run_test(run_paused)]
async fn an_advance_that_is_dropped_leaves_the_clock_where_it_is() {
    let start = time::now();
    for polls in 1..5 {
        let mut advance = Box::pin(time::advance(SECOND));
        for _ in 0..polls {
            assert!(poll_once(&mut advance).await.is_none());
        }
    }
    assert_eq!(time::now(), start);
    // In the middle: a task that is due on the way drops it.
    let advance = spawn_local(time::advance(HOUR));
    sleep(SECOND).await;
    drop(advance);
    assert_eq!(time::now() - start, SECOND);
    // At the end, where it waits for the others.
    let mut settling = Box::pin(time::advance(Duration::ZERO));
    assert!(poll_once(&mut settling).await.is_none());
    drop(settling);
    std::mem::forget(Box::pin(time::advance(HOUR)));
    sleep(SECOND).await;
    assert_eq!(time::now() - start, 2 * SECOND);
}

#[run_test]
fn a_running_clock_is_paused_and_goes_on_from_there() {
    LocalExecutor::default().run(async {
        let start = time::now();
        time::advance(HOUR).await;
        let paused = time::now();
        // Between the reading and the pause time went by.
        assert!(paused - start >= HOUR && paused - start < 2 * HOUR);
        time::pause();
        assert_eq!(time::now(), paused);
        time::resume();
        time::resume();
        let resumed = Instant::now();
        for _ in 0..10 {
            let before = time::now();
            sleep(Duration::from_millis(1)).await;
            assert!(time::now() - before >= Duration::from_millis(1));
        }
        assert!(
            resumed.elapsed() >= Duration::from_millis(10),
            "never early"
        );
        assert!(time::now() - paused >= Duration::from_millis(10));
        time::pause();
        let again = time::now();
        sleep(HOUR).await;
        assert_eq!(time::now() - again, HOUR);
    });
}

/// A clock that was paused for long is behind the system's.
#[run_test]
fn a_clock_that_lags_behind_is_never_early() {
    LocalExecutor::default().run(async {
        time::pause();
        let paused = time::now();
        std::thread::sleep(Duration::from_millis(20));
        time::resume();
        let resumed = Instant::now();
        assert!(time::now() < resumed);
        sleep_until(paused + Duration::from_millis(5)).await;
        assert!(resumed.elapsed() >= Duration::from_millis(5));
    });
}

/// The end of its slice is a real moment, the deadline one of a clock that is an hour ahead.
#[run_test]
fn a_timer_of_a_resumed_clock_ends_the_slice_of_a_busy_task() {
    LocalExecutor::default().run(async {
        time::advance(HOUR).await;
        time::resume();
        let sleeping = spawn_local(sleep(Duration::from_millis(1)));
        yield_now().await;
        spin_until_preempted();
        sleeping.await;
    });
}

/// Who waits for the others of a clock that goes on would wait for ever.
#[run_test(run_paused)]
async fn a_clock_that_goes_on_ends_the_wait_for_the_others() {
    let mut advance = spawn_local(time::advance(Duration::ZERO));
    yield_now().await;
    assert!(poll_once(&mut advance).await.is_none());
    time::resume();
    advance.await;
}

#[test]
fn an_advance_may_outlive_its_executor() {
    let mut advance = Box::pin(time::advance(Duration::ZERO));
    assert!(run_paused(async || poll_once(&mut advance).await).is_none());
    run_paused(async || {
        let start = time::now();
        advance.await;
        assert_eq!(time::now(), start);
    });
}

#[test]
fn without_an_executor_there_is_nothing_to_pause() {
    for act in [time::pause, time::resume] {
        let text = panic_of(act);
        assert!(
            text.contains("no LocalExecutor is running on this thread"),
            "{text}"
        );
    }
    let before = Instant::now();
    assert!(time::now() >= before);
}
