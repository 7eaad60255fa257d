//! Compares the sockets of this repository's glommio with those of the published runtimes: servers under one load.
//!
//! ```text
//! cargo bench -p benches --bench sockets --features peers -- [--rounds 5] [--rows tcp] [--crates ours,glommio] [--write-docs]
//! ```
//!
//! How it is done is said in `benches::peers`, and what each row measures in `peers/load`.

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers::Cpus::{One, Two};
use benches::peers::{self, Cpus, Load, RUNTIMES};
use benches::report::{Panel, Picture};
use benches::row::Aim::{Open, RatioAtLeast, RatioAtMost};
use benches::row::{Row, row};

fn main() -> ExitCode {
    Bench {
        name: "sockets",
        ratios: Some(("sockets-ratios.svg", "tokio")),
        page: "sockets",
        pictures: &[PICTURE],
        ..peers::BENCH
    }
    .main(rows(), |options| {
        peers::columns_under_load(options, RUNTIMES, LOADS)
    })
}

/// The rows of the table.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("tcp-p50", "tcp", "TCP ping-pong 64 B on one CPU: RTT p50", "µs", RatioAtMost(0.55)),
        row("tcp-p99", "tcp", "same, p99", "µs", Open),
        row("tcp-cpu", "tcp", "same, server CPU per message", "µs", Open),
        row("tcp-timeout-p50", "tcp-timeout", "TCP ping-pong with read timeouts on one CPU: RTT p50", "µs", RatioAtMost(0.5)),
        row("tcp-timeout-p99", "tcp-timeout", "same, p99", "µs", Open),
        row("tcp-timeout-cpu", "tcp-timeout", "same, server CPU per message", "µs", Open),
        row("tcp-apart-p50", "tcp-apart", "TCP ping-pong 64 B: RTT p50", "µs", Open),
        row("tcp-apart-p99", "tcp-apart", "same, p99", "µs", Open),
        row("tcp-apart-cpu", "tcp-apart", "same, server CPU per message", "µs", Open),
        row("tcp-timeout-apart-p50", "tcp-timeout-apart", "TCP ping-pong with read timeouts: RTT p50", "µs", Open),
        row("tcp-timeout-apart-p99", "tcp-timeout-apart", "same, p99", "µs", Open),
        row("tcp-timeout-apart-cpu", "tcp-timeout-apart", "same, server CPU per message", "µs", Open),
        row("udp-p50", "udp", "UDP ping-pong 64 B on one CPU: RTT p50", "µs", RatioAtMost(0.53)),
        row("udp-p99", "udp", "same, p99", "µs", Open),
        row("udp-cpu", "udp", "same, server CPU per message", "µs", Open),
        row("udp-apart-p50", "udp-apart", "UDP ping-pong 64 B: RTT p50", "µs", Open),
        row("udp-apart-p99", "udp-apart", "same, p99", "µs", Open),
        row("udp-apart-cpu", "udp-apart", "same, server CPU per message", "µs", Open),
        row("echo-64-cpu", "echo-64", "echo, 64 connections, one CPU: server CPU per message", "µs", RatioAtMost(0.8)),
        row("echo-64-apart-rate", "echo-64-apart", "echo, 64 connections: messages", "1000/s", Open),
        row("echo-64-apart-p99", "echo-64-apart", "same, RTT p99", "µs", Open),
        row("echo-64-apart-cpu", "echo-64-apart", "same, server CPU per message", "µs", Open),
        row("echo-64-apart-busy", "echo-64-apart", "same, server on its CPU", "%", Open),
        row("echo-64-timeout-apart-rate", "echo-64-timeout-apart", "echo, 64 connections with read timeouts: messages", "1000/s", Open),
        row("echo-64-timeout-apart-cpu", "echo-64-timeout-apart", "same, server CPU per message", "µs", Open),
        row("echo-1k-apart-rate", "echo-1k-apart", "echo, 1,000 connections: messages", "1000/s", Open),
        row("echo-1k-apart-p99", "echo-1k-apart", "same, RTT p99", "µs", Open),
        row("echo-1k-apart-cpu", "echo-1k-apart", "same, server CPU per message", "µs", Open),
        row("echo-1k-apart-busy", "echo-1k-apart", "same, server on its CPU", "%", Open),
        row("echo-1k-timeout-apart-rate", "echo-1k-timeout-apart", "echo, 1,000 connections with read timeouts: messages", "1000/s", Open),
        row("echo-1k-timeout-apart-cpu", "echo-1k-timeout-apart", "same, server CPU per message", "µs", Open),
        row("bulk-read-rate", "bulk-read", "bulk, 64 KiB at a time, one CPU, the server reads", "GB/s", RatioAtLeast(1.0)),
        row("bulk-read-cpu", "bulk-read", "same, server CPU per GB", "ms", Open),
        row("bulk-write-rate", "bulk-write", "bulk, 64 KiB at a time, one CPU, the server writes", "GB/s", RatioAtLeast(1.0)),
        row("bulk-write-cpu", "bulk-write", "same, server CPU per GB", "ms", Open),
        row("bulk-read-apart-rate", "bulk-read-apart", "bulk, 64 KiB at a time, the server reads", "GB/s", Open),
        row("bulk-read-apart-cpu", "bulk-read-apart", "same, server CPU per GB", "ms", Open),
        row("bulk-write-apart-rate", "bulk-write-apart", "bulk, 64 KiB at a time, the server writes", "GB/s", Open),
        row("bulk-write-apart-cpu", "bulk-write-apart", "same, server CPU per GB", "ms", Open),
        row("accept-one-rate", "accept-one", "connections accepted and closed, one CPU", "1000/s", Open),
        row("accept-one-cpu", "accept-one", "same, server CPU per connection", "µs", Open),
        row("accept-rate", "accept", "connections accepted and closed", "1000/s", Open),
        row("accept-cpu", "accept", "same, server CPU per connection", "µs", Open),
        row("accept-busy", "accept", "same, server on its CPU", "%", Open),
        row("idle-cpu", "idle", "10,000 idle connections with read timeouts: CPU per s", "µs", Open),
        row("idle-memory", "idle", "same, resident memory per connection", "B", Open),
    ]
}

