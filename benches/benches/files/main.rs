//! Compares the files of this repository's glommio with those of the published runtimes, and with a loop around the kernel
//! that has no runtime.
//!
//! ```text
//! cargo bench -p benches --bench files --features peers -- [--rounds 5] [--rows direct] [--crates ours,glommio] [--write-docs]
//! ```
//!
//! The files lie in `target/peers/files-data`, so the figures are those of the disk that has the target directory. What
//! each row measures is said in `peers/workloads/src/cases/files.rs`.

use std::process::ExitCode;

use benches::bench::Bench;
use benches::peers::{self, PUBLISHED};
use benches::report::{Panel, Picture};
use benches::row::Aim::{Open, RatioAtLeast, RatioAtMost};
use benches::row::{Row, row};

fn main() -> ExitCode {
    Bench {
        name: "files",
        page: "evidence/files",
        pictures: &[PICTURE],
        ..peers::BENCH
    }
    .main(rows(), |options| peers::columns(options, CRATES))
}

/// The rows of the table.
#[rustfmt::skip]
fn rows() -> Vec<Row> {
    vec![
        row("direct-1", "direct-1", "random 4 KiB past the page cache, one at a time", "k/s", RatioAtLeast(1.2)),
        row("direct-1-cpu", "direct-1", "same, CPU per read", "µs", RatioAtMost(0.42)),
        row("direct-8", "direct-8", "same, 8 at a time", "k/s", RatioAtLeast(1.0)),
        row("direct-8-cpu", "direct-8", "same, CPU per read", "µs", Open),
        row("direct-32", "direct-32", "same, 32 at a time", "k/s", RatioAtLeast(1.0)),
        row("direct-32-cpu", "direct-32", "same, CPU per read", "µs", Open),
        row("unregistered-1", "unregistered-1", "same, one at a time, memory that the ring does not know", "k/s", Open).against("direct-1"),
        row("unregistered-1-cpu", "unregistered-1", "same, CPU per read", "µs", Open).against("direct-1-cpu"),
        row("unregistered-32", "unregistered-32", "same, 32 at a time", "k/s", Open).against("direct-32"),
        row("unregistered-32-cpu", "unregistered-32", "same, CPU per read", "µs", Open).against("direct-32-cpu"),
        row("buffered-1", "buffered-1", "random 4 KiB from the page cache, one at a time", "k/s", RatioAtLeast(4.3)),
        row("buffered-1-cpu", "buffered-1", "same, CPU per read", "µs", Open),
        row("buffered-8", "buffered-8", "same, 8 at a time", "k/s", Open),
        row("buffered-8-cpu", "buffered-8", "same, CPU per read", "µs", Open),
        row("buffered-32", "buffered-32", "same, 32 at a time", "k/s", Open),
        row("buffered-32-cpu", "buffered-32", "same, CPU per read", "µs", Open),
        row("stream-read-64k", "stream-read-64k", "a file read past the page cache, 4 pieces of 64 KiB at a time", "MB/s", RatioAtLeast(1.0)),
        row("stream-read-64k-cpu", "stream-read-64k", "same, CPU per MB", "µs", Open),
        row("stream-read-512k", "stream-read-512k", "same, 512 KiB", "MB/s", RatioAtLeast(1.0)),
        row("stream-read-512k-cpu", "stream-read-512k", "same, CPU per MB", "µs", Open),
        row("stream-read-1m", "stream-read-1m", "same, 1 MiB", "MB/s", RatioAtLeast(1.0)),
        row("stream-read-1m-cpu", "stream-read-1m", "same, CPU per MB", "µs", Open),
        row("stream-write-64k", "stream-write-64k", "a new file written past the page cache, 4 pieces of 64 KiB at a time", "MB/s", RatioAtLeast(1.0)),
        row("stream-write-64k-cpu", "stream-write-64k", "same, CPU per MB", "µs", Open),
        row("stream-write-512k", "stream-write-512k", "same, 512 KiB", "MB/s", RatioAtLeast(1.0)),
        row("stream-write-512k-cpu", "stream-write-512k", "same, CPU per MB", "µs", Open),
        row("stream-write-1m", "stream-write-1m", "same, 1 MiB", "MB/s", RatioAtLeast(1.0)),
        row("stream-write-1m-cpu", "stream-write-1m", "same, CPU per MB", "µs", Open),
        row("cached-write-64k", "cached-write-64k", "a new file written through the page cache, 64 KiB at a time, and synced", "MB/s", RatioAtLeast(1.0)),
        row("cached-write-64k-cpu", "cached-write-64k", "same, CPU per MB", "µs", Open),
        row("cached-read-64k", "cached-read-64k", "a file read from the page cache, 64 KiB at a time", "MB/s", RatioAtLeast(1.0)),
        row("cached-read-64k-cpu", "cached-read-64k", "same, CPU per MB", "µs", Open),
        row("append-one", "append-one", "append 4 KiB and `fdatasync`, per record", "µs", RatioAtMost(1.0)),
        row("append-group", "append-group", "same, one `fdatasync` for 32 records, per record", "µs", RatioAtMost(1.0)),
        row("open-stat-close", "open-stat-close", "open a file, ask for its length, close it", "µs", Open),
        row("list", "list", "list a directory of 10,000 names, per name", "ns", Open),
        row("read-many", "read-many", "bulk read of 256 bytes at places near to each other, per range", "ns", Open),
    ]
}

/// Whose files there are.
#[rustfmt::skip]
const CRATES: &[&str] = &["ours", "classic", PUBLISHED, "ng", "tokio", "monoio", "compio", "bare"];

/// CPU per read of all crates.
#[rustfmt::skip]
const PICTURE: Picture = Picture {
    file: "files-cpu.svg",
    title: "What a read of 4 KiB at a random place costs",
    x: "reads under way at a time",
    y: "µs of CPU per read",
    panels: &[
        Panel { title: "past the page cache", of: "", points: &[(1.0, "direct-1-cpu"), (8.0, "direct-8-cpu"), (32.0, "direct-32-cpu")] },
        Panel { title: "from the page cache", of: "", points: &[(1.0, "buffered-1-cpu"), (8.0, "buffered-8-cpu"), (32.0, "buffered-32-cpu")] },
    ],
};
