//! Timers beside tasks that compute all the time and yield the thread now and then.
//!
//! Unless a test says otherwise, nothing but the timer itself ends a slice here, so a test that
//! ends has seen it, and none needs to measure how soon.

use crate::common::prelude::*;
use crate::harness::{HOUR, expiry, hog, ms, poll, run_unpreempted, shared, until};

/// A task that never ends by itself and never waits. It begins in a turn of its own, not inside
/// `spawn_local`, which polls at once.
async fn busy(let_go: impl AsyncFn() + 'static) {
    executor().yield_now().await;
    loop {
        let_go().await;
    }
}

/// Loops that cannot `.await` on the spot ask, and the answer must turn true without any system
/// call of theirs.
#[run_test(run_unpreempted)]
async fn a_due_timer_turns_need_preempt_true() {
    for wait in [Duration::from_micros(10), ms(1), ms(5)] {
        let mut timer = Timer::new(wait);
        if poll(&mut timer, Waker::noop()).is_pending() {
            spin_until_preempted();
            assert!(poll(&mut timer, Waker::noop()).is_ready(), "too soon");
        }
        // The answer stays true until the executor has had its look.
        executor().yield_now().await;
        assert!(!executor().need_preempt());
    }
}

/// Armed when the round has lasted for long, and the kernel watches it for a later deadline
/// already.
#[run_test(run_unpreempted)]
async fn a_timer_that_is_armed_late_in_a_round() {
    let far = spawn_local(sleep(HOUR));
    let load = spawn_local(busy(yield_if_needed));
    for _ in 0..5 {
        let start = Instant::now();
        while start.elapsed() < ms(2) {
            if executor().need_preempt() {
                break;
            }
        }
        sleep(ms(1)).await;
    }
    load.cancel().await;
    far.cancel().await;
}

/// A reset counts like a new deadline.
#[run_test(run_unpreempted)]
async fn a_reset_to_earlier_shortens_the_slice() {
    let timer = shared(Timer::new(HOUR));
    let reset = Rc::clone(&timer);
    let load = spawn_local(async move {
        executor().yield_now().await;
        // The task that waits is suspended by now, and nothing else would end this slice.
        reset.borrow_mut().reset(ms(3));
        busy(yield_if_needed).await;
    });
    expiry(&timer).await;
    load.cancel().await;
}

/// Nothing can fire while the thread is hogged; then all that was missed does, in order of
/// deadline.
#[run_test(run_unpreempted)]
async fn after_a_hog_the_missed_ones_fire_in_order() {
    for count in [10, 1000] {
        let log = Log::default();
        let made_at = Instant::now();
        for n in 0..count {
            let log = log.clone();
            // Neighbours in time are far apart in order of creation.
            let place = n * 7 % count;
            let when = made_at + ms(50) + Duration::from_micros(place);
            drop(TimerActionOnce::do_at(when, async move { log.push(place) }));
        }
        executor().yield_now().await;
        let is_armed = Instant::now() < made_at + ms(50);
        hog(ms(60));
        until(|| log.len() as u64 == count).await;
        if is_armed {
            assert_eq!(log.entries(), (0..count).collect::<Vec<_>>());
        }
    }
}

/// Slices of any length: none, absurdly short ones, and ones without end.
#[test]
fn slices_of_any_length_leave_timers_alone() {
    let lengths = [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(1),
        Duration::MAX,
    ];
    for length in lengths {
        with_watchdog(|| {
            let local = crate::common::with_slices_of(length);
            for _ in 0..50 {
                local.run(sleep(Duration::from_micros(50)));
            }
            local.run(async {
                let load = spawn_local(busy(async || executor().yield_now().await));
                let naps: Vec<_> = (0..500)
                    .map(|n| spawn_local(sleep(Duration::from_micros(n * 10))))
                    .collect();
                join_all(naps).await;
                load.cancel().await;
            });
        });
    }
}

/// An executor that never sleeps looks at its timers while it spins.
#[test]
fn a_spinning_executor_fires_its_timers() {
    let _watchdog = crate::common::watchdog();
    // Its thread stays bound to the CPU.
    let spinning = LocalExecutorBuilder::new(Placement::Fixed(0))
        .spin_before_park(HOUR)
        .spawn(|| async {
            let before = Instant::now();
            for wait in [Duration::from_micros(1), ms(1), ms(5)] {
                sleep(wait).await;
            }
            executor().spawn_blocking(|| ()).await;
            let action = TimerActionOnce::do_in(HOUR, async { Instant::now() });
            executor().yield_now().await;
            action.rearm_in(ms(1));
            assert!(action.join().await >= Some(before + ms(7)));
        });
    match spinning.map(ExecutorJoinHandle::join) {
        Ok(ended) => ended.expect("it does not panic"),
        Err(error) => skipped(format_args!("CPU 0 is not ours: {error}")),
    }
}
