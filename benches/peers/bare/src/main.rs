//! The kernel without a runtime: the least that the same work takes.
//!
//! Direct reads and writes by one ring whose loop does nothing else, reads into memory that it knows; what the page cache
//! has, appending, and names by plain system calls, one after the other, which is what a page cache is served by best:
//! there is nothing to wait for. Deadlines by a ring that only waits.

mod deadlines;
mod lanes;

use std::cell::RefCell;
use std::fs::{self, File};
use std::future::{Future, Pending, Ready, pending, ready};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lanes::{Kind, Lanes};
use workloads::cases::files::{self, BLOCK_BYTES, Meter, STREAM_DEPTH, pieces, places};
use workloads::cases::{bulk_reads, listing, streams};
use workloads::files::{
    Aligned, BulkReads, DATA_BYTES, Files, Listing, MERGED_BYTES_MAX, Mode, Reader, Streams,
    Writer, data,
};
use workloads::{Case, Runtime, case};

#[rustfmt::skip]
fn main() {
    let others: &[Case] = &[
        case("direct-1", || direct_reads("direct", Kind::ReadRegistered, 1)),
        case("direct-8", || direct_reads("direct", Kind::ReadRegistered, 8)),
        case("direct-32", || direct_reads("direct", Kind::ReadRegistered, 32)),
        case("unregistered-1", || direct_reads("unregistered", Kind::Read, 1)),
        case("unregistered-32", || direct_reads("unregistered", Kind::Read, 32)),
        case("buffered-1", || files::random_reads::<Bare>(Mode::Buffered, 1)),
        case("append-one", files::append_one_by_one::<Bare>),
        case("append-group", files::append_in_groups::<Bare>),
        case("open-stat-close", files::open_stat_close::<Bare>),
        case("overshoot", || deadlines::overshoot().expect(SOUND)),
        case("expire-spread", || deadlines::spread_over_a_second().expect(SOUND)),
    ];
    workloads::main(&[others, &streams::<Bare>(), &listing::<Bare>(), &bulk_reads::<Bare>()]);
}

const SOUND: &str = "the kernel has io_uring of 6.1, and the disk is sound";

fn direct_reads(row: &str, kind: Kind, depth: usize) {
    let file = Mode::Direct.options().read(true).open(data()).expect(SOUND);
    let mut lanes = Lanes::new(file, kind, depth, BLOCK_BYTES).expect(SOUND);
    let mut places: Vec<_> = (0..depth).map(places).collect();
    let meter = Meter::new();
    let next = |lane: usize| meter.goes_on().then(&mut places[lane]);
    lanes.run(next, || meter.count()).expect(SOUND);
    meter.report(&format!("{row}-{depth}"));
}

/// Does everything in its first poll.
struct Bare;

impl Runtime for Bare {
    type Task<T: 'static> = Ready<T>;
    type Timer = Pending<()>;

    fn run<F: Future + 'static>(future: F) -> F::Output
    where
        F::Output: 'static,
    {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("system calls return when they are done"),
        }
    }

    fn spawn<T: 'static>(future: impl Future<Output = T> + 'static) -> Ready<T> {
        ready(Self::run(future))
    }

    fn spawn_detached(future: impl Future<Output = ()> + 'static) {
        Self::run(future);
    }

    async fn yield_now() {}

    fn timer(_: Duration) -> Self::Timer {
        pending()
    }

    async fn timeout<T>(_: Duration, future: impl Future<Output = T>) -> T {
        future.await
    }
}

impl Files for Bare {
    type Reader = Reading;
    type Writer = Writing;

    async fn open(path: PathBuf, mode: Mode, bytes: usize) -> Reading {
        let file = mode.options().read(true).open(path).expect(SOUND);
        Reading(file, Aligned::new(bytes))
    }

    async fn create(path: PathBuf) -> Writing {
        let file = created(path).expect(SOUND);
        Writing(file, RefCell::new(Aligned::new(BLOCK_BYTES)))
    }

