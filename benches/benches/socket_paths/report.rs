//! The tables of a run.

use std::fmt::Write as _;

use support::numbers::number;
use support::quantiles::{Samples, Spread};
use support::tables::Table;

use crate::{bulk, echo};

/// What a run has found out.
#[derive(Default)]
pub struct Findings {
    /// Of each way the figures, round by round.
    pub echo: Vec<(&'static echo::Way, Vec<echo::Echo>)>,
    /// On two CPUs, and on one, in step.
    pub bulk: [Vec<(&'static bulk::Way, Vec<bulk::Bulk>)>; 2],
    /// What could not be measured, and why.
    pub skipped: Vec<String>,
}

impl Findings {
    /// All tables, as markdown.
    pub fn figures(&self) -> String {
        let mut text = String::from(
            "Echo of 64 bytes, 64 connections, one CPU. The first is the way that the runtime takes; ratios are to it, \
             round by round.\n\n",
        );
        text.push_str(&self.echo_table().markdown());
        text.push_str(
            "\nBulk over one connection: CPU time for a gigabyte. Ratios are of that of both ends together, since each does \
             some of the other's work in the kernel; they are to the way of the same end that the runtime takes: the first, \
             and the two `send`.\n",
        );
        for (place, ways) in ["Two CPUs, as much as goes through", "One CPU, in step"]
            .into_iter()
            .zip(&self.bulk)
        {
            if !ways.is_empty() {
                let _ = writeln!(text, "\n{place}:\n");
                text.push_str(&bulk_table(ways).markdown());
            }
        }
        for line in &self.skipped {
            let _ = writeln!(text, "\nLeft out: {line}.");
        }
        text
    }

    fn echo_table(&self) -> Table {
        let mut table = Table::new([
            "way",
            "server CPU per message, µs",
            "ratio",
            "from – to",
            "messages per wait",
        ]);
        let Some((_, taken)) = self.echo.first() else {
            return table;
        };
        for (way, samples) in &self.echo {
            let ratios = samples.iter().zip(taken).map(|(a, b)| a.cpu_us / b.cpu_us);
            let mut line = vec![
                way.name.to_owned(),
                number(median(samples.iter().map(|it| it.cpu_us))),
            ];
            line.extend(spread(ratios.collect()));
            line.push(number(median(
                samples.iter().map(|it| it.messages_per_turn),
            )));
            table.push(line);
        }
        table
    }
}

fn bulk_table(ways: &[(&'static bulk::Way, Vec<bulk::Bulk>)]) -> Table {
    let mut table = Table::new([
        "way",
        "GB/s",
        "sender, ms/GB",
        "receiver, ms/GB",
        "both, ms/GB",
        "ratio",
        "from – to",
        "sleeps per MB",
        "copied all the same",
    ]);
    for (way, samples) in ways {
        let figure = |of: fn(&bulk::Bulk) -> f64| number(median(samples.iter().map(of)));
        let mut line = vec![
            way.name.to_owned(),
            figure(|it| it.gigabytes),
            figure(|it| it.sender_ms),
            figure(|it| it.receiver_ms),
            figure(bulk::Bulk::both_ms),
        ];
        let mut others = ways.iter();
        let taken = others.find(|(other, _)| other.name == way.taken);
        let taken = taken.map_or(&[][..], |(_, samples)| samples);
        let pairs = samples.iter().zip(taken);
        let ratios = pairs.map(|(a, b)| a.both_ms() / b.both_ms());
        line.extend(spread(ratios.collect()));
        let sleeps = [0, 1].map(|end| median(samples.iter().map(|it| it.sleeps[end])));
        line.push(sleeps.map(number).join(" + "));
        let copied: Vec<f64> = samples.iter().filter_map(|it| it.copied).collect();
        line.push(match copied[..] {
            [] => String::new(),
            _ => format!("{:.0} %", median(copied.into_iter())),
        });
        table.push(line);
    }
    table
}

/// The middle one, and the ends, if there are any.
fn spread(ratios: Samples) -> [String; 2] {
    let Some(Spread { min, median, max }) = ratios.spread() else {
        return Default::default();
    };
    [format!("{median:.2}"), format!("{min:.2} – {max:.2}")]
}

/// The one in the middle; not a number if there is none.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let figures: Samples = figures.collect();
    figures.median().unwrap_or(f64::NAN)
}
