//! The workloads of the comparison, generic over the runtime they run on.
//!
//! One process runs one case on one runtime and prints its figures, one JSON object per line:
//!
//! ```text
//!   peer-<crate> <case>   ──▶  {"row": "tcp-rtt", "value": 33.1}
//!   peer-<crate> --list   ──▶  the cases this runtime can run, one per line
//! ```
//!
//! The cases called `serve-..` print an address instead, and serve all clients; see `cases/serve.rs`.
//!
//! A fresh process for each case keeps allocator, registered memory and timers of one case out of the next.
//! What a row means is said at its case in [`cases`]; titles, units and aims are in the driver
//! (`benches/benches/runtime`, `runtime_timers`, `sockets`, `channels` and `files`), which runs the crates in turn and compares.

pub mod cases;
pub mod channels;
pub mod files;
pub mod machine;
pub mod runtime;
pub mod samples;
mod signal;

use std::net::SocketAddr;

pub use runtime::{
    Actions, Cooperative, Datagram, Join, Joined, Listener, Network, Runtime, Slack, Stream,
    converse, wake_self, within,
};

/// One named case.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What the driver asks for.
    pub name: &'static str,
    /// Measures and prints.
    pub run: fn(),
}

/// The case `name`.
pub const fn case(name: &'static str, run: fn()) -> Case {
    Case { name, run }
}

/// The `main` of each peer: runs the case named by the first argument, or lists all.
pub fn main(menu: &[&[Case]]) {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let mut cases = menu.iter().copied().flatten();
    if argument == "--list" {
        cases.for_each(|case| println!("{}", case.name));
        return;
    }
    match cases.find(|case| case.name == argument) {
        Some(case) => (case.run)(),
        None => {
            eprintln!("usage: peer (--list | CASE); there is no case `{argument}`");
            std::process::exit(2);
        }
    }
}

/// Prints one figure of `row`, in the row's unit.
pub fn report(row: &str, value: f64) {
    println!("{{\"row\": \"{row}\", \"value\": {value}}}");
}

/// Prints figures of the rows `<case>-<end>`.
pub fn report_all<const ROWS: usize>(case: &str, figures: [(&str, f64); ROWS]) {
    for (end, value) in figures {
        report(&format!("{case}-{end}"), value);
    }
}

/// Tells the driver where a server can be reached.
pub fn announce(address: SocketAddr) {
    println!("{address}");
}
