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
    let waited = Waited {
        all: waited,
        longest: Duration::ZERO,
    };
    let mut timeliness = Timeliness::default();
    for second in seconds {
        timeliness.begin(second, &histogram(second.noise_p50, us(500)));
        for promise in &PROMISES {
            let seen = histogram(late, late);
            timeliness.enter(promise.workload, promise.timing, &seen, [waited; 2]);
        }
    }
    timeliness
}

fn standings(timeliness: &Timeliness, quantile: &str) -> Vec<RowStatus> {
    let rows = timeliness.rows(1.0).into_iter();
    let rows = rows.filter(|row| row.invariant.ends_with(quantile));
    rows.map(|row| row.standing).collect()
}

fn all_are(timeliness: &Timeliness, quantile: &str, standing: RowStatus) -> bool {
    let standings = standings(timeliness, quantile);
    !standings.is_empty() && standings.iter().all(|&it| it == standing)
}

#[test]
fn what_is_punctual_passes() {
    let timeliness = run(&[QUIET; 8], us(40), us(0));
    for quantile in ["p50", "p99.9", "max"] {
        assert!(all_are(&timeliness, quantile, RowStatus::Pass));
    }
}

/// Half of five milliseconds, as an executor has that may be so late for the sake of others.
#[test]
fn slack_that_was_not_asked_for_fails_every_median() {
    let timeliness = run(&[QUIET; 8], us(2_200), us(0));
    assert!(all_are(&timeliness, "p50", RowStatus::Fail));
    assert!(all_are(&timeliness, "p99.9", RowStatus::Pass));
}

#[test]
fn what_is_very_late_fails_every_row() {
    let timeliness = run(&[QUIET; 8], us(800_000), us(0));
    for quantile in ["p50", "p99.9", "max"] {
        assert!(all_are(&timeliness, quantile, RowStatus::Fail));
    }
}

#[test]
fn a_disturbed_machine_is_neither_pass_nor_fail() {
    let stolen = Second {
        stolen_cores: 0.5,
        ..QUIET
    };
    for late in [us(40), us(800_000)] {
        // Every second one is quiet, and has begun in one that was not.
        let timeliness = run(&[QUIET, stolen].repeat(20), late, us(0));
        for quantile in ["p50", "p99.9", "max"] {
            assert!(all_are(&timeliness, quantile, RowStatus::Inconclusive));
        }
    }
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

/// As where the processor is emulated by a thread that its host puts aside.
#[test]
fn a_machine_that_wakes_sleepers_late_is_not_steady() {
    let slow = Second {
        noise_p50: NOISE_P50_MAX * 2,
        ..QUIET
    };
    assert!(run(&[QUIET; 8], us(40), us(0)).is_steady());
    assert!(!run(&[slow; 8], us(40), us(0)).is_steady());
}

#[test]
fn an_executor_that_waited_for_a_core_is_not_judged() {
    let waited = WAITED_MAX + us(1);
    let timeliness = run(&[QUIET; 8], us(800_000), waited);
    assert!(all_are(&timeliness, "p50", RowStatus::Inconclusive));
}

#[test]
fn few_seconds_are_not_judged() {
    let timeliness = run(&[QUIET; 4], us(40), us(0));
    let standings = standings(&timeliness, "p50");
    let unsure = standings
        .iter()
        .filter(|&&it| it == RowStatus::Inconclusive);
    // All but the two pings, which come once in several seconds.
    assert_eq!(unsure.count(), standings.len() - 2);
}

/// The end of a crowd whose beginning was not judged, in one stall.
#[test]
fn a_few_of_a_crowd_are_no_median() {
    let standing = |seen: u64| {
        let mut timeliness = Timeliness::default();
        for _ in 0..2 {
            timeliness.begin(&QUIET, &histogram(us(60), us(500)));
        }
        let mut late = support::quantiles::histogram();
        late.saturating_record_n(nanos(us(6_000)), seen);
        timeliness.enter(
            Workload::Cluster,
            Timing::Crowd,
            &late,
            [Waited::default(); 2],
        );
        let mut rows = timeliness.rows(1.0).into_iter();
        let row = rows.find(|row| row.invariant == "late, in a crowd p50");
        row.expect("crowds are promised a median").standing
    };
    assert_eq!(standing(102), RowStatus::Inconclusive);
    assert_eq!(standing(40_000), RowStatus::Fail);
}

#[test]
fn what_ran_and_was_not_seen_is_not_exercised() {
    let timeliness = Timeliness::new(&[Workload::Churn]);
    let rows = timeliness.rows(1.0);
    assert_eq!(rows.len(), 3);
    assert!(all_are(&timeliness, "p50", RowStatus::NotExercised));
}

/// A long lateness may have the noise of its own second, and not that of another.
#[test]
fn the_longest_is_held_against_its_own_second() {
    let standing = |late_in: usize| {
        let mut timeliness = Timeliness::default();
        for second in 0..8 {
            let noise = if second == 5 { us(50_000) } else { us(500) };
            timeliness.begin(&QUIET, &histogram(us(60), noise));
            let late = if second == late_in {
                us(100_000)
            } else {
                us(40)
            };
            let seen = histogram(us(40), late);
            timeliness.enter(
                Workload::Churn,
                Timing::Lateness,
                &seen,
                [Waited::default(); 2],
            );
        }
        let mut rows = timeliness.rows(1.0).into_iter();
        let row = rows.find(|row| row.invariant == "late, churn max");
        row.expect("churn is promised something").standing
    };
    assert_eq!(standing(5), RowStatus::Pass);
    assert_eq!(standing(6), RowStatus::Fail);
}

/// A tenth of the timers of a second is due in one stall, which is within the bound of the longest.
#[test]
fn stalls_in_a_few_seconds_do_not_decide_the_last_of_a_thousand() {
    let standing = |stalls: usize| {
        let mut timeliness = Timeliness::default();
        for second in 0..8 {
            timeliness.begin(&QUIET, &histogram(us(60), us(500)));
            let mut seen = histogram(us(40), us(40));
            if second > 0 && second <= stalls {
                seen.saturating_record_n(nanos(us(25_000)), 100);
            }
            timeliness.enter(
                Workload::Churn,
                Timing::Lateness,
                &seen,
                [Waited::default(); 2],
            );
        }
        standings(&timeliness, "p99.9")
    };
    let of_churn = |stalls| {
        standing(stalls)
            .into_iter()
            .find(|&it| it != RowStatus::NotExercised)
    };
    assert_eq!(of_churn(0), Some(RowStatus::Pass));
    assert_eq!(of_churn(2), Some(RowStatus::Pass));
    assert_eq!(of_churn(3), Some(RowStatus::Fail));
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
        let mut timeliness = Timeliness::default();
        let waited = Waited {
            all: us(390_000),
            longest: us(390_000),
        };
        for _ in 0..8 {
            timeliness.begin(&QUIET, &histogram(us(60), us(500)));
            let seen = histogram(us(40), late);
            timeliness.enter(
                Workload::Churn,
                Timing::Lateness,
                &seen,
                [waited, Waited::default()],
            );
        }
        standings(&timeliness, "max")
            .into_iter()
            .find(|&it| it != RowStatus::NotExercised)
    };
    assert_eq!(standing(us(400_000)), Some(RowStatus::Pass));
    assert_eq!(standing(us(450_000)), Some(RowStatus::Fail));
}
