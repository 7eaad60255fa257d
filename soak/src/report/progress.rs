//! What the person sees while the run goes on: a line now and then.

use std::time::Duration;

use support::numbers;

use crate::print::print_line;
use crate::record::Sample;

/// From one line to the next: a run of any length fills a screen and no more. Samples come a little more than a second apart.
pub(crate) fn every(duration: Duration) -> Duration {
    (duration / 60).max(Duration::from_secs(1)) - Duration::from_millis(100)
}

pub(crate) fn show(sample: &Sample) {
    let late = |ns| numbers::duration(Duration::from_nanos(ns));
    let violations = match sample.violations {
        0 => String::new(),
        violations => format!("  VIOLATIONS {violations}"),
    };
    print_line!(
        "{:>6.0}s  live {:>7}  fired/s {:>6.0}  in flight {:>6}  acks/s {:>6.0}  udp/s {:>5.0}  \
         late p50 {} p99 {} max {}  RSS {} MiB{violations}",
        sample.at_s,
        sample.live_timers,
        sample.fired_per_s,
        sample.in_flight,
        sample.acks_per_s,
        sample.datagrams_per_s,
        late(sample.late_p50_ns),
        late(sample.late_p99_ns),
        late(sample.late_max_ns),
        sample.resident_bytes >> 20,
    );
}
