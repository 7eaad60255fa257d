//! UDP in numbers: `send_segments` and `recv_many` beside bare loops over the same system calls, and
//! beside tokio with quinn-udp.
//!
//! ```text
//! cargo bench -p benches --bench udp --features peers -- [--rounds 7] [--seconds 1] [--only receive] [--write-docs]
//! ```
//!
//! What is measured has the first of two CPUs, its counterpart the second. The rows take turns within
//! each round, each in another order than in the round before; what is printed are medians of the
//! rounds, with the least and the greatest. All sockets have the same options: GRO, ECN, destination
//! and timestamps. With `--write-docs` the table goes to `docs/guide/udp.md`. Without the feature `peers`
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
        "CPU, ns per datagram",
        "least – greatest",
        "lost",
    ])
    .left(0);
    for (row, samples) in rows.iter().zip(samples) {
        let per_datagram = |sample: &Sample, time: Duration| {
            time.as_nanos() as f64 / sample.datagrams.max(1) as f64
        };
        let rate = median(samples, |it| 1e6 / per_datagram(it, it.elapsed));
        let cpu = sorted(samples, |it| per_datagram(it, it.cpu));
        let lost = median(samples, |it| {
            it.lost as f64 * 100.0 / (it.lost + it.datagrams).max(1) as f64
        });
        table.push([
            row.name.to_owned(),
            format!("{rate:.0}"),
            format!("{:.1}", cpu[cpu.len() / 2]),
            format!("{:.1} – {:.1}", cpu[0], cpu[cpu.len() - 1]),
            format!("{lost:.1} %"),
        ]);
    }
    table
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    sorted(samples, of)[samples.len() / 2]
}

fn sorted(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Vec<f64> {
    let mut values: Vec<_> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}
