//! When a timer is done, and what it says then.

use crate::common::prelude::*;
use crate::harness::{HOUR, hog, hog_until, ms, poll};

const DURATIONS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_nanos(1),
    Duration::from_micros(1),
    Duration::from_micros(50),
    Duration::from_millis(1),
    Duration::from_millis(100),
];

/// The output is the creation plus the duration, to the nanosecond, and is past when it is seen.
#[run_test]
async fn never_early_and_says_its_deadline() {
    for duration in DURATIONS {
        for _ in 0..5 {
            let before = Instant::now();
            let timer = Timer::new(duration);
            let after = Instant::now();
            let deadline = timer.await;
            assert!(Instant::now() >= deadline, "{duration:?} was early");
            assert!(before + duration <= deadline && deadline <= after + duration);
        }
    }
}

#[run_test]
async fn a_deadline_that_passed_before_the_first_poll_does_not_suspend() {
    // Also where the round lasts for longer than rounds do.
    for duration in [ms(1), ms(10), ms(12), ms(30)] {
        let mut again = Timer::new(HOUR);
        again.reset(duration);
        let mut timers = [
            Timer::new(duration),
            again,
            Timer::at(Instant::now() + duration),
        ];
        let latest = Instant::now() + duration;
        hog_until(latest);
        for timer in &mut timers {
            let deadline = poll_once(&mut *timer).await;
            assert!(deadline.is_some_and(|it| it <= latest), "{duration:?}");
            timer.reset(duration);
        }
        hog_until(Instant::now() + duration);
        for timer in &mut timers {
            assert!(poll_once(timer).await.is_some(), "{duration:?}, reset");
        }
    }
}

/// Also when the task gets to run only much later.
#[run_test]
async fn the_output_is_the_deadline_and_not_the_time_of_the_poll() {
    let mut timer = Timer::new(HOUR);
    let (waker, woken) = crate::common::hooks::counting();
    assert!(poll(&mut timer, &waker).is_pending());
    timer.reset(ms(2));
    let latest = Instant::now() + ms(2);
    hog(ms(20));
    crate::harness::until(|| woken.get() == 1).await;
    let deadline = timer.await;
    assert!(deadline <= latest);
}

/// A first sleep, then a very short second one: the time left is found out right before the wait.
#[run_test]
async fn very_short_sleeps_in_a_row_end() {
    sleep(ms(5)).await;
    for n in 0..1000 {
        sleep(Duration::from_nanos(n * 50)).await;
    }
}

#[run_test]
async fn a_sleep_counts_from_its_first_poll() {
    let slept = sleep(ms(20));
    Timer::new(ms(30)).await;
    let polled_at = Instant::now();
    slept.await;
    assert!(polled_at.elapsed() >= ms(20));
}

#[test]
fn a_sleep_that_is_never_polled_needs_no_executor() {
    drop(sleep(ms(1)));
}

#[test]
fn outside_an_executor_there_are_no_timers() {
    let panics = [
        catch_unwind(|| drop(Timer::new(ms(1)))),
        catch_unwind(|| {
            poll_once_blocking(sleep(ms(1)));
        }),
        catch_unwind(|| drop(TimerActionOnce::do_in(ms(1), async {}))),
        catch_unwind(|| drop(TimerActionOnce::do_at(Instant::now(), async {}))),
        catch_unwind(|| drop(TimerActionRepeat::repeat(|| async { None }))),
    ];
    for panic in panics {
        let payload = panic.expect_err("there is no executor here");
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied());
        assert!(text.is_some_and(|it| it.contains("no LocalExecutor is running")));
    }
}

fn poll_once_blocking<F: Future>(future: F) -> Option<F::Output> {
    futures_lite::future::block_on(poll_once(future))
}
