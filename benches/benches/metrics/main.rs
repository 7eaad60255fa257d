//! What the feature `metrics` costs: this repository's glommio with it and without it, on the same
//! workloads.
//!
//! ```text
//! cargo bench -p benches --bench metrics -- [--rounds 5] [--rows timer] [--write-docs]
//! ```
//!
//! How it is done is said in `benches::runtime`. The two are the same source, built with other
//! features, so that every function may lie elsewhere in memory: a single row differs by some
//! percent for that alone, in either direction. The line below the table takes all rows together.
//!
//! The report goes to `target/peers/metrics.md`; with `--write-docs` also to `docs/benchmarks.md`.

use std::process::ExitCode;

use benches::runtime::{Comparison, peers};

mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "What metrics cost",
        name: "metrics",
        rows: rows::ALL,
        crates: rows::CRATES,
        against: peers::OURS,
        block: "metrics",
        ..Comparison::DEFAULT
    }
    .main()
}
