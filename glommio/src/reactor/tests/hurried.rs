//! Rounds that are to end soon, and how often the clock is read in one.

use super::preempt::Phase;
use super::rounds::run_until_preempted;
use super::*;
use crate::reactor::preempt::MIN_SLICE;
use crate::tuning::DEFAULT;

/// Ends polls until the round is over, with tasks left that were woken before it or not. Returns
/// how long it has lasted at least.
fn end_polls(reactor: &Reactor, woken_wait: bool) -> Duration {
    let start = reactor.preempt.round_start();
    loop {
        let before = Instant::now();
        if reactor.ends_round(woken_wait) {
            assert!(reactor.ends_round(woken_wait), "and stays over");
            return Instant::now() - start;
        }
        assert!(before < start + LONG, "it does not end");
    }
}

#[test]
fn a_hurried_round_asks_each_task_soon_and_waits_for_those_that_were_woken() {
    let reactor = reactor(4);
    turn(&reactor);
    reactor.shorten_slice();
    run_until_preempted(&reactor);
    assert!(Instant::now() >= reactor.preempt.round_start() + MIN_SLICE);
    assert_eq!(reactor.preempt.phase(), Phase::Unarmed, "the round goes on");
    let lasted = end_polls(&reactor, true);
    assert!(lasted >= DEFAULT.hurried, "{lasted:?}");
    assert!(
        reactor.slice_timeout().is_none(),
        "the kernel is left alone"
    );

    turn(&reactor);
    reactor.shorten_slice();
    let lasted = end_polls(&reactor, false);
    assert!(lasted >= MIN_SLICE, "{lasted:?}");
    assert!(reactor.slice_timeout().is_none());

    turn(&reactor);
    assert!(!reactor.preempt.is_hurried(), "the next round is not");
}

#[test]
fn each_task_of_a_hurried_round_has_the_same_time() {
    let reactor = reactor(4);
    let begun = Instant::now();
    let mut tasks = 0;
    // A round in which the thread is stopped has one task.
    while tasks < 2 {
        assert!(begun.elapsed() < PATIENCE);
        turn(&reactor);
        reactor.shorten_slice();
        run_until_preempted(&reactor);
        tasks = 1;
        loop {
            let before = Instant::now();
            if reactor.ends_round(true) {
                break;
            }
            let end = run_until_preempted(&reactor);
            assert!(end >= before + MIN_SLICE, "{:?}", end - before);
            tasks += 1;
        }
    }
}

#[test]
fn a_timer_ends_a_hurried_round() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    turn(&reactor);
    reactor.shorten_slice();
    let mut entry = timer(&reactor);
    let deadline = reactor.preempt.round_start() + Duration::from_nanos(1);
    entry.arm(deadline, &waker);
    run_until_preempted(&reactor);
    assert!(reactor.ends_round(true), "also for tasks that were woken");
}

#[test]
fn a_timer_that_is_due_soon_leaves_a_hurried_round_the_shortest_slice() {
    let begun = Instant::now();
    let preempt = Preempt::new(notifier(), begun);
    for (length, hurried) in [(Duration::from_nanos(1), MIN_SLICE), (LONG, LONG)] {
        preempt.begin_until(begun, begun + length);
        preempt.shorten_slice();
        assert_eq!(preempt.slice_end(), begun + hurried);
    }
}

/// Polls of these lengths, one after the other; how many of them each reading of the clock was for.
fn readings(preempt: &Preempt, begun: Instant, polls: &[Duration]) -> Vec<usize> {
    preempt.begin_until(begun, begun + LONG);
    let (mut now, mut readings, mut unread) = (begun, Vec::new(), 0);
    for &poll in polls {
        now += poll;
        unread += 1;
        if preempt.ends_stretch() {
            preempt.begin_stretch(now);
            readings.push(unread);
            unread = 0;
        }
    }
    readings
}

#[test]
fn only_short_polls_share_a_reading_of_the_clock() {
    let begun = Instant::now();
    let polls = |length| readings(&Preempt::new(notifier(), begun), begun, &[length; 31]);
    assert_eq!(polls(Duration::from_nanos(100)), [1, 2, 4, 8, 8, 8]);
    assert_eq!(polls(Duration::from_micros(1))[..5], [1, 2, 4, 4, 4]);
    assert_eq!(polls(Duration::from_micros(3)), [1; 31]);
    assert_eq!(polls(Duration::from_millis(4)), [1; 31]);
}

#[test]
fn long_polls_that_follow_short_ones_are_missed_once_and_not_in_every_round() {
    let (begun, short) = (Instant::now(), Duration::from_nanos(100));
    let mut polls = [short; 31];
    polls[15..].fill(Duration::from_millis(4));
    let preempt = Preempt::new(notifier(), begun);
    assert_eq!(readings(&preempt, begun, &polls)[..5], [1, 2, 4, 8, 8]);
    for _ in 0..5 {
        assert_eq!(readings(&preempt, begun, &polls), [1; 31]);
    }
    let calm = [short; 1000];
    assert_eq!(readings(&preempt, begun, &calm).last(), Some(&8));
}
