//! What becomes of deadlines.

use super::*;

#[test]
fn what_the_kernel_cannot_count_is_never() {
    let anchor = ClockAnchor::new();
    let far = anchor.instant + LONGEST;
    assert!(anchor.timespec_at(far).is_none());
    assert!(matches!(
        Wait::Until(far + Duration::from_secs(9)).resolve(&anchor, false),
        Resolved::Forever
    ));
    assert!(anchor.timespec_at(far - Duration::from_secs(1)).is_some());
}

#[test]
fn a_thread_that_loses_its_cpu_while_it_is_made_has_no_late_deadlines() {
    let begin = Instant::now();
    let mut now = Duration::ZERO;
    // The kernel's clock shows what has passed.
    let readings = [30, 1, 30, 2, 7].map(|milliseconds| {
        let instant = begin + now;
        now += Duration::from_millis(milliseconds);
        let monotonic = now;
        now += Duration::from_millis(1);
        (ClockAnchor { instant, monotonic }, begin + now)
    });
    let deadline = begin + Duration::from_secs(1);
    let late = ClockAnchor::closest(readings).moment_at(deadline);
    let late = late.expect("it is near") - Duration::from_secs(1);
    assert_eq!(late, Duration::from_millis(1));
}

#[test]
fn the_past_does_not_wait() {
    let anchor = ClockAnchor::new();
    assert!(matches!(
        Wait::Until(anchor.instant).resolve(&anchor, false),
        Resolved::Now
    ));
}
