//! Timers that are polled again before they are due, as `select` loops do all the time.

use crate::common::hooks::hooked;
use crate::common::prelude::*;
use crate::harness::{HOUR, hog, ms, poll, until};

#[run_test]
async fn a_thousand_polls_with_one_waker_wake_it_once() {
    let (waker, woken) = counting();
    let mut timer = Timer::new(ms(20));
    for _ in 0..1000 {
        if poll(&mut timer, &waker).is_ready() {
            // A slow machine: it was over before it had to wake a task.
            return;
        }
    }
    until(|| woken.get() > 0).await;
    assert!(poll(&mut timer, &waker).is_ready());
    sleep(ms(5)).await;
    assert_eq!(woken.get(), 1);
}

/// Time goes by for a task that never yields the thread, as for any other.
#[run_test]
async fn a_task_that_polls_without_a_pause_sees_the_end() {
    for wait in [ms(0), ms(1), ms(30)] {
        let start = Instant::now();
        let mut timer = Timer::new(wait);
        let deadline = loop {
            if let Poll::Ready(deadline) = poll(&mut timer, Waker::noop()) {
                break deadline;
            }
        };
        assert!(start + wait <= deadline && deadline <= Instant::now());
        // Again, armed or not, and from the middle of a long round.
        timer.reset(wait);
        while poll(&mut timer, Waker::noop()).is_pending() {}
    }
}

/// Only the clock tells how long the executor has not been running.
#[run_test]
fn a_timer_first_polled_outside_of_its_executor_may_be_over() {
    let local = LocalExecutor::default();
    for wait in [ms(1), ms(30)] {
        let mut timer = local.run(async move { Timer::new(wait) });
        hog(wait + ms(1));
        assert!(poll(&mut timer, Waker::noop()).is_ready());
    }
}

/// The waker of the latest poll is the one that is woken; those before it are dropped at once.
#[run_test]
async fn each_poll_replaces_the_waker() {
    let log = Log::default();
    let mut timer = Timer::new(ms(50));
    for n in 0..100 {
        let (wake_log, drop_log) = (log.clone(), log.clone());
        let waker = hooked(
            move || wake_log.push(("woken", n)),
            move || drop_log.push(("dropped", n)),
        );
        if poll(&mut timer, &waker).is_ready() {
            return;
        }
    }
    let dropped: Vec<_> = (0..99).map(|n| ("dropped", n)).collect();
    assert_eq!(log.entries(), dropped);
    until(|| log.len() > 100).await;
    assert_eq!(log.entries()[99..], [("woken", 99), ("dropped", 99)]);
}

/// A waker keeps a task alive: none may stay behind when the timer is seen to be over.
#[run_test]
async fn a_timer_that_is_over_holds_no_waker() {
    let log = Log::default();
    let drop_log = log.clone();
    let waker = hooked(|| (), move || drop_log.push("dropped"));
    let mut timer = Timer::new(ms(1));
    let _ = poll(&mut timer, &waker);
    drop(waker);
    // Over by the clock, and the executor has had no chance to notice.
    hog(ms(2));
    assert!(poll(&mut timer, Waker::noop()).is_ready());
    assert_eq!(log.entries(), ["dropped"]);
}

/// A timeout per round that is given up almost always: what a server does per request.
#[run_test]
async fn timers_given_up_in_a_select_leave_the_others_alone() {
    let steady = spawn_local(Timer::new(ms(20)));
    for n in 0..5000_u64 {
        let work = async {
            executor().yield_now().await;
            n
        };
        let won = or(work, async {
            sleep(HOUR).await;
            u64::MAX
        });
        assert_eq!(won.await, n);
    }
    steady.await;
}

/// The waker of the task is the same for all of them, and each poll of the task polls them all.
#[run_test]
async fn many_timers_of_one_task_all_end() {
    let mut timers: Vec<_> = (0..400).map(|n| Some(Timer::new(ms(n % 20)))).collect();
    let mut ended = 0;
    poll_fn(|cx| {
        for timer in &mut timers {
            if timer
                .as_mut()
                .is_some_and(|it| poll(it, cx.waker()).is_ready())
            {
                *timer = None;
                ended += 1;
            }
        }
        if ended == timers.len() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
