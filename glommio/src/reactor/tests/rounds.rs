//! Turns: sleeping, timers, and when a round of tasks should end.

use std::thread;

use super::preempt::Phase;
use super::timers::EXPIRE_BUDGET;
use super::*;
use crate::reactor::preempt::MIN_SLICE;
use crate::tuning::DEFAULT;

/// Asks as a running task does, until the answer is yes.
pub(super) fn run_until_preempted(reactor: &Reactor) -> Instant {
    let started = Instant::now();
    while !reactor.need_preempt() {
        assert!(started.elapsed() < PATIENCE, "the slice never ends");
        std::hint::spin_loop();
    }
    Instant::now()
}

/// Asks until the round lasts, that is until the kernel watches it.
pub(super) fn arm(reactor: &Reactor) {
    while reactor.preempt.phase() == Phase::Unarmed {
        assert!(!reactor.need_preempt(), "nothing is due");
    }
    assert_eq!(reactor.preempt.phase(), Phase::Armed);
}

/// Begins a round of a short slice that lasts until the kernel watches it: one in which the thread is
/// stopped is over before, and another is begun.
pub(super) fn begin_armed(reactor: &Reactor, slice: Duration) {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < PATIENCE, "no round is armed");
        reactor.turn(|| slice, true, || false);
        while reactor.preempt.phase() == Phase::Unarmed && !reactor.need_preempt() {}
        if reactor.preempt.phase() == Phase::Armed {
            return;
        }
    }
}

#[test]
fn who_is_woken_by_leaving_the_last_round_is_not_slept_on() {
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    turn(&reactor);
    arm(&reactor);
    // Completes in the middle of the round, is reaped while the slice's timeout is taken back.
    let mut operation = reactor.submit(Nop);
    assert!(poll(&mut operation, &waker).is_none());
    reactor.turn(|| LONG, true, || woken.get() == 0);
    assert_eq!(woken.get(), 1);
}

/// An instant before the reactor's first: timers that are due then need not be brought down in a
/// wheel, however long the machine stood still while they were armed.
fn before_all() -> Instant {
    Instant::now()
}

#[test]
fn timers_expire_in_bounded_numbers_and_the_rest_keeps_the_executor_awake() {
    for spin in [Duration::ZERO, Duration::from_millis(1)] {
        let due = before_all();
        let reactor = reactor_spinning(4, spin);
        let (woken, waker) = counting_waker();
        let timers = 4 * EXPIRE_BUDGET + 7;
        let mut armed: Vec<_> = (0..timers).map(|_| timer(&reactor)).collect();
        armed.iter_mut().for_each(|it| it.arm(due, &waker));
        for turn in 1..=5 {
            // Idle, as if no task ran that they woke: the turn does not sleep over those that are
            // left.
            idle_turn(&reactor);
            assert_eq!(woken.get(), timers.min(turn * EXPIRE_BUDGET), "{spin:?}");
            assert_eq!(reactor.timers.has_more_due(), woken.get() < timers);
        }
    }
}

#[test]
fn the_next_batch_of_timers_waits_for_the_tasks_of_the_last() {
    let due = before_all();
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let mut timers: Vec<_> = (0..2 * EXPIRE_BUDGET).map(|_| timer(&reactor)).collect();
    timers.iter_mut().for_each(|it| it.arm(due, &waker));
    let first_batch = Instant::now();
    assert!(turn(&reactor).batch_is_partial);
    assert_eq!(woken.get(), EXPIRE_BUDGET);
    // I/O goes on meanwhile, and tasks are asked to make room for it, turn by turn.
    let mut turns = 0;
    while woken.get() == EXPIRE_BUDGET {
        let mut operation = reactor.submit(Nop);
        let (answered, asker) = counting_waker();
        assert!(poll(&mut operation, &asker).is_none());
        let turn = reactor.turn(|| LONG, false, || false);
        assert!(turn.woke && !turn.parked);
        if woken.get() == EXPIRE_BUDGET {
            assert!(!turn.batch_is_partial, "in this turn");
            assert_eq!(turn.round_start, reactor.preempt.round_start());
            let shortest = reactor.preempt.round_start() + MIN_SLICE;
            assert_eq!(reactor.preempt.slice_end(), shortest);
        }
        assert_eq!(answered.get(), 1);
        turns += 1;
    }
    // Others that keep the executor busy do not put it off for long.
    assert!(first_batch.elapsed() >= DEFAULT.batch_patience);
    assert!(turns > 0);
    assert_eq!(woken.get(), 2 * EXPIRE_BUDGET);
}

