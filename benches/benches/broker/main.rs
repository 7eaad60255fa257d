//! Compares the example `broker` with Redis' streams and NATS' JetStream, under the same load.
//!
//! ```text
//! cargo bench -p benches --bench broker -- [--rounds 3] [--rows 1000-] [--write-docs]
//! ```
//!
//! The load comes from `broker_load` of `benches/load`: a publisher, and a group of one consumer that holds a number of
//! messages in flight and acknowledges each by itself. A broker runs on the first CPU and the load generator on the
//! second; each measurement has a new broker.
//!
//! Each is measured twice: as fast as it takes the messages, for the throughput and the processor time of a message, and
//! at a fixed rate, for the latencies, which count from when a message was due. Redis and NATS take part if
//! `redis-server` and `nats-server` are on the `PATH` (packages of these names in Debian and others); they write nothing
//! to disk, as the example does.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;

use benches::bench::{Bench, Column, Lines, Options, case, figures};
use benches::figures::Measured;
use benches::process::{self, Executable, Server};
use benches::row::{Aim, row};

/// Messages that are delivered and not acknowledged, all the while.
const IN_FLIGHT: [u64; 3] = [1_000, 100_000, 1_000_000];
/// Messages that are measured as fast as they go.
const MESSAGES: u64 = 500_000;
/// Messages per second of the measurement of latencies, and how long that takes.
const RATE: u64 = 50_000;
const SECONDS: u64 = 4;

fn main() -> ExitCode {
    let rows = IN_FLIGHT.iter().flat_map(|in_flight| {
        let row = |(end, title, unit): (&str, &str, &'static str)| {
            row(
                format!("{in_flight}-{end}"),
                in_flight.to_string(),
                title,
                unit,
                Aim::Open,
            )
            .within(format!("{in_flight} in flight"))
        };
        [
            ("rate", "messages/s", ""),
            ("cpu", "CPU of the broker per million", "s"),
            ("memory", "peak memory", "MiB"),
            ("ack-p50", "ack p50 at 50000/s", "µs"),
            ("ack-p99", "ack p99 at 50000/s", "µs"),
        ]
        .map(row)
    });
    Bench {
        name: "broker",
        page: "recipes/message-queue",
        block: "broker",
        lines: Lines::Columns("broker"),
        rounds: 3,
        remark: versions,
        ..Bench::DEFAULT
    }
    .main(rows.collect(), brokers)
}

/// A broker, in one configuration.
#[derive(Clone, Copy, Debug)]
enum Broker {
    /// The example.
    Ours,
    /// Redis' streams.
    Redis,
    /// NATS' JetStream.
    Nats,
}

/// All that can run here.
fn brokers(options: &Options) -> Result<Vec<Column>, String> {
    if !options.bench {
        // As `cargo test` runs a bench: the tests of `benches/load` try out what it starts.
        return Ok(vec![]);
    }
    let build = |package, binary, features, name| {
        let executable = Executable {
            manifest: "../Cargo.toml",
            package,
            binary,
            features,
        };
        executable.build(name)
    };
    let load = Rc::new(build("load", "broker_load", "timing-wheel", "broker-load")?);
    let wheel = build("examples", "broker", "timing-wheel", "broker-wheel")?;
    let classic = build("examples", "broker", "", "broker-classic")?;
    let mut brokers = vec![
        ("`broker`, timing wheel", Broker::Ours, wheel),
        ("`broker`, ordered map", Broker::Ours, classic),
    ];
    for (name, broker, program) in [
        ("Redis streams", Broker::Redis, "redis-server"),
        ("NATS JetStream", Broker::Nats, "nats-server"),
    ] {
        if version(program).is_some() {
            brokers.push((name, broker, PathBuf::from(program)));
        }
    }
    let share = if options.quick { 10 } else { 1 };
    let columns = brokers.into_iter().map(|(name, broker, program)| {
        let cases = IN_FLIGHT.map(|in_flight| {
            let (program, load) = (program.clone(), Rc::clone(&load));
            case(in_flight.to_string(), move || {
                let measure = |messages: u64, rate| {
                    measure(broker, &program, &load, in_flight, messages / share, rate)
                };
                let [rate, cpu, memory, ..] = measure(MESSAGES, None)?;
                let [.., ack_p50, ack_p99] = measure(RATE * SECONDS, Some(RATE))?;
                let measured: Vec<Measured> = figures(
                    &in_flight.to_string(),
                    [
                        ("rate", rate),
                        ("cpu", cpu),
                        ("memory", memory),
                        ("ack-p50", ack_p50),
                        ("ack-p99", ack_p99),
                    ],
                );
                Ok(measured)
            })
        });
        Column {
            name: name.to_owned(),
            cases: cases.into(),
        }
    });
    Ok(columns.collect())
}

