//! Sleeps towards far deadlines.

use super::*;
use crate::reactor::sleep_timeout::FAR;
use crate::tuning::DEFAULT;

/// Sleeps as an executor does, ended at once by a message each time.
fn sleep_and_be_woken(reactor: &Rc<Reactor>, times: u32) {
    let (_, waker) = counting_waker();
    for _ in 0..times {
        let bell = eventfd();
        bell.write(1).expect("an eventfd takes a small number");
        let mut operation = reactor.submit(readable(&bell));
        while poll(&mut operation, &waker).is_none() {
            idle_turn(reactor);
        }
    }
}

fn armed_at(reactor: &Reactor) -> Option<Instant> {
    reactor.driver.timeouts.sleep_timeout.armed_at()
}

#[test]
fn sleeps_towards_a_far_deadline_arm_one_timeout() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    let deadline = Instant::now() + LONG;
    let mut far = timer(&reactor);
    far.arm(deadline, &waker);
    sleep_and_be_woken(&reactor, DEFAULT.far_sleeps);
    assert_eq!(armed_at(&reactor), None, "not before it is worth it");
    sleep_and_be_woken(&reactor, 1);
    assert_eq!(armed_at(&reactor), Some(deadline));
    // The kernel is told of what comes before it, and not of what is behind.
    assert!(far.rearm(deadline + LONG));
    sleep_and_be_woken(&reactor, DEFAULT.far_sleeps * 2);
    assert_eq!(armed_at(&reactor), Some(deadline));
    assert!(far.rearm(deadline - FAR));
    sleep_and_be_woken(&reactor, DEFAULT.far_sleeps * 2);
    assert_eq!(armed_at(&reactor), Some(deadline - FAR));
    shut_down(&reactor);
}

#[test]
fn near_deadlines_are_told_with_each_sleep() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    for _ in 0..DEFAULT.far_sleeps * 2 {
        let deadline = Instant::now() + Duration::from_millis(1);
        let mut near = timer(&reactor);
        near.arm(deadline, &waker);
        let before = woken.get();
        while woken.get() == before {
            idle_turn(&reactor);
        }
        assert!(Instant::now() >= deadline);
    }
    assert_eq!(armed_at(&reactor), None);
}

#[test]
fn the_timeout_ends_the_sleep_for_whatever_is_due_then() {
    let reactor = reactor(4);
    // It expires for the deadline that it was armed for, and for nothing if that has moved away.
    for distance in [Duration::ZERO, FAR * 2] {
        let (woken, waker) = counting_waker();
        let mut first = timer(&reactor);
        let at = loop {
            first.arm(Instant::now() + FAR * 8, &waker);
            sleep_and_be_woken(&reactor, DEFAULT.far_sleeps + 1);
            if let Some(at) = armed_at(&reactor) {
                break at;
            }
        };
        let due = at + distance;
        first.arm(due, &waker);
        let before = woken.get();
        // On a machine that stands still the timer may fire a turn before the timeout is seen.
        while woken.get() == before || armed_at(&reactor).is_some() {
            assert!(Instant::now() < due + PATIENCE, "it never expires");
            idle_turn(&reactor);
        }
        assert!(Instant::now() >= due);
    }
    shut_down(&reactor);
}

#[test]
fn an_earlier_deadline_is_not_slept_past() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let mut far = timer(&reactor);
    far.arm(Instant::now() + LONG, &waker);
    sleep_and_be_woken(&reactor, DEFAULT.far_sleeps + 1);
    assert!(armed_at(&reactor).is_some());
    for wait in [FAR / 2, FAR * 2] {
        let (soon_woken, soon_waker) = counting_waker();
        let deadline = Instant::now() + wait;
        let mut soon = timer(&reactor);
        soon.arm(deadline, &soon_waker);
        while soon_woken.get() == 0 {
            assert!(Instant::now() < deadline + PATIENCE);
            idle_turn(&reactor);
        }
        assert!(Instant::now() >= deadline);
    }
    assert_eq!(woken.get(), 0);
    shut_down(&reactor);
}
