//! Compares the files of this repository's glommio with those of the published runtimes, and with a
//! loop around the kernel that has no runtime.
//!
//! ```text
//! cargo bench -p benches --bench files --features peers -- [--rounds 5] [--rows direct] [--crates ours,glommio]
//!     [--write-docs]
//! ```
//!
//! How it is done is said in `benches::runtime`. The files lie in `target/peers/files-data`, so the
//! figures are those of the disk that has the target directory. The report and the
//! diagram go to `target/peers/`; with `--write-docs` also to `docs/files.md`. Without the feature
//! `peers` our own crate is measured beside the bare loop.

use std::process::ExitCode;

use benches::runtime::Comparison;
use benches::runtime::chart::Picture;
use support::numbers::number;
use support::plots::lines::Scale;

mod rows;

fn main() -> ExitCode {
    Comparison {
        title: "Files compared",
        name: "files",
        rows: rows::ALL,
        crates: rows::CRATES,
        page: "files",
        picture: Some(PICTURE),
        ..Comparison::DEFAULT
    }
    .main()
}

/// CPU per read of all crates.
const PICTURE: Picture = Picture {
    subject: "cpu",
    title: "What a read of 4 KiB at a random place costs",
    x: "reads under way at a time",
    y: || Scale {
        label: "µs of CPU per read".to_owned(),
        text: number,
    },
    panels: &[
        (
            "past the page cache",
            [
                (1.0, "direct-1-cpu"),
                (8.0, "direct-8-cpu"),
                (32.0, "direct-32-cpu"),
            ],
        ),
        (
            "from the page cache",
            [
                (1.0, "buffered-1-cpu"),
                (8.0, "buffered-8-cpu"),
                (32.0, "buffered-32-cpu"),
            ],
        ),
    ],
};
