//! Compares the example `http_server` with its twin on tokio: the same hyper, the same answers.
//!
//! ```text
//! cargo bench -p benches --bench http --features peers -- [--rounds 5] [--seconds 10] [--connections 64]
//! ```
//!
//! The load comes from `wrk`, which has to be on the `PATH` (the package `wrk` of Debian and
//! others). A server runs on the first CPU and wrk on the second. In each round each server is
//! started anew and asked for some seconds; from round to round they change places, so that a
//! disturbance of the machine hits all alike. A figure is the median of its rounds.
//!
//! Beside the requests per second stands the CPU time that the server spent on one, which is the
//! steadier figure on a machine that others use as well.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use benches::command::command;
use clap::Parser;
use server::{Contestant, Server};
use support::machine;
use support::numbers::number;
use support::output::{exit_code, target_directory};
use support::quantiles::{Samples, Spread};
use support::tables::Table;

mod server;
mod wrk;

/// Compares HTTP servers on glommio and tokio.
#[derive(Debug, Parser)]
struct Options {
    /// How often each server is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long a measurement takes, in seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Connections that wrk keeps busy.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// What wrk asks for.
    #[arg(long, default_value = "/")]
    path: String,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What one run showed.
#[derive(Clone, Copy, Debug)]
struct Sample {
    requests_per_second: f64,
    cpu_us_per_request: f64,
}

/// One of them.
type Figure = fn(&Sample) -> f64;

fn main() -> ExitCode {
    exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), String> {
    wrk::find()?;
    let directory = target_directory().join("peers");
    let mut contestants = server::all()
        .iter()
        .map(|contestant| Ok((contestant, contestant.build(&directory)?, Vec::new())))
        .collect::<Result<Vec<_>, String>>()?;
    // Before this thread is bound to one CPU and can see no other.
    let machine = machine::describe();
    let load_before = machine::load();
    for round in 0..options.rounds {
        for (contestant, binary, samples) in &mut contestants {
            let sample = measure(contestant, binary, options)?;
            samples.push(sample);
            eprintln!(
                "round {} of {}: {} {:.0} requests/s, {:.2} µs of CPU each",
                round + 1,
                options.rounds,
                contestant.name,
                sample.requests_per_second,
                sample.cpu_us_per_request
            );
        }
        // The first server finds the caches as the last of the previous round left them: take
        // turns.
        contestants.rotate_left(1);
    }
    contestants.sort_by_key(|(contestant, ..)| contestant.column);

    let mut text = format!(
        "`{}`\n\n{}; load average {load_before} before, {} after.\n\n",
        command("http", " --features peers"),
        machine,
        machine::load()
    );
    let figures: Vec<_> = contestants
        .iter()
        .map(|(contestant, _, samples)| (*contestant, samples.as_slice()))
        .collect();
    text.push_str(&table(&figures).markdown());
    print!("{text}");
    let file = directory.join("http.md");
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

fn measure(contestant: &Contestant, binary: &Path, options: &Options) -> Result<Sample, String> {
    let server = Server::start(contestant, binary)?;
    let address = format!("{}{}", server.address, options.path.trim_start_matches('/'));
    let before = server.cpu_ns()?;
    let load = wrk::run(&address, options.connections, options.seconds)?;
    let cpu_ns = server.cpu_ns()? - before;
    Ok(Sample {
        requests_per_second: load.requests_per_second,
        cpu_us_per_request: cpu_ns / 1e3 / load.requests,
    })
}

/// A line per server; in parentheses the ratio to the last, which is tokio.
fn table(figures: &[(&Contestant, &[Sample])]) -> Table {
    let columns: [(&str, Figure); 2] = [
        ("requests/s", |sample| sample.requests_per_second),
        ("CPU per request, µs", |sample| sample.cpu_us_per_request),
    ];
    let titles = columns.map(|(name, _)| [name, "smallest – largest"]);
    let mut table = Table::new(["server"].into_iter().chain(titles.into_iter().flatten()));
    for (contestant, samples) in figures {
        let mut line = vec![contestant.name.to_owned()];
        for (_, figure) in columns {
            let Spread { min, median, max } = spread(samples, figure);
            let unit = figures.last().map(|(_, samples)| spread(samples, figure));
            let ratio = unit.map_or(1.0, |unit| median / unit.median);
            line.push(format!("{} ({ratio:.3})", number(median)));
            line.push(format!("{} – {}", number(min), number(max)));
        }
        table.push(line);
    }
    table
}

fn spread(samples: &[Sample], figure: Figure) -> Spread {
    let figures: Samples = samples.iter().map(figure).collect();
    figures.spread().expect("there is a round at least")
}
