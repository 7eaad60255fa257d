//! What one executor shows the main thread: its ledger, its gauges, its latencies.

use std::sync::OnceLock;
use std::time::Instant;

use nix::unistd::gettid;
use support::quantiles::Histogram;

use crate::check::invariants::Ledger;
use crate::check::probe::{Timing, Workload};
use crate::counters::Gauges;
use crate::measure::lag::{Lags, Spans};
use crate::measure::process::{self, CoreTime};

/// Written by one executor, read by the main thread at any time.
#[derive(Debug)]
pub(crate) struct ExecutorStats {
    pub(crate) name: String,
    pub(crate) workload: Workload,
    pub(crate) ledger: Ledger,
    pub(crate) gauges: Gauges,
    /// When this executor was kept from its work on purpose.
    pub(crate) hogs: Spans,
    timings: [Lags; Timing::ALL.len()],
    thread_id: OnceLock<i32>,
}

impl ExecutorStats {
    pub(crate) fn new(workload: Workload, name: String) -> Self {
        ExecutorStats {
            name,
            workload,
            ledger: Ledger::default(),
            gauges: Gauges::default(),
            hogs: Spans::default(),
            timings: Timing::ALL.map(|_| Lags::default()),
            thread_id: OnceLock::new(),
        }
    }

    /// Called once on the executor's thread.
    pub(crate) fn begin_thread(&self) {
        self.thread_id.get_or_init(|| gettid().as_raw());
    }

    /// How long the executor's thread has run and waited for a core.
    pub(crate) fn core_time(&self) -> Option<CoreTime> {
        process::core_time(*self.thread_id.get()?)
    }

    /// Enters a latency: from when something was due, or asked for, to when it came.
    pub(crate) fn record(&self, timing: Timing, from: Instant, to: Instant) {
        self.timings[timing as usize].record(from, to);
    }

    /// Takes what came before `until` and was not taken yet, if anything, without the time for
    /// which the process or this executor stood still on purpose.
    pub(crate) fn take(
        &self,
        timing: Timing,
        stalls: &Spans,
        until: Instant,
    ) -> Option<Histogram<u64>> {
        self.timings[timing as usize].take(&[stalls, &self.hogs], until)
    }
}
