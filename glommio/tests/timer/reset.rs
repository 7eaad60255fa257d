//! Moving the deadline of a timer, in every state that it can be in.

use crate::common::hooks::on_drop;
use crate::common::prelude::*;
use crate::harness::{HOUR, expiry, ms, poll, shared, until};

/// The executor has slept meanwhile, with the old deadline in mind.
#[run_test]
async fn after_a_sleep() {
    for (first, second) in [(HOUR, ms(5)), (ms(25), ms(30))] {
        let timer = shared(Timer::new(HOUR));
        let ended = Rc::new(Cell::new(None));
        let waiter = spawn_local({
            let (timer, ended) = (Rc::clone(&timer), Rc::clone(&ended));
            async move { ended.set(Some(expiry(&timer).await)) }
        });
        timer.borrow_mut().reset(first);
        sleep(ms(10)).await;
        if ended.get().is_none() {
            let before = Instant::now();
            timer.borrow_mut().reset(second);
            waiter.await;
            assert!(ended.get().is_some_and(|it| it >= before + second));
        }
    }
}

/// The task is polled when it registers and when the timer is over, and not in between.
#[run_test]
async fn a_reset_polls_no_task() {
    let (waker, woken) = counting();
    let mut timer = Timer::new(HOUR);
    assert!(poll(&mut timer, &waker).is_pending());
    for _ in 0..1000 {
        timer.reset(HOUR);
        timer.reset(2 * HOUR);
    }
    executor().yield_now().await;
    assert_eq!(woken.get(), 0);
    timer.reset(ms(2));
    until(|| woken.get() > 0).await;
    assert!(poll(&mut timer, &waker).is_ready());
    sleep(ms(3)).await;
    assert_eq!(woken.get(), 1);
}

#[run_test]
async fn the_waker_survives() {
    let log = Log::default();
    let drop_log = log.clone();
    let mut timer = Timer::new(HOUR);
    assert!(poll(&mut timer, &on_drop(move || drop_log.push("dropped"))).is_pending());
    timer.reset(2 * HOUR);
    timer.reset(HOUR / 2);
    timer.reset(Duration::MAX);
    timer.reset(HOUR);
    assert_eq!(log.len(), 0);
    drop(timer);
    assert_eq!(log.entries(), ["dropped"]);
}

#[run_test]
async fn before_the_first_poll() {
    let mut timer = Timer::new(HOUR);
    timer.reset(ms(2));
    let latest = Instant::now() + ms(2);
    assert!(timer.await <= latest);

    let mut timer = Timer::new(Duration::ZERO);
    let before = Instant::now();
    timer.reset(ms(5));
    let deadline = timer.await;
    assert!(deadline >= before + ms(5) && deadline <= Instant::now());
}

/// It is a timer like new, armed by its next poll and not before.
#[run_test]
async fn after_its_end() {
    let (waker, woken) = counting();
    let mut timer = Timer::new(ms(1));
    let first = (&mut timer).await;
    for n in 1..=5_u64 {
        timer.reset(ms(2));
        let second = timer_deadline(&mut timer).await;
        assert!(second >= first + ms(2), "round {n}");
    }
    let _ = poll(&mut timer, &waker);
    timer.reset(ms(1));
    sleep(ms(4)).await;
    assert_eq!(woken.get(), 0, "it was not polled since its end");
}

async fn timer_deadline(timer: &mut Timer) -> Instant {
    let deadline = (&mut *timer).await;
    assert!(deadline <= Instant::now());
    assert_eq!(poll_once(timer).await, Some(deadline));
    deadline
}

/// It is due, the executor has not noticed, and the reset wins.
#[run_test]
async fn due_and_unnoticed() {
    let (waker, woken) = counting();
    let mut timer = Timer::new(HOUR);
    assert!(poll(&mut timer, &waker).is_pending());
    timer.reset(Duration::ZERO);
    let before = Instant::now();
    timer.reset(ms(20));
    until(|| woken.get() > 0).await;
    let deadline = timer.await;
    assert!(deadline >= before + ms(20) && deadline <= Instant::now());
    assert_eq!(woken.get(), 1);
}

/// The executor has noticed, but the timer was not polled, and the reset wins: what was woken waits
/// again.
#[run_test]
async fn woken_and_not_polled() {
    let (waker, woken) = counting();
    let mut timer = Timer::new(HOUR);
    assert!(poll(&mut timer, &waker).is_pending());
    timer.reset(Duration::ZERO);
    until(|| woken.get() == 1).await;
    let before = Instant::now();
    timer.reset(ms(20));
    match poll(&mut timer, &waker) {
        // A slow machine: 20 ms went by in one line.
        Poll::Ready(deadline) => assert!(deadline >= before + ms(20)),
        Poll::Pending => {
            until(|| woken.get() == 2).await;
            let deadline = timer.await;
            assert!(deadline >= before + ms(20) && deadline <= Instant::now());
        }
    }
}

/// Resets at random, in a crowd that is in the wheel, end with the last deadline of each.
#[run_test]
async fn at_random_in_a_crowd() {
    let mut numbers = Numbers::new(7);
    let timers: Vec<_> = (0..600).map(|_| shared(Timer::new(HOUR))).collect();
    let waiters: Vec<_> = timers
        .iter()
        .cloned()
        .map(|timer| spawn_local(async move { expiry(&timer).await }))
        .collect();
    let mut bounds = Vec::new();
    for timer in &timers {
        for _ in 0..numbers.below(4) {
            timer.borrow_mut().reset(ms(200 + numbers.below(100_000)));
        }
        let last = Duration::from_micros(numbers.below(60_000));
        let before = Instant::now();
        timer.borrow_mut().reset(last);
        bounds.push(before + last..=Instant::now() + last);
    }
    for (waiter, bounds) in waiters.into_iter().zip(bounds) {
        assert!(bounds.contains(&waiter.await));
    }
}

/// Between two runs of its executor.
#[run_test]
fn while_its_executor_rests() {
    let local = glommio::LocalExecutor::default();
    let mut timer = local.run(async {
        let mut timer = Timer::new(HOUR);
        assert!(poll(&mut timer, Waker::noop()).is_pending());
        timer
    });
    let before = Instant::now();
    timer.reset(ms(5));
    let deadline = local.run(timer);
    assert!(deadline >= before + ms(5) && deadline <= Instant::now());
}
