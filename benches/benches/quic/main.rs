//! `glommio-quic` and `glommio-h3` beside quinn and h3 on tokio: throughput, handshakes, loss, idle connections, floods.
//!
//! ```text
//! cargo bench -p benches --bench quic --features peers -- [--rounds 9] [--rows http3] [--columns ours,quinn] [--write-docs]
//! ```
//!
//! Server and client have a thread each, with a current-thread runtime for quinn. Both have the same protocol
//! (quinn-proto), cryptography (graviola), configuration, sockets and peer: themselves. Each measurement is a process of
//! its own.

#![allow(
    clippy::duplicate_mod,
    reason = "`loads` is compiled with each of the two"
)]

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::sync::mpsc;
use std::thread;

use benches::bench::{Bench, Case, Column, case, figures};
use benches::process;
use benches::row::Aim::{Open, RatioAtLeast, RatioAtMost};
use benches::row::{Row, row};
use support::lossy_proxy::Proxy;

mod clock;
mod flood;
mod http3;
mod ours;
mod quinn_http3;
mod quinn_tokio;
mod settings;

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What a client does, and a server bears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// So many connections send so many bytes each.
    Bulk { connections: usize, bytes: usize },
    /// So many handshakes, sixteen at a time.
    Handshakes(usize),
    /// So many clients at once, each of which the server asks to prove its address.
    Retries(usize),
    /// Trains of packets that begin no connection, for some seconds.
    Flood,
    /// A stream that is not read, of whose bytes there are a few in each train of datagrams.
    Unread,
    /// So many connections, with keep-alives.
    Idle(usize),
    /// So many requests of HTTP/3.
    Http3(usize),
}

/// The name of each, with how many of a million datagrams are lost.
const LOADS: [(&str, Load, u32); 9] = [
    ("bulk-1", bulk(1, 256 << 20), 0),
    ("bulk-100", bulk(100, 3 << 20), 0),
    ("loss", bulk(1, 24 << 20), 10_000),
    ("handshakes", Load::Handshakes(1500), 0),
    ("retries", Load::Retries(1000), 0),
    ("flood", Load::Flood, 0),
    ("unread", Load::Unread, 0),
    (IDLE, Load::Idle(10_000), 0),
    ("http3", Load::Http3(19_200), 0),
];

/// It takes half a minute, and says the same each time.
const IDLE: &str = "idle";

const fn bulk(connections: usize, bytes: usize) -> Load {
    Load::Bulk { connections, bytes }
}

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    let (faster, less) = (RatioAtLeast(1.0), RatioAtMost(1.0));
    vec![
        row("bulk-1-rate", "bulk-1", "one connection", "MB/s", faster),
        row("bulk-1-cpu", "bulk-1", "same, CPU of both ends for 1 GB", "s", less),
        row("bulk-100-rate", "bulk-100", "100 connections", "MB/s", faster),
        row("bulk-100-cpu", "bulk-100", "same, CPU of both ends for 1 GB", "s", less),
        row("loss-rate", "loss", "one connection, 1 % of the datagrams lost", "MB/s", Open),
        row("loss-cpu", "loss", "same, CPU of both ends and of the proxy that loses them for 1 GB", "s", Open),
        row("handshakes-rate", "handshakes", "handshakes, 16 at a time", "1/s", faster),
        row("handshakes-cpu", "handshakes", "same, CPU of both ends for one", "ms", less),
        row("retries-rate", "retries", "1,000 clients at once, each asked to prove its address: connected", "1/s", faster),
        row("retries-cpu", "retries", "same, CPU of both ends for one", "ms", less),
        row("flood-longest", "flood", "trains of false first packets: longest CPU time between turns of a 1 ms sleeper", "ms", less),
        row("flood-turns", "flood", "same, turns of the sleeper", "1/s", faster),
        row("unread-memory", "unread", "memory for 12 MB in a stream that is not read, beside one that is", "MB", less),
        row("idle-memory", IDLE, "10,000 idle connections: memory of both ends for one", "kB", less),
        row("idle-cpu", IDLE, "same, keep-alives each 10 s: CPU of both ends in a second", "ms", less),
        row("http3-rate", "http3", "HTTP/3, 8 connections with 16 requests of 1 kB at a time: requests", "1/s", faster),
        row("http3-cpu", "http3", "same, CPU of both ends for one", "µs", RatioAtMost(0.9)),
    ]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [child, column, name] = &arguments[..]
        && child == "child"
    {
        return support::output::exit_code(run(column, name).map_err(|error| error as Box<_>));
    }
    Bench {
        name: "quic",
        page: "evidence/quic",
        yardstick: "quinn",
        ours: &["ours", EPOLL],
        preface: "\"ours\" is on io_uring, \"epoll\" is the same program on epoll.",
        ..Bench::DEFAULT
    }
    .main(rows(), |options| match options.bench {
        true => Ok(["ours", EPOLL, "quinn"].map(column).into()),
        // What they do, the tests of the crates see.
        false => Ok(Vec::new()),
    })
}

const EPOLL: &str = "epoll";

fn column(name: &'static str) -> Column {
    let cases = LOADS.map(|(load, ..)| Case {
        one_in: if load == IDLE { 5 } else { 1 },
        ..case(load, move || measure(name, load))
    });
    Column {
        name: name.to_owned(),
        cases: cases.into(),
    }
}

/// In a process of its own.
fn measure(
    column: &str,
    load: &str,
) -> std::result::Result<Vec<benches::figures::Measured>, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    if column == EPOLL {
        command.env("GLOMMIO_DRIVER", EPOLL);
    }
    let printed = process::run(command.args(["child", column, load]), None)?;
    let values: Vec<f64> = printed
        .split(' ')
        .filter_map(|it| it.trim().parse().ok())
        .collect();
    let ends = match load {
        "flood" => ["longest", "turns"],
        "idle" | "unread" => ["memory", "cpu"],
        _ => ["rate", "cpu"],
    };
    match values[..] {
        [first, second] => Ok(figures(load, [(ends[0], first), (ends[1], second)])),
        _ => Err(printed),
    }
}

fn run(column: &str, name: &str) -> Result {
    let known = LOADS.iter().find(|(load, ..)| *load == name);
    let &(_, load, lost_ppm) = known.ok_or("there is no such load")?;
    let (serve, run): (Serve, Run) = match (column, load) {
        ("quinn", Load::Http3(_)) => (quinn_http3::serve, quinn_http3::run),
        ("quinn", _) => (quinn_tokio::serve, quinn_tokio::run),
        (_, Load::Http3(_)) => (http3::serve, http3::run),
        _ => (ours::serve, ours::run),
    };
    let (address, addresses) = mpsc::channel();
    thread::spawn(move || {
        if let Err(error) = serve(load, &address) {
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
    let [first, second] = run(address, load)?;
    println!("{first} {second}");
    drop(network);
    Ok(())
}

/// Sends its address and serves.
type Serve = fn(Load, &mpsc::Sender<SocketAddr>) -> Result;
type Run = fn(SocketAddr, Load) -> Result<[f64; 2]>;
