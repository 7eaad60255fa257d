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

#[test]
fn an_entry_is_armed_by_a_poll_before_its_deadline_and_expired_by_one_after_it() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    for expects_soon in [false, true] {
        let mut entry = timer(&reactor);
        if expects_soon {
            entry.expect_at(Instant::now());
        }
        assert!(!entry.is_armed());
        assert!(!entry.is_past_or_arm(far(), &waker));
        assert!(entry.is_armed());
        assert_eq!(reactor.live_timers(), 1);
        assert!(entry.is_past_or_arm(past(), &waker));
        assert!(!entry.is_armed());
        assert_eq!(reactor.live_timers(), 0, "it is taken out of the queue");
        assert!(entry.is_past_or_arm(past(), &waker), "still");
    }
    assert_eq!(woken.get(), 0);
    drop(waker);
    assert_eq!(Arc::strong_count(&woken), 1, "no waker is kept");
}

#[test]
fn an_expired_entry_is_armed_again_by_a_poll_before_a_new_deadline() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let mut entry = expired(&reactor);
    assert!(!entry.is_armed());
    assert!(!entry.is_past_or_arm(far(), &waker));
    assert!(entry.is_armed());
    let deadline = past();
    assert!(entry.rearm(deadline));
    turn_until(&reactor, || woken.get() == 1);
    assert!(!entry.is_armed() && entry.is_past_or_arm(deadline, &waker));
}

#[test]
fn what_is_not_armed_is_neither_moved_nor_told_of_another_waker() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    let mut disarmed = timer(&reactor);
    disarmed.arm(far(), &waker);
    disarmed.disarm();
    for mut entry in [timer(&reactor), expired(&reactor), disarmed] {
        assert!(!entry.rearm(far()) && !entry.set_waker(&waker));
        assert!(!entry.is_armed());
        assert_eq!(reactor.live_timers(), 0);
        entry.arm(far(), &waker);
        assert!(entry.rearm(far()) && entry.set_waker(&waker));
        assert!(entry.is_armed());
    }
    assert_eq!(reactor.live_timers(), 0, "dropped, they are disarmed");
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

#[test]
fn arming_an_armed_entry_moves_it() {
    let reactor = reactor(4);
    let ((first, early), (last, late)) = (counting_waker(), counting_waker());
    let mut entry = timer(&reactor);
    entry.arm(far(), &early);
    entry.arm(past(), &late);
    assert_eq!(reactor.live_timers(), 1);
    turn_until(&reactor, || last.get() == 1);
    assert_eq!(first.get(), 0);
}

#[test]
fn an_armed_entry_stays_at_its_deadline_and_wakes_who_polled_last() {
    let reactor = reactor(4);
    let ((first, early), (last, late)) = (counting_waker(), counting_waker());
    let mut entry = timer(&reactor);
    let deadline = Instant::now() + Duration::from_millis(2);
    entry.expect_at(Instant::now());
    if entry.is_past_or_arm(deadline, &early) || entry.is_past_or_arm(deadline, &late) {
        eprintln!("skipped: this thread has been stopped for 2 ms");
        return;
    }
    turn_until(&reactor, || last.get() == 1);
    assert!(Instant::now() >= deadline);
    assert_eq!(first.get(), 0);
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
