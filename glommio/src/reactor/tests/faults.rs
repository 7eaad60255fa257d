//! A kernel that refuses a system call, or drops completions for lack of memory.

use super::rounds::begin_armed;
use super::*;
use crate::ring::Submission;

#[test]
fn a_sleep_that_ends_by_a_panic_is_over_for_wakers_too() {
    let reactor = reactor(4);
    sleep_a_moment(&reactor);
    reactor.ring().fail_from_now_on();
    let panicked = crate::panic::catch(|| idle_turn(&reactor));
    assert!(panicked.is_err(), "the system call failed");
    let notifier = format!("{:?}", reactor.sleep.notifier());
    assert!(notifier.contains("awake"), "{notifier}");
}

/// Takes completions away, as a kernel does that has no memory for them, until `user_data` is among
/// them.
fn drop_completions(reactor: &Reactor, user_data: u64) {
    let mut dropped = Vec::new();
    while !dropped
        .iter()
        .any(|it: &Completion| it.user_data == user_data)
    {
        reactor
            .ring()
            .enter(Wait::Now)
            .expect("the ring is in order");
        reactor.ring().reap(&mut dropped);
    }
    reactor.driver.completions_lost();
}

/// Sleeps for a moment.
fn sleep_a_moment(reactor: &Rc<Reactor>) {
    let (woken, waker) = counting_waker();
    let mut sleep = timer(reactor);
    sleep.arm(Instant::now() + Duration::from_millis(1), &waker);
    while woken.get() == 0 {
        idle_turn(reactor);
    }
}

#[test]
fn the_end_of_a_slice_that_the_kernel_has_dropped_is_not_waited_for() {
    let reactor = reactor(4);
    begin_armed(&reactor, Duration::from_millis(1));
    assert!(reactor.slice_timeout().is_some());
    drop_completions(&reactor, PREEMPTION);
    sleep_a_moment(&reactor);
    // The next slice ends as it should.
    begin_armed(&reactor, Duration::from_millis(1));
    while !reactor.need_preempt() {}
}

#[test]
fn wake_ups_are_watched_anew_when_the_kernel_has_dropped_completions() {
    let reactor = reactor(4);
    sleep_a_moment(&reactor);
    assert!(reactor.driver.timeouts.watches_wake_ups.get());
    // The end of the watch is among them.
    let end = Submission::cancel(WAKE_UP);
    reactor.ring().push_memoryless(&end).expect("there is room");
    drop_completions(&reactor, WAKE_UP);
    let notifier = Arc::clone(reactor.sleep.notifier());
    let wakes = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(5));
        notifier.notify();
    });
    while !reactor.sleep.notifier().take() {
        idle_turn(&reactor);
    }
    wakes.join().expect("it ends well");
}

#[test]
fn the_end_does_not_wait_for_what_the_kernel_has_dropped() {
    let reactor = reactor(4);
    let notes = eventfd();
    let lost = reactor.submit(Nop);
    let waits = reactor.submit(readable(&notes));
    let key = reactor.in_flight().keys()[0];
    flush(&reactor);
    drop_completions(&reactor, key.user_data());
    reactor.shutdown(&mut FirstPanic::default());
    assert_eq!(reactor.in_flight().len(), 1, "the other one was waited for");
    drop((lost, waits));
}
