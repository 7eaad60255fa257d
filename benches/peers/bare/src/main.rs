//! The kernel without a runtime: the least that the same work takes.
//!
//! Direct reads and writes by one ring whose loop does nothing else, reads into memory that it knows; what the page cache
//! has, appending, and names by plain system calls, one after the other. Deadlines by a ring that only waits, and tasks
//! that nothing schedules.

mod burst;
mod deadlines;
mod lanes;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use lanes::{Kind, Lanes};
use workloads::cases::files::{
    BLOCK_BYTES, BUFFERS, CACHED_BYTES, GROUP, Meter, NAMES, STREAM_BYTES, STREAM_DEPTH, Stopwatch,
    end_of, pieces, places, ranges,
};
use workloads::files::{Aligned, DATA_BYTES, MERGED_BYTES_MAX, Mode, data, names, scratch, warm};
use workloads::samples::{Samples, microseconds, nanoseconds};
use workloads::{Case, case, report};

#[rustfmt::skip]
fn main() {
    let direct: &[Case] = &[
        case("direct-1", || sound(direct_reads("direct", Kind::ReadRegistered, 1))),
        case("direct-8", || sound(direct_reads("direct", Kind::ReadRegistered, 8))),
        case("direct-32", || sound(direct_reads("direct", Kind::ReadRegistered, 32))),
        case("unregistered-1", || sound(direct_reads("unregistered", Kind::Read, 1))),
        case("unregistered-32", || sound(direct_reads("unregistered", Kind::Read, 32))),
        case("stream-read-64k", || sound(stream(Kind::ReadRegistered, BUFFERS[0]))),
        case("stream-read-512k", || sound(stream(Kind::ReadRegistered, BUFFERS[1]))),
        case("stream-read-1m", || sound(stream(Kind::ReadRegistered, BUFFERS[2]))),
        case("stream-write-64k", || sound(stream(Kind::Write, BUFFERS[0]))),
        case("stream-write-512k", || sound(stream(Kind::Write, BUFFERS[1]))),
        case("stream-write-1m", || sound(stream(Kind::Write, BUFFERS[2]))),
        case("read-many", || sound(merged_reads())),
    ];
    let calls: &[Case] = &[
        // One after the other is what a page cache is served by best: there is nothing to wait for.
        case("buffered-1", || sound(buffered_reads())),
        case("cached-read-64k", || sound(cached_read())),
        case("cached-write-64k", || sound(cached_write())),
        case("append-one", || sound(append("append-one", 1, 450, 50))),
        case("append-group", || sound(append("append-group", GROUP, 170, 20))),
        case("open-stat-close", || sound(open_stat_close())),
        case("list", || sound(list())),
    ];
    let waits: &[Case] = &[
        case("overshoot", || sound(deadlines::overshoot())),
        case("expire-spread", || sound(deadlines::spread_over_a_second())),
        case("long-waits", || sound(deadlines::long_waits())),
        case("waits", || sound(deadlines::waits())),
        case("standstills", || sound(deadlines::standstills())),
    ];
    let tasks: &[Case] = &[
        case("burst", burst::one_by_one),
        case("burst-ahead", burst::asked_for_ahead),
    ];
    workloads::main(&[direct, calls, waits, tasks]);
}

fn sound(done: io::Result<()>) {
    done.expect("the kernel has io_uring of 6.1, and the disk is sound");
}

fn direct_reads(row: &str, kind: Kind, depth: usize) -> io::Result<()> {
    let file = Mode::Direct.options().read(true).open(data())?;
    let mut lanes = Lanes::new(file, kind, depth, BLOCK_BYTES)?;
    let mut places: Vec<_> = (0..depth).map(places).collect();
    let meter = Meter::new();
    lanes.run(
        |lane| meter.goes_on().then(&mut places[lane]),
        || meter.count(),
    )?;
    meter.report(&format!("{row}-{depth}"));
    Ok(())
}

fn buffered_reads() -> io::Result<()> {
    let path = data();
    warm(&path);
    let file = File::open(path)?;
    let (mut places, mut buffer) = (places(0), vec![0; BLOCK_BYTES]);
    let meter = Meter::new();
    while meter.goes_on() {
        file.read_exact_at(&mut buffer, places())?;
        meter.count();
    }
    meter.report("buffered-1");
    Ok(())
}

