//! Memory and descriptors: what a run may hold once it is warm, and after it has ended.

use std::time::Duration;
use std::{io, thread};

use crate::measure::memory::{self, Allocated};
use crate::measure::process;
use crate::record::Sample;

/// Follows what the process holds.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    duration: Duration,
    live_before: i64,
    live_max: i64,
    live_max_warm: i64,
    /// While it was not warm yet.
    resident_max: u64,
    descriptors_warm: Option<i64>,
    /// What the process held before the first executor.
    descriptors_at_start: i64,
    allocated_at_start: Allocated,
    /// After the warm-up: looks, resident memory at the first, and the most.
    pub(crate) samples: u64,
    pub(crate) warm_bytes: u64,
    pub(crate) peak_bytes: u64,
    /// By how much the most timers that were live at a time have grown since.
    pub(crate) timers_added: u64,
    /// How often descriptors were counted, and how far they were at worst from what they were after the warm-up, and at the
    /// end from what they were before the first executor.
    pub(crate) descriptor_samples: u64,
    pub(crate) descriptor_deviation: u64,
    /// What the allocator had not got back at the end, if the executors ended.
    pub(crate) left: Option<Allocated>,
}

impl Resources {
    /// Before the first executor of a run of `duration`.
    pub(crate) fn at_rest(duration: Duration) -> io::Result<Self> {
        Ok(Resources {
            duration,
            descriptors_at_start: settled_descriptors()?,
            allocated_at_start: memory::allocated(),
            ..Resources::default()
        })
    }

    /// While the run goes on; `is_complete` once all that the workloads are to have has begun.
    pub(crate) fn look(&mut self, sample: &Sample, is_complete: bool) -> io::Result<()> {
        self.live_max = self.live_max.max(sample.live_timers);
        if !self.is_warm(sample, is_complete) {
            self.resident_max = self.resident_max.max(sample.resident_bytes);
            return Ok(());
        }
        if self.samples == 0 {
            // The most so far: bursts come and go, and one more of them is no growth.
            self.warm_bytes = self.resident_max.max(sample.resident_bytes);
            self.live_max_warm = self.live_max;
        }
        self.timers_added = (self.live_max - self.live_max_warm).unsigned_abs();
        self.samples += 1;
        self.peak_bytes = self.peak_bytes.max(sample.resident_bytes);
        let warm = match self.descriptors_warm {
            Some(warm) => warm,
            None => *self.descriptors_warm.insert(settled_descriptors()?),
        };
        self.look_at_descriptors(warm)
    }

    /// After every executor has ended.
    pub(crate) fn look_at_rest(&mut self) -> io::Result<()> {
        self.look_at_descriptors(self.descriptors_at_start)?;
        let (now, before) = (memory::allocated(), self.allocated_at_start);
        self.left = Some(Allocated {
            bytes: now.bytes.saturating_sub(before.bytes),
            blocks: now.blocks.saturating_sub(before.blocks),
        });
        Ok(())
    }

    /// Whether memory and descriptors are judged by now.
    pub(crate) fn has_warmed_up(&self) -> bool {
        self.samples > 0
    }

    /// Memory and descriptors are judged once everything has begun and the number of timers has
    /// stopped growing, in any case after half the run.
    fn is_warm(&mut self, sample: &Sample, is_complete: bool) -> bool {
        let live_before = std::mem::replace(&mut self.live_before, sample.live_timers);
        let is_steady = sample.live_timers - live_before <= live_before / STEADY_DIVISOR;
        let warm_after = (self.duration / 2).min(WARM_UP_MAX).as_secs_f64();
        self.has_warmed_up()
            || sample.at_s >= self.duration.as_secs_f64() / 2.0
            || (sample.at_s >= warm_after && is_steady && is_complete)
    }

    /// What is open for a moment, as by a thread that reads its own times, is gone at the next
    /// look: a leak stays.
    fn look_at_descriptors(&mut self, expected: i64) -> io::Result<()> {
        let mut deviation = process::descriptors()?.abs_diff(expected);
        for _ in 0..LOOKS_AT_DESCRIPTORS {
            if deviation == 0 {
                break;
            }
            thread::sleep(BETWEEN_LOOKS);
            deviation = deviation.min(process::descriptors()?.abs_diff(expected));
        }
        self.descriptor_samples += 1;
        self.descriptor_deviation = self.descriptor_deviation.max(deviation);
        Ok(())
    }
}

/// What several looks agree on: one alone may fall between an opening and its entry as
/// [held](process::hold_descriptors).
fn settled_descriptors() -> io::Result<i64> {
    let (mut count, mut agreeing) = (process::descriptors()?, 1);
    for _ in 0..LOOKS_AT_DESCRIPTORS {
        if agreeing == AGREEING {
            break;
        }
        thread::sleep(BETWEEN_LOOKS);
        let now = process::descriptors()?;
        let agrees = now == count && !process::is_memory_held();
        agreeing = if agrees { agreeing + 1 } else { 1 };
        count = now;
    }
    Ok(count)
}

/// Growth by less than a fiftieth in a second is called steady.
const STEADY_DIVISOR: i64 = 50;

/// Every workload has had its peak by then, some of them together.
const WARM_UP_MAX: Duration = Duration::from_secs(20);

/// For a second: so long a socket was seen to stay open whose owner had moved on and got no core.
const LOOKS_AT_DESCRIPTORS: u32 = 200;
const AGREEING: u32 = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
