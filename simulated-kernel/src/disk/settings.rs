//! What a simulated disk is like, and what goes wrong with it: plain data, which may be changed at
//! any time.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How a [`Disk`](super::Disk) behaves. By default nothing fails, nothing is lost, and operations
/// take the time of an SSD.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskSettings {
    /// What the device writes whole or not at all; direct I/O is aligned to it. A power of two from
    /// 512 to 4096.
    pub sector_bytes: u32,
    /// A power cut takes what was not synced, or parts of it. Without this it keeps everything.
    pub lost_unsynced: bool,
    /// What is lost is up to each sector. Without this the unsynced changes of a file are kept or
    /// lost in whole writes, from the last one backwards, apart from those with `O_DSYNC`.
    pub torn_writes: bool,
    /// The probability that an operation fails with `EIO`.
    pub errors: ErrorRates,
    /// The probability that a read returns less than there is. With direct I/O, whole sectors.
    pub short_reads: f64,
    /// The probability that a write takes less than it is given. With direct I/O, whole sectors.
    pub short_writes: f64,
    /// The probability that a read flips a bit of what is stored where it reads.
    pub bit_rot: f64,
    /// The probability that a write leaves something else in one of its sectors.
    pub corrupt_writes: f64,
    /// The probability that one sector of a write gets to the place of another one of the same file, and not to
    /// its own.
    pub misdirected_writes: f64,
    /// How many bytes fit; then there is `ENOSPC`. Counted in pages of 4096 bytes.
    pub full_at: Option<u64>,
    /// How long operations take.
    pub latency: Latency,
}

/// The probabilities that operations fail with `EIO`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorRates {
    /// Of reads.
    pub read: f64,
    /// Of writes.
    pub write: f64,
    /// A failed sync loses what it was to make durable, as Linux has it: the pages count as clean.
    pub sync: f64,
    /// Of changes of names: nothing is changed.
    pub names: f64,
}

/// How long operations take: a value from the range, evenly distributed, and the time that the
/// bytes need.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Of reads.
    pub read: RangeInclusive<Duration>,
    /// Of writes.
    pub write: RangeInclusive<Duration>,
    /// Of `fsync` and `fdatasync`.
    pub sync: RangeInclusive<Duration>,
    /// Of operations on names, attributes and open files.
    pub metadata: RangeInclusive<Duration>,
    /// How fast data gets to the device and back; `None` for no limit.
    pub bytes_per_second: Option<u64>,
    /// The probability that a read, a write or a sync takes `stall` longer, as when a disk tries again
    /// or cleans up.
    pub stalls: f64,
    /// How long that is.
    pub stall: RangeInclusive<Duration>,
}

/// What an operation is, as far as its duration goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write,
    /// `fsync` or `fdatasync`.
    Sync,
    /// All others.
    Metadata,
}

impl Default for DiskSettings {
    fn default() -> Self {
        DiskSettings {
            sector_bytes: 512,
            lost_unsynced: false,
            torn_writes: false,
            errors: ErrorRates::default(),
            short_reads: 0.0,
            short_writes: 0.0,
            bit_rot: 0.0,
            corrupt_writes: 0.0,
            misdirected_writes: 0.0,
            full_at: None,
            latency: Latency::default(),
        }
    }
}

impl ErrorRates {
    /// The same `rate` for all.
    pub fn all(rate: f64) -> Self {
        ErrorRates {
            read: rate,
            write: rate,
            sync: rate,
            names: rate,
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        let micros = |from, to| Duration::from_micros(from)..=Duration::from_micros(to);
        Latency {
            read: micros(60, 150),
            write: micros(15, 60),
            sync: micros(200, 2000),
            metadata: micros(5, 50),
            bytes_per_second: Some(2 << 30),
            stalls: 0.0,
            stall: micros(100_000, 2_000_000),
        }
    }
}

impl Latency {
    pub(super) fn duration_of(
        &self,
        operation: Operation,
        bytes: u64,
        rng: &mut fastrand::Rng,
    ) -> Duration {
        let range = match operation {
            Operation::Read => &self.read,
            Operation::Write => &self.write,
            Operation::Sync => &self.sync,
            Operation::Metadata => &self.metadata,
        };
        let is_of_device = operation != Operation::Metadata;
        let stall = match is_of_device && self.stalls > 0.0 && rng.f64() < self.stalls {
            true => one_of(&self.stall, rng),
            false => Duration::ZERO,
        };
        let transfer = match self.bytes_per_second {
            Some(rate) if rate > 0 => {
                let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            _ => Duration::ZERO,
        };
        one_of(range, rng)
            .saturating_add(transfer)
            .saturating_add(stall)
    }
}

/// A duration from the range; its beginning if it is empty.
fn one_of(range: &RangeInclusive<Duration>, rng: &mut fastrand::Rng) -> Duration {
    let spread = range.end().saturating_sub(*range.start());
    let spread = u64::try_from(spread.as_nanos()).unwrap_or(u64::MAX);
    let more = match spread {
        0 => 0,
        _ => rng.u64(0..=spread),
    };
    range.start().saturating_add(Duration::from_nanos(more))
}