/// The cases: which server, which load, on which CPUs.
#[rustfmt::skip]
const LOADS: &[Load] = &[
    load("tcp", "serve-echo", &["ping-pong"], One),
    load("tcp-timeout", "serve-echo-timeout", &["ping-pong"], One),
    load("tcp-apart", "serve-echo", &["ping-pong"], Two),
    load("tcp-timeout-apart", "serve-echo-timeout", &["ping-pong"], Two),
    load("udp", "serve-datagrams", &["datagrams"], One),
    load("udp-apart", "serve-datagrams", &["datagrams"], Two),
    load("echo-64", "serve-echo", &["crowd", "64"], One),
    load("echo-64-apart", "serve-echo", &["crowd", "64"], Two),
    load("echo-64-timeout-apart", "serve-echo-timeout", &["crowd", "64"], Two),
    load("echo-1k-apart", "serve-echo", &["crowd", "1000"], Two),
    load("echo-1k-timeout-apart", "serve-echo-timeout", &["crowd", "1000"], Two),
    load("bulk-read", "serve-sink", &["send"], One),
    load("bulk-write", "serve-source", &["receive"], One),
    load("bulk-read-apart", "serve-sink", &["send"], Two),
    load("bulk-write-apart", "serve-source", &["receive"], Two),
    load("accept-one", "serve-accept", &["newcomers"], One),
    load("accept", "serve-accept", &["newcomers"], Two),
    load("idle", "serve-echo-timeout", &["idle", "10000"], Two),
];

const fn load(
    case: &'static str,
    server: &'static str,
    arguments: &'static [&'static str],
    cpus: Cpus,
) -> Load {
    Load {
        case,
        server,
        arguments,
        cpus,
    }
}

/// Server CPU per message of all crates.
#[rustfmt::skip]
const PICTURE: Picture = Picture {
    file: "sockets-cpu.svg",
    title: "What a message of 64 bytes costs an echo server on a CPU of its own",
    x: "connections, one message in flight on each",
    y: "µs of server CPU per message",
    panels: &[
        Panel { title: "without read timeouts", of: "", points: &[(1.0, "tcp-apart-cpu"), (64.0, "echo-64-apart-cpu"), (1000.0, "echo-1k-apart-cpu")] },
        Panel { title: "with read timeouts of 30 s", of: "", points: &[(1.0, "tcp-timeout-apart-cpu"), (64.0, "echo-64-timeout-apart-cpu"), (1000.0, "echo-1k-timeout-apart-cpu")] },
    ],
};
