//! Counters of file I/O, and how long reads took.

#[cfg(test)]
mod tests;

use std::fmt;
use std::iter::Sum;
use std::time::Duration;

use sketches_ddsketch::{Config, DDSketch};

/// File I/O since the statistics were last read.
///
/// From [`ExecutorProxy::io_stats`](crate::ExecutorProxy::io_stats) and
/// [`ExecutorProxy::task_queue_io_stats`](crate::ExecutorProxy::task_queue_io_stats). Most programs
/// want the [sum](Self::all_rings).
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::{executor, io::BufferedFile};
///
/// let file = BufferedFile::open("/proc/self/exe").await?;
/// file.read_at(0, 64).await?;
/// file.close().await?;
/// let stats = executor().io_stats().all_rings();
/// let (reads, bytes) = stats.file_buffered_reads();
/// assert_eq!((reads, bytes > 0), (1, true));
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct IoStats {
    /// All file I/O.
    pub main_ring: RingIoStats,
    /// Always zero: no device is polled for completions.
    pub poll_ring: RingIoStats,
    /// Always zero: there is no separate ring for what is urgent.
    pub latency_ring: RingIoStats,
}

impl IoStats {
    pub(crate) fn of_ring(main_ring: RingIoStats) -> Self {
        IoStats {
            main_ring,
            latency_ring: RingIoStats::default(),
            poll_ring: RingIoStats::default(),
        }
    }

    /// The sum over the rings.
    pub fn all_rings(&self) -> RingIoStats {
        [&self.main_ring, &self.latency_ring, &self.poll_ring]
            .into_iter()
            .sum()
    }
}

/// File I/O of one ring.
///
/// An operation is counted when it has completed with success; one that failed is not, nor is
/// anything that has to do with sockets. A file that is closed by dropping it, not by its `close`,
/// is not in [`files_closed`](Self::files_closed). The latencies are of reads alone, and recorded
/// only if [`record_io_latencies`](crate::LocalExecutorBuilder::record_io_latencies) asks for it.
///
/// # Examples
///
/// ```
/// use glommio::RingIoStats;
///
/// fn report(stats: &RingIoStats) {
///     println!("{} opened, {} closed", stats.files_opened(), stats.files_closed());
///     for (name, (operations, bytes)) in [
///         ("direct reads", stats.file_reads()),
///         ("shared reads", stats.file_deduped_reads()),
///         ("buffered reads", stats.file_buffered_reads()),
///         ("direct writes", stats.file_writes()),
///         ("buffered writes", stats.file_buffered_writes()),
///     ] {
///         println!("{name}: {operations}, {bytes} bytes");
///     }
///     for (leg, microseconds) in [
///         ("queued", stats.pre_reactor_io_scheduler_latency_us()),
///         ("in the kernel", stats.io_latency_us()),
///         ("until taken", stats.post_reactor_io_scheduler_latency_us()),
///     ] {
///         println!("{leg}: p99 {:?} µs", microseconds.quantile(0.99));
///     }
/// }
/// # report(&RingIoStats::default());
/// ```
#[derive(Clone)]
pub struct RingIoStats {
    files_opened: u64,
    files_closed: u64,
    /// By [`Counted`].
    volumes: [Volume; 5],
    /// By [`ReadLatency`], in microseconds.
    latencies: [DDSketch; 3],
}

/// Operations, and what they moved.
#[derive(Clone, Copy, Default)]
struct Volume {
    operations: u64,
    bytes: u64,
}

impl Volume {
    fn add(&mut self, other: Volume) {
        self.operations += other.operations;
        self.bytes += other.bytes;
    }
}

/// What an operation on a file is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Direct I/O, as opposed to `BufferedRead`.
    Read,
    /// A read that another one under way served.
    DedupedRead,
    BufferedRead,
    /// Direct I/O, as opposed to `BufferedWrite`.
    Write,
    BufferedWrite,
    Open,
    Close,
}

impl Counted {
    /// Whether it is recorded how long the operation took.
    pub(crate) fn is_timed(self) -> bool {
        matches!(self, Counted::Read | Counted::BufferedRead)
    }
}

/// One leg of a read's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadLatency {
    /// From the request until it was handed to the kernel.
    Queued,
    /// From then on until it had completed.
    InKernel,
    /// From then on until its result was taken.
    Untaken,
}

impl RingIoStats {
    /// Each counter, in the order of their methods.
    #[cfg(test)]
    pub(crate) fn counters(&self) -> [(u64, u64); 7] {
        [
            (self.files_opened(), 0),
            (self.files_closed(), 0),
            self.file_reads(),
            self.file_deduped_reads(),
            self.file_buffered_reads(),
            self.file_writes(),
            self.file_buffered_writes(),
        ]
    }

