//! `DelayQueue`: items come out at their deadlines, in order, and can be moved and taken out
//! before.

use glommio::timer::delay_queue::Expired;
use glommio::timer::{DelayQueue, sleep_until};

use crate::batch::run_in_both_stages;
use crate::common::prelude::*;
use crate::harness::{HOUR, hog_until, ms, until};

pub(crate) async fn next<T>(queue: &DelayQueue<T>) -> T {
    let expired = queue.next_expired().await;
    assert!(expired.deadline() <= Instant::now(), "early");
    expired.into_inner()
}

pub(crate) fn poll<T>(queue: &DelayQueue<T>, waker: &Waker) -> Poll<Expired<T>> {
    queue.poll_expired(&mut Context::from_waker(waker))
}

#[run_test]
async fn an_empty_queue_is_pending_and_an_insert_ends_the_wait() {
    let queue = Rc::new(DelayQueue::new());
    assert!(poll_once(queue.next_expired()).await.is_none());
    let waiting = spawn_local({
        let queue = Rc::clone(&queue);
        async move { next(&queue).await }
    });
    sleep(ms(1)).await;
    queue.insert("later", ms(1));
    assert_eq!(waiting.await, "later");
    // Also one that is due at once.
    queue.insert("at once", Duration::ZERO);
    assert_eq!(next(&queue).await, "at once");
}

/// The place of one that had expired is used again: the new item waits for its own deadline.
#[run_test(run_in_both_stages)]
async fn a_place_that_is_used_again_is_not_taken_for_expired() {
    let queue = DelayQueue::new();
    for round in 0..50 {
        let key = queue.insert(round, Duration::ZERO);
        sleep(Duration::from_micros(100)).await;
        assert_eq!(queue.remove(key), Some(round));
        let later = queue.insert(round, HOUR);
        assert_ne!(key, later);
        assert!(poll(&queue, Waker::noop()).is_pending());
        assert_eq!(queue.remove(key), None);
        assert_eq!(queue.remove(later), Some(round));
    }
}

#[run_test]
async fn a_key_of_another_queue_names_nothing() {
    let (one, other) = (DelayQueue::new(), DelayQueue::new());
    let (key, foreign) = (one.insert(1, HOUR), other.insert(2, HOUR));
    assert_eq!(one.remove(foreign), None);
    assert!(!other.reset(key, ms(1)));
    assert_eq!((one.remove(key), other.remove(foreign)), (Some(1), Some(2)));
}

#[run_test]
async fn never_is_never() {
    let queue = DelayQueue::new();
    let key = queue.insert("never", Duration::MAX);
    queue.insert("soon", ms(1));
    assert_eq!(next(&queue).await, "soon");
    sleep(ms(2)).await;
    assert!(poll(&queue, Waker::noop()).is_pending());
    assert!(queue.reset(key, Duration::MAX) && queue.reset(key, ms(1)));
    assert_eq!(next(&queue).await, "never");
}

/// The timers of a queue count from when it was made, and not for ever.
#[run_test]
async fn deadlines_that_no_timer_holds_are_told_exactly() {
    let past = Instant::now();
    hog_until(past + Duration::from_micros(1));
    let queue = DelayQueue::new();
    let far = past + HOUR * 24 * 365 * 700;
    let (first, second) = (queue.insert_at(1, past), queue.insert_at(2, far));
    assert_eq!(queue.deadline(first), Some(past));
    assert_eq!(queue.deadline(second), Some(far));
    // There and back, armed and expired.
    let now = Instant::now();
    assert!(queue.reset_at(first, now) && queue.reset_at(second, past));
    assert_eq!(queue.deadline(first), Some(now));
    assert_eq!(queue.deadline(second), Some(past));
    let expired = queue.next_expired().await;
    assert_eq!((expired.key(), expired.deadline()), (second, past));
    assert_eq!(queue.deadline(first), Some(now), "it has expired, too");
    assert!(queue.reset_at(first, far));
    assert_eq!(queue.deadline(first), Some(far));
    assert!(queue.reset_at(first, past));
    let expired = queue.next_expired().await;
    assert_eq!((expired.key(), expired.deadline()), (first, past));
    assert_eq!(queue.deadline(first), None);
    assert!(queue.is_empty());
}

#[run_test]
async fn as_a_stream_it_does_not_end() {
    let mut queue = DelayQueue::new();
    (0..10).for_each(|n| _ = queue.insert(n, ms(1)));
    let some: Vec<_> = (&queue).take(4).map(|it| *it.get_ref()).collect().await;
    assert_eq!(some, [0, 1, 2, 3]);
    let rest: Vec<_> = (&mut queue)
        .take(6)
        .map(Expired::into_inner)
        .collect()
        .await;
    assert_eq!(rest, [4, 5, 6, 7, 8, 9]);
    assert!(poll_once(queue.next()).await.is_none());
}

#[run_test]
async fn the_task_that_polled_last_is_woken() {
    let queue = DelayQueue::new();
    let key = queue.insert((), Duration::from_secs(3600));
    let ((first, by_first), (second, by_second)) = (counting(), counting());
    assert!(poll(&queue, &first).is_pending());
    assert!(poll(&queue, &second).is_pending());
    queue.reset(key, ms(1));
    until(|| by_second.get() == 1).await;
    assert_eq!(by_first.get(), 0);
    assert!(poll(&queue, &first).is_ready());
}

/// Fired by the executor 256 at a time, they come out in one order all the same.
#[run_test]
async fn ten_thousand_that_are_due_together() {
    let queue = DelayQueue::new();
    let start = Instant::now();
    for n in 0..10_000_u64 {
        queue.insert_at(n, start + Duration::from_nanos(n * 7919 % 10_000));
    }
    hog_until(start + ms(1));
    let mut last = None;
    for _ in 0..10_000 {
        let expired = queue.next_expired().await;
        let place = (expired.deadline(), expired.into_inner());
        assert!(last.replace(place).is_none_or(|last| last < place));
    }
}

/// Items beside timers: what is due first wakes its task first.
#[run_test(run_in_both_stages)]
async fn timers_and_items_expire_in_one_order() {
    loop {
        let log = Log::default();
        let due = Instant::now() + ms(5);
        let item = |name, after| {
            let (queue, log) = (DelayQueue::new(), log.clone());
            queue.insert_at(name, due + after);
            spawn_local(async move { log.push(next(&queue).await) })
        };
        let timer = |name, after| {
            let log = log.clone();
            spawn_local(async move {
                sleep_until(due + after).await;
                log.push(name);
            })
        };
        let tasks = [
            item("item 3", ms(3)),
            timer("timer 2", ms(2)),
            item("item 1", ms(1)),
            timer("timer 0", ms(0)),
        ];
        executor().yield_now().await;
        let all_wait = Instant::now() < due;
        hog_until(due + ms(4));
        join_all(tasks).await;
        if all_wait {
            assert_eq!(log.entries(), ["timer 0", "item 1", "timer 2", "item 3"]);
            break;
        }
    }
}

#[test]
fn outside_an_executor_it_says_so() {
    let message = panic_of(DelayQueue::<()>::new);
    assert!(message.contains("no LocalExecutor"), "{message}");
}
