//! Compares this repository's glommio with the published runtimes.
//!
//! ```text
//! cargo bench -p benches --bench runtime --features peers -- [--rounds 5] [--rows tcp] [--crates ours,glommio]
//! ```
//!
//! How it is done is said in `benches::runtime`. The report goes to
//! `target/peers/runtime.md`; with `--write-docs` also to `docs/benchmarks.md`.

use std::process::ExitCode;

use benches::runtime::Comparison;

mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "Runtimes compared",
        name: "runtime",
        rows: rows::ALL,
        block: "runtime",
        ..Comparison::DEFAULT
    }
    .main()
}
