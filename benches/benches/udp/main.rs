//! UDP in numbers: `send_segments` and `recv_many` beside bare loops over the same system calls, and
//! beside tokio with quinn-udp.
//!
//! ```text
//! cargo bench -p benches --bench udp --features peers -- [--rounds 7] [--seconds 1] [--only receive] [--write-docs]
//! ```
//!
//! What is measured has the first of two CPUs, its counterpart the second. The rows take turns within
//! each round, each in another order than in the round before; what is printed are medians of the
//! rounds, also of the ratios within them: of rates to the first bare loop of a kind, of CPU to tokio.
//! All sockets have the same options, GRO, ECN, destination and timestamps, unless the row says other.
//! With `--write-docs` the table goes to `docs/guide/udp.md`. Without the feature `peers`
//! tokio is left out.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use benches::thread::allowed_cpus;
use clap::Parser;
use support::output::{docs_directory, exit_code, write_block};
use support::tables::Table;

mod bare;
mod counterpart;
mod ours;
mod ring;
mod rows;
#[cfg(feature = "peers")]
mod theirs;

use rows::ROWS;

#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long each row is measured in each round.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only rows whose name begins so.
    #[arg(long, default_value = "")]
    only: String,
    #[arg(long)]
    write_docs: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A datagram of the streams, in bytes.
const DATAGRAM: usize = 1_200;

/// How many of them are sent by one call.
const SEGMENTS: usize = 54;

/// One of this length ends a stream.
const END: usize = 1;

/// Those who ask the server, one datagram in flight each.
const PEERS: usize = 64;

/// What each of them asks, in bytes.
const QUESTION: usize = 64;

/// What one of those that are compared has done.
#[derive(Clone, Copy, Debug)]
struct Sample {
    datagrams: u64,
    /// Of those that were to arrive.
    lost: u64,
    elapsed: Duration,
    /// Of the thread that is measured.
    cpu: Duration,
}

/// The CPU of what is measured, and that of its counterpart.
#[derive(Clone, Copy, Debug)]
struct Cpus {
    measured: usize,
    other: usize,
}

fn main() -> ExitCode {
    exit_code(compare(&Arguments::parse()))
}

fn compare(arguments: &Arguments) -> io::Result<()> {
    let cpus = match allowed_cpus()?[..] {
        [measured, other, ..] => Cpus { measured, other },
        _ => {
            return Err(io::Error::other(
                "two CPUs are needed, and this process has one",
            ));
        }
    };
    let length = Duration::from_secs_f64(arguments.seconds);
    let chosen: Vec<_> = (ROWS.iter())
        .filter(|row| row.name.starts_with(&arguments.only))
        .collect();
    let mut samples = vec![Vec::new(); chosen.len()];
    for round in 0..arguments.rounds.max(1) {
        for place in 0..chosen.len() {
            let index = (place + round * 3) % chosen.len();
            let sample = (chosen[index].measure)(cpus, length)?;
            samples[index].push(sample);
            eprint!(
                "\rround {} of {}: {:<40}",
                round + 1,
                arguments.rounds,
                chosen[index].name
            );
        }
    }
    eprintln!();
    let table = table(&chosen, &samples);
    println!("{}\n\n{}", support::machine::describe(), table.terminal());
    if arguments.write_docs {
        let page = docs_directory()?.join("guide/udp.md");
        let text = format!("{}\n\n{}", support::machine::describe(), table.markdown());
        write_block(&page, "udp", &text)?;
    }
    Ok(())
}

fn table(rows: &[&rows::Row], samples: &[Vec<Sample>]) -> Table {
    let mut table = Table::new([
        "",
        "thousand datagrams/s",
        "of the bare loop's",
        "CPU, ns per datagram",
        "least – greatest",
        "of tokio's",
        "lost",
    ])
    .left(0);
    for (row, own) in rows.iter().zip(samples) {
        let kind = row.name.split(':').next();
        let like = |who: &str| {
            let mut all = rows.iter().zip(samples);
            let found =
                all.find(|(row, _)| row.name.split(':').next() == kind && row.name.contains(who));
            found.map(|(_, samples)| &samples[..])
        };
        let cpu = sorted(own.iter().map(Sample::cpu_ns));
        let rate = median(own.iter().map(Sample::per_second)) / 1e3;
        let lost = median(own.iter().map(Sample::lost_percent));
        table.push([
            row.name.to_owned(),
            format!("{rate:.0}"),
            ratio(own, like("bare"), Sample::per_second),
            format!("{:.1}", cpu[cpu.len() / 2]),
            format!("{:.1} – {:.1}", cpu[0], cpu[cpu.len() - 1]),
            ratio(own, like("tokio"), Sample::cpu_ns),
            format!("{lost:.1} %"),
        ]);
    }
    table
}

/// The median of the ratios within the rounds.
fn ratio(own: &[Sample], others: Option<&[Sample]>, of: fn(&Sample) -> f64) -> String {
    let Some(others) = others else {
        return String::new();
    };
    let ratios = own
        .iter()
        .zip(others)
        .map(|(own, other)| of(own) / of(other));
    format!("{:.2}", median(ratios))
}

impl Sample {
    fn cpu_ns(&self) -> f64 {
        self.cpu.as_nanos() as f64 / self.datagrams.max(1) as f64
    }

    fn per_second(&self) -> f64 {
        self.datagrams as f64 / self.elapsed.as_secs_f64()
    }

    fn lost_percent(&self) -> f64 {
        self.lost as f64 * 100.0 / (self.lost + self.datagrams).max(1) as f64
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let values = sorted(values);
    values[values.len() / 2]
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
