//! Sleeps towards far deadlines.

use super::*;
use crate::reactor::sleep_timeout::{FAR, PATIENCE as FAR_SLEEPS};

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

fn rings_at(reactor: &Reactor) -> Option<Instant> {
    reactor.alarm_clock.rings_at()
}

#[test]
fn sleeps_towards_a_far_deadline_set_one_timeout() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    let deadline = Instant::now() + LONG;
    let mut far = alarm(&reactor);
    far.set(deadline, &waker);
    sleep_and_be_woken(&reactor, FAR_SLEEPS);
    assert_eq!(rings_at(&reactor), None, "not before it is worth it");
    sleep_and_be_woken(&reactor, 1);
    assert_eq!(rings_at(&reactor), Some(deadline));
    // What is behind it is none of the kernel's business, what comes before it is.
    assert!(far.postpone(deadline + LONG));
    sleep_and_be_woken(&reactor, FAR_SLEEPS * 2);
    assert_eq!(rings_at(&reactor), Some(deadline));
    assert!(far.postpone(deadline - FAR));
    sleep_and_be_woken(&reactor, FAR_SLEEPS * 2);
    assert_eq!(rings_at(&reactor), Some(deadline - FAR));
    shut_down(&reactor);
}

#[test]
fn near_deadlines_are_told_with_each_sleep() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    for _ in 0..FAR_SLEEPS * 2 {
        let deadline = Instant::now() + Duration::from_millis(1);
        let mut near = alarm(&reactor);
        near.set(deadline, &waker);
        let before = woken.get();
        while woken.get() == before {
            idle_turn(&reactor);
        }
        assert!(Instant::now() >= deadline);
    }
    assert_eq!(rings_at(&reactor), None);
}

#[test]
fn the_timeout_ends_the_sleep_for_whatever_is_due_then() {
    let reactor = reactor(4);
    // It goes off for the deadline that it was set for, and for nothing if that has moved away.
    for distance in [Duration::ZERO, FAR * 2] {
        let (woken, waker) = counting_waker();
        let mut first = alarm(&reactor);
        let at = loop {
            first.set(Instant::now() + FAR * 8, &waker);
            sleep_and_be_woken(&reactor, FAR_SLEEPS + 1);
            if let Some(at) = rings_at(&reactor) {
                break at;
            }
        };
        let due = at + distance;
        first.set(due, &waker);
        let before = woken.get();
        while woken.get() == before {
            idle_turn(&reactor);
        }
        assert!(Instant::now() >= due);
        assert_eq!(rings_at(&reactor), None, "it has rung");
    }
    shut_down(&reactor);
}

#[test]
fn an_earlier_deadline_is_not_slept_past() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let mut far = alarm(&reactor);
    far.set(Instant::now() + LONG, &waker);
    sleep_and_be_woken(&reactor, FAR_SLEEPS + 1);
    assert!(rings_at(&reactor).is_some());
    for wait in [FAR / 2, FAR * 2] {
        let (soon_woken, soon_waker) = counting_waker();
        let deadline = Instant::now() + wait;
        let mut soon = alarm(&reactor);
        soon.set(deadline, &soon_waker);
        while soon_woken.get() == 0 {
            assert!(Instant::now() < deadline + PATIENCE);
            idle_turn(&reactor);
        }
        assert!(Instant::now() >= deadline);
    }
    assert_eq!(woken.get(), 0);
    shut_down(&reactor);
}
