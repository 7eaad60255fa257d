//! Timer slack: what may be late, by how much, and what is not.

use super::rounds::arm;
use super::*;

const SLACK: Duration = Duration::from_millis(700);

fn slack_reactor(timer_slack: Duration) -> Rc<Reactor> {
    reactor_with(Settings {
        timer_slack,
        ..settings(4)
    })
}

#[test]
fn a_sleep_ends_by_the_slack_after_the_earliest_deadline() {
    for slack in [Duration::ZERO, Duration::from_nanos(1), SLACK] {
        let reactor = slack_reactor(slack);
        assert!(
            matches!(reactor.timers.longest_sleep(), Wait::Forever),
            "nothing is set"
        );
        let (_, waker) = counting_waker();
        let deadline = Instant::now() + LONG;
        let (mut first, mut second) = (timer(&reactor), timer(&reactor));
        second.arm(deadline + SLACK / 2, &waker);
        first.arm(deadline, &waker);
        assert_eq!(end_of(reactor.timers.longest_sleep()), deadline + slack);
        // Moved or taken back, it is the next one that counts.
        assert!(first.rearm(deadline + SLACK));
        assert_eq!(
            end_of(reactor.timers.longest_sleep()),
            deadline + SLACK / 2 + slack
        );
        second.disarm();
        assert_eq!(
            end_of(reactor.timers.longest_sleep()),
            deadline + SLACK + slack
        );
    }
}

fn end_of(wait: Wait) -> Instant {
    match wait {
        Wait::Until(end) => end,
        other => panic!("it should sleep until some time, not {other:?}"),
    }
}

#[test]
fn a_round_lasts_by_the_slack_longer_than_the_earliest_timer() {
    let reactor = slack_reactor(SLACK);
    let (_, waker) = counting_waker();
    let deadline = Instant::now() + LONG / 2;
    let mut soon = timer(&reactor);
    // Armed before the round, and in the round: unarmed or armed.
    soon.arm(deadline, &waker);
    turn(&reactor);
    assert_eq!(reactor.preempt.slice_end(), deadline + SLACK);
    arm(&reactor);
    let mut sooner = timer(&reactor);
    sooner.arm(deadline - SLACK / 2, &waker);
    assert_eq!(reactor.preempt.slice_end(), deadline + SLACK / 2);
    assert!(sooner.rearm(deadline - LONG / 4));
    assert_eq!(
        reactor.preempt.slice_end(),
        deadline - LONG / 4 + SLACK,
        "moved in place"
    );
}

#[test]
fn slack_does_not_lengthen_a_slice() {
    let reactor = slack_reactor(SLACK);
    let (_, waker) = counting_waker();
    let slice = SLACK / 2;
    reactor.turn(|| slice, true, || false);
    let end = reactor.preempt.slice_end();
    assert_eq!(end, reactor.preempt.round_start() + slice);
    let mut soon = timer(&reactor);
    soon.arm(end - slice / 2, &waker);
    assert_eq!(reactor.preempt.slice_end(), end);
}

/// The memory that a crowd of timers has left: an executor that goes idle turned no more, and kept
/// it forever.
#[test]
fn a_sleep_ends_for_what_a_crowd_of_timers_has_left() {
    for slack in [Duration::ZERO, SLACK] {
        let reactor = slack_reactor(slack);
        let (_, waker) = counting_waker();
        let start = Instant::now();
        let mut timers: Vec<_> = (0..20_000).map(|_| timer(&reactor)).collect();
        timers
            .iter_mut()
            .for_each(|it| it.arm(start + LONG, &waker));
        drop(timers);
        // Within the windows over which a peak is remembered.
        let end = end_of(reactor.timers.longest_sleep());
        assert!(end <= Instant::now() + Duration::from_secs(30));
        reactor.timers.expire(start + Duration::from_secs(100));
        reactor.timers.expire(start + Duration::from_secs(200));
        for _ in 0..200 {
            reactor.timers.expire(start + Duration::from_secs(300));
        }
        assert!(matches!(reactor.timers.longest_sleep(), Wait::Forever));
    }
}

/// A crowd of timers on a coarse level of the wheel is made ready ahead of its time; slack does not
/// put that off.
#[test]
fn a_sleep_ends_in_time_for_a_crowd_of_timers() {
    let reactor = slack_reactor(SLACK);
    let (_, waker) = counting_waker();
    let deadline = Instant::now() + LONG;
    let mut timers: Vec<_> = (0..20_000).map(|_| timer(&reactor)).collect();
    timers.iter_mut().for_each(|it| it.arm(deadline, &waker));
    let end = end_of(reactor.timers.longest_sleep());
    if cfg!(feature = "timing-wheel") {
        assert!(end < deadline && end > deadline - Duration::from_secs(2));
    } else {
        assert_eq!(end, deadline + SLACK);
    }
}

/// A timer that is re-armed after a peak moves to where the others are, and its entry knows.
#[test]
fn an_entry_that_is_rearmed_after_a_peak_stays_armed() {
    let reactor = reactor_with(settings(4));
    let (_, waker) = counting_waker();
    let start = Instant::now();
    let mut timers: Vec<_> = (0..20_000).map(|_| timer(&reactor)).collect();
    timers
        .iter_mut()
        .for_each(|it| it.arm(start + LONG, &waker));
    let mut survivors: Vec<_> = timers.into_iter().step_by(2048).collect();
    for n in 1..20 {
        reactor.timers.expire(start + Duration::from_secs(10 * n));
        for survivor in &mut survivors {
            assert!(survivor.rearm(start + LONG + Duration::from_secs(n)));
            assert!(survivor.is_armed());
        }
    }
    assert_eq!(reactor.live_timers(), survivors.len());
    drop(survivors);
    assert_eq!(reactor.live_timers(), 0);
}
