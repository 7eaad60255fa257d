use std::future::pending;

use futures_lite::StreamExt;
use glommio::future::{timeout, timeout_at};
use glommio::timer::{
    DelayQueue, Timer, TimerActionOnce, TimerActionRepeat, interval_at, sleep_until,
};

use super::*;

#[test]
fn what_is_due_already() {
    run(async {
        counts("Timer", async || {
            Timer::at(past()).await;
        })
        .await;
        counts("sleep", async || sleep(Duration::ZERO).await).await;
        counts("sleep_until", async || sleep_until(past()).await).await;
        counts("timeout", async || {
            let limited = timeout(Duration::ZERO, pending::<()>()).await;
            assert!(limited.is_err());
        })
        .await;
        counts("timeout, of a result", async || {
            let limited = glommio::timer::timeout(Duration::ZERO, pending::<Result<(), _>>()).await;
            assert!(limited.is_err());
        })
        .await;
        counts("timeout_at", async || {
            assert!(timeout_at(past(), pending::<()>()).await.is_err());
        })
        .await;
        let start = past();
        let mut ticks = interval_at(start, Duration::from_nanos(1));
        counts("Tick", async || assert!(ticks.tick().await >= start)).await;
        counts("Interval", async || {
            assert!(ticks.next().await >= Some(start))
        })
        .await;
    });
}

#[test]
fn queues_of_items_that_are_due() {
    run(async {
        let queue = DelayQueue::new();
        counts("NextExpired", async || {
            queue.insert_at((), past());
            queue.next_expired().await;
        })
        .await;
        counts("DelayQueue", async || {
            queue.insert_at((), past());
            assert!((&queue).next().await.is_some());
        })
        .await;
    });
}

#[test]
fn actions_that_have_run() {
    run(async {
        let once = || TimerActionOnce::do_in(Duration::ZERO, async {});
        let repeat = || TimerActionRepeat::repeat(async || None::<Duration>);
        is_refused("TimerActionOnce::join", once().join()).await;
        is_refused("TimerActionOnce::cancel", once().cancel()).await;
        is_refused("TimerActionRepeat::join", repeat().join()).await;
        is_refused("TimerActionRepeat::cancel", repeat().cancel()).await;
    });
}
