//! Compares the files of this repository's glommio with those of the published runtimes, and with a
//! loop around the kernel that has no runtime.
//!
//! ```text
//! cargo bench -p benches --bench files --features peers -- [--rounds 5] [--rows direct] [--crates ours,glommio]
//! ```
//!
//! How it is done is said in `benches::runtime`. The files lie in `target/peers/files-data`, so the
//! figures are those of the disk that has the target directory. The report goes to
//! `target/peers/files.md`. Without the feature `peers` our own crate is measured beside the bare
//! loop.

use std::process::ExitCode;

use benches::runtime::{Comparison, peers};

mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "Files compared",
        name: "files",
        rows: rows::ALL,
        crates: rows::CRATES,
        target_tmpdir: env!("CARGO_TARGET_TMPDIR"),
        loads: &[],
        against: peers::PUBLISHED,
        page: None,
    }
    .main()
}
