use super::*;

fn end_of(wait: Wait) -> Instant {
    match wait {
        Wait::Until(end) => end,
        Wait::Now | Wait::Forever => panic!("a sleep with an end was begun"),
    }
}

fn sleep_long(wait: &TimedWait, delay: Duration) {
    let deadline = Instant::now() + Duration::from_secs(60);
    // The last look at the clock says nothing.
    assert!(!wait.is_near(Wait::Until(deadline), deadline));
    wait.end(end_of(wait.begin(Wait::Until(deadline))) + delay);
}

fn after_sleeps(precision: TimerPrecision, delay: Duration, count: usize) -> TimedWait {
    let wait = TimedWait::new(precision);
    for _ in 0..count {
        // As if each had been a short one.
        let deadline = Instant::now() + Duration::from_secs(60);
        wait.is_short.set(true);
        wait.end(end_of(wait.begin(Wait::Until(deadline))) + delay);
    }
    wait
}

#[test]
fn the_delay_of_sleeps_is_learned_within_bounds() {
    for micros in [1, 5, 12, 30] {
        let delay = Duration::from_micros(micros);
        let learned = after_sleeps(TimerPrecision::Balanced, delay, 100)
            .short
            .0
            .get();
        assert!(
            learned.abs_diff(delay) < Duration::from_nanos(100),
            "{delay:?}: {learned:?}"
        );
    }
    let busy = after_sleeps(TimerPrecision::Balanced, Duration::from_millis(5), 100);
    assert_eq!(busy.short.0.get(), LONGEST_DELAY);
    assert_eq!(busy.reach(), LONGEST_REACH);
    let busy = after_sleeps(TimerPrecision::Tightest, Duration::from_millis(5), 100);
    assert_eq!(busy.reach(), Duration::from_micros(64));
}

#[test]
fn long_sleeps_do_not_make_near_deadlines_polled_for() {
    let wait = TimedWait::new(TimerPrecision::Balanced);
    let reach = wait.reach();
    for _ in 0..100 {
        sleep_long(&wait, Duration::from_micros(40));
    }
    assert_eq!(wait.reach(), reach);
    assert!(wait.long.0.get() > Duration::from_micros(39));
}

#[test]
fn the_tightest_ends_a_long_sleep_earlier_than_a_short_one() {
    let wait = TimedWait::new(TimerPrecision::Tightest);
    for _ in 0..100 {
        sleep_long(&wait, Duration::from_micros(40));
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    assert!(!wait.is_near(Wait::Until(deadline), Instant::now()));
    assert!(deadline - end_of(wait.begin(Wait::Until(deadline))) > Duration::from_micros(50));
    wait.is_short.set(true);
    assert!(wait.early_by() < Duration::from_micros(20));
}

#[test]
fn an_executor_that_polls_for_every_deadline_tries_to_sleep_again() {
    let wait = after_sleeps(TimerPrecision::Balanced, Duration::from_millis(5), 100);
    for _ in 0..FORGOTTEN_PART {
        wait.polled();
    }
    assert!(wait.short.0.get() < LONGEST_DELAY / 2);
    let tightest = after_sleeps(TimerPrecision::Tightest, Duration::from_millis(5), 100);
    let reach = tightest.reach();
    tightest.polled();
    assert_eq!(tightest.reach(), reach, "it is to poll");
}

#[test]
fn a_sleep_that_another_event_ended_teaches_nothing() {
    let wait = TimedWait::new(TimerPrecision::Balanced);
    let deadline = Instant::now() + Duration::from_secs(1);
    let end = end_of(wait.begin(Wait::Until(deadline)));
    wait.end(end - Duration::from_nanos(1));
    wait.end(end + Duration::from_secs(1));
    assert_eq!(wait.long.0.get(), DELAY);
}

#[test]
fn only_the_tightest_ends_sleeps_early_and_polls_for_as_long() {
    let deadline = Instant::now() + Duration::from_secs(60);
    let balanced = TimedWait::new(TimerPrecision::Balanced);
    assert_eq!(end_of(balanced.begin(Wait::Until(deadline))), deadline);
    let tightest = TimedWait::new(TimerPrecision::Tightest);
    let end = end_of(tightest.begin(Wait::Until(deadline)));
    assert_eq!(end, deadline - tightest.reach());
}
