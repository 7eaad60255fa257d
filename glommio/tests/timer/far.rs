//! Waits that are too long to count: legal, never over, and without effect on other timers.

use glommio::Result;
use glommio::timer::timeout;

use crate::common::prelude::*;
use crate::harness::{HOUR, expiry, ms, poll, shared};

/// From what the kernel cannot count, over what a `u64` of nanoseconds cannot, to what an `Instant`
/// cannot.
fn too_long() -> Vec<Duration> {
    const YEAR: u64 = 31_556_952;
    let mut all: Vec<_> = [145, 146, 147, 290, 292, 293, 583, 584, 585, 1000, 1 << 32]
        .into_iter()
        .map(|years| Duration::from_secs(years * YEAR))
        .collect();
    all.extend([
        Duration::from_nanos(u64::MAX - 1),
        Duration::from_nanos(u64::MAX),
        Duration::from_nanos(u64::MAX) + Duration::from_nanos(1),
        Duration::from_secs(i64::MAX as u64 - 1),
        Duration::from_secs(i64::MAX as u64),
        Duration::from_secs(u64::MAX),
        Duration::MAX - Duration::from_nanos(1),
        Duration::MAX,
    ]);
    all
}

/// Each of them alone, so that it is the one that bounds the executor's sleep; something else wakes
/// it.
#[run_test]
async fn alone_they_let_the_executor_sleep() {
    let before = thread_cpu();
    for wait in too_long() {
        let (waker, woken) = counting();
        let mut timer = Timer::new(wait);
        assert!(poll(&mut timer, &waker).is_pending());
        executor().spawn_blocking(|| thread::sleep(ms(10))).await;
        assert!(poll(&mut timer, &waker).is_pending());
        assert_eq!(woken.get(), 0);
    }
    let awake = thread_cpu() - before;
    assert!(awake < ms(10) * 19 / 2, "awake for {awake:?}");
}

#[run_test]
async fn beside_them_short_timers_fire_as_ever() {
    for copies in [1, 400] {
        let (waker, woken) = counting();
        let mut far = Vec::new();
        for wait in too_long() {
            for _ in 0..copies {
                let mut timer = Timer::new(wait);
                assert!(poll(&mut timer, &waker).is_pending());
                far.push(timer);
            }
        }
        for wait in [Duration::ZERO, Duration::from_nanos(1), ms(1), ms(10)] {
            let before = Instant::now();
            let deadline = Timer::new(wait).await;
            assert!(deadline >= before + wait && deadline <= Instant::now());
        }
        // Leaving in another order than they came.
        while let Some(timer) = far.pop() {
            drop(timer);
            let middle = far.len() / 2;
            if middle < far.len() {
                drop(far.swap_remove(middle));
            }
        }
        assert_eq!(woken.get(), 0);
        Timer::new(ms(1)).await;
    }
}

#[run_test]
async fn everything_that_waits_takes_them() {
    for wait in too_long() {
        let mut timer = Timer::new(wait);
        assert!(poll(&mut timer, Waker::noop()).is_pending());
        timer.reset(wait);
        assert!(poll(&mut timer, Waker::noop()).is_pending());

        let mut slept = Box::pin(sleep(wait));
        assert!(poll_once(&mut slept).await.is_none());

        let never = std::future::pending::<Result<(), ()>>();
        let mut limited = Box::pin(timeout(wait, never));
        assert!(poll_once(&mut limited).await.is_none());

        let log = Log::default();
        let ran = log.clone();
        let action = TimerActionOnce::do_in(wait, async move { ran.push(()) });
        executor().yield_now().await;
        action.rearm_in(wait);
        sleep(Duration::from_micros(100)).await;
        action.cancel().await;
        assert_eq!(log.len(), 0);
    }
}

/// The far end of what an `Instant` can say.
#[run_test]
async fn far_instants() {
    let mut distance = Duration::from_secs(1 << 62);
    let mut latest = Instant::now();
    while distance > Duration::ZERO {
        if let Some(later) = latest.checked_add(distance) {
            latest = later;
        }
        distance /= 2;
    }
    let action = TimerActionOnce::do_at(latest, async { 1 });
    executor().yield_now().await;
    sleep(ms(2)).await;
    action.rearm_at(latest);
    sleep(ms(2)).await;
    action.rearm_in(ms(1));
    assert_eq!(action.join().await, Some(1));
}

/// From never to soon and back, waiting all the time.
#[run_test]
async fn to_and_fro() {
    for wait in too_long() {
        let timer = shared(Timer::new(wait));
        let awaited = Rc::clone(&timer);
        let waiter = spawn_local(async move { expiry(&awaited).await });
        timer.borrow_mut().reset(HOUR);
        timer.borrow_mut().reset(wait);
        timer.borrow_mut().reset(ms(1));
        let deadline = waiter.await;
        assert!(deadline <= Instant::now());
        timer.borrow_mut().reset(wait);
        assert!(poll(&mut timer.borrow_mut(), Waker::noop()).is_pending());
    }
}
