//! The rows of the table. What each measures is said in `peers/workloads/src/cases/files.rs`.

use benches::runtime::rows::{Aim, Row, row};

/// Whose files there are.
pub const CRATES: &str = if cfg!(feature = "peers") {
    "ours,classic,glommio,ng,tokio,monoio,compio,bare"
} else {
    "ours,classic,bare"
};

/// All rows, in the order of the table.
#[rustfmt::skip]
pub const ALL: &[Row] = &[
    row("direct-1", "direct-1", "random 4 KiB past the page cache, one at a time", "k/s", Aim::RatioAtLeast(1.2)),
    row("direct-1-cpu", "direct-1", "same, CPU per read", "µs", Aim::RatioAtMost(0.42)),
    row("direct-8", "direct-8", "same, 8 at a time", "k/s", Aim::RatioAtLeast(1.0)),
    row("direct-8-cpu", "direct-8", "same, CPU per read", "µs", Aim::Open),
    row("direct-32", "direct-32", "same, 32 at a time", "k/s", Aim::RatioAtLeast(1.0)),
    row("direct-32-cpu", "direct-32", "same, CPU per read", "µs", Aim::Open),
    row("unregistered-1", "unregistered-1", "same, one at a time, memory that the ring does not know", "k/s", Aim::Open).against("direct-1"),
    row("unregistered-1-cpu", "unregistered-1", "same, CPU per read", "µs", Aim::Open).against("direct-1-cpu"),
    row("unregistered-32", "unregistered-32", "same, 32 at a time", "k/s", Aim::Open).against("direct-32"),
    row("unregistered-32-cpu", "unregistered-32", "same, CPU per read", "µs", Aim::Open).against("direct-32-cpu"),
    row("buffered-1", "buffered-1", "random 4 KiB from the page cache, one at a time", "k/s", Aim::RatioAtLeast(4.3)),
    row("buffered-1-cpu", "buffered-1", "same, CPU per read", "µs", Aim::Open),
    row("buffered-8", "buffered-8", "same, 8 at a time", "k/s", Aim::Open),
    row("buffered-8-cpu", "buffered-8", "same, CPU per read", "µs", Aim::Open),
    row("buffered-32", "buffered-32", "same, 32 at a time", "k/s", Aim::Open),
    row("buffered-32-cpu", "buffered-32", "same, CPU per read", "µs", Aim::Open),
    row("stream-read-64k", "stream-read-64k", "a file read past the page cache, 4 pieces of 64 KiB at a time", "MB/s", Aim::RatioAtLeast(1.0)),
    row("stream-read-64k-cpu", "stream-read-64k", "same, CPU per MB", "µs", Aim::Open),
    row("stream-read-512k", "stream-read-512k", "same, 512 KiB", "MB/s", Aim::RatioAtLeast(1.0)),
    row("stream-read-512k-cpu", "stream-read-512k", "same, CPU per MB", "µs", Aim::Open),
    row("stream-read-1m", "stream-read-1m", "same, 1 MiB", "MB/s", Aim::RatioAtLeast(1.0)),
    row("stream-read-1m-cpu", "stream-read-1m", "same, CPU per MB", "µs", Aim::Open),
    row("stream-write-64k", "stream-write-64k", "a new file written past the page cache, 4 pieces of 64 KiB at a time", "MB/s", Aim::RatioAtLeast(1.0)),
    row("stream-write-64k-cpu", "stream-write-64k", "same, CPU per MB", "µs", Aim::Open),
    row("stream-write-512k", "stream-write-512k", "same, 512 KiB", "MB/s", Aim::RatioAtLeast(1.0)),
    row("stream-write-512k-cpu", "stream-write-512k", "same, CPU per MB", "µs", Aim::Open),
    row("stream-write-1m", "stream-write-1m", "same, 1 MiB", "MB/s", Aim::RatioAtLeast(1.0)),
    row("stream-write-1m-cpu", "stream-write-1m", "same, CPU per MB", "µs", Aim::Open),
    row("cached-write-64k", "cached-write-64k", "a new file written through the page cache, 64 KiB at a time, and synced", "MB/s", Aim::RatioAtLeast(1.0)),
    row("cached-write-64k-cpu", "cached-write-64k", "same, CPU per MB", "µs", Aim::Open),
    row("cached-read-64k", "cached-read-64k", "a file read from the page cache, 64 KiB at a time", "MB/s", Aim::RatioAtLeast(1.0)),
    row("cached-read-64k-cpu", "cached-read-64k", "same, CPU per MB", "µs", Aim::Open),
    row("append-one", "append-one", "append 4 KiB and `fdatasync`, per record", "µs", Aim::RatioAtMost(1.0)),
    row("append-group", "append-group", "same, one `fdatasync` for 32 records, per record", "µs", Aim::RatioAtMost(1.0)),
    row("open-stat-close", "open-stat-close", "open a file, ask for its length, close it", "µs", Aim::Open),
    row("list", "list", "list a directory of 10,000 names, per name", "ns", Aim::Open),
    row("read-many", "read-many", "bulk read of 256 bytes at places near to each other, per range", "ns", Aim::Open),
];