    /// Counts an operation that has succeeded; `bytes` are what a read or a write moved.
    pub(crate) fn count(&mut self, counted: Counted, bytes: u64) {
        match counted {
            Counted::Open => self.files_opened += 1,
            Counted::Close => self.files_closed += 1,
            moved => self.volumes[moved as usize].add(Volume {
                operations: 1,
                bytes,
            }),
        }
    }

    fn volume(&self, moved: Counted) -> (u64, u64) {
        let Volume { operations, bytes } = self.volumes[moved as usize];
        (operations, bytes)
    }

    /// Records how long one leg took.
    pub(crate) fn record(&mut self, latency: ReadLatency, took: Duration) {
        self.latencies[latency as usize].add(took.as_nanos() as f64 / 1e3);
    }

    /// Files opened.
    pub fn files_opened(&self) -> u64 {
        self.files_opened
    }

    /// Files closed by their `close`.
    pub fn files_closed(&self) -> u64 {
        self.files_closed
    }

    /// Direct reads, and the bytes that they read.
    pub fn file_reads(&self) -> (u64, u64) {
        self.volume(Counted::Read)
    }

    /// Reads that were served by another one that was under way, and their bytes.
    pub fn file_deduped_reads(&self) -> (u64, u64) {
        self.volume(Counted::DedupedRead)
    }

    /// Reads through the page cache, and the bytes that they read.
    pub fn file_buffered_reads(&self) -> (u64, u64) {
        self.volume(Counted::BufferedRead)
    }

    /// Direct writes, and the bytes that they wrote.
    pub fn file_writes(&self) -> (u64, u64) {
        self.volume(Counted::Write)
    }

    /// Writes through the page cache, and the bytes that they wrote.
    pub fn file_buffered_writes(&self) -> (u64, u64) {
        self.volume(Counted::BufferedWrite)
    }

    /// How long reads waited to be handed to the kernel, in microseconds. All three distributions
    /// are accurate to one part in a hundred.
    pub fn pre_reactor_io_scheduler_latency_us(&self) -> &DDSketch {
        &self.latencies[ReadLatency::Queued as usize]
    }

    /// How long it took from then on until they had completed, in microseconds.
    pub fn io_latency_us(&self) -> &DDSketch {
        &self.latencies[ReadLatency::InKernel as usize]
    }

    /// How long it took from then on until the waiting task had the result, in microseconds.
    pub fn post_reactor_io_scheduler_latency_us(&self) -> &DDSketch {
        &self.latencies[ReadLatency::Untaken as usize]
    }

    fn add(&mut self, other: &RingIoStats) {
        self.files_opened += other.files_opened;
        self.files_closed += other.files_closed;
        for (volume, other) in self.volumes.iter_mut().zip(other.volumes) {
            volume.add(other);
        }
        for (sketch, other) in self.latencies.iter_mut().zip(&other.latencies) {
            let merged = sketch.merge(other);
            merged.expect("all sketches are built with one configuration");
        }
    }
}

/// Nothing counted. Allocates nothing.
impl Default for RingIoStats {
    fn default() -> Self {
        // Empty sketches keep their bins on the heap from the first value on.
        let sketch = || DDSketch::new(Config::new(0.01, 2048, 1e-9));
        RingIoStats {
            files_opened: 0,
            files_closed: 0,
            volumes: Default::default(),
            latencies: std::array::from_fn(|_| sketch()),
        }
    }
}

impl<'a> Sum<&'a RingIoStats> for RingIoStats {
    fn sum<I: Iterator<Item = &'a RingIoStats>>(rings: I) -> Self {
        rings.fold(RingIoStats::default(), |mut sum, ring| {
            sum.add(ring);
            sum
        })
    }
}

impl fmt::Debug for RingIoStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RingIoStats");
        shown.field("files_opened", &self.files_opened);
        shown.field("files_closed", &self.files_closed);
        let names = [
            ["file_reads", "file_bytes_read"],
            ["file_deduped_reads", "file_deduped_bytes_read"],
            ["file_buffered_reads", "file_buffered_bytes_read"],
            ["file_writes", "file_bytes_written"],
            ["file_buffered_writes", "file_buffered_bytes_written"],
        ];
        for ([operations, bytes], volume) in names.iter().zip(&self.volumes) {
            shown.field(operations, &volume.operations);
            shown.field(bytes, &volume.bytes);
        }
        shown.finish_non_exhaustive()
    }
}