/// The clock goes on while the thread has no CPU, but the tasks of a batch get nowhere.
#[test]
fn time_in_which_no_task_could_run_does_not_bring_the_next_batch() {
    let due = before_all();
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let mut timers: Vec<_> = (0..4 * EXPIRE_BUDGET).map(|_| timer(&reactor)).collect();
    timers.iter_mut().for_each(|it| it.arm(due, &waker));
    for batch in 1..4 {
        assert!(turn(&reactor).batch_is_partial);
        // Longer each time, as nothing that is left of one batch may count for the next.
        thread::sleep(4 * batch * DEFAULT.batch_patience);
        assert!(!reactor.turn(|| LONG, false, || false).batch_is_partial);
        assert_eq!(woken.get(), batch as usize * EXPIRE_BUDGET);
    }
}

#[test]
fn a_batch_that_is_worked_off_is_followed_by_the_next() {
    let due = before_all();
    let reactor = reactor(4);
    let (woken, waker) = counting_waker();
    let mut timers: Vec<_> = (0..3 * EXPIRE_BUDGET).map(|_| timer(&reactor)).collect();
    timers.iter_mut().for_each(|it| it.arm(due, &waker));
    for batch in 1..=3 {
        let turn = turn(&reactor);
        assert!(turn.woke);
        assert_eq!(woken.get(), batch * EXPIRE_BUDGET);
        assert_eq!(turn.batch_is_partial, batch < 3);
    }
    // With none left over there is no batch to wait for.
    let mut soon = timer(&reactor);
    soon.arm(due, &waker);
    reactor.turn(|| LONG, false, || false);
    assert_eq!(woken.get(), 3 * EXPIRE_BUDGET + 1);
}

#[test]
fn a_short_round_does_not_trouble_the_kernel() {
    let reactor = reactor(4);
    let mut short = 0;
    for _ in 0..1000 {
        // A round before this one may have been long, on a machine that stood still.
        let armed_at = reactor.slice_timeout();
        let started = Instant::now();
        turn(&reactor);
        let asked = reactor.need_preempt();
        if started.elapsed() < MIN_SLICE {
            assert!(!asked);
            assert_eq!(reactor.slice_timeout(), armed_at);
            short += 1;
        }
    }
    assert!(short > 0, "this machine never runs for 20 µs at a time");
}

/// An idle turn that need not sleep, because something completes at once.
fn idle_turn_with_work(reactor: &Rc<Reactor>) {
    let mut operation = reactor.submit(Nop);
    let (woken, waker) = counting_waker();
    assert!(poll(&mut operation, &waker).is_none());
    while poll(&mut operation, &waker).is_none() {
        // It may complete before the sleep, in which case there is work.
        reactor.turn(|| LONG, true, || woken.get() == 0);
    }
}

#[test]
fn the_timeout_of_a_slice_is_armed_moved_and_taken_back() {
    let reactor = reactor(4);
    turn(&reactor);
    arm(&reactor);
    let slice_end = reactor.preempt.slice_end();
    assert_eq!(reactor.slice_timeout(), Some(slice_end), "armed");
    // An earlier deadline moves it.
    let (woken, waker) = counting_waker();
    let mut soon = timer(&reactor);
    let deadline = Instant::now() + Duration::from_millis(20);
    soon.arm(deadline, &waker);
    assert_eq!(reactor.preempt.slice_end(), deadline);
    assert_eq!(
        reactor.preempt.phase(),
        Phase::Unarmed,
        "to be looked at again"
    );
    while reactor.preempt.phase() == Phase::Unarmed {
        reactor.need_preempt();
    }
    if reactor.preempt.phase() == Phase::Armed {
        assert_eq!(reactor.slice_timeout(), Some(deadline), "moved");
    }
    assert!(run_until_preempted(&reactor) >= deadline);
    turn(&reactor);
    assert_eq!(woken.get(), 1);
    // A later round moves it the other way, and going to sleep takes it back.
    arm(&reactor);
    assert_eq!(reactor.slice_timeout(), Some(reactor.preempt.slice_end()));
    idle_turn_with_work(&reactor);
    assert_eq!(reactor.slice_timeout(), None, "taken back");
    // And it can be armed again.
    turn(&reactor);
    arm(&reactor);
    assert!(reactor.slice_timeout().is_some());
}