/// Messages per second, seconds of the broker's CPU per million of them, the most MiB that it had resident, and
/// microseconds in which half and 99 in 100 of the acks were answered.
fn measure(
    broker: Broker,
    program: &Path,
    load: &Path,
    in_flight: u64,
    messages: u64,
    rate: Option<u64>,
) -> Result<[f64; 5], String> {
    let server = start(broker, program, load)?;
    let mut command = Command::new(load);
    command
        .arg(&server.address)
        .args(["--in-flight", &in_flight.to_string()])
        .args(["--messages", &messages.to_string()])
        .args(["--process", &server.id().to_string(), "--cpu", "1"])
        .args(rate.map(|rate| format!("--rate={rate}")))
        .args(match broker {
            Broker::Ours => None,
            Broker::Redis => Some("--redis"),
            Broker::Nats => Some("--nats"),
        });
    let text = process::run(&mut command, None)?;
    sample(&text).ok_or_else(|| format!("{in_flight} in flight: {text}"))
}

fn sample(text: &str) -> Option<[f64; 5]> {
    let before = |unit| {
        let (front, _) = text.split_once(unit)?;
        front.rsplit(' ').next()?.parse().ok()
    };
    let acks = text.lines().find_map(|line| line.strip_prefix("ack "))?;
    let mut acks = acks.split_whitespace().map(str::parse);
    Some([
        before(" messages/s")?,
        before(" s of CPU per million")?,
        before(" MiB at most")?,
        acks.next()?.ok()?,
        acks.next()?.ok()?,
    ])
}

/// Starts a broker and waits until it listens.
fn start(broker: Broker, program: &Path, load: &Path) -> Result<Server, String> {
    let mut command = Command::new(program);
    // The port is free when the program takes it, unless another one is quicker.
    let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr();
    let address = free().map_err(|error| format!("no port is free: {error}"))?;
    let port = address.port().to_string();
    match broker {
        Broker::Ours => {
            command
                .args(["--port", "0", "--waiting-max", "10000000"])
                // No message is to be delivered again, however busy the machine.
                .args(["--ack-deadline", "10m"]);
            return Server::start(&mut command, 0);
        }
        Broker::Redis => command
            .args(["--bind", "127.0.0.1", "--port", &port])
            .args(["--save", "", "--appendonly", "no"]),
        // Streams in memory write nothing there.
        Broker::Nats => command
            .args([
                "--addr",
                "127.0.0.1",
                "--port",
                &port,
                "--jetstream",
                "--store_dir",
            ])
            .arg(load.with_file_name("nats")),
    };
    Server::start_at(&mut command, 0, address)
}

/// That of a program that is not ours; none if it is not installed.
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = text
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("v=").or_else(|| word.strip_prefix('v')));
    let mut numbers = numbers.filter(|it| it.starts_with(|digit: char| digit.is_ascii_digit()));
    numbers.next().map(str::to_owned)
}

/// The versions of what is not ours.
fn versions() -> String {
    let version = |name, program| match version(program) {
        Some(version) => format!("{name} {version}"),
        None => format!("without {name}"),
    };
    let redis = version("Redis", "redis-server");
    format!("; {redis}, {}", version("NATS", "nats-server"))
}
