//! Beside quinn on tokio: throughput, handshakes, loss, idle connections.
//!
//! ```console
//! $ cargo bench -p glommio-quic --bench quic --features timing-wheel -- [--rounds 9] [--idle 10000] [ROW ...]
//! ```
//!
//! Server and client have a thread each, with a current-thread runtime for quinn. Both have the same
//! protocol (quinn-proto), cryptography (graviola), transport configuration and peer: themselves.
//! Each row of each round is a process of its own; the two take turns. What is printed are medians
//! of the rounds with the least and the greatest, and the median of the quotients within a round.

#![allow(
    clippy::duplicate_mod,
    reason = "`loads` is compiled with each of the two"
)]

mod ours;
mod quinn_tokio;
mod settings;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use support::lossy_proxy::Proxy;

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// So many connections send so many bytes each.
    Bulk { connections: usize, bytes: usize },
    /// So many handshakes, sixteen at a time.
    Handshakes(usize),
    /// So many connections, with keep-alives.
    Idle(usize),
}

const ROWS: [(&str, Load, u32); 4] = [
    (
        "one connection",
        Load::Bulk {
            connections: 1,
            bytes: 256 << 20,
        },
        0,
    ),
    (
        "100 connections",
        Load::Bulk {
            connections: 100,
            bytes: 3 << 20,
        },
        0,
    ),
    (
        "1 % loss",
        Load::Bulk {
            connections: 1,
            bytes: 24 << 20,
        },
        10_000,
    ),
    ("handshakes", Load::Handshakes(1500), 0),
];
const PEERS: [&str; 2] = ["glommio-quic", "quinn"];
/// How long idle connections are watched.
const WATCHED: Duration = Duration::from_secs(20);

fn main() -> Result {
    let arguments: Vec<String> = env::args().skip(1).filter(|it| it != "--bench").collect();
    if arguments.first().is_some_and(|first| first == "child") {
        return child(&arguments[1..]);
    }
    let (mut rounds, mut idle, mut names) = (5, 10_000, Vec::new());
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or("a value is missing");
        match &*argument {
            "--rounds" => rounds = value()?.parse()?,
            "--idle" => idle = value()?.parse()?,
            _ => names.push(argument),
        }
    }
    println!("{}\n", support::machine::describe());
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|it| name.contains(&**it));
    for (name, load, _) in ROWS {
        if is_wanted(name) {
            compare(name, load, rounds)?;
        }
    }
    if is_wanted("idle") && idle > 0 {
        compare("idle", Load::Idle(idle), 1)?;
    }
    Ok(())
}

fn compare(name: &str, load: Load, rounds: usize) -> Result {
    let mut figures: [[Vec<f64>; 2]; 2] = Default::default();
    for round in 0..rounds {
        for turn in 0..2 {
            let peer = (round + turn) % 2;
            let [rate, cpu] = measure(name, load, PEERS[peer])?;
            figures[0][peer].push(rate);
            figures[1][peer].push(cpu);
        }
    }
    let units = match load {
        Load::Bulk { .. } => ["MB/s", "CPU s/GB"],
        Load::Handshakes(_) => ["handshakes/s", "CPU ms each"],
        Load::Idle(_) => ["bytes each, both ends", "CPU ms/s"],
    };
    for (unit, [ours, theirs]) in units.iter().zip(&figures) {
        let quotients = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
        println!(
            "{name:<16} {unit:<22} ours {}  quinn {}  quotient {}",
            spread(ours.clone()),
            spread(theirs.clone()),
            spread(quotients.collect()),
        );
    }
    Ok(())
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let median = values[values.len() / 2];
    format!(
        "{median:.3} ({:.3} to {:.3})",
        values[0],
        values[values.len() - 1]
    )
}

/// Runs one side by side with nothing, in a process of its own.
fn measure(row: &str, load: Load, peer: &str) -> Result<[f64; 2]> {
    let idle = match load {
        Load::Idle(count) => count,
        _ => 0,
    };
    let output = Command::new(env::current_exe()?)
        .args(["child", peer, row, &idle.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let mut figures = text.split_whitespace().map(str::parse::<f64>);
    match (figures.next(), figures.next()) {
        (Some(rate), Some(cpu)) => Ok([rate?, cpu?]),
        _ => Err(format!("{row} of {peer} failed: {text}").into()),
    }
}

fn child(arguments: &[String]) -> Result {
    let [peer, row, idle] = arguments else {
        return Err("child PEER ROW IDLE".into());
    };
    let (load, lost_ppm) = match ROWS.iter().find(|(name, ..)| name == row) {
        Some((_, load, lost_ppm)) => (*load, *lost_ppm),
        None => (Load::Idle(idle.parse()?), 0),
    };
    let (serve, run): (Serve, Run) = match &**peer {
        "quinn" => (quinn_tokio::serve, quinn_tokio::run),
        _ => (ours::serve, ours::run),
    };
    let (address, addresses) = mpsc::channel();
    thread::spawn(move || {
        if let Err(error) = serve(&address) {
            eprintln!("the server: {error}");
        }
    });
    let mut address = addresses.recv()?;
    let mut network = None;
    if lost_ppm > 0 {
        let proxy = Proxy::start(address, lost_ppm, 0x5eed, 1)?;
        address = proxy.address();
        network = Some(proxy);
    }
    let measured = run(address, load)?;
    println!("{} {}", measured[0], measured[1]);
    drop(network);
    Ok(())
}

/// Sends its address and serves: reads streams to their end, and says so.
type Serve = fn(&mpsc::Sender<SocketAddr>) -> Result;
type Run = fn(SocketAddr, Load) -> Result<[f64; 2]>;

/// Time and CPU since.
struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    fn start() -> Result<Clock> {
        Ok(Clock {
            wall: Instant::now(),
            cpu: cpu()?,
        })
    }

    /// Seconds of time, and of CPU of all threads.
    fn stop(&self) -> Result<[f64; 2]> {
        let wall = self.wall.elapsed().as_secs_f64();
        Ok([wall, (cpu()? - self.cpu).as_secs_f64()])
    }

    fn bulk(&self, bytes: usize) -> Result<[f64; 2]> {
        let [wall, cpu] = self.stop()?;
        Ok([bytes as f64 / wall / 1e6, cpu / (bytes as f64 / 1e9)])
    }

    fn handshakes(&self, count: usize) -> Result<[f64; 2]> {
        let [wall, cpu] = self.stop()?;
        Ok([count as f64 / wall, cpu / count as f64 * 1e3])
    }
}

fn cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(Duration::from_micros(micros as u64))
}
