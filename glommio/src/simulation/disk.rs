//! What the disks of nodes are like.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use fastrand::Rng;

use simulated_kernel::disk::{DiskSettings, ErrorRates};

/// What the disk of a node is like; see [`SimulationBuilder::disk`](super::SimulationBuilder::disk).
///
/// Each node has a file system of its own, empty at first, which stays when the node loses its power. By
/// default operations take the time of an SSD, nothing fails, and a power cut keeps all that was
/// written.
///
/// All methods return the changed settings.
///
/// # Examples
///
/// ```
/// use glommio::simulation::Simulation;
/// use std::time::Duration;
///
/// const MILLISECOND: Duration = Duration::from_millis(1);
/// Simulation::builder()
///     .disk(|disk| {
///         disk.lost_unsynced(true)
///             .torn_writes(true)
///             .sector_bytes(4096)
///             .errors(0.001)
///             .short(0.01)
///             .bit_rot(0.0001)
///             .corrupt_writes(0.0001)
///             .misdirected_writes(0.0001)
///             .stalls(0.001, MILLISECOND..=2000 * MILLISECOND)
///             .full_at(1 << 30)
///             .read_latency(MILLISECOND..=5 * MILLISECOND)
///             .write_latency(MILLISECOND..=2 * MILLISECOND)
///             .sync_latency(5 * MILLISECOND..=100 * MILLISECOND)
///     })
///     .client("client", || async { /* reads and writes files */ })
///     .run()?;
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "it is returned to the builder"]
pub struct Disk(DiskSettings);

impl Disk {
    /// Whether a power cut takes what was not made durable by `fdatasync`, `fsync` or a sync of the
    /// directory, or parts of it: what POSIX and the page cache of Linux promise, and no more. Default
    /// false.
    pub fn lost_unsynced(mut self, lost: bool) -> Self {
        self.0.lost_unsynced = lost;
        self
    }

    /// Whether each sector may be lost by itself, instead of the latest writes as a whole. Default false.
    pub fn torn_writes(mut self, torn: bool) -> Self {
        self.0.torn_writes = torn;
        self
    }

    /// What the device writes whole or not at all, in bytes: 512, 1024, 2048 or 4096. Direct I/O is aligned
    /// to it. Default 512.
    pub fn sector_bytes(mut self, bytes: u32) -> Self {
        self.0.sector_bytes = bytes;
        self
    }

    /// The probability that a read, a write, a sync or a change of a name fails with `EIO`. Default 0. A
    /// sync that has failed has lost what it was to make durable, as on Linux: the next one does not write it.
    pub fn errors(mut self, rate: f64) -> Self {
        self.0.errors = ErrorRates::all(rate);
        self
    }

    /// The probability that a read or a write moves less than it was asked for. Default 0.
    pub fn short(mut self, rate: f64) -> Self {
        self.0.short_reads = rate;
        self.0.short_writes = rate;
        self
    }

    /// The probability that a bit of what is read has flipped on the medium, for good. Default 0.
    pub fn bit_rot(mut self, rate: f64) -> Self {
        self.0.bit_rot = rate;
        self
    }

    /// The probability that a write leaves something else in one of its sectors. Default 0.
    pub fn corrupt_writes(mut self, rate: f64) -> Self {
        self.0.corrupt_writes = rate;
        self
    }

    /// The probability that one sector of a write gets to the place of another sector of the same file, and its
    /// own keeps what it had. Default 0.
    pub fn misdirected_writes(mut self, rate: f64) -> Self {
        self.0.misdirected_writes = rate;
        self
    }

    /// The probability that a read, a write or a sync takes longer by a time out of `length`, as when a disk tries again.
    /// Default 0.
    pub fn stalls(mut self, rate: f64, length: RangeInclusive<Duration>) -> Self {
        (self.0.latency.stalls, self.0.latency.stall) = (rate, length);
        self
    }

    /// How many bytes fit; more is `ENOSPC`. Counted in pages of 4096 bytes. Default: any number.
    pub fn full_at(mut self, bytes: u64) -> Self {
        self.0.full_at = Some(bytes);
        self
    }

    /// How long a sync takes. Default 200 µs to 2 ms.
    pub fn sync_latency(mut self, latency: RangeInclusive<Duration>) -> Self {
        self.0.latency.sync = latency;
        self
    }

    /// How long a read takes, without the time that its bytes need at 2 GiB a second. Default 60 to
    /// 150 µs.
    pub fn read_latency(mut self, latency: RangeInclusive<Duration>) -> Self {
        self.0.latency.read = latency;
        self
    }

    /// How long a write takes, without the time that its bytes need at 2 GiB a second. Default 15 to
    /// 60 µs.
    pub fn write_latency(mut self, latency: RangeInclusive<Duration>) -> Self {
        self.0.latency.write = latency;
        self
    }

    pub(super) fn settings(&self) -> DiskSettings {
        self.0.clone()
    }

    fn rates_mut(&mut self) -> [&mut f64; 10] {
        let it = &mut self.0;
        [
            &mut it.errors.read,
            &mut it.errors.write,
            &mut it.errors.sync,
            &mut it.errors.names,
            &mut it.short_reads,
            &mut it.short_writes,
            &mut it.bit_rot,
            &mut it.corrupt_writes,
            &mut it.misdirected_writes,
            &mut it.latency.stalls,
        ]
    }

    /// Without all of what goes wrong.
    pub(super) fn calm(mut self) -> Self {
        self.rates_mut().into_iter().for_each(|rate| *rate = 0.0);
        self
    }

    /// Without some of what goes wrong, as chance has it.
    pub(super) fn with_less(mut self, rng: &mut Rng) -> Self {
        for rate in self.rates_mut() {
            *rate = if rng.bool() { *rate } else { 0.0 };
        }
        self.0.full_at = self.0.full_at.filter(|_| rng.bool());
        self
    }

    /// What is up to chance, each with its probability.
    fn rates(&self) -> [(&'static str, f64); 6] {
        let it = &self.0;
        [
            ("errors", it.errors.read),
            ("short", it.short_reads),
            ("bit rot", it.bit_rot),
            ("corrupt writes", it.corrupt_writes),
            ("misdirected writes", it.misdirected_writes),
            ("stalls", it.latency.stalls),
        ]
    }

    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        let settings = &self.0;
        if !matches!(settings.sector_bytes, 512 | 1024 | 2048 | 4096) {
            return Err(format!(
                "a sector has 512, 1024, 2048 or 4096 bytes, not {}",
                settings.sector_bytes
            ));
        }
        for (_, rate) in self.rates() {
            if !(0.0..=1.0).contains(&rate) {
                return Err(format!("a probability is from 0 to 1, not {rate}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, rate) in self.rates().into_iter().filter(|(_, rate)| *rate > 0.0) {
            write!(f, "{name} {rate}, ")?;
        }
        if let Some(bytes) = self.0.full_at {
            write!(f, "full at {bytes} bytes, ")?;
        }
        let it = &self.0.latency;
        let (read, write, sync) = (&it.read, &it.write, &it.sync);
        write!(f, "latency {read:?} {write:?} {sync:?}")
    }
}
