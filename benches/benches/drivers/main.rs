//! Compares executors on epoll with those on io_uring, and with tokio: rows of the benches `runtime`, `sockets` and `files`.
//!
//! ```text
//! cargo bench -p benches --bench drivers --features peers -- [--rounds 5] [--rows tcp] [--write-docs]
//! ```

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers::Cpus::{One, Two};
use benches::peers::{self, Load};
use benches::row::Aim::{AtMost, Open, RatioAtLeast, RatioAtMost};
use benches::row::{Row, row};

const COLUMNS: &[&str] = &["ours", "epoll", "tokio"];

fn main() -> ExitCode {
    Bench {
        name: "drivers",
        page: "evidence/drivers",
        yardstick: "tokio",
        ours: &["epoll", "ours"],
        preface: "\"ours\" is on io_uring, \"epoll\" is the same program on epoll.",
        ..Bench::DEFAULT
    }
    .main(rows(), |options| {
        let mut columns = peers::columns(options, COLUMNS)?;
        let under_load = peers::columns_under_load(options, COLUMNS, LOADS)?;
        for (column, more) in columns.iter_mut().zip(under_load) {
            column.cases.extend(more.cases);
        }
        Ok(columns)
    })
}

/// The rows of the table.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("timer-100k-5s", "timer-100k-5s", "`Timer`: create, poll once, drop; 100k sleepers, 5 s", "ns", Open),
        row("overshoot-100us", "overshoot", "overshoot of a 100 µs sleep, p50", "µs", Open),
        row("tcp-rtt", "tcp", "TCP ping-pong 64 B on one CPU, RTT p50", "µs", RatioAtMost(1.0)),
        row("tcp-cpu", "tcp", "same, CPU per round trip", "µs", RatioAtMost(1.0)),
        row("tcp-timeout-rtt", "tcp-timeout", "TCP ping-pong with read timeouts on one CPU, RTT p50", "µs", RatioAtMost(1.0)),
        row("udp-rtt", "udp", "UDP ping-pong on one CPU, RTT p50", "µs", RatioAtMost(1.0)),
        row("echo-64-cpu", "echo-64", "echo, 64 connections, one CPU: server CPU per message", "µs", RatioAtMost(1.0)),
        row("echo-64-apart-rate", "echo-64-apart", "echo, 64 connections: messages", "1000/s", RatioAtLeast(1.0)),
        row("echo-1k-apart-rate", "echo-1k-apart", "echo, 1,000 connections: messages", "1000/s", RatioAtLeast(1.0)),
        row("echo-1k-apart-cpu", "echo-1k-apart", "same, server CPU per message", "µs", RatioAtMost(1.0)),
        row("accept-one-rate", "accept-one", "connections accepted and closed, one CPU", "1000/s", RatioAtLeast(1.0)),
        row("direct-32", "direct-32", "random 4 KiB past the page cache, 32 at a time", "k/s", RatioAtLeast(1.5)),
        row("buffered-1", "buffered-1", "random 4 KiB from the page cache, one at a time", "k/s", RatioAtLeast(1.5)),
        row("stream-write-512k", "stream-write-512k", "a new file written past the page cache, 4 pieces of 512 KiB at a time", "MB/s", RatioAtLeast(1.5)),
        row("executor-start", "executor-start", "start an executor on a thread, run nothing, join", "µs", RatioAtMost(1.2)),
        row("executor-memory", "executor-memory", "resident memory per executor", "KiB", AtMost(48.0)),
    ]
}

/// The cases that are servers under a load from outside.
const LOADS: &[Load] = &[
    Load {
        case: "echo-64",
        server: "serve-echo",
        arguments: &["crowd", "64"],
        cpus: One,
    },
    Load {
        case: "echo-64-apart",
        server: "serve-echo",
        arguments: &["crowd", "64"],
        cpus: Two,
    },
    Load {
        case: "echo-1k-apart",
        server: "serve-echo",
        arguments: &["crowd", "1000"],
        cpus: Two,
    },
    Load {
        case: "accept-one",
        server: "serve-accept",
        arguments: &["newcomers"],
        cpus: One,
    },
];
