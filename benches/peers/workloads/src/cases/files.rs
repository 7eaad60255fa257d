//! Files: reads at random, streams, appending, and what is done to names.
//!
//! All files lie beside the binaries of the peers, so the figures are those of the disk that has the target directory.
//! "CPU" is the processor time of the whole process, with its helper threads and what the kernel does for it.

use std::cell::Cell;
use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::files::{
    BulkReads, DATA_BYTES, Files, GAP_BYTES_MAX, Listing, Mode, Reader, Streams, Writer, data,
    names, scratch, warm,
};
use crate::machine::process_cpu;
use crate::samples::{microseconds, middle};
use crate::{Runtime, report};

/// Of a random read, and of a record that is appended.
pub const BLOCK_BYTES: usize = 4096;

/// `direct-<depth>`, thousands per second: reads of 4 KiB at random places of a file of 256 MiB, by `depth` tasks with a
/// file each, of which each reads one after the other, for 0.8 s after a warm-up of 0.2 s. `direct-<depth>-cpu`, µs per
/// read. `buffered-..`: the same through the page cache, which has the whole file. `unregistered-..`: as `direct-..`, with
/// memory that the ring does not know.
pub fn random_reads<R: Files>(mode: Mode, depth: usize) {
    let path = data();
    if mode == Mode::Buffered {
        warm(&path);
    }
    let meter = Rc::new(Meter::new());
    let counted = Rc::clone(&meter);
    R::run(async move {
        let mut tasks = Vec::new();
        for lane in 0..depth {
            let mut reader = R::open(path.clone(), mode, BLOCK_BYTES).await;
            let meter = Rc::clone(&counted);
            tasks.push(R::spawn(async move {
                let mut places = places(lane);
                while meter.goes_on() {
                    assert_eq!(reader.read_at(places()).await, BLOCK_BYTES);
                    meter.count();
                }
            }));
        }
        for task in tasks {
            task.await;
        }
    });
    meter.report(&format!("{}-{depth}", mode.name()));
}

/// Where a lane reads, one place after the other.
pub fn places(lane: usize) -> impl FnMut() -> u64 {
    let mut random = Rng::with_seed(lane as u64 + 1);
    move || random.u64(..DATA_BYTES / BLOCK_BYTES as u64) * BLOCK_BYTES as u64
}

/// Counts operations that go on side by side, for 0.8 s after a warm-up of 0.2 s.
#[derive(Debug)]
pub struct Meter {
    begin: Instant,
    count: Cell<u64>,
    /// Where what is measured begins and ends: operations, time and processor time so far.
    readings: Cell<[Option<(u64, Instant, Duration)>; 2]>,
}

impl Meter {
    /// From now on.
    #[expect(clippy::new_without_default, reason = "it reads the clock")]
    pub fn new() -> Self {
        Self {
            begin: Instant::now(),
            count: Cell::new(0),
            readings: Cell::new([None; 2]),
        }
    }

    /// Whether another operation is to begin.
    pub fn goes_on(&self) -> bool {
        self.readings.get()[1].is_none()
    }

    /// An operation has ended.
    pub fn count(&self) {
        let count = self.count.get() + 1;
        self.count.set(count);
        // Asked seldom, as it may take longer than what is measured; often enough for a slow disk.
        if !count.is_multiple_of(16) {
            return;
        }
        let now = Instant::now();
        let reading = || Some((count, now, process_cpu()));
        match self.readings.get() {
            [None, _] if now - self.begin >= Duration::from_millis(200) => {
                self.readings.set([reading(), None]);
            }
            [first @ Some((_, begin, _)), None] if now - begin >= Duration::from_millis(800) => {
                self.readings.set([first, reading()]);
            }
            _ => {}
        }
    }

    /// Prints the two rows.
    ///
    /// # Panics
    /// If it is not over.
    pub fn report(&self, row: &str) {
        let [Some(first), Some(last)] = self.readings.get() else {
            panic!("operations went on until the time was over");
        };
        let count = (last.0 - first.0) as f64;
        let rate = count / (last.1 - first.1).as_secs_f64();
        report(row, rate / 1e3);
        report(
            &format!("{row}-cpu"),
            microseconds(last.2 - first.2) / count,
        );
    }
}

/// The sizes of stream buffers, and what they are called in rows.
pub const BUFFERS: [(usize, &str); 3] = [(64 << 10, "64k"), (512 << 10, "512k"), (1 << 20, "1m")];

