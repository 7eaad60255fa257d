//! Two runs side by side: what differs when nothing but the timer queue does.

use std::fmt;
use std::time::Duration;

use crate::record::{Distribution, Record, Sample};
use crate::words::{self, grouped, short};

/// The table of two runs, the wheel's first.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) runs: [&'a Record; 2],
}

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.runs;
        writeln!(
            f,
            "{:<24}{:>22}{:>22}{:>10}",
            "", first.timer_queue, second.timer_queue, "ratio"
        )?;
        for Figure { name, of, shown } in FIGURES {
            let [a, b] = self.runs.map(of);
            let ratio = if b > 0.0 {
                format!("{:.2}", a / b)
            } else {
                "-".to_owned()
            };
            writeln!(f, "{name:<24}{:>22}{:>22}{ratio:>10}", shown(a), shown(b))?;
        }
        let [a, b] = self.runs.map(|run| run.outcome.word());
        write!(f, "{:<24}{a:>22}{b:>22}", "verdict")
    }
}

/// One number of a run.
struct Figure {
    name: &'static str,
    of: fn(&Record) -> f64,
    shown: fn(f64) -> String,
}

const FIGURES: [Figure; 8] = [
    Figure {
        name: "lateness p50",
        of: |run| lateness(run).map_or(0.0, |late| late.p50_ns as f64),
        shown: time,
    },
    Figure {
        name: "lateness p99.9",
        of: |run| lateness(run).map_or(0.0, |late| late.p999_ns as f64),
        shown: time,
    },
    Figure {
        name: "lateness max",
        of: |run| lateness(run).map_or(0.0, |late| late.max_ns as f64),
        shown: time,
    },
    Figure {
        name: "live timers, the most",
        of: |run| run.totals.live_timers_max as f64,
        shown: count,
    },
    Figure {
        name: "timers armed per second",
        of: |run| per_second(run, run.totals.timers_armed),
        shown: count,
    },
    Figure {
        name: "timers fired per second",
        of: |run| per_second(run, run.totals.timers_fired),
        shown: count,
    },
    Figure {
        name: "processor, cores",
        of: cores,
        shown: |cores| format!("{cores:.2}"),
    },
    Figure {
        name: "resident memory, peak",
        of: |run| most(run, |sample| sample.resident_bytes),
        shown: |bytes| words::bytes(bytes as u64),
    },
];

fn lateness(run: &Record) -> Option<&Distribution> {
    let name = crate::check::probe::Timing::Lateness.label();
    run.distributions.iter().find(|timing| timing.name == name)
}

fn per_second(run: &Record, total: u64) -> f64 {
    total as f64 / run.ran_s.max(1e-3)
}

fn cores(run: &Record) -> f64 {
    let sum: f64 = run.samples.iter().map(|sample| sample.cpu_cores).sum();
    sum / run.samples.len().max(1) as f64
}

fn most(run: &Record, of: fn(&Sample) -> u64) -> f64 {
    run.samples.iter().map(of).max().unwrap_or(0) as f64
}

fn time(ns: f64) -> String {
    short(Duration::from_nanos(ns as u64))
}

fn count(count: f64) -> String {
    grouped(count.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Outcome, Totals};

    #[test]
    fn figures_and_their_ratios_stand_side_by_side() {
        let run = |timer_queue: &str, factor: u64| Record {
            timer_queue: timer_queue.to_owned(),
            outcome: [Outcome::Fail, Outcome::Pass][usize::from(factor == 1)],
            ran_s: 2.0,
            totals: Totals {
                timers_fired: 4_000 * factor,
                live_timers_max: 1_234_567,
                ..Totals::default()
            },
            distributions: vec![Distribution {
                name: "timer lateness".to_owned(),
                p50_ns: 45_200 * factor,
                ..Distribution::default()
            }],
            samples: vec![
                Sample {
                    cpu_cores: 0.5,
                    resident_bytes: 3 << 20,
                    ..Sample::default()
                },
                Sample {
                    cpu_cores: 1.0,
                    resident_bytes: 2 << 20,
                    ..Sample::default()
                },
            ],
            ..Record::default()
        };
        let (first, second) = (run("one", 1), run("two", 4));
        let table = Comparison {
            runs: [&first, &second],
        }
        .to_string();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = table.lines().map(words).collect();
        assert_eq!(lines[0], "one two ratio");
        assert_eq!(lines[1], "lateness p50 45.2 µs 181 µs 0.25");
        assert_eq!(lines[2], "lateness p99.9 0 ns 0 ns -");
        assert_eq!(lines[4], "live timers, the most 1,234,567 1,234,567 1.00");
        assert_eq!(lines[6], "timers fired per second 2,000 8,000 0.25");
        assert_eq!(lines[7], "processor, cores 0.75 0.75 1.00");
        assert_eq!(lines[8], "resident memory, peak 3.00 MiB 3.00 MiB 1.00");
        assert_eq!(lines[9], "verdict pass FAIL");
    }
}