#[test]
fn the_end_of_a_slice_is_not_lost_when_it_is_reaped_in_the_middle_of_a_round() {
    let reactor = reactor(4);
    // On a machine that stands still for a moment, a slice may be over before the kernel watches
    // it.
    while reactor.preempt.phase() != Phase::Armed {
        reactor.turn(|| Duration::from_millis(2), true, || false);
        while reactor.preempt.phase() == Phase::Unarmed {
            reactor.need_preempt();
        }
    }
    run_until_preempted(&reactor);
    // What a submission in the middle of the round does.
    while reactor.slice_timeout().is_some() {
        reactor.driver.enter(Wait::Now);
        reactor.driver.reap();
    }
    assert!(!reactor.ring().work_pending(), "its completion is gone");
    assert!(reactor.need_preempt());
    turn(&reactor);
    assert!(!reactor.need_preempt(), "a new round");
}

#[test]
fn limits_only_shorten_a_round() {
    let reactor = reactor(4);
    turn(&reactor);
    let (start, end) = (reactor.preempt.round_start(), reactor.preempt.slice_end());
    assert!(end >= start + LONG);
    reactor.limit_slice(reactor.round_start(), Duration::MAX);
    assert_eq!(reactor.preempt.slice_end(), end);
    reactor.limit_slice(reactor.round_start(), Duration::from_secs(10));
    assert_eq!(reactor.preempt.slice_end(), start + Duration::from_secs(10));
    reactor.limit_slice(reactor.round_start(), Duration::from_secs(20));
    assert_eq!(reactor.preempt.slice_end(), start + Duration::from_secs(10));
    reactor.limit_slice(reactor.round_start(), Duration::ZERO);
    assert!(reactor.preempt.slice_end() < start + Duration::from_secs(10));
    run_until_preempted(&reactor);
}

/// What a round did before it was limited is not held against it.
#[test]
fn a_limit_that_has_passed_ends_the_round_when_it_is_set() {
    let (reactor, (_, waker)) = (reactor(4), counting_waker());
    turn(&reactor);
    let start = reactor.preempt.round_start();
    while start.elapsed() < 5 * MIN_SLICE {
        assert!(!reactor.need_preempt());
    }
    let now = Instant::now();
    reactor.limit_slice(reactor.round_start(), MIN_SLICE);
    assert!(reactor.preempt.slice_end() >= now);
    assert!(reactor.need_preempt());
    turn(&reactor);
    let mut entry = timer(&reactor);
    let now = Instant::now();
    entry.arm(now - Duration::from_secs(1), &waker);
    assert!(reactor.preempt.slice_end() >= now);
    assert!(reactor.need_preempt());
}

/// Asks, when its operation completes, what is known of a time far off.
struct Asks {
    reactor: std::rc::Weak<Reactor>,
    is_known: Cell<Option<bool>>,
}

impl Sink for Asks {
    type Item = io::Result<u32>;

    fn complete(&self, _result: io::Result<u32>, _has_more: bool) {
        let reactor = self.reactor.upgrade().expect("the test holds it");
        let far = Instant::now() + LONG;
        self.is_known.set(Some(!reactor.turn_time.may_be_past(far)));
    }
}

#[test]
fn the_time_of_a_turn_is_good_for_its_round_only() {
    let reactor = reactor(4);
    let asks = Rc::new(Asks {
        reactor: Rc::downgrade(&reactor),
        is_known: Cell::new(None),
    });
    let far = Instant::now() + LONG;
    turn(&reactor);
    assert!(!reactor.turn_time.may_be_past(far));
    // Completions come in after a sleep of whatever length.
    let _operation = reactor.submit_to(Nop, Rc::clone(&asks));
    while asks.is_known.get().is_none() {
        idle_turn(&reactor);
    }
    assert_eq!(asks.is_known.get(), Some(false));
    assert!(!reactor.turn_time.may_be_past(far));
    drop(current::enter(Rc::clone(&reactor)));
    assert!(reactor.turn_time.may_be_past(far), "it has been left");
}

#[test]
fn a_completion_ends_a_round_that_is_armed_in_the_middle_of_a_stretch() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    let bell = eventfd();
    let mut operation = reactor.submit(readable(&bell));
    assert!(poll(&mut operation, &waker).is_none());
    turn(&reactor);
    // Short polls, after which the clock is not read each time.
    for _ in 0..8 {
        assert!(!reactor.ends_round(false), "nothing has happened");
    }
    signal(&bell);
    while Instant::now() < reactor.preempt.round_start() + MIN_SLICE {
        std::hint::spin_loop();
    }
    assert!(reactor.ends_round(false));
}
