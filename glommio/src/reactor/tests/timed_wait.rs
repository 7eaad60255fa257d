//! Deadlines that are too near to sleep.

use super::*;
use crate::reactor::sleep_timeout::FAR;

fn is_near(reactor: &Reactor) -> bool {
    let wait = reactor.timers.longest_sleep();
    reactor
        .sleep
        .timed_wait()
        .is_near(wait, reactor.preempt.round_start())
}

#[test]
fn what_is_past_is_near_and_what_is_far_is_not() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    turn(&reactor);
    assert!(!is_near(&reactor), "without a timer a sleep has no end");
    let mut timer = timer(&reactor);
    timer.arm(Instant::now(), &waker);
    assert!(is_near(&reactor));
    for wait in [
        Duration::from_secs(1),
        FAR / 2 + Duration::from_secs(1),
        LONG,
    ] {
        timer.arm(Instant::now() + wait, &waker);
        assert!(!is_near(&reactor), "{wait:?}");
    }
}

#[test]
fn polling_for_a_deadline_ends_with_a_message_and_with_a_completion() {
    let reactor = reactor(4);
    let late = Wait::Until(Instant::now() + LONG);
    reactor.sleep.notifier().notify();
    reactor.sleep.poll_near(&reactor.driver, late);
    assert!(reactor.sleep.notifier().take());

    let (_, waker) = counting_waker();
    let bell = eventfd();
    let mut operation = reactor.submit(readable(&bell));
    assert!(poll(&mut operation, &waker).is_none());
    turn(&reactor);
    signal(&bell);
    reactor.sleep.poll_near(&reactor.driver, late);
    turn(&reactor);
    assert!(poll(&mut operation, &waker).is_some());
    shut_down(&reactor);
}
