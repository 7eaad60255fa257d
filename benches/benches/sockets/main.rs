//! Compares the sockets of this repository's glommio with those of the published runtimes: servers
//! under one load.
//!
//! ```text
//! cargo bench -p benches --bench sockets --features peers -- [--rounds 5] [--only tcp] [--crates ours,glommio]
//!     [--write-docs]
//! ```
//!
//! How it is done is said in `benches::runtime` and `benches::runtime::load`. The report and the
//! diagram go to `target/peers/`; with `--write-docs` also to `docs/sockets.md`. Without the
//! feature `peers` our own crate is measured alone.

use std::process::ExitCode;

use benches::runtime::Comparison;
use benches::runtime::chart::Picture;
use support::plots::lines::Scale;

mod loads;
mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "Sockets compared",
        name: "sockets",
        rows: rows::ALL,
        loads: loads::ALL,
        page: "sockets",
        picture: Some(PICTURE),
        ..Comparison::DEFAULT
    }
    .main()
}

/// Server CPU per message of all crates.
const PICTURE: Picture = Picture {
    subject: "cpu",
    title: "What a message of 64 bytes costs an echo server on a CPU of its own",
    x: "connections, one message in flight on each",
    y: || Scale::whole("µs of server CPU per message"),
    panels: &[
        (
            "without read timeouts",
            [
                (1.0, "tcp-apart-cpu"),
                (64.0, "echo-64-apart-cpu"),
                (1000.0, "echo-1k-apart-cpu"),
            ],
        ),
        (
            "with read timeouts of 30 s",
            [
                (1.0, "tcp-timeout-apart-cpu"),
                (64.0, "echo-64-timeout-apart-cpu"),
                (1000.0, "echo-1k-timeout-apart-cpu"),
            ],
        ),
    ],
};