fn stream(kind: Kind, (buffer_bytes, name): (usize, &str)) -> io::Result<()> {
    let mut options = Mode::Direct.options();
    let (row, path, bytes) = match kind {
        Kind::Read | Kind::ReadRegistered => ("stream-read", data(), DATA_BYTES),
        Kind::Write => {
            options.write(true).create(true).truncate(true);
            ("stream-write", scratch("written"), STREAM_BYTES)
        }
    };
    let watch = Stopwatch::start();
    let file = options.read(true).open(&path)?;
    let synced = file.try_clone()?;
    let mut lanes = Lanes::new(file, kind, STREAM_DEPTH, buffer_bytes)?;
    let mut positions: Vec<_> = (0..STREAM_DEPTH)
        .map(|lane| pieces(lane, buffer_bytes, bytes))
        .collect();
    lanes.run(|lane| positions[lane].next(), || ())?;
    if kind == Kind::Write {
        synced.sync_data()?;
    }
    watch.report_bytes(&format!("{row}-{name}"), bytes);
    if kind == Kind::Write {
        end_of(path, bytes);
    }
    Ok(())
}

fn cached_read() -> io::Result<()> {
    let path = data();
    warm(&path);
    let watch = Stopwatch::start();
    let mut file = File::open(path)?;
    let mut buffer = vec![0; CACHED_BYTES];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => bytes += count as u64,
        }
    }
    assert_eq!(bytes, DATA_BYTES);
    watch.report_bytes("cached-read-64k", bytes);
    Ok(())
}

fn cached_write() -> io::Result<()> {
    let path = scratch("written");
    let watch = Stopwatch::start();
    let mut file = File::create(&path)?;
    let piece = vec![0; CACHED_BYTES];
    for _ in 0..STREAM_BYTES / CACHED_BYTES as u64 {
        file.write_all(&piece)?;
    }
    file.sync_data()?;
    drop(file);
    watch.report_bytes("cached-write-64k", STREAM_BYTES);
    end_of(path, STREAM_BYTES);
    Ok(())
}

/// Reads what the ranges lie in, without gaps: they are never further apart than may be read along.
fn merged_reads() -> io::Result<()> {
    let path = data();
    let mut samples = Samples::with_capacity(11);
    for turn in 0..11 {
        let ranges = ranges(turn);
        let begin = Instant::now();
        let (first, _) = ranges[0];
        let (last, last_bytes) = ranges[ranges.len() - 1];
        let file = Mode::Direct.options().read(true).open(&path)?;
        let mut lanes = Lanes::new(file, Kind::ReadRegistered, 32, MERGED_BYTES_MAX)?;
        let merged = MERGED_BYTES_MAX as u64;
        let reads = first / merged..(last + last_bytes as u64).div_ceil(merged);
        let mut positions = reads.map(|read| read * merged);
        lanes.run(|_| positions.next(), || ())?;
        samples.push(nanoseconds(begin.elapsed()) / ranges.len() as f64);
    }
    samples.forget_first(2);
    report("read-many", samples.median());
    Ok(())
}

fn append(row: &str, group: usize, groups: usize, warm_up: usize) -> io::Result<()> {
    let path = scratch("appended");
    let mut options = Mode::Direct.options();
    let file = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    let mut buffer = Aligned::new(BLOCK_BYTES);
    let mut samples = Samples::with_capacity(groups);
    for turn in 0..groups {
        let begin = Instant::now();
        for record in 0..group {
            let position = (turn * group + record) * BLOCK_BYTES;
            file.write_all_at(buffer.as_mut_slice(), position as u64)?;
        }
        file.sync_data()?;
        samples.push(microseconds(begin.elapsed()) / group as f64);
    }
    samples.forget_first(warm_up);
    report(row, samples.median());
    end_of(path, (groups * group * BLOCK_BYTES) as u64);
    Ok(())
}

fn open_stat_close() -> io::Result<()> {
    let path = data();
    let length = |path: &Path| Ok::<_, io::Error>(File::open(path)?.metadata()?.len());
    let mut samples = Samples::with_capacity(3_500);
    for _ in 0..3_500 {
        let begin = Instant::now();
        assert_eq!(length(&path)?, DATA_BYTES);
        samples.push(microseconds(begin.elapsed()));
    }
    samples.forget_first(500);
    report("open-stat-close", samples.median());
    Ok(())
}

fn list() -> io::Result<()> {
    let path = names(NAMES);
    let mut samples = Samples::with_capacity(45);
    for _ in 0..45 {
        let begin = Instant::now();
        assert_eq!(fs::read_dir(&path)?.count(), NAMES);
        samples.push(nanoseconds(begin.elapsed()) / NAMES as f64);
    }
    samples.forget_first(5);
    report("list", samples.median());
    Ok(())
}
