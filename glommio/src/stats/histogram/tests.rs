use proptest::prelude::*;

use super::*;

#[test]
fn buckets_follow_one_another_and_are_no_wider_than_an_eighth() {
    let mut begin = 0;
    for bucket in 0..BUCKETS {
        let end = end_of(bucket);
        assert!(
            begin < end,
            "bucket {bucket} begins at {begin}, ends at {end}"
        );
        assert!((end - begin - 1) * STEPS <= begin, "{begin} and {end}");
        assert_eq!((bucket_of(begin), bucket_of(end - 1)), (bucket, bucket));
        begin = end;
    }
    assert_eq!(begin, 1 << BITS);
    assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_sorted_durations(
        durations in prop::collection::vec(0_u64..1 << 41, 1..300),
        q in 0.0_f64..=1.0,
    ) {
        let live = LiveHistogram::default();
        for &ns in &durations {
            live.record(Duration::from_nanos(ns));
        }
        let histogram = live.snapshot();
        let mut sorted = durations;
        sorted.sort_unstable();
        let rank = ((sorted.len() as f64 * q).ceil() as usize).max(1);
        let exact = sorted[rank - 1].min((1 << BITS) - 1);
        let said = histogram.quantile(q).as_nanos() as u64;
        prop_assert!(exact < said && said <= exact + exact / STEPS + 1, "{} and {}", exact, said);
        prop_assert_eq!(histogram.count(), sorted.len() as u64);
        prop_assert_eq!(histogram.max(), histogram.quantile(1.0));
        prop_assert_eq!(histogram.since(&histogram).count(), 0);
    }
}

#[test]
fn without_durations_all_is_zero() {
    let histogram = LiveHistogram::default().snapshot();
    assert_eq!(histogram.count(), 0);
    assert_eq!(histogram.quantile(0.99), Duration::ZERO);
    assert_eq!(histogram.max(), Duration::ZERO);
}

#[test]
#[should_panic(expected = "between 0 and 1")]
fn more_than_all_is_no_quantile() {
    LiveHistogram::default().snapshot().quantile(1.1);
}
