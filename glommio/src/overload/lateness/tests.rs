use proptest::prelude::*;

use super::*;

const TARGET: Duration = ms(5);
const INTERVAL: Duration = ms(100);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// An executor whose clock goes by hand.
struct Executor {
    lateness: Lateness,
    now: Instant,
    slept: Duration,
}

impl Executor {
    fn new() -> Executor {
        let now = Instant::now();
        Executor {
            lateness: Lateness::new(TARGET, INTERVAL, now),
            now,
            slept: Duration::ZERO,
        }
    }

    fn is_refused(&mut self) -> bool {
        self.lateness.refusal(self.now, self.slept).is_some()
    }

    /// One measurement that takes `delay`. Whether a request at its beginning was refused.
    fn pass(&mut self, delay: Duration) -> bool {
        assert!(self.lateness.begin(self.now, self.slept));
        let is_refused = self.is_refused();
        self.now += delay;
        self.lateness.end(self.now, self.slept);
        is_refused
    }

    fn overload(&mut self) {
        let begin = self.now;
        while !self.lateness.is_overloaded() {
            self.pass(ms(10));
            assert!(self.now - begin <= INTERVAL + 2 * ms(10));
        }
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time;
        self.slept += time;
    }
}

#[test]
fn lateness_for_an_interval_is_overload() {
    let mut executor = Executor::new();
    executor.overload();
    assert!(executor.pass(ms(1)), "what it knew was 10 ms");
    assert!(!executor.pass(ms(1)));
}

/// A request of 10 ms of computing keeps whatever comes then waiting for 10 ms, but the next
/// request comes later.
#[test]
fn long_requests_with_sleep_between_them_are_no_overload() {
    let mut executor = Executor::new();
    for _ in 0..1000 {
        assert!(!executor.pass(ms(10)));
        executor.sleep(ms(1));
    }
}

#[test]
fn overload_ends_after_an_interval_without_lateness() {
    let mut executor = Executor::new();
    executor.overload();
    for _ in 0..10 {
        // Refusing brings the delay down for a while.
        for _ in 0..9 {
            executor.pass(ms(11));
            executor.pass(ms(1));
        }
        assert!(executor.lateness.is_overloaded());
    }
    for _ in 0..20 {
        executor.pass(TARGET);
    }
    assert!(!executor.lateness.is_overloaded());
}

/// The timer of a measurement is late by the slack of timers, in which the executor sleeps.
#[test]
fn sleep_is_no_delay_and_ends_an_overload() {
    let mut executor = Executor::new();
    executor.overload();
    for _ in 0..100 {
        assert!(executor.lateness.begin(executor.now, executor.slept));
        executor.sleep(ms(60));
        assert!(!executor.is_refused());
        executor.now += ms(1);
        executor.lateness.end(executor.now, executor.slept);
        assert_eq!(executor.lateness.delay(executor.now, executor.slept), ms(1));
    }
    executor.overload();
    executor.sleep(TARGET);
    assert!(!executor.pass(ms(10)), "it was idle since");
    assert!(!executor.lateness.is_overloaded());
}

#[test]
fn a_measurement_under_way_counts_for_what_it_has_taken() {
    let mut executor = Executor::new();
    executor.overload();
    executor.pass(ms(1));
    assert!(executor.lateness.begin(executor.now, executor.slept));
    let again = executor.lateness.begin(executor.now, executor.slept);
    assert!(!again, "one at a time");
    assert!(!executor.is_refused());
    executor.now += TARGET + ms(1);
    assert!(executor.is_refused());
    let delay = executor.lateness.delay(executor.now, executor.slept);
    assert_eq!(delay, TARGET + ms(1));
}

#[test]
fn a_queue_longer_than_the_interval_is_overload_before_its_end() {
    let mut executor = Executor::new();
    assert!(executor.lateness.begin(executor.now, executor.slept));
    let refused_after = (0..200).find(|_| {
        executor.now += ms(1);
        executor.is_refused()
    });
    assert_eq!(
        refused_after,
        Some(105),
        "late from 6 ms on, which is the fifth"
    );
}

#[test]
fn a_target_of_zero_refuses_what_is_late() {
    let mut executor = Executor::new();
    executor.lateness = Lateness::new(Duration::ZERO, INTERVAL, executor.now);
    for _ in 0..200 {
        executor.pass(ms(1));
    }
    assert!(executor.is_refused());
    executor.sleep(ms(1));
    assert!(!executor.is_refused());
}

#[test]
fn what_was_known_before_a_pause_is_forgotten() {
    let mut executor = Executor::new();
    executor.overload();
    executor.now += INTERVAL;
    assert!(!executor.pass(ms(50)));
    assert!(!executor.lateness.is_overloaded());
}

#[test]
fn a_clock_that_stands_or_an_end_without_beginning_does_no_harm() {
    let mut executor = Executor::new();
    executor.lateness.end(executor.now, Duration::ZERO);
    for _ in 0..10 {
        assert!(!executor.pass(Duration::ZERO));
    }
    let mut lateness = Lateness::new(Duration::ZERO, Duration::ZERO, executor.now);
    lateness.begin(executor.now, Duration::ZERO);
    assert_eq!(lateness.refusal(executor.now, Duration::MAX), None);
}

proptest! {
    /// A request is refused only if delays above the target were seen for an interval, and if
    /// the last one is above it.
    #[test]
    fn refuses_none_without_lateness(
        passes in proptest::collection::vec((0..30u64, 0..20u64), 1..200),
    ) {
        let mut executor = Executor::new();
        let (mut last, mut late) = (Duration::ZERO, Duration::ZERO);
        let mut has_been_overloaded = false;
        for (delay_ms, sleep_ms) in passes {
            let delay = ms(delay_ms);
            let is_refused = executor.pass(delay);
            prop_assert!(!is_refused || (last > TARGET && has_been_overloaded));
            late = if delay > TARGET { late + delay } else { Duration::ZERO };
            has_been_overloaded |= late >= INTERVAL;
            prop_assert!(has_been_overloaded || !executor.lateness.is_overloaded());
            last = delay;
            if sleep_ms > 10 {
                executor.sleep(ms(sleep_ms));
                late += ms(sleep_ms);
            }
        }
    }

    /// However requests come, a server that serves one in a millisecond and refuses one in ten
    /// microseconds soon keeps the delay near the target.
    #[test]
    fn holds_the_delay_down_under_any_overload(arrivals_per_s in 1_500..20_000u64) {
        let mut executor = Executor::new();
        let begin = executor.now;
        let arrival = |number: u64| begin + Duration::from_nanos(number * 1_000_000_000 / arrivals_per_s);
        let (mut first, mut served) = (0, 0);
        while executor.now < begin + ms(3000) {
            // All that have come by now run, and then what measures.
            let last = (first..).find(|&it| arrival(it) > executor.now).expect("it ends");
            if last == first {
                executor.now = arrival(first);
                continue;
            }
            executor.lateness.begin(executor.now, Duration::ZERO);
            for number in first..last {
                let waited = executor.now - arrival(number);
                if executor.is_refused() {
                    executor.now += Duration::from_micros(10);
                } else {
                    executor.now += ms(1);
                    served += 1;
                    let is_settled = executor.now > begin + ms(1000);
                    prop_assert!(!is_settled || waited <= 4 * TARGET, "{waited:?}");
                }
            }
            executor.lateness.end(executor.now, Duration::ZERO);
            first = last;
        }
        prop_assert!(served > 1800, "it served {served} of 3000");
    }
}
