//! Counts the operations that asked for it: for the executor, and for the task queue they came
//! from.
//!
//! What an operation counts as, and for whom, comes with it when it is submitted; sockets'
//! operations come without, and pay a comparison. The clock is read only for reads, and only if the
//! executor was told to record how long they take.

use std::time::{Duration, Instant};

use super::Reactor;
use crate::ring::Outcome;
use crate::shares::TaskQueueHandle;
use crate::stats::{Counted, IoStats, ReadLatency, RingIoStats};

impl Reactor {
    /// Counts what a task of the queue `from` has done without the ring; of a read that is timed,
    /// `since` is when it began.
    pub(crate) fn count(
        &self,
        counted: Counted,
        bytes: u64,
        from: TaskQueueHandle,
        since: Option<Instant>,
    ) {
        let mut in_flight = self.in_flight.borrow_mut();
        in_flight
            .accounts()
            .done_at_once(counted, bytes, from, since);
    }

    /// Whether it is recorded how long reads take.
    pub(crate) fn times_reads(&self) -> bool {
        self.in_flight.borrow_mut().accounts().is_timed()
    }
}

/// On whose account an operation goes, and as what.
#[derive(Debug)]
pub(super) struct Account {
    queue: u32,
    counted: Counted,
    is_polled: bool,
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
        let now = Instant::now();
        now.saturating_duration_since(std::mem::replace(&mut self.since, now))
    }
}

impl Account {
    /// Whether the device was polled for its completion.
    pub(super) fn was_polled(&mut self, is_polled: bool) {
        self.is_polled = is_polled;
    }

    /// The operation goes to the kernel.
    pub(super) fn handed_over(&mut self) {
        if let Some(timing) = &mut self.timing {
            timing.queued = timing.lap();
        }
    }
}

/// The accounts of one executor.
#[derive(Debug)]
pub(super) struct Accounts {
    is_timed: bool,
    executor: ByRing,
    /// By index, as far as queues have submitted anything.
    queues: Vec<OfQueue>,
}

#[derive(Debug)]
enum OfQueue {
    Zero,
    Counted(Box<ByRing>),
    /// What its operations in flight still bring is not counted.
    Gone,
}

#[derive(Debug, Default)]
struct ByRing {
    main: RingIoStats,
    /// Few devices are polled.
    polled: Option<Box<RingIoStats>>,
}

impl ByRing {
    fn of(&mut self, is_polled: bool) -> &mut RingIoStats {
        match is_polled {
            true => self.polled.get_or_insert_default(),
            false => &mut self.main,
        }
    }

    fn take(&mut self) -> IoStats {
        let ByRing { main, polled } = std::mem::take(self);
        IoStats::of_rings(main, polled.map_or_else(RingIoStats::default, |it| *it))
    }
}

impl Accounts {
    /// `is_timed` says whether it is recorded how long reads take.
    pub(super) fn new(is_timed: bool) -> Self {
        Accounts {
            is_timed,
            executor: ByRing::default(),
            queues: Vec::new(),
        }
    }

    /// Opens the account of an operation that is submitted now.
    pub(super) fn open(&mut self, counted: Counted, from: TaskQueueHandle) -> Account {
        let queue = from.index();
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, || OfQueue::Zero);
        }
        let is_timed = self.is_timed && counted.is_timed();
        Account {
            queue: u32::try_from(queue).expect("an executor makes fewer than 2³² queues"),
            counted,
            is_polled: false,
            timing: is_timed.then(|| {
                Box::new(Timing {
                    since: Instant::now(),
                    queued: Duration::ZERO,
                })
            }),
        }
    }

    /// The operation has completed: counts it if it was a success.
    pub(super) fn completed(&mut self, account: &mut Account, outcome: Outcome) {
        let Ok(bytes) = outcome.result() else {
            account.timing = None;
            return;
        };
        let legs = account
            .timing
            .as_mut()
            .map(|timing| (timing.queued, timing.lap()));
        let counted = account.counted;
        self.for_each(account, |stats| {
            stats.count(counted, u64::from(bytes));
            if let Some((queued, in_kernel)) = legs {
                stats.record(ReadLatency::Queued, queued);
                stats.record(ReadLatency::InKernel, in_kernel);
            }
        });
    }

    /// The task that waited for the operation has its result.
    pub(super) fn taken(&mut self, mut account: Account) {
        if let Some(timing) = &mut account.timing {
            let untaken = timing.lap();
            self.for_each(&account, |stats| {
                stats.record(ReadLatency::Untaken, untaken);
            });
        }
    }

    /// Counts what was done without the ring; of a read that is timed, `since` is when it began.
    pub(super) fn done_at_once(
        &mut self,
        counted: Counted,
        bytes: u64,
        from: TaskQueueHandle,
        since: Option<Instant>,
    ) {
        let account = self.open(counted, from);
        let took = since.map(|since| since.elapsed());
        self.for_each(&account, |stats| {
            stats.count(counted, bytes);
            if let Some(took) = took {
                stats.record(ReadLatency::Queued, Duration::ZERO);
                stats.record(ReadLatency::InKernel, took);
                stats.record(ReadLatency::Untaken, Duration::ZERO);
            }
        });
    }

    pub(super) fn is_timed(&self) -> bool {
        self.is_timed
    }

    fn for_each(&mut self, account: &Account, mut f: impl FnMut(&mut RingIoStats)) {
        f(self.executor.of(account.is_polled));
        let of_queue = &mut self.queues[account.queue as usize];
        if let OfQueue::Zero = of_queue {
            *of_queue = OfQueue::Counted(Box::default());
        }
        if let OfQueue::Counted(stats) = of_queue {
            f(stats.of(account.is_polled));
        }
    }

    /// What the executor did since this was last called.
    pub(super) fn take(&mut self) -> IoStats {
        self.executor.take()
    }

    /// What the tasks of a queue did since this was last called.
    pub(super) fn take_queue(&mut self, queue: TaskQueueHandle) -> IoStats {
        match self.queues.get_mut(queue.index()) {
            Some(OfQueue::Counted(stats)) => stats.take(),
            Some(OfQueue::Zero | OfQueue::Gone) | None => ByRing::default().take(),
        }
    }

    /// The queue is no more.
    pub(super) fn forget(&mut self, queue: TaskQueueHandle) {
        // One without an account has nothing in flight that could open it.
        if let Some(of_queue) = self.queues.get_mut(queue.index()) {
            *of_queue = OfQueue::Gone;
        }
    }
}
