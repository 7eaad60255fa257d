//! Compares the channels and locks of this repository's glommio with those of the published
//! runtimes, and with crates that have channels for any runtime.
//!
//! ```text
//! cargo bench -p benches --bench channels --features peers -- [--rounds 5] [--rows shared] [--crates ours,glommio]
//! ```
//!
//! How it is done is said in `benches::runtime`. flume and async-channel run on our executors. The
//! report goes to `target/peers/channels.md`; with `--write-docs` also to `docs/benchmarks.md`.
//! Without the feature `peers` our own crate is measured alone.

use std::process::ExitCode;

use benches::runtime::Comparison;

mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "Channels and locks compared",
        name: "channels",
        rows: rows::ALL,
        crates: rows::CRATES,
        block: "channels",
        ..Comparison::DEFAULT
    }
    .main()
}
