use super::promises::WAITED_MAX;
use super::*;

const QUIET: Second = Second {
    noise_p50: Duration::from_micros(60),
    noise_p99: Duration::from_millis(1),
    cores: 2.0,
    throttled_cores: 0.0,
    stolen_cores: 0.0,
    other_cores: 0.0,
    is_stopped: false,
    is_unoptimised: false,
};

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// A thousand values, one of them the largest.
fn histogram(typical: Duration, largest: Duration) -> Histogram<u64> {
    let mut histogram = support::quantiles::histogram();
    histogram.saturating_record_n(nanos(typical), 999);
    histogram.saturating_record(nanos(largest));
    histogram
}

/// Seconds in which all that is promised was seen, each thing so late.
fn run(seconds: &[Second], late: Duration, waited: Duration) -> Timeliness {
    let mut timeliness = Timeliness::default();
    let (all, longest) = (waited, Duration::ZERO);
    for second in seconds {
        timeliness.begin(second, &histogram(second.noise_p50, us(500)));
        for promise in &PROMISES {
            let seen = histogram(late, late);
            let waited = [Waited { all, longest }; 2];
            timeliness.enter(promise.workload, promise.timing, &seen, waited);
        }
    }
    timeliness
}

fn standings(timeliness: &Timeliness, quantile: &str) -> Vec<Outcome> {
    let rows = timeliness.rows(1.0).into_iter();
    let rows = rows.filter(|row| row.invariant.ends_with(quantile));
    rows.map(|row| row.standing).collect()
}

fn all_are(timeliness: &Timeliness, quantile: &str, standing: Outcome) -> bool {
    let standings = standings(timeliness, quantile);
    !standings.is_empty() && standings.iter().all(|&it| it == standing)
}

/// How a row of eight quiet seconds comes out: of each, the longest noise, what was seen, and the wait for a core.
fn row_of(
    row: &str,
    (workload, timing): (Workload, Timing),
    second: impl Fn(usize) -> (Duration, Histogram<u64>, Duration),
) -> Outcome {
    let mut timeliness = Timeliness::default();
    for number in 0..8 {
        let (noise, seen, longest) = second(number);
        timeliness.begin(&QUIET, &histogram(us(60), noise));
        let all = longest;
        timeliness.enter(workload, timing, &seen, [Waited { all, longest }; 2]);
    }
    let mut rows = timeliness.rows(1.0).into_iter();
    let row = rows.find(|it| it.invariant == row);
    row.expect("it is promised").standing
}

const CHURN: (Workload, Timing) = (Workload::Churn, Timing::Lateness);

/// 2.2 ms is half of what an executor has that may be late for the sake of others.
#[test]
fn lateness_fails_the_rows_that_it_exceeds_on_a_quiet_machine_alone() {
    use Outcome::{Fail, Inconclusive, Pass};
    let stolen = Second {
        stolen_cores: 0.5,
        ..QUIET
    };
    let (quiet, disturbed) = ([QUIET; 8], [QUIET, stolen].repeat(20));
    for (seconds, late, expected) in [
        (&quiet[..], us(40), [Pass, Pass, Pass]),
        (&quiet, us(2_200), [Fail, Pass, Pass]),
        (&quiet, us(800_000), [Fail, Fail, Fail]),
        // Every second one is quiet, and has begun in one that was not.
        (&disturbed, us(40), [Inconclusive; 3]),
        (&disturbed, us(800_000), [Inconclusive; 3]),
    ] {
        let timeliness = run(seconds, late, us(0));
        for (quantile, standing) in ["p50", "p99.9", "max"].into_iter().zip(expected) {
            let are_right = all_are(&timeliness, quantile, standing);
            assert!(are_right, "{quantile} of {late:?}: {standing:?}");
        }
    }
    let waited = run(&quiet, us(800_000), WAITED_MAX + us(1));
    assert!(all_are(&waited, "p50", Inconclusive));
}

