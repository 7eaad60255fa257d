//! What the person sees while the run goes on: a line now and then.

use std::time::Duration;

use support::numbers;

use crate::print::print_line;
use crate::record::Sample;

/// When to say the next.
#[derive(Debug)]
pub(crate) struct Progress {
    line_every: Duration,
    next_line: Duration,
}

impl Progress {
    pub(crate) fn new(duration: Duration) -> Self {
        Progress {
            line_every: (duration / LINES).max(Duration::from_secs(1)),
            next_line: Duration::ZERO,
        }
    }

    pub(crate) fn show(&mut self, sample: &Sample) {
        let at = Duration::from_secs_f64(sample.at_s);
        if at >= self.next_line {
            self.next_line = at + self.line_every - SLACK;
            print_line!("{:>6.0}s  {}", sample.at_s, line(sample));
        }
    }
}

fn line(sample: &Sample) -> String {
    let late = |ns| numbers::duration(Duration::from_nanos(ns));
    let mut line = format!(
        "live {:>7}  fired/s {:>6.0}  in flight {:>6}  acks/s {:>6.0}  udp/s {:>5.0}  \
         late p50 {} p99 {} max {}  RSS {} MiB",
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
    if sample.violations > 0 {
        line.push_str(&format!("  VIOLATIONS {}", sample.violations));
    }
    line
}

/// A run of any length fills a screen and no more.
const LINES: u32 = 60;

/// Samples come a little more than a second apart.
const SLACK: Duration = Duration::from_millis(100);
