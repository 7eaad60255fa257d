//! A clock that moves when nothing else can happen.

use super::*;
use crate::clock::{self, Clock};

#[test]
fn a_mark_of_work_that_is_done_does_not_stop_the_clock() {
    let reactor = reactor(4);
    let start = Instant::now();
    let before = clock::replace(Clock::Paused(start));
    let (woken, waker) = counting_waker();
    let mut timer = timer(&reactor);
    timer.arm(start + LONG, &waker);
    reactor.ring().mark_deferred_work();
    // One to reach the deadline, one to expire what is due then.
    for _ in 0..2 {
        if woken.get() == 0 {
            idle_turn(&reactor);
        }
    }
    assert_eq!(woken.get(), 1);
    assert_eq!(clock::now(), start + LONG);
    clock::replace(before);
}
