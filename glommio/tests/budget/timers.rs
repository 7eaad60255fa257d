use glommio::future::{timeout, timeout_at};
use glommio::timer::{DelayQueue, interval_at, sleep_until};

use super::*;

#[run_test]
async fn what_is_due_already() {
    counts!("Timer", Timer::at(past()).await);
    counts!("sleep", sleep(Duration::ZERO).await);
    counts!("sleep_until", sleep_until(past()).await);
    counts!("timeout", {
        let limited = timeout(Duration::ZERO, pending::<()>()).await;
        assert!(limited.is_err());
    });
    counts!("timeout, of a result", {
        let limited = glommio::timer::timeout(Duration::ZERO, pending::<Result<(), _>>()).await;
        assert!(limited.is_err());
    });
    counts!(
        "timeout_at",
        assert!(timeout_at(past(), pending::<()>()).await.is_err())
    );
    let start = past();
    let mut ticks = interval_at(start, Duration::from_nanos(1));
    counts!("Tick", assert!(ticks.tick().await >= start));
    counts!("Interval", assert!(ticks.next().await >= Some(start)));
}

#[run_test]
async fn queues_of_items_that_are_due() {
    let queue = DelayQueue::new();
    counts!("NextExpired", {
        queue.insert_at((), past());
        queue.next_expired().await;
    });
    counts!("DelayQueue", {
        queue.insert_at((), past());
        assert!((&queue).next().await.is_some());
    });
}

#[run_test]
async fn actions_that_have_run() {
    let once = || TimerActionOnce::do_in(Duration::ZERO, async {});
    let repeat = || TimerActionRepeat::repeat(async || None::<Duration>);
    is_refused("TimerActionOnce::join", once().join()).await;
    is_refused("TimerActionOnce::cancel", once().cancel()).await;
    is_refused("TimerActionRepeat::join", repeat().join()).await;
    is_refused("TimerActionRepeat::cancel", repeat().cancel()).await;
}
