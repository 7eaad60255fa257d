//! The states of a timer entry, and what each call does in each of them.

use super::*;
use crate::tuning::DEFAULT;

/// A moment that is long enough ahead not to come while a test runs.
fn far() -> Instant {
    Instant::now() + LONG
}

/// A moment that has passed.
fn past() -> Instant {
    Instant::now()
}

/// An entry for which the queue has called the waker.
fn expired(reactor: &Rc<Reactor>) -> TimerEntry {
    let (woken, waker) = counting_waker();
    let mut entry = timer(reactor);
    entry.arm(past(), &waker);
    turn_until(reactor, || woken.get() == 1);
    entry
}

/// An executor that ends disarms all timers at once; destructors may arm others after that.
#[test]
fn entries_of_before_all_were_disarmed_are_none_of_those_armed_after() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let armed = || {
        let mut entry = timer(&reactor);
        entry.arm(far(), &waker);
        entry
    };
    // In either stage of a wheel.
    for count in [10, 1000] {
        let mut before: Vec<TimerEntry> = (0..count).map(|_| armed()).collect();
        drop(reactor.disarm_timers());
        assert_eq!(reactor.live_timers(), 0);
        assert_eq!(Arc::strong_count(&woken), 2, "no waker is kept");
        let after: Vec<TimerEntry> = (0..count).map(|_| armed()).collect();
        for entry in &mut before {
            assert!(!entry.is_armed() && !entry.disarm() && !entry.set_waker(&waker));
        }
        drop(before);
        assert_eq!(reactor.live_timers(), count);
        assert!(after.iter().all(TimerEntry::is_armed));
    }
    assert_eq!(woken.get(), 0);
}

/// Judging by the round spares a look at the clock, and is for deadlines that are not near.
#[test]
fn a_near_deadline_is_judged_by_the_clock_and_another_by_the_round() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    turn(&reactor);
    let deadline = reactor.preempt.round_start() + DEFAULT.turn_time + Duration::from_millis(1);
    while Instant::now() <= deadline {
        std::hint::spin_loop();
    }
    let (mut idle, mut near) = (timer(&reactor), timer(&reactor));
    idle.expect_within(LONG);
    near.expect_within(DEFAULT.turn_time);
    assert!(near.is_past_or_arm(deadline, &waker));
    assert!(!idle.is_past_or_arm(deadline, &waker), "the round is long");
    assert!(idle.is_past_or_arm(deadline, &waker), "it was told to look");
    let mut expired = expired(&reactor);
    turn(&reactor);
    assert!(expired.is_past_or_arm(reactor.preempt.round_start(), &waker));
    // What is known of an entry gives way to a new deadline.
    expired.expect_within(LONG);
    let deadline = reactor.preempt.round_start() + DEFAULT.turn_time + Duration::from_millis(1);
    while Instant::now() <= deadline {
        std::hint::spin_loop();
    }
    assert!(!expired.is_past_or_arm(deadline, &waker));
    assert!(expired.is_armed());
}