/// What a stream writes.
const STREAM_BYTES: u64 = 128 << 20;

/// Operations of a stream that go on side by side, for crates that have none of their own: as many as our streams read
/// ahead and write behind unless told otherwise.
pub const STREAM_DEPTH: usize = 4;

/// `stream-read-<buffer>`, MB/s: a file of 256 MiB read once from its beginning to its end past the page cache, in pieces
/// of the buffer's size, up to four at a time. `stream-read-<buffer>-cpu`, µs per MB.
pub fn stream_read<R: Streams>((buffer_bytes, name): (usize, &str)) {
    let path = data();
    watched::<R>(&format!("stream-read-{name}"), DATA_BYTES, async move {
        assert_eq!(R::read_stream(path, buffer_bytes).await, DATA_BYTES);
    });
}

/// The same with tasks that each read every fourth piece, for crates without such streams.
pub fn lanes_read<R: Files>((buffer_bytes, name): (usize, &str)) {
    let path = data();
    watched::<R>(&format!("stream-read-{name}"), DATA_BYTES, async move {
        let mut tasks = Vec::new();
        for lane in 0..STREAM_DEPTH {
            let mut reader = R::open(path.clone(), Mode::Direct, buffer_bytes).await;
            tasks.push(R::spawn(async move {
                for position in pieces(lane, buffer_bytes, DATA_BYTES) {
                    assert_eq!(reader.read_at(position).await, buffer_bytes);
                }
            }));
        }
        for task in tasks {
            task.await;
        }
    });
}

/// `stream-write-<buffer>`, MB/s: a new file of 128 MiB written past the page cache in pieces of the buffer's size, up to
/// four at a time, `fdatasync` at the end included. `stream-write-<buffer>-cpu`, µs per MB.
pub fn stream_write<R: Streams>((buffer_bytes, name): (usize, &str)) {
    let path = scratch("written");
    let written = path.clone();
    watched::<R>(&format!("stream-write-{name}"), STREAM_BYTES, async move {
        R::write_stream(written, buffer_bytes, STREAM_BYTES).await;
    });
    end_of(path, STREAM_BYTES);
}

