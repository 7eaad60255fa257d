//! What the main thread tells the executors: the run's clock, its end, and how long to be patient.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::check::executor_stats::ExecutorStats;
use crate::clock;
use crate::measure::lag::Spans;
use crate::measure::{lock, nanos};

/// Shared by all threads of a run. Executors look at it from their own ticks.
#[derive(Debug)]
pub(crate) struct Control {
    /// In a simulation, when this is first asked for: its clock has not begun before.
    started: OnceLock<Instant>,
    is_simulated: bool,
    is_draining: AtomicBool,
    is_warm: AtomicBool,
    patience_ns: AtomicU64,
    /// When the whole process was stopped, and was working off what had come due meanwhile.
    pub(crate) stalls: Spans,
    all_stats: Mutex<Vec<Arc<ExecutorStats>>>,
}

impl Control {
    /// A run that begins now; a timer overdue by `patience` counts as lost.
    pub(crate) fn new(patience: Duration) -> Self {
        Control {
            started: Instant::now().into(),
            is_simulated: false,
            is_draining: AtomicBool::new(false),
            is_warm: AtomicBool::new(false),
            patience_ns: AtomicU64::new(nanos(patience)),
            stalls: Spans::default(),
            all_stats: Mutex::default(),
        }
    }

    /// Of a run in a simulation.
    #[cfg(feature = "simulation")]
    pub(crate) fn simulated(patience: Duration) -> Self {
        Control {
            started: OnceLock::new(),
            is_simulated: true,
            is_warm: AtomicBool::new(true),
            ..Control::new(patience)
        }
    }

    /// Whether time moves only when nothing can run.
    pub(crate) fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// An executor is about to start.
    pub(crate) fn enlist(&self, stats: Arc<ExecutorStats>) {
        lock(&self.all_stats).push(stats);
    }

    /// What all executors show.
    pub(crate) fn all_stats(&self) -> Vec<Arc<ExecutorStats>> {
        lock(&self.all_stats).clone()
    }

    /// Futures that the timer queues of all executors hold.
    pub(crate) fn live_timers(&self) -> i64 {
        lock(&self.all_stats)
            .iter()
            .map(|stats| stats.gauges.live_timers.load(Ordering::Relaxed))
            .sum()
    }

    /// Nanoseconds from the start of the run to `at`: an instant that can cross a wire.
    pub(crate) fn since_start_ns(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(*self.started.get_or_init(clock::now)))
    }

    /// Asks every executor to stop making work, settle what is open, and end.
    pub(crate) fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// What the workloads hold for as long as they run they hold by now.
    pub(crate) fn set_warm(&self) {
        self.is_warm.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_warm(&self) -> bool {
        self.is_warm.load(Ordering::Relaxed)
    }

    /// How far past its deadline a timer must be before it is called lost rather than late.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience_ns.load(Ordering::Relaxed))
    }

    /// Follows the noise: what is late on an idle machine is normal on a crowded one.
    pub(crate) fn set_patience(&self, patience: Duration) {
        self.patience_ns.store(nanos(patience), Ordering::Relaxed);
    }
}
