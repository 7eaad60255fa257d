//! Counts the operations that asked for it: for the executor, and for the task queue they came
//! from.
//!
//! What an operation counts as, and for whom, comes with it when it is submitted; sockets'
//! operations come without, and pay a comparison. The clock is read only for reads, and only if the
//! executor was told to record how long they take.

use std::mem;
use std::time::{Duration, Instant};

use crate::clock;
use crate::ring::Outcome;
use crate::shares::TaskQueueHandle;
use crate::stats::{Counted, IoStats, ReadLatency, RingIoStats};

/// On whose counter an operation goes, and as what.
#[derive(Debug)]
pub(super) struct OpCounter {
    queue: u32,
    counted: Counted,
    timing: Option<Box<Timing>>,
}

/// How long a read has taken so far.
#[derive(Debug)]
struct Timing {
    /// When the leg that it is on began.
    since: Instant,
    queued: Duration,
}

impl Timing {
    /// Ends a leg.
    fn lap(&mut self) -> Duration {
        let now = clock::real();
        now.saturating_duration_since(mem::replace(&mut self.since, now))
    }
}

impl OpCounter {
    /// The operation goes to the kernel.
    pub(super) fn handed_over(&mut self) {
        if let Some(timing) = &mut self.timing {
            timing.queued = timing.lap();
        }
    }
}

/// The counters of one executor.
#[derive(Debug)]
pub(crate) struct IoCounters {
    is_timed: bool,
    executor: RingIoStats,
    /// By index, as far as queues have submitted anything.
    queues: Vec<QueueCounters>,
}

#[derive(Debug)]
enum QueueCounters {
    Zero,
    Counted(Box<RingIoStats>),
    /// What its operations in flight still bring is not counted.
    Gone,
}

impl IoCounters {
    /// `is_timed` says whether it is recorded how long reads take.
    pub(super) fn new(is_timed: bool) -> Self {
        IoCounters {
            is_timed,
            executor: RingIoStats::default(),
            queues: Vec::new(),
        }
    }

    /// Opens the counter of an operation that is submitted now.
    pub(super) fn open(&mut self, counted: Counted, from: TaskQueueHandle) -> OpCounter {
        let queue = from.index();
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, || QueueCounters::Zero);
        }
        let is_timed = self.is_timed && counted.is_timed();
        OpCounter {
            queue: u32::try_from(queue).expect("an executor makes fewer than 2³² queues"),
            counted,
            timing: is_timed.then(|| {
                Box::new(Timing {
                    since: clock::real(),
                    queued: Duration::ZERO,
                })
            }),
        }
    }

    /// The operation has completed: counts it if it was a success.
    pub(super) fn completed(&mut self, counter: &mut OpCounter, outcome: Outcome) {
        let Ok(bytes) = outcome.result() else {
            counter.timing = None;
            return;
        };
        let legs = counter
            .timing
            .as_mut()
            .map(|timing| (timing.queued, timing.lap()));
        let counted = counter.counted;
        self.for_each(counter, |stats| {
            stats.count(counted, u64::from(bytes));
            if let Some((queued, in_kernel)) = legs {
                stats.record(ReadLatency::Queued, queued);
                stats.record(ReadLatency::InKernel, in_kernel);
            }
        });
    }

    /// The task that waited for the operation has its result.
    pub(super) fn taken(&mut self, mut counter: OpCounter) {
        if let Some(timing) = &mut counter.timing {
            let untaken = timing.lap();
            self.for_each(&counter, |stats| {
                stats.record(ReadLatency::Untaken, untaken);
            });
        }
    }

    /// Counts what was done without the ring; of a read that is timed, `since` is when it began.
    pub(crate) fn done_at_once(
        &mut self,
        counted: Counted,
        bytes: u64,
        from: TaskQueueHandle,
        since: Option<Instant>,
    ) {
        let counter = self.open(counted, from);
        let took = since.map(|since| clock::real() - since);
        self.for_each(&counter, |stats| {
            stats.count(counted, bytes);
            if let Some(took) = took {
                stats.record(ReadLatency::Queued, Duration::ZERO);
                stats.record(ReadLatency::InKernel, took);
                stats.record(ReadLatency::Untaken, Duration::ZERO);
            }
        });
    }

    /// Whether it is recorded how long reads take.
    pub(crate) fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn for_each(&mut self, counter: &OpCounter, mut f: impl FnMut(&mut RingIoStats)) {
        f(&mut self.executor);
        let of_queue = &mut self.queues[counter.queue as usize];
        if let QueueCounters::Zero = of_queue {
            *of_queue = QueueCounters::Counted(Box::default());
        }
        if let QueueCounters::Counted(stats) = of_queue {
            f(stats);
        }
    }

    /// What the executor did since this was last called.
    pub(crate) fn take(&mut self) -> IoStats {
        IoStats::of_ring(mem::take(&mut self.executor))
    }

    /// What the tasks of a queue did since this was last called.
    pub(crate) fn take_queue(&mut self, queue: TaskQueueHandle) -> IoStats {
        IoStats::of_ring(match self.queues.get_mut(queue.index()) {
            Some(QueueCounters::Counted(stats)) => mem::take(stats),
            Some(QueueCounters::Zero | QueueCounters::Gone) | None => RingIoStats::default(),
        })
    }

    /// The queue is no more.
    pub(crate) fn forget(&mut self, queue: TaskQueueHandle) {
        // One without an counter has nothing in flight that could open it.
        if let Some(of_queue) = self.queues.get_mut(queue.index()) {
            *of_queue = QueueCounters::Gone;
        }
    }
}
