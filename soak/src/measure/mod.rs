//! What is read off the machine and the process: time, memory, processors, the library's log.

pub(crate) mod lag;
pub(crate) mod memory;
pub(crate) mod noise;
pub(crate) mod process;
pub(crate) mod quiet;
pub(crate) mod resources;
pub(crate) mod ring_events;

use std::time::Duration;

/// The duration in nanoseconds, at most 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
