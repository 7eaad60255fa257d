//! Intervals and delay queues take part in the cooperative budget.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_lite::future::or;
use glommio::spawn_local;
use glommio::timer::{DelayQueue, MissedTickBehavior, interval, interval_at, sleep};

use crate::common::rationed::assert_rationed;
use crate::common::run;

/// Ticks that were missed are made up for, all 36 million of an hour, at one go.
#[test]
fn missed_ticks_let_other_tasks_run() {
    run(async {
        let period = Duration::from_micros(1);
        let start = Instant::now() - Duration::from_secs(100);
        let mut ticks = interval_at(start, period);
        let mut expected = start;
        assert_rationed("tick", |cx| {
            let tick = pin!(ticks.tick()).poll(cx);
            tick.is_ready() && {
                assert_eq!(tick, Poll::Ready(expected), "none is lost");
                expected += period;
                true
            }
        })
        .await;
        let all = async { while ticks.tick().await < start + Duration::from_secs(1000) {} };
        or(all, sleep(Duration::from_millis(5))).await;
    });
}

#[test]
fn ticks_that_are_always_due_let_a_sleeper_run() {
    run(async {
        for behavior in [
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
            MissedTickBehavior::Skip,
        ] {
            let is_awake = Rc::new(Cell::new(false));
            let sleeper = spawn_local({
                let is_awake = is_awake.clone();
                async move {
                    sleep(Duration::from_millis(2)).await;
                    is_awake.set(true);
                }
            });
            let mut ticks = interval(Duration::from_nanos(20));
            ticks.set_missed_tick_behavior(behavior);
            while !is_awake.get() {
                ticks.tick().await;
            }
            sleeper.await;
        }
    });
}

#[test]
fn a_delay_queue_full_of_expired_items_lets_other_tasks_run() {
    run(async {
        let queue = DelayQueue::new();
        for number in 0..100 {
            queue.insert(number, Duration::ZERO);
        }
        sleep(Duration::from_millis(1)).await;
        let mut expected = 0;
        assert_rationed("next_expired", |cx| {
            let item = pin!(queue.next_expired())
                .poll(cx)
                .map(|it| it.into_inner());
            item.is_ready() && {
                assert_eq!(item, Poll::Ready(expected), "none is lost");
                expected += 1;
                true
            }
        })
        .await;
        assert_eq!(queue.len(), 67);
    });
}
