//! Counters of file I/O, and how long reads took.

#[cfg(test)]
mod tests;

use std::fmt;
use std::iter::Sum;
use std::time::Duration;

use sketches_ddsketch::{Config, DDSketch};

/// File I/O since the statistics were last read, by the ring that it went through.
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
    /// All file I/O: an executor has one ring.
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
    file_reads: Volume,
    file_deduped_reads: Volume,
    file_buffered_reads: Volume,
    file_writes: Volume,
    file_buffered_writes: Volume,
    queued_us: DDSketch,
    in_kernel_us: DDSketch,
    untaken_us: DDSketch,
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

    fn as_pair(self) -> (u64, u64) {
        (self.operations, self.bytes)
    }
}

/// What an operation on a file is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Open,
    Close,
    /// Direct I/O, as opposed to `BufferedRead`.
    Read,
    /// A read that another one under way served.
    DedupedRead,
    BufferedRead,
    /// Direct I/O, as opposed to `BufferedWrite`.
    Write,
    BufferedWrite,
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
        let volume = match counted {
            Counted::Open => return self.files_opened += 1,
            Counted::Close => return self.files_closed += 1,
            Counted::Read => &mut self.file_reads,
            Counted::DedupedRead => &mut self.file_deduped_reads,
            Counted::BufferedRead => &mut self.file_buffered_reads,
            Counted::Write => &mut self.file_writes,
            Counted::BufferedWrite => &mut self.file_buffered_writes,
        };
        volume.add(Volume {
            operations: 1,
            bytes,
        });
    }

    /// Records how long one leg took.
    pub(crate) fn record(&mut self, latency: ReadLatency, took: Duration) {
        let sketch = match latency {
            ReadLatency::Queued => &mut self.queued_us,
            ReadLatency::InKernel => &mut self.in_kernel_us,
            ReadLatency::Untaken => &mut self.untaken_us,
        };
        sketch.add(took.as_nanos() as f64 / 1e3);
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
        self.file_reads.as_pair()
    }

    /// Reads that were served by another one that was under way, and their bytes.
    pub fn file_deduped_reads(&self) -> (u64, u64) {
        self.file_deduped_reads.as_pair()
    }

    /// Reads through the page cache, and the bytes that they read.
    pub fn file_buffered_reads(&self) -> (u64, u64) {
        self.file_buffered_reads.as_pair()
    }

    /// Direct writes, and the bytes that they wrote.
    pub fn file_writes(&self) -> (u64, u64) {
        self.file_writes.as_pair()
    }

    /// Writes through the page cache, and the bytes that they wrote.
    pub fn file_buffered_writes(&self) -> (u64, u64) {
        self.file_buffered_writes.as_pair()
    }

    /// How long reads waited to be handed to the kernel, in microseconds. All three distributions
    /// are accurate to one part in a hundred.
    pub fn pre_reactor_io_scheduler_latency_us(&self) -> &DDSketch {
        &self.queued_us
    }

    /// How long it took from then on until they had completed, in microseconds.
    pub fn io_latency_us(&self) -> &DDSketch {
        &self.in_kernel_us
    }

    /// How long it took from then on until the waiting task had the result, in microseconds.
    pub fn post_reactor_io_scheduler_latency_us(&self) -> &DDSketch {
        &self.untaken_us
    }

    fn add(&mut self, other: &RingIoStats) {
        self.files_opened += other.files_opened;
        self.files_closed += other.files_closed;
        self.file_reads.add(other.file_reads);
        self.file_deduped_reads.add(other.file_deduped_reads);
        self.file_buffered_reads.add(other.file_buffered_reads);
        self.file_writes.add(other.file_writes);
        self.file_buffered_writes.add(other.file_buffered_writes);
        merge(&mut self.queued_us, &other.queued_us);
        merge(&mut self.in_kernel_us, &other.in_kernel_us);
        merge(&mut self.untaken_us, &other.untaken_us);
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
            file_reads: Volume::default(),
            file_deduped_reads: Volume::default(),
            file_buffered_reads: Volume::default(),
            file_writes: Volume::default(),
            file_buffered_writes: Volume::default(),
            queued_us: sketch(),
            in_kernel_us: sketch(),
            untaken_us: sketch(),
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
        f.debug_struct("RingIoStats")
            .field("files_opened", &self.files_opened)
            .field("files_closed", &self.files_closed)
            .field("file_reads", &self.file_reads.operations)
            .field("file_bytes_read", &self.file_reads.bytes)
            .field("file_deduped_reads", &self.file_deduped_reads.operations)
            .field("file_deduped_bytes_read", &self.file_deduped_reads.bytes)
            .field("file_buffered_reads", &self.file_buffered_reads.operations)
            .field("file_buffered_bytes_read", &self.file_buffered_reads.bytes)
            .field("file_writes", &self.file_writes.operations)
            .field("file_bytes_written", &self.file_writes.bytes)
            .field(
                "file_buffered_writes",
                &self.file_buffered_writes.operations,
            )
            .field(
                "file_buffered_bytes_written",
                &self.file_buffered_writes.bytes,
            )
            .finish_non_exhaustive()
    }
}

fn merge(into: &mut DDSketch, from: &DDSketch) {
    into.merge(from)
        .expect("all sketches are built with one configuration");
}
