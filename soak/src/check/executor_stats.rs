//! What one executor shows the main thread: its ledger, its gauges, its latencies.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use nix::unistd::gettid;
use support::quantiles::Histogram;

use crate::check::invariants::Ledger;
use crate::check::probe::{Timing, Workload};
use crate::measure::lag::{Lags, Spans};
use crate::measure::process::{self, CoreTime};

/// Written by one executor, read by the main thread at any time.
#[derive(Debug)]
pub(crate) struct ExecutorStats {
    name: String,
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
            ledger: Ledger::new(),
            gauges: Gauges::default(),
            hogs: Spans::default(),
            timings: Timing::ALL.map(|_| Lags::new()),
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

    /// How many timers have fired here.
    pub(crate) fn fired(&self) -> u64 {
        self.gauges.fired.load(Ordering::Relaxed)
    }

    /// Whether all that it is to have has begun.
    pub(crate) fn is_complete(&self) -> bool {
        let to_come = &self.gauges.quic_connections_to_come;
        to_come.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
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

/// Counts for the live view and the record, since the start unless it says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) armed: AtomicU64,
    pub(crate) rearmed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) fired: AtomicU64,
    /// Futures handed to the timer queue and not dropped yet. Signed: a future dropped twice shows
    /// as a negative number instead of a huge one.
    pub(crate) live_timers: AtomicI64,

    /// Messages published and not settled now, as the broker sees it.
    pub(crate) in_flight: AtomicU64,
    pub(crate) published: AtomicU64,
    /// Messages acknowledged in time.
    pub(crate) acks: AtomicU64,
    /// Timers that fired on messages.
    pub(crate) timeouts: AtomicU64,
    pub(crate) redelivered: AtomicU64,
    /// Messages given up after their last try.
    pub(crate) dead_letters: AtomicU64,

    pub(crate) datagrams_sent: AtomicU64,
    /// Not sent, on purpose.
    pub(crate) datagrams_lost: AtomicU64,
    /// Sent again because no acknowledgement came.
    pub(crate) datagrams_repeated: AtomicU64,
    pub(crate) bytes_delivered: AtomicU64,

    pub(crate) file_bytes_written: AtomicU64,
    pub(crate) file_bytes_read: AtomicU64,
    pub(crate) file_syncs: AtomicU64,
    /// Processes that were killed while they appended to a file.
    pub(crate) crashes: AtomicU64,

    /// Shards that were asked to die.
    pub(crate) shards_killed: AtomicU64,
    /// Changes of the shard that answers on a connection.
    pub(crate) connections_moved: AtomicU64,
    /// Requests that an overloaded shard has refused.
    pub(crate) requests_refused: AtomicU64,

    pub(crate) quic_connections: AtomicU64,
    /// Connections that are still to be opened. They take memory, which is judged later.
    pub(crate) quic_connections_to_come: AtomicU64,
    /// Streams that came back whole.
    pub(crate) quic_streams: AtomicU64,
    /// Changes of the address of a client.
    pub(crate) quic_moves: AtomicU64,
}

/// Adds one to a gauge.
pub(crate) fn bump(gauge: &AtomicU64) {
    add(gauge, 1);
}

/// Adds to a gauge.
pub(crate) fn add(gauge: &AtomicU64, count: u64) {
    gauge.fetch_add(count, Ordering::Relaxed);
}