/// The same with tasks that each write every fourth piece.
pub fn lanes_write<R: Files>((buffer_bytes, name): (usize, &str)) {
    let path = scratch("written");
    let written = path.clone();
    watched::<R>(&format!("stream-write-{name}"), STREAM_BYTES, async move {
        let writer = Rc::new(R::create(written).await);
        let tasks: Vec<_> = (0..STREAM_DEPTH)
            .map(|lane| {
                let writer = Rc::clone(&writer);
                R::spawn(async move {
                    for position in pieces(lane, buffer_bytes, STREAM_BYTES) {
                        writer.write_at(position, buffer_bytes).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        writer.sync().await;
    });
    end_of(path, STREAM_BYTES);
}

/// `cached-read-64k`, MB/s: a file of 256 MiB that the page cache has, read once from its beginning to its end, 64 KiB at
/// a time. `cached-read-64k-cpu`, µs per MB.
pub fn cached_read<R: Streams>() {
    let path = data();
    warm(&path);
    watched::<R>("cached-read-64k", DATA_BYTES, async move {
        assert_eq!(R::read_cached_stream(path, CACHED_BYTES).await, DATA_BYTES);
    });
}

/// `cached-write-64k`, MB/s: a new file of 128 MiB written through the page cache, 64 KiB at a time, `fdatasync` at the end
/// included. `cached-write-64k-cpu`, µs per MB.
pub fn cached_write<R: Streams>() {
    let path = scratch("written");
    let written = path.clone();
    watched::<R>("cached-write-64k", STREAM_BYTES, async move {
        R::write_cached_stream(written, CACHED_BYTES, STREAM_BYTES).await;
    });
    end_of(path, STREAM_BYTES);
}

/// Read or written at a time through the page cache.
const CACHED_BYTES: usize = 64 << 10;

/// Runs `work` in an executor, and reports how long that and the end of the executor have taken: megabytes per second,
/// and in the row `<row>-cpu` µs of processor time per megabyte.
fn watched<R: Runtime>(row: &str, bytes: u64, work: impl Future<Output = ()> + 'static) {
    let (begin, before) = R::run(async move {
        let started = (Instant::now(), process_cpu());
        work.await;
        started
    });
    let megabytes = bytes as f64 / 1e6;
    report(row, megabytes / begin.elapsed().as_secs_f64());
    let cpu = microseconds(process_cpu() - before);
    report(&format!("{row}-cpu"), cpu / megabytes);
}

/// Where the pieces of a lane begin.
pub fn pieces(lane: usize, buffer_bytes: usize, bytes: u64) -> impl Iterator<Item = u64> {
    let step = (STREAM_DEPTH * buffer_bytes) as u64;
    (0..)
        .map(move |turn| (lane * buffer_bytes) as u64 + turn * step)
        .take_while(move |&position| position < bytes)
}

/// Removes what was written.
///
/// # Panics
/// If it does not have that length.
fn end_of(path: PathBuf, bytes: u64) {
    let found = fs::metadata(&path).map_or(0, |found| found.len());
    // First, so that it does not stay if its length is wrong.
    let _ = fs::remove_file(&path);
    assert_eq!(found, bytes, "all was written");
}

/// Records between two syncs of a group.
const GROUP: usize = 32;

/// `append-one`, µs per record: 4 KiB written past the page cache at the end of a growing file, then `fdatasync`, one
/// after the other. The middle of 400, after 50.
pub fn append_one_by_one<R: Files>() {
    append::<R>("append-one", 1, 450, 50);
}

/// `append-group`, µs per record: the same, 32 records written at a time by as many tasks, and one `fdatasync` for them.
/// The middle of 150 groups, after 20.
pub fn append_in_groups<R: Files>() {
    append::<R>("append-group", GROUP, 170, 20);
}

fn append<R: Files>(row: &str, group: usize, groups: usize, warm_up: usize) {
    let path = scratch("appended");
    let written = path.clone();
    let ns = R::run(async move {
        let writer = Rc::new(R::create(written).await);
        let mut places = (0..).map(|record: u64| record * BLOCK_BYTES as u64);
        let append = async || {
            if group == 1 {
                let place = places.next().expect("there is another one");
                writer.write_at(place, BLOCK_BYTES).await;
            } else {
                let write = |place| {
                    let writer = Rc::clone(&writer);
                    R::spawn(async move { writer.write_at(place, BLOCK_BYTES).await })
                };
                let tasks: Vec<_> = places.by_ref().take(group).map(write).collect();
                for task in tasks {
                    task.await;
                }
            }
            writer.sync().await;
        };
        middle(groups - warm_up, warm_up, append).await
    });
    report(row, ns / 1e3 / group as f64);
    end_of(path, (groups * group * BLOCK_BYTES) as u64);
}

/// `open-stat-close`, µs: a file of the page cache opened, asked for its length, and closed, one after the other. The
/// middle of 3,000, after 500.
pub fn open_stat_close<R: Files>() {
    let path = data();
    let ns = R::run(middle(3_000, 500, async move || {
        assert_eq!(R::open_stat_close(&path).await, DATA_BYTES);
    }));
    report("open-stat-close", ns / 1e3);
}

/// Names in the directory that is listed.
const NAMES: usize = 10_000;

/// `list`, ns per name: a directory of 10,000 files listed. The middle of 40 times, after 5.
pub fn list<R: Listing>() {
    let path = names(NAMES);
    let ns = R::run(middle(40, 5, async move || {
        assert_eq!(R::list(path.clone()).await, NAMES);
    }));
    report("list", ns / NAMES as f64);
}

/// `read-many`, ns per range: 30,000 ranges of 256 bytes, each up to 1 KiB after the end of the one before, read past the
/// page cache in bulk, with merged reads of at most 128 KiB. The middle of 9 times, after 2.
pub fn read_many<R: BulkReads>() {
    let path = data();
    let mut turns = (0..11).map(ranges).collect::<Vec<_>>().into_iter();
    let ns = R::run(middle(9, 2, async move || {
        let ranges = turns.next().expect("there are as many");
        let bytes = (RANGES * RANGE_BYTES) as u64;
        assert_eq!(R::read_many(path.clone(), ranges).await, bytes);
    }));
    report("read-many", ns / RANGES as f64);
}

const RANGE_BYTES: usize = 256;
const RANGES: usize = 30_000;

/// What is read in bulk.
fn ranges(turn: u64) -> Vec<(u64, usize)> {
    let mut random = Rng::with_seed(turn + 1);
    let mut next = turn << 20;
    let ranges = (0..RANGES).map(|_| {
        let position = next + random.u64(..GAP_BYTES_MAX as u64);
        next = position + RANGE_BYTES as u64;
        (position, RANGE_BYTES)
    });
    ranges.collect()
}
