//! What one executor shows the main thread: its ledger, its gauges, the lateness of its timers.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::control::nanos;
use crate::invariants::Ledger;
use crate::process::{self, CoreTime};

/// Written by one executor, read by the main thread at any time.
#[derive(Debug)]
pub(crate) struct Station {
    name: String,
    pub(crate) ledger: Ledger,
    pub(crate) gauges: Gauges,
    lateness: Mutex<Histogram<u64>>,
    thread_id: OnceLock<u32>,
}

impl Station {
    pub(crate) fn new(name: String) -> Self {
        Station {
            name,
            ledger: Ledger::new(),
            gauges: Gauges::default(),
            lateness: Mutex::new(new_histogram()),
            thread_id: OnceLock::new(),
        }
    }

    /// Called once on the executor's thread.
    pub(crate) fn occupy(&self) {
        if let Some(thread_id) = process::thread_id() {
            self.thread_id.get_or_init(|| thread_id);
        }
    }

    /// How long the executor's thread has run and waited for a core.
    pub(crate) fn core_time(&self) -> Option<CoreTime> {
        process::core_time(*self.thread_id.get()?)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Enters how late a timer's callback began.
    pub(crate) fn record_lateness(&self, late: Duration) {
        // The lock is contended once a second, when the main thread takes the numbers away.
        let mut lateness = self
            .lateness
            .lock()
            .expect("no panic happens under this lock");
        lateness.saturating_record(nanos(late));
    }

    /// Moves what was recorded since the last call into `into`.
    pub(crate) fn take_lateness(&self, into: &mut Histogram<u64>) {
        let mut lateness = self
            .lateness
            .lock()
            .expect("no panic happens under this lock");
        into.add(&*lateness)
            .expect("both histograms have the same bounds");
        lateness.reset();
    }
}

/// Numbers for the progress line.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    /// Messages published and not settled, as the broker sees it.
    pub(crate) in_flight: AtomicU64,
    /// Messages acknowledged in time, since the start.
    pub(crate) acks: AtomicU64,
    /// Timers that fired on messages, since the start.
    pub(crate) timeouts: AtomicU64,
    /// Messages given up after their last try, since the start.
    pub(crate) dead_letters: AtomicU64,
    /// Futures handed to the timer queue and not dropped yet. Signed: a future dropped twice shows
    /// as a negative number instead of a huge one.
    pub(crate) live_timers: AtomicI64,
}

/// Adds one to a gauge.
pub(crate) fn bump(gauge: &AtomicU64) {
    gauge.fetch_add(1, Ordering::Relaxed);
}

/// An empty histogram of nanoseconds, 1 ns to 10 minutes, three digits.
pub(crate) fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("the bounds are constants and legal")
}
