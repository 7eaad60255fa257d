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
        let is_noisy = self.noise_p50 > NOISE_P50_MAX || self.noise_p99 > NOISE_P99_MAX;
        let reasons = [
            (self.is_unoptimised, "of a program that is not optimised"),
            (self.is_stopped, "stopped on purpose"),
            // Before what it looks like: sleeps are noisy by it, and some containers are told that it was stolen.
            (
                self.throttled_cores > STOLEN_CORES_MAX,
                "throttled by the quota of the cgroup",
            ),
            (
                self.stolen_cores > STOLEN_CORES_MAX,
                "stolen from by the host",
            ),
            (
                self.other_cores > self.cores * OTHERS_SHARE_MAX,
                "disturbed by other processes",
            ),
            (is_noisy, "noisy for a sleeping thread"),
        ];
        let mut reasons = reasons.into_iter().filter(|&(holds, _)| holds);
        reasons.next().map(|(_, words)| words)
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
pub(crate) const NOISE_P99_MAX: Duration = Duration::from_millis(8);

/// The kernel counts stolen time in ticks of ten milliseconds: up to three in a second.
pub(crate) const STOLEN_CORES_MAX: f64 = 0.035;

/// Of all cores.
pub(crate) const OTHERS_SHARE_MAX: f64 = 0.125;

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Second = Second {
        noise_p50: Duration::from_micros(60),
        noise_p99: Duration::from_millis(1),
        cores: 4.0,
        throttled_cores: 0.0,
        stolen_cores: 0.0,
        other_cores: 0.1,
        is_stopped: false,
        is_unoptimised: false,
    };

    #[test]
    fn each_ceiling_disturbs_the_second_that_is_above_it() {
        assert_eq!(QUIET.disturbance(), None);
        type Disturb = fn(&mut Second);
        let disturbances: [(Disturb, &str); 7] = [
            (|it| it.is_unoptimised = true, "not optimised"),
            (|it| it.is_stopped = true, "on purpose"),
            (|it| it.throttled_cores = 0.04, "quota"),
            (|it| it.stolen_cores = 0.04, "stolen"),
            (|it| it.other_cores = 0.51, "other processes"),
            (|it| it.noise_p50 *= 5, "noisy"),
            (|it| it.noise_p99 *= 9, "noisy"),
        ];
        for (disturb, words) in disturbances {
            let mut second = QUIET;
            disturb(&mut second);
            let found = second.disturbance();
            assert!(found.is_some_and(|it| it.contains(words)), "{found:?}");
        }
    }
}
