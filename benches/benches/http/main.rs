//! Compares the example `http_server` with its twin on tokio: the same hyper, the same answers.
//!
//! ```text
//! cargo bench -p benches --bench http --features peers -- [--rounds 5] [--seconds 5] [--only http1,http2,slow]
//!     [--write-docs]
//! ```
//!
//! - `http1`: as many requests as `wrk` can place.
//! - `http2`: the same with `h2load`, several streams to a connection.
//! - `slow`: thousands of clients that begin the head of a request, or not even that, until the
//!   server cuts them off: what each costs in memory and in CPU time.
//!
//! `wrk` and `h2load` have to be on the `PATH` (the packages `wrk` and `nghttp2-client` of Debian
//! and others). A server runs on the first CPU and its clients on the second. In each round each
//! server is started anew for each test; from round to round they change places, so that a
//! disturbance of the machine hits all alike. A figure is the median of its rounds, and a ratio the
//! median of those within the rounds.
//!
//! Beside the requests per second stands the CPU time that the server spent on one, which is the
//! steadier figure on a machine that others use as well. The report goes to `target/peers/http.md`;
//! with `--write-docs` also to `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use benches::run::{Common, Destination, Run, turns};
use benches::server::Server;
use clap::{Parser, ValueEnum};
use server::Contestant;
use support::numbers::number;
use support::output::{exit_code, target_directory};
use support::quantiles::{Samples, Spread};
use support::tables::Table;

mod load;
mod server;
mod slow;

/// Compares HTTP servers on glommio and tokio.
#[derive(Debug, Parser)]
struct Options {
    /// How often each server is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long a load lasts, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Connections that a load keeps busy.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Requests at a time on each connection of HTTP/2.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    streams: u32,
    /// Clients that are slow.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    slow_clients: u32,
    /// What the loads ask for.
    #[arg(long, default_value = "/")]
    path: String,
    /// Only these tests.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Kind>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Http1,
    Http2,
    Slow,
}

/// What is done with each server.
struct Test {
    kind: Kind,
    title: fn(&Options) -> String,
    /// What it yields, in this order.
    figures: &'static [&'static str],
    /// What the server is started with.
    arguments: &'static [&'static str],
    /// Says if something that it needs is not here.
    find: fn(&Options) -> Result<(), String>,
    measure: fn(&Server, &Options) -> Result<Vec<f64>, String>,
}

const TESTS: [Test; 3] = [
    Test {
        kind: Kind::Http1,
        title: |options| {
            let Options { connections, .. } = options;
            format!("HTTP/1.1, `wrk`, {connections} connections")
        },
        figures: load::FIGURES,
        arguments: &[],
        find: |_| load::find("wrk", "wrk"),
        measure: load::wrk,
    },
    Test {
        kind: Kind::Http2,
        title: |options| {
            let Options {
                connections,
                streams,
                ..
            } = options;
            format!("HTTP/2, `h2load`, {connections} connections with {streams} streams each")
        },
        figures: load::FIGURES,
        arguments: &["--http2"],
        find: |_| load::find("h2load", "nghttp2-client"),
        measure: load::h2load,
    },
    Test {
        kind: Kind::Slow,
        title: |options| {
            let (clients, limit) = (options.slow_clients, slow::LIMIT);
            format!(
                "{clients} slow clients, cut off {} s after they have connected",
                limit.as_secs()
            )
        },
        figures: slow::FIGURES,
        arguments: slow::ARGUMENTS,
        find: |options| slow::allow_descriptors(options.slow_clients),
        measure: slow::measure,
    },
];

/// The figures of a test, by server, round by round.
type Rounds = Vec<Vec<Vec<f64>>>;

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.common.bench {
        // As `cargo test` runs a bench: what the servers do, the tests of the examples see.
        return ExitCode::SUCCESS;
    }
    exit_code(run(&options))
}

fn run(options: &Options) -> Result<(), String> {
    let is_asked_for = |kind| options.only.is_empty() || options.only.contains(&kind);
    let tests = TESTS.iter().filter(|test| is_asked_for(test.kind));
    let tests: Vec<&Test> = tests.collect();
    for test in &tests {
        (test.find)(options)?;
    }
    let directory = target_directory().join("peers");
    let build = |contestant: &'static Contestant| {
        let binary = contestant.build(&directory)?;
        Ok((contestant, binary))
    };
    let servers = server::all().iter().map(build);
    let servers: Vec<(&Contestant, PathBuf)> = servers.collect::<Result<_, String>>()?;
    let run = Run::new();
    let samples = measure(options, &tests, &servers)?;

    let rounds = options.rounds;
    let mut text = run.setting(
        "http",
        " --features peers",
        "",
        format_args!("{rounds} rounds"),
    );
    for (test, samples) in tests.iter().zip(&samples) {
        let _ = writeln!(text, "\n{}:\n", (test.title)(options));
        text.push_str(&table(test, &servers, samples).markdown());
    }
    print!("{text}");
    let destination = Destination {
        name: "http",
        folder: "peers",
        page: "benchmarks",
        block: "http",
    };
    destination.write(&text, &text, &options.common, |_| Ok(()))
}

fn measure(
    options: &Options,
    tests: &[&Test],
    servers: &[(&Contestant, PathBuf)],
) -> Result<Vec<Rounds>, String> {
    let mut samples: Vec<Rounds> = vec![vec![Vec::new(); servers.len()]; tests.len()];
    for round in 0..options.rounds as usize {
        for (test, samples) in tests.iter().zip(&mut samples) {
            for place in turns(servers.len(), round) {
                let (contestant, binary) = &servers[place];
                let server = contestant.start(binary, test.arguments)?;
                let figures = (test.measure)(&server, options)
                    .map_err(|error| format!("{}: {error}", contestant.name))?;
                let names = test.figures.iter().zip(&figures);
                let told: Vec<_> = names
                    .map(|(name, figure)| format!("{} {name}", number(*figure)))
                    .collect();
                eprintln!(
                    "round {} of {}: {} {}",
                    round + 1,
                    options.rounds,
                    contestant.name,
                    told.join(", ")
                );
                samples[place].push(figures);
            }
        }
    }
    Ok(samples)
}

/// A line per server; in parentheses the ratio to the last, which is tokio.
fn table(test: &Test, servers: &[(&Contestant, PathBuf)], samples: &[Vec<Vec<f64>>]) -> Table {
    let titles = test.figures.iter().map(|name| [name, "smallest – largest"]);
    let mut table = Table::new(["server"].into_iter().chain(titles.flatten()));
    for ((contestant, _), rounds) in servers.iter().zip(samples) {
        let mut line = vec![contestant.name.to_owned()];
        for figure in 0..test.figures.len() {
            let figures: Samples = rounds.iter().map(|figures| figures[figure]).collect();
            let Spread { min, median, max } = figures.spread().expect("there is a round");
            let tokio = samples.last().expect("it is one of the servers");
            let pairs = rounds.iter().zip(tokio);
            let ratios: Samples = pairs.map(|(a, b)| a[figure] / b[figure]).collect();
            let ratio = ratios.median().expect("there is a round");
            line.push(format!("{} ({ratio:.3})", number(median)));
            line.push(format!("{} – {}", number(min), number(max)));
        }
        table.push(line);
    }
    table
}
