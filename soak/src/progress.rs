//! What the terminal shows while the run goes on: a bar with the latest sample, or a line per sample.

use std::io::{IsTerminal, stderr, stdout};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::record::Sample;
use crate::words::short;

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
                bar.set_position((sample.at_s * 1e3) as u64);
                bar.set_message(line(sample));
            }
            None => println!("{:>6.0}s  {}", sample.at_s, line(sample)),
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
    let late = |ns| short(Duration::from_nanos(ns));
    let mut line = format!(
        "in flight {:>6}  acks/s {:>6.0}  timeouts/s {:>6.0}  datagrams/s {:>6.0}  \
         live timers {:>6}  fired/s {:>6.0}  late p50 {} p99 {} max {}  RSS {:>4} MiB",
        sample.in_flight,
        sample.acks_per_s,
        sample.timeouts_per_s,
        sample.datagrams_per_s,
        sample.live_timers,
        sample.fired_per_s,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_violations_only_if_there_are_any() {
        let mut sample = Sample::default();
        assert!(!line(&sample).contains("VIOLATIONS"));
        sample.violations = 3;
        assert!(line(&sample).ends_with("VIOLATIONS 3"));
    }
}
