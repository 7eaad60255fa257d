//! Compares the timers of this repository's glommio with those of the published runtimes.
//!
//! ```text
//! cargo bench -p benches --bench runtime_timers --features peers -- [--rounds 5] [--rows expire] [--crates ours,glommio]
//! ```
//!
//! How it is done is said in `benches::runtime`. The report goes to
//! `target/peers/runtime_timers.md`; with `--write-docs` also to `docs/benchmarks.md`.

use std::process::ExitCode;

use benches::runtime::Comparison;

mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "The timers of the runtimes compared",
        name: "runtime_timers",
        rows: rows::ALL,
        block: "timers",
        ..Comparison::DEFAULT
    }
    .main()
}
