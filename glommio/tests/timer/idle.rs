//! Executors that have nothing to do but wait.

use nix::sys::resource::{UsageWho, getrusage};

use crate::common::prelude::*;
use crate::harness::{HOUR, ms, poll};

/// How often this thread has given up its CPU to wait.
pub fn voluntary_switches() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD)
        .expect("threads may ask for their own usage")
        .voluntary_context_switches()
}

/// Sleeps for a second with `sleepers` others and says how often it woke and what that cost.
fn one_second_beside(sleepers: usize) -> (i64, Duration) {
    run(async move {
        let mut numbers = Numbers::new(11);
        let tasks: Vec<_> = (0..sleepers)
            .map(|_| {
                let wait = HOUR + ms(numbers.below(3_600_000));
                spawn_local(sleep(wait))
            })
            .collect();
        // A first one, so that whatever is done once is done.
        sleep(ms(5)).await;
        let (switches, cpu) = (voluntary_switches(), thread_cpu());
        sleep(ms(1000)).await;
        let used = (voluntary_switches() - switches, thread_cpu() - cpu);
        drop(tasks);
        used
    })
}

/// One sleep is one wait, whatever other tasks sleep. A tick of the preemption timer (100 ms) would
/// be ten, a tick of the wheel some thousand.
#[test]
fn it_sleeps_through() {
    for sleepers in [0, 100, 10_000] {
        let (switches, cpu) = one_second_beside(sleepers);
        assert!(switches <= 4, "{switches} waits beside {sleepers}");
        assert!(cpu < ms(50), "{cpu:?} of CPU time beside {sleepers}");
    }
}

/// Timers that were cancelled do not wake the executor at what were their deadlines.
#[run_test]
async fn cancelled_timers_do_not_wake_the_executor() {
    for count in [50, 2000] {
        let mut timers: Vec<_> = (0..count)
            .map(|n| Timer::new(ms(100 + n * 200 / count)))
            .collect();
        for timer in &mut timers {
            let _ = poll(timer, Waker::noop());
        }
        drop(timers);
        let before = voluntary_switches();
        sleep(ms(400)).await;
        let waits = voluntary_switches() - before;
        // A queue may look once per coarseness at a deadline that is no more.
        assert!(
            waits <= 12,
            "{waits} waits in one sleep after {count} cancelled timers"
        );
    }
}

/// Idle timeouts that are pushed ahead: what was due before they were is no reason to wake.
#[run_test]
async fn timers_moved_away_do_not_wake_the_executor() {
    let mut timers: Vec<_> = (0..1000).map(|n| Timer::new(ms(100 + n / 5))).collect();
    for timer in &mut timers {
        let _ = poll(timer, Waker::noop());
        timer.reset(HOUR);
    }
    let before = voluntary_switches();
    sleep(ms(400)).await;
    let waits = voluntary_switches() - before;
    assert!(waits <= 12, "{waits} waits in one sleep");
}

/// A repeating action wakes the executor as often as it runs, and no more.
#[run_test]
async fn a_wake_per_run() {
    let action = TimerActionRepeat::repeat(|| async { Some(ms(20)) });
    sleep(ms(5)).await;
    let before = voluntary_switches();
    sleep(ms(500)).await;
    let waits = voluntary_switches() - before;
    assert!(waits <= 25 + 5, "{waits} waits for 25 runs");
    action.cancel().await;
}

/// Removing the slice's timeout before a sleep leaves no completion that ends the sleep.
#[run_test]
async fn sleeps_after_long_rounds_are_whole() {
    let before = voluntary_switches();
    for _ in 0..20 {
        let round = Instant::now();
        // Long enough for the timer of the round to be armed in the kernel.
        while round.elapsed() < ms(1) {
            executor().yield_if_needed().await;
        }
        sleep(ms(10)).await;
    }
    let waits = voluntary_switches() - before;
    assert!(waits <= 20 * 3, "{waits} waits for 20 sleeps");
}
