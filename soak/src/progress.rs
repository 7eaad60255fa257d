//! What the terminal shows while the run goes on: a bar with the latest sample, or a line per sample.

use std::io::{IsTerminal, stderr, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The numbers of one second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    pub(crate) in_flight: u64,
    pub(crate) acks_per_s: f64,
    pub(crate) timeouts_per_s: f64,
    pub(crate) live_timers: i64,
    pub(crate) late_p50: Duration,
    pub(crate) late_p99: Duration,
    pub(crate) late_max: Duration,
    pub(crate) resident_bytes: u64,
    pub(crate) violations: u64,
}

/// A bar on a terminal, plain lines anywhere else.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(duration: Duration) -> Self {
        let is_terminal = stdout().is_terminal() && stderr().is_terminal();
        let bar = is_terminal.then(|| {
            let style =
                ProgressStyle::with_template("{elapsed_precise} [{bar:30}] {percent:>3} %  {msg}")
                    .expect("the template is a constant and legal");
            let bar = ProgressBar::new(duration.as_millis() as u64);
            bar.set_style(style.progress_chars("=> "));
            bar
        });
        Progress { bar }
    }

    pub(crate) fn show(&self, sample: &Sample) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(sample.at.as_millis() as u64);
                bar.set_message(line(sample));
            }
            None => println!("{:>6.0}s  {}", sample.at.as_secs_f64(), line(sample)),
        }
    }

    /// Leaves the terminal to the verdict.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(sample: &Sample) -> String {
    let mut line = format!(
        "in flight {:>6}  acks/s {:>6.0}  timeouts/s {:>6.0}  live timers {:>6}  \
         late p50 {} p99 {} max {}  RSS {:>4} MiB",
        sample.in_flight,
        sample.acks_per_s,
        sample.timeouts_per_s,
        sample.live_timers,
        short(sample.late_p50),
        short(sample.late_p99),
        short(sample.late_max),
        sample.resident_bytes >> 20,
    );
    if sample.violations > 0 {
        line.push_str(&format!("  VIOLATIONS {}", sample.violations));
    }
    line
}

/// Three digits and a unit: `12.3 ms`.
pub(crate) fn short(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    let (value, unit) = match ns {
        ..1e3 => return format!("{ns:.0} ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let decimals = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_three_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.50 µs"),
            (45_200, "45.2 µs"),
            (123_456_789, "123 ms"),
            (2_000_000_000, "2.00 s"),
        ] {
            assert_eq!(short(Duration::from_nanos(ns)), text);
        }
    }

    #[test]
    fn a_line_names_violations_only_if_there_are_any() {
        let mut sample = Sample::default();
        assert!(!line(&sample).contains("VIOLATIONS"));
        sample.violations = 3;
        assert!(line(&sample).ends_with("VIOLATIONS 3"));
    }
}
