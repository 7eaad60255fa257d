//! What both queues are made of: the epoch, and the peak of a window.

use std::time::{Duration, Instant};

use crate::epoch::{Epoch, NEVER};
use crate::peak::Peak;

#[test]
fn deadlines_are_clamped_at_both_ends() {
    let start = Instant::now() + Duration::from_secs(100);
    let epoch = Epoch::new(start);
    let last = Duration::from_nanos(u64::MAX);
    for (deadline, ns) in [
        (start - Duration::from_secs(1), 0),
        (start, 0),
        (start + Duration::from_nanos(1), 1),
        (start + last - Duration::from_nanos(1), NEVER - 1),
        (start + last, NEVER),
        (start + last + Duration::from_nanos(1), NEVER),
        (start + 3 * last, NEVER),
    ] {
        assert_eq!(epoch.deadline_ns(deadline), ns);
        assert_eq!(epoch.now_ns(deadline), ns.min(NEVER - 1));
    }
    assert_eq!(epoch.instant(NEVER), None);
    assert_eq!(epoch.instant(0), Some(start));
    assert_eq!(
        epoch.instant(NEVER - 1),
        Some(start + last - Duration::from_nanos(1))
    );
}

#[test]
fn nanoseconds_are_counted_from_any_epoch() {
    let now = Instant::now();
    for epoch_ns in [0, 1, 999_999_999, 123_456_789] {
        let start = now + Duration::from_nanos(epoch_ns);
        let epoch = Epoch::new(start);
        for ns in [
            0,
            1,
            999_999_999,
            1_000_000_000,
            30_000_000_001,
            u64::MAX - 1,
        ] {
            assert_eq!(epoch.deadline_ns(start + Duration::from_nanos(ns)), ns);
        }
    }
}

#[test]
fn a_peak_is_remembered_for_two_windows() {
    let mut peak = Peak::default();
    peak.note(7);
    peak.note(3);
    assert_eq!(peak.roll(2), 7);
    assert_eq!(peak.roll(0), 7);
    assert_eq!(peak.roll(0), 2);
    assert_eq!(peak.roll(0), 0);
}