#[test]
fn a_cgroup_that_throttles_is_called_a_quota_and_not_a_host_that_steals() {
    let throttled = Second {
        throttled_cores: 0.5,
        stolen_cores: 0.5,
        ..QUIET
    };
    let words = run(&[QUIET, throttled], us(40), us(0)).to_string();
    assert!(words.contains("; 1 throttled by the quota"), "{words}");
    assert!(!words.contains("stolen"), "{words}");
}

#[test]
fn few_seconds_are_not_judged_and_what_was_not_seen_is_not_exercised() {
    let standings = standings(&run(&[QUIET; 4], us(40), us(0)), "p50");
    let unsure = standings.iter().filter(|&&it| it == Outcome::Inconclusive);
    // All but the two pings, which come once in several seconds.
    assert_eq!(unsure.count(), standings.len() - 2);
    let unseen = Timeliness::new(&[Workload::Churn]);
    assert!(all_are(&unseen, "p50", Outcome::NotExercised));
}

/// The end of a crowd whose beginning was not judged, in one stall.
#[test]
fn a_few_of_a_crowd_are_no_median() {
    let standing = |seen: u64| {
        let crowd = (Workload::Cluster, Timing::Crowd);
        row_of("late, in a crowd p50", crowd, |_| {
            let mut late = support::quantiles::histogram();
            late.saturating_record_n(nanos(us(6_000)), seen / 8);
            (us(500), late, us(0))
        })
    };
    assert_eq!(standing(102), Outcome::Inconclusive);
    assert_eq!(standing(40_000), Outcome::Fail);
}

/// A long lateness may have the noise of its own second, and not that of another.
#[test]
fn the_longest_is_held_against_its_own_second() {
    let standing = |late_in: usize| {
        row_of("late, churn max", CHURN, |second| {
            let noise = if second == 5 { us(50_000) } else { us(500) };
            let late = [us(40), us(100_000)][usize::from(second == late_in)];
            (noise, histogram(us(40), late), us(0))
        })
    };
    assert_eq!(standing(5), Outcome::Pass);
    assert_eq!(standing(6), Outcome::Fail);
}

/// A tenth of the timers of a second is due in one stall, which is within the bound of the longest.
#[test]
fn stalls_in_a_few_seconds_do_not_decide_the_last_of_a_thousand() {
    let standing = |stalls: usize| {
        row_of("late, churn p99.9", CHURN, |second| {
            let mut seen = histogram(us(40), us(40));
            if second > 0 && second <= stalls {
                seen.saturating_record_n(nanos(us(25_000)), 100);
            }
            (us(500), seen, us(0))
        })
    };
    assert_eq!([0, 2].map(standing), [Outcome::Pass; 2]);
    assert_eq!(standing(3), Outcome::Fail);
}

/// While one answer took 100 ms, a hundred more questions should have been asked.
#[test]
fn a_ping_stands_for_those_it_kept_from_being_sent() {
    let mut timeliness = Timeliness::default();
    timeliness.begin(&QUIET, &histogram(us(60), us(500)));
    for timing in [Timing::Ping, Timing::Burst] {
        let seen = histogram(us(40), us(100_000));
        timeliness.enter(Workload::Cluster, timing, &seen, [Waited::default(); 2]);
    }
    let count = |timing| timeliness.whole(timing).len();
    assert_eq!((count(Timing::Ping), count(Timing::Burst)), (1_099, 1_000));
}

/// As where an executor among many waits for its turn: the noise is that of another thread.
#[test]
fn a_wait_for_a_core_at_a_stretch_excuses_as_much_and_no_more() {
    let standing = |late| {
        row_of("late, churn max", CHURN, |_| {
            (us(500), histogram(us(40), late), us(390_000))
        })
    };
    assert_eq!(standing(us(400_000)), Outcome::Pass);
    assert_eq!(standing(us(450_000)), Outcome::Fail);
}