    async fn open_stat_close(path: &Path) -> u64 {
        let metadata = File::open(path).and_then(|file| file.metadata());
        metadata.expect(SOUND).len()
    }
}

struct Reading(File, Aligned);

impl Reader for Reading {
    async fn read_at(&mut self, position: u64) -> usize {
        self.0
            .read_at(self.1.as_mut_slice(), position)
            .expect(SOUND)
    }
}

struct Writing(File, RefCell<Aligned>);

impl Writer for Writing {
    async fn write_at(&self, position: u64, bytes: usize) {
        let piece = &mut self.1.borrow_mut();
        let written = self
            .0
            .write_all_at(&piece.as_mut_slice()[..bytes], position);
        written.expect(SOUND);
    }

    async fn sync(&self) {
        self.0.sync_data().expect(SOUND);
    }
}

/// Written past the page cache.
fn created(path: PathBuf) -> io::Result<File> {
    let mut options = Mode::Direct.options();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

impl Streams for Bare {
    async fn read_stream(path: PathBuf, buffer_bytes: usize) -> u64 {
        let file = Mode::Direct.options().read(true).open(path).expect(SOUND);
        stream(file, Kind::ReadRegistered, buffer_bytes, DATA_BYTES);
        DATA_BYTES
    }

    async fn write_stream(path: PathBuf, buffer_bytes: usize, bytes: u64) {
        let file = created(path).expect(SOUND);
        let synced = file.try_clone().expect(SOUND);
        stream(file, Kind::Write, buffer_bytes, bytes);
        synced.sync_data().expect(SOUND);
    }

    async fn read_cached_stream(path: PathBuf, buffer_bytes: usize) -> u64 {
        let mut file = File::open(path).expect(SOUND);
        let mut buffer = vec![0; buffer_bytes];
        let mut bytes = 0;
        loop {
            match file.read(&mut buffer).expect(SOUND) {
                0 => return bytes,
                count => bytes += count as u64,
            }
        }
    }

    async fn write_cached_stream(path: PathBuf, buffer_bytes: usize, bytes: u64) {
        let mut file = File::create(path).expect(SOUND);
        let piece = vec![0; buffer_bytes];
        for _ in 0..bytes / buffer_bytes as u64 {
            file.write_all(&piece).expect(SOUND);
        }
        file.sync_data().expect(SOUND);
    }
}

fn stream(file: File, kind: Kind, buffer_bytes: usize, bytes: u64) {
    let mut lanes = Lanes::new(file, kind, STREAM_DEPTH, buffer_bytes).expect(SOUND);
    let positions = (0..STREAM_DEPTH).map(|lane| pieces(lane, buffer_bytes, bytes));
    let mut positions: Vec<_> = positions.collect();
    lanes
        .run(|lane| positions[lane].next(), || ())
        .expect(SOUND);
}

impl Listing for Bare {
    async fn list(path: PathBuf) -> usize {
        fs::read_dir(path).expect(SOUND).count()
    }
}

/// Reads what the ranges lie in, without gaps: they are never further apart than may be read along.
impl BulkReads for Bare {
    async fn read_many(path: PathBuf, ranges: Vec<(u64, usize)>) -> u64 {
        let (first, _) = ranges[0];
        let (last, last_bytes) = ranges[ranges.len() - 1];
        let file = Mode::Direct.options().read(true).open(path).expect(SOUND);
        let lanes = Lanes::new(file, Kind::ReadRegistered, 32, MERGED_BYTES_MAX);
        let merged = MERGED_BYTES_MAX as u64;
        let reads = first / merged..(last + last_bytes as u64).div_ceil(merged);
        let mut positions = reads.map(|read| read * merged);
        let read = lanes.expect(SOUND).run(|_| positions.next(), || ());
        read.expect(SOUND);
        ranges.iter().map(|(_, bytes)| *bytes as u64).sum()
    }
}
