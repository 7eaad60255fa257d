//! Compares the example `broker` with Redis' streams and NATS' JetStream, under the same load.
//!
//! ```text
//! cargo bench -p benches --bench broker -- [--rounds 3] [--in-flight 1000,100000] [--write-docs]
//! ```
//!
//! The load comes from the example `broker_load`: a publisher, and a group of one consumer that
//! holds a number of messages in flight and acknowledges each by itself. A broker runs on the first
//! CPU and the load generator on the second; each measurement has a new broker, and from round to
//! round the brokers change places. A figure is the median of its rounds.
//!
//! Each is measured twice: as fast as it takes the messages, for the throughput and the processor
//! time of a message, and at a fixed rate, for the latencies, which count from when a message was
//! due. Redis and NATS take part if `redis-server` and `nats-server` are on the `PATH` (packages of
//! these names in Debian and others); they write nothing to disk, as the example does.
//!
//! The report goes to the terminal and to `target/peers/broker.md`; with `--write-docs` also to
//! `docs/recipes/message-queue.md`.

use std::process::ExitCode;

use benches::run::{Common, Destination, Run, turns};
use broker::{Broker, Programs};
use clap::Parser;
use load::Sample;
use support::output::{exit_code, target_directory};
use support::quantiles::Samples;
use support::tables::Table;

mod broker;
mod load;

/// Compares the example `broker` with Redis' streams and NATS' JetStream.
#[derive(Debug, Parser)]
struct Options {
    /// How often each broker is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Messages that are delivered and not acknowledged, all the while.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000, 1_000_000])]
    in_flight: Vec<u64>,
    /// Messages that are measured as fast as they go.
    #[arg(long, default_value_t = 500_000, value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,
    /// Messages per second of the measurement of latencies.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u64).range(1..))]
    rate: u64,
    /// How long that takes, in seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    #[command(flatten)]
    common: Common,
}

/// One broker with a number of messages in flight: what all rounds showed.
struct Case {
    broker: Broker,
    in_flight: u64,
    fast: Vec<Sample>,
    rated: Vec<Sample>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.common.bench {
        // `cargo test` runs this too; `examples/tests/programs/broker.rs` tries out what it starts.
        return ExitCode::SUCCESS;
    }
    exit_code(run(&options))
}

fn run(options: &Options) -> Result<(), String> {
    let directory = target_directory().join("peers");
    let programs = Programs::build(&directory)?;
    let brokers = Broker::all();
    eprintln!("beside the example: {}", broker::versions());
    let run = Run::new();
    let mut cases: Vec<Case> = options
        .in_flight
        .iter()
        .flat_map(|&in_flight| {
            brokers.iter().map(move |&broker| Case {
                broker,
                in_flight,
                fast: Vec::new(),
                rated: Vec::new(),
            })
        })
        .collect();
    for round in 0..options.rounds as usize {
        for group in cases.chunks_mut(brokers.len()) {
            for place in turns(brokers.len(), round) {
                let case = &mut group[place];
                case.measure(&programs, options)?;
                eprintln!("round {}: {}", round + 1, case.last());
            }
        }
    }
    let versions = format!("; {}", broker::versions());
    let rounds = options.rounds;
    let setting = run.setting("broker", "", &versions, format_args!("{rounds} rounds"));
    let text = format!("{setting}\n{}", table(&cases, options.rate).markdown());
    println!("{text}");
    let destination = Destination {
        name: "broker",
        folder: "peers",
        page: "recipes/message-queue",
        block: "broker",
    };
    destination.write(&text, &text, &options.common, |_| Ok(()))
}

impl Case {
    fn measure(&mut self, programs: &Programs, options: &Options) -> Result<(), String> {
        let in_flight = self.in_flight;
        let broker = self.broker;
        let fast = load::run(programs, broker, in_flight, options.messages, None)?;
        self.fast.push(fast);
        let messages = options.rate * options.seconds;
        let rated = load::run(programs, broker, in_flight, messages, Some(options.rate))?;
        self.rated.push(rated);
        Ok(())
    }

    fn last(&self) -> String {
        match (self.fast.last(), self.rated.last()) {
            (Some(fast), Some(rated)) => format!(
                "{}, {} in flight: {:.0} messages/s, {:.2} s of CPU per million; acks at the rate {:.0} µs, p99 {:.0} µs",
                self.broker.name(),
                self.in_flight,
                fast.messages_per_second,
                fast.cpu_s_per_million,
                rated.ack_p50_us,
                rated.ack_p99_us,
            ),
            _ => "not measured".to_owned(),
        }
    }
}

fn table(cases: &[Case], rate: u64) -> Table {
    let mut table = Table::new([
        "in flight".to_owned(),
        "broker".to_owned(),
        "messages/s".to_owned(),
        "CPU of the broker per million, s".to_owned(),
        "peak memory, MiB".to_owned(),
        format!("ack p50 at {rate}/s, µs"),
        format!("ack p99 at {rate}/s, µs"),
    ])
    .left(1);
    for case in cases {
        table.push([
            case.in_flight.to_string(),
            case.broker.name().to_owned(),
            cell(&case.fast, |sample| sample.messages_per_second),
            cell(&case.fast, |sample| sample.cpu_s_per_million),
            cell(&case.fast, |sample| sample.memory_mib),
            cell(&case.rated, |sample| sample.ack_p50_us),
            cell(&case.rated, |sample| sample.ack_p99_us),
        ]);
    }
    table
}

fn cell(samples: &[Sample], figure: fn(&Sample) -> f64) -> String {
    let figures: Samples = samples.iter().map(figure).collect();
    let spread = figures.spread().expect("there is a round");
    spread.to_string()
}
