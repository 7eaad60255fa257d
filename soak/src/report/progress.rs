//! What the person sees while the run goes on: a view that is drawn over on a terminal, or lines.

use std::io::{IsTerminal, stderr, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use support::numbers;

use crate::counts::{self, grouped};
use crate::print::print_line;
use crate::record::Sample;

/// A bar and five lines on a terminal, one line now and then anywhere else.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    line_every: Duration,
    next_line: Duration,
}

impl Progress {
    pub(crate) fn new(duration: Duration) -> Self {
        let is_terminal = stdout().is_terminal() && stderr().is_terminal();
        let bar = is_terminal.then(|| {
            let style =
                ProgressStyle::with_template("{elapsed_precise} [{bar:40}] {percent:>3} %\n{msg}")
                    .expect("the template is a constant and legal");
            let bar = ProgressBar::new(duration.as_millis() as u64);
            bar.set_style(style.progress_chars("=> "));
            bar
        });
        let line_every = (duration / LINES).max(Duration::from_secs(1));
        Progress {
            bar,
            line_every,
            next_line: Duration::ZERO,
        }
    }

    pub(crate) fn show(&mut self, sample: &Sample) {
        let at = Duration::from_secs_f64(sample.at_s);
        match &self.bar {
            Some(bar) => {
                bar.set_position(at.as_millis() as u64);
                bar.set_message(view(sample));
            }
            None if at >= self.next_line => {
                self.next_line = at + self.line_every - SLACK;
                print_line!("{:>6.0}s  {}", sample.at_s, line(sample));
            }
            None => {}
        }
    }

    /// Leaves the terminal to the verdict.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Fits eighty columns.
fn view(sample: &Sample) -> String {
    let count = |value: f64| grouped(value as u64);
    let late = |ns| numbers::duration(Duration::from_nanos(ns));
    let found = match sample.violations {
        0 => "none".to_owned(),
        violations => format!("{} !!", grouped(violations)),
    };
    format!(
        "  timers    live {:<9} armed/s {:<7} cancelled/s {:<7} fired/s {}\n\
         \x20 lateness  p50 {:<8} p99 {:<8} max {:<8} noise p99 {}\n\
         \x20 messages  in flight {:<8} acks/s {:<8} timeouts/s {:<8} udp/s {}\n\
         \x20 process   RSS {:<10} allocated {:<10} cores {:.2}\n\
         \x20 violations  {found}",
        grouped(sample.live_timers.max(0) as u64),
        count(sample.armed_per_s),
        count(sample.cancelled_per_s),
        count(sample.fired_per_s),
        late(sample.late_p50_ns),
        late(sample.late_p99_ns),
        late(sample.late_max_ns),
        late(sample.noise_p99_ns),
        grouped(sample.in_flight),
        count(sample.acks_per_s),
        count(sample.timeouts_per_s),
        count(sample.datagrams_per_s),
        counts::bytes(sample.resident_bytes),
        counts::bytes(sample.allocated_bytes),
        sample.cpu_cores,
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_fits_eighty_columns_and_violations_cannot_be_overlooked() {
        let mut busy = Sample {
            live_timers: 1_234_567,
            armed_per_s: 999_999.0,
            cancelled_per_s: 999_999.0,
            fired_per_s: 999_999.0,
            late_p99_ns: 12_345_678,
            in_flight: 100_000,
            resident_bytes: 1 << 30,
            ..Sample::default()
        };
        let widest = view(&busy).lines().map(|it| it.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest < 80), "{}", view(&busy));
        assert!(!line(&busy).contains("VIOLATIONS") && view(&busy).ends_with("none"));
        busy.violations = 3;
        assert!(line(&busy).ends_with("VIOLATIONS 3") && view(&busy).ends_with("3 !!"));
    }
}
