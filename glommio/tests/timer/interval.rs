//! Ticks at even distances, and what becomes of those that are missed.

use glommio::timer::{MissedTickBehavior, interval, interval_at, sleep_until};

use crate::common::prelude::*;
use crate::harness::{HOUR, ms};

#[run_test]
async fn the_first_tick_is_at_once_and_the_others_are_on_the_grid() {
    let before = Instant::now();
    let mut ticks = interval(ms(2));
    assert_eq!(ticks.period(), ms(2));
    let start = poll_once(ticks.tick()).await.expect("it is due");
    assert!((before..=Instant::now()).contains(&start));
    for n in 1..=20 {
        let tick = ticks.tick().await;
        assert_eq!(tick, start + ms(2) * n);
        assert!(Instant::now() >= tick, "early");
    }
}

#[run_test]
async fn a_start_ahead_is_waited_for() {
    let start = Instant::now() + ms(10);
    let mut ticks = interval_at(start, HOUR);
    assert!(
        poll_once(ticks.tick())
            .await
            .is_none_or(|tick| tick == start && Instant::now() >= start)
    );
    let mut late = interval_at(start, ms(1));
    assert_eq!(late.tick().await, start);
    assert!(Instant::now() >= start);
}

/// A tick that is late by what every tick is late does not move the schedule.
#[run_test]
async fn a_delay_does_not_drift() {
    let mut ticks = interval(ms(100));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let start = ticks.tick().await;
    let first = ticks.tick().await;
    let late = first.elapsed();
    let second = ticks.tick().await;
    // Except on a machine that came too late by itself.
    assert!(second == start + ms(200) || late + ms(1) >= ms(5));
}

/// More periods than 32 bits count have been missed.
#[run_test]
async fn very_many_ticks_are_skipped() {
    let period = Duration::from_nanos(7);
    let Some(start) = Instant::now().checked_sub(Duration::from_secs(100)) else {
        return println!("skipped: the machine has just started");
    };
    let mut ticks = interval_at(start, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    assert_eq!(ticks.tick().await, start);
    let next = ticks.tick().await;
    assert!(next - start > Duration::from_secs(100));
    assert_eq!((next - start).as_nanos() % 7, 0);
}

#[run_test]
async fn as_a_stream_it_gives_the_scheduled_instants() {
    let ticks: Vec<_> = interval(ms(1)).take(5).collect().await;
    for pair in ticks.windows(2) {
        assert_eq!(pair[1] - pair[0], ms(1));
    }
}

#[run_test]
async fn a_reset_starts_anew() {
    let mut ticks = interval(ms(3));
    let first = ticks.tick().await;
    sleep_until(first + ms(2)).await;
    let before = Instant::now();
    ticks.reset();
    let next = ticks.tick().await;
    assert!(next >= before + ms(3));
    assert_eq!(ticks.tick().await, next + ms(3));
}

#[run_test]
async fn a_period_without_end_ticks_once() {
    let mut ticks = interval(Duration::MAX);
    ticks.tick().await;
    assert!(poll_once(ticks.tick()).await.is_none());
    ticks.reset();
    assert!(poll_once(ticks.tick()).await.is_none());
}

#[test]
fn what_cannot_be_made_says_why() {
    let message = run(async { panic_of(|| interval(Duration::ZERO)) });
    assert!(message.contains("longer than zero"), "{message}");
    let message = panic_of(|| interval(ms(1)));
    assert!(message.contains("no LocalExecutor"), "{message}");
}

#[run_test]
fn it_outlives_its_executor() {
    let mut ticks = LocalExecutor::default().run(async {
        let mut ticks = interval(HOUR);
        ticks.tick().await;
        assert!(poll_once(ticks.tick()).await.is_none());
        ticks
    });
    LocalExecutor::default().run(async {
        assert!(poll_once(ticks.tick()).await.is_none());
        ticks.reset();
        drop(ticks);
    });
}

#[run_test]
async fn sleeping_until_an_instant() {
    for wait in [Duration::ZERO, Duration::from_micros(10), ms(2)] {
        let deadline = Instant::now() + wait;
        sleep_until(deadline).await;
        assert!(Instant::now() >= deadline);
    }
    assert!(poll_once(sleep_until(Instant::now())).await.is_some());
    assert!(
        poll_once(sleep_until(Instant::now() + HOUR))
            .await
            .is_none()
    );
}
