//! The tables of a run.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::time::Duration;

use support::numbers::number;
use support::plots::histograms::{Histograms, Panel, Series};
use support::plots::save;
use support::quantiles::Durations;
use support::tables::Table;

use crate::crowd::Crowd;
use crate::idle::Idle;
use crate::shares::Split;
use crate::starts::{Cause, Starts};

/// What a run has found out.
#[derive(Debug)]
pub struct Findings {
    /// How long a task computes between two looks at `yield_if_needed`.
    pub loop_length: Duration,
    /// The length of a measured window.
    pub window: Duration,
    pub splits: Vec<Split>,
    pub starts: Vec<Starts>,
    pub crowds: Vec<Crowd>,
    pub idle: Idle,
}

impl Findings {
    /// All tables, as markdown.
    pub fn figures(&self) -> String {
        let mut text = format!(
            "Tasks that compute do so in loops of {} µs (median).\n\n### The split of the time\n\n\
             What each of two queues got of the CPU time that both had, in percent, window by window of {} ms; \
             how far the one with fewer shares was off in its worst window, in percent of what it was due; and the longest that \
             each waited from one turn to the next, in milliseconds.\n\n",
            number(self.loop_length.as_secs_f64() * 1e6),
            self.window.as_millis()
        );
        text.push_str(&self.split_table().markdown());
        text.push_str(
            "\n### From a wake to the first instruction\n\n\
             Microseconds, next to a neighbour with 1000 shares that computes without end.\n\n",
        );
        text.push_str(&self.start_table().markdown());
        text.push_str(
            "\n### Many queues\n\n\
             Nanoseconds for a poll of a task that yields its queue at once, next to others in queues of their own that \
             do the same, and a timer every 30 µs.\n\n",
        );
        text.push_str(&self.crowd_table().markdown());
        let Idle {
            measured,
            wake_ups,
            cpu,
        } = &self.idle;
        let _ = writeln!(
            text,
            "\n### An idle executor\n\nIn {} s: {wake_ups} wake-ups, {} µs of CPU time.",
            number(measured.as_secs_f64()),
            number(cpu.as_secs_f64() * 1e6),
        );
        text
    }

    fn split_table(&self) -> Table {
        let titles = [
            "shares",
            "tasks yield with",
            "due",
            "the first got",
            "the second got",
            "furthest off",
            "longest waits",
        ];
        let mut table = Table::new(titles).left(1);
        for split in &self.splits {
            let percent = |figures: &[f64]| {
                let figures: Vec<_> = figures.iter().map(|it| format!("{it:.2}")).collect();
                figures.join(", ")
            };
            // Shares that change go from one of two values to the other.
            let due = split.due.iter().take(2);
            let mut due: Vec<_> = due
                .map(|it| format!("{it:.2} : {:.2}", 100.0 - it))
                .collect();
            due.dedup();
            let of_second: Vec<_> = split.got.iter().map(|it| 100.0 - it).collect();
            let waits = split.longest_waits.map(|it| number(it.as_secs_f64() * 1e3));
            table.push([
                split.shares.to_owned(),
                split.turns.to_owned(),
                due.join(", "),
                percent(&split.got),
                percent(&of_second),
                format!("{:.1} %", split.furthest_off()),
                waits.join(", "),
            ]);
        }
        table
    }

    fn start_table(&self) -> Table {
        let titles = ["queue", "woken by", "p50", "p90", "p99", "p99.9", "max"];
        let mut table = Table::new(titles).left(1);
        for starts in &self.starts {
            let mut line = vec![starts.queue.to_owned(), name(starts.cause).to_owned()];
            let quantiles = [0.5, 0.9, 0.99, 0.999, 1.0];
            line.extend(
                quantiles.map(|part| number(starts.latency.at(part).as_nanos() as f64 / 1e3)),
            );
            table.push(line);
        }
        table
    }

    fn crowd_table(&self) -> Table {
        let titles = ["queues", "without latency", "every tenth with latency"];
        let mut table = Table::new(titles);
        for crowd in &self.crowds {
            let mut line = vec![crowd.queues.to_string()];
            line.extend(crowd.poll.map(|poll| number(poll.as_nanos() as f64)));
            table.push(line);
        }
        table
    }

    /// The starts of tasks for which latency matters, as histograms.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn draw(&self, directory: &Path) -> io::Result<()> {
        let causes = [Cause::Timer, Cause::ForeignThread, Cause::Neighbour];
        let panels = causes.map(|cause| {
            let drawn = self
                .starts
                .iter()
                .filter(|starts| starts.cause == cause && starts.queue.contains("Matters"));
            Panel {
                title: format!("woken by {}", name(cause)),
                series: drawn
                    .map(|starts| Series {
                        name: starts.queue.trim_matches('`'),
                        latency: &starts.latency,
                    })
                    .collect(),
            }
        });
        let starts = Histograms {
            title: "From a wake to the first instruction, beside a task that computes",
            y_label: "% of the starts",
            panels: panels.into(),
        };
        save(&directory.join("scheduling-starts.svg"), starts.svg())
    }
}

fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::Timer => "its timer",
        Cause::ForeignThread => "another thread",
        Cause::Neighbour => "the neighbour",
    }
}
