//! Whether a second of the run says anything about time.
//!
//! A timer is as late as the machine makes its thread, plus what the library adds. The second part
//! can be told from the first only while the first is small and known. So each second is held
//! against ceilings on what others do to this process, and lateness is judged in the seconds below
//! all of them.

use std::collections::BTreeMap;
use std::time::Duration;

/// What one second of the machine was like, as measured by the run itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    /// By how much the sleeps of a plain thread were overslept.
    pub(crate) noise_p50: Duration,
    pub(crate) noise_p99: Duration,
    pub(crate) cores: f64,
    /// Of the cores, what the quota of its own cgroup took away, or that of one above,
    pub(crate) throttled_cores: f64,
    /// what the host of a virtual machine did,
    pub(crate) stolen_cores: f64,
    /// and what other processes used.
    pub(crate) other_cores: f64,
    /// The process was stopped for a part of it.
    pub(crate) is_stopped: bool,
    /// The program was built without optimisation, and is slow by that.
    pub(crate) is_unoptimised: bool,
}

impl Second {
    /// Why it is not judged for time, if it is not: the first reason.
    pub(crate) fn disturbance(&self) -> Option<&'static str> {
        if self.is_unoptimised {
            Some("of a program that is not optimised")
        } else if self.is_stopped {
            Some("stopped on purpose")
        } else if self.throttled_cores > STOLEN_CORES_MAX {
            // Before what it looks like: sleeps are noisy by it, and some containers are told that it was stolen.
            Some("throttled by the quota of the cgroup")
        } else if self.stolen_cores > STOLEN_CORES_MAX {
            Some("stolen from by the host")
        } else if self.other_cores > self.cores * OTHERS_SHARE_MAX {
            Some("disturbed by other processes")
        } else {
            let is_noisy = self.noise_p50 > NOISE_P50_MAX || self.noise_p99 > NOISE_P99_MAX;
            is_noisy.then_some("noisy for a sleeping thread")
        }
    }
}

/// How many seconds there were, and how many of them were disturbed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seconds {
    pub(crate) all: u64,
    /// Quiet, and the one before was quiet too: what is seen in one may have begun in the other.
    pub(crate) judged: u64,
    pub(crate) disturbed: BTreeMap<&'static str, u64>,
}

impl Seconds {
    pub(crate) fn enter(&mut self, disturbance: Option<&'static str>, is_judged: bool) {
        self.all += 1;
        self.judged += u64::from(is_judged);
        if let Some(disturbance) = disturbance {
            *self.disturbed.entry(disturbance).or_default() += 1;
        }
    }
}

/// Cores that were taken away, by a quota or by the host of a virtual machine.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) on_average: f64,
    pub(crate) worst_second: f64,
}

impl Taken {
    /// A second is over, in which there were `latest`, and until now there are `on_average`.
    pub(crate) fn enter(&mut self, on_average: f64, latest: f64) {
        self.on_average = on_average;
        self.worst_second = self.worst_second.max(latest);
    }
}

/// An idle machine wakes a sleeping thread after 50 to 100 µs, most of which is the default timer
/// slack of threads (prctl(2)). Where it takes longer, the processor is emulated or throttled.
pub(crate) const NOISE_P50_MAX: Duration = Duration::from_micros(250);

/// A core that is free is found at once; one sleep in a hundred may wait for the slice of another
/// thread.
const NOISE_P99_MAX: Duration = Duration::from_millis(8);

/// The kernel counts stolen time in ticks of ten milliseconds: up to three in a second.
const STOLEN_CORES_MAX: f64 = 0.035;

/// Of all cores.
const OTHERS_SHARE_MAX: f64 = 0.125;
