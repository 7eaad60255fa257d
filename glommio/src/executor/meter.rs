//! Whose time is running, measured with as few looks at the clock as will do.
//!
//! ```text
//!   turn │ round                                    │ turn
//!        ▲ A A A A A A │ B B B │ A │ B │ A │ B B B B ▲
//!        └ the turn's  └ queue └ others wait:        └ the round ends
//!          own look      changes   each turn
//! ```
//!
//! Time is never measured twice: all that has passed since the last look belongs to one queue. A
//! queue that is alone and yields again and again has turn after turn without a look, since its
//! turns can be put down as one when it ends. Who runs next to others is charged by the turn, as its
//! shares are at stake, and one look is the end of its turn and the beginning of the next.
//!
//! What the loop does between a turn and its first task (timers fire, remote wakes are taken in) is
//! time of the queue that runs first, if it is alone, and else the loop's own, as polling is.
//!
//! Cost: a look per round and per contended turn; otherwise two counters and a comparison per turn.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::queues::Queues;
use super::steal_time::StealTime;
use super::task_queue::TaskQueue;
use crate::clock;
use crate::stats::ExecutorStats;

/// What the loop has done since the statistics were last read.
pub(super) struct Meter {
    /// All time up to here has been put down.
    measured_until: Cell<Instant>,
    /// Index of the queue to which the time since then belongs; or one of the two below.
    running: Cell<usize>,
    steal_time: StealTime,
    in_tasks: Cell<Duration>,
    polling: Cell<Duration>,
    /// Since the executor was made, for overload to be told from work.
    slept: Cell<Duration>,
    scheduler_runs: Cell<u64>,
    /// Polls of tasks that have been reported, of all that were ever made.
    reported_polls: Cell<u64>,
}

/// In place of an index: the loop itself, before the first queue of a round.
const LOOP: usize = usize::MAX;

/// In place of an index: nothing has run since the last look.
const NONE: usize = usize::MAX - 1;

impl Meter {
    pub(super) fn new() -> Self {
        Meter {
            measured_until: Cell::new(clock::real()),
            running: Cell::new(NONE),
            steal_time: StealTime::default(),
            in_tasks: Cell::default(),
            polling: Cell::default(),
            slept: Cell::default(),
            scheduler_runs: Cell::new(0),
            reported_polls: Cell::new(0),
        }
    }

    /// The scheduler looks for a queue.
    #[inline]
    pub(super) fn count_run(&self) {
        self.scheduler_runs.update(|runs| runs + 1);
    }

    /// A round begins. The time before it went by with polling, unless the thread slept or spun.
    pub(super) fn begin_round(&self, now: Instant, has_polled: bool) {
        let passed = self.look(now);
        let counter = if has_polled {
            &self.polling
        } else {
            &self.slept
        };
        counter.update(|time| time + passed);
        self.running.set(LOOP);
    }

    /// Of a turn for which others wait, when it began.
    pub(super) fn measured_until(&self) -> Instant {
        self.measured_until.get()
    }

    /// Time since the last look.
    fn look(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.measured_until.replace(now))
    }

    /// The loop itself has run until now, and no task.
    pub(super) fn look_at_loop(&self) {
        let passed = self.look(clock::real());
        self.polling.update(|polling| polling + passed);
    }

    /// As [`look`](Self::look), for the time of a queue that has run until now.
    fn look_at_queue(&self, now: Instant) -> Duration {
        let ran = self.look(now);
        self.running.set(NONE);
        self.in_tasks.update(|in_tasks| in_tasks + ran);
        ran
    }

    /// The turn of `queue` begins. `is_contended` says whether others wait for theirs.
    #[inline]
    pub(super) fn begin_turn(&self, queue: &TaskQueue, is_contended: bool, queues: &Queues) {
        queue.count_turn();
        let index = queue.handle().index();
        if is_contended || self.running.get() != index {
            self.change_running(index, is_contended, queues);
        }
    }

    fn change_running(&self, index: usize, is_contended: bool, queues: &Queues) {
        match self.running.get() {
            NONE => {}
            LOOP if !is_contended => {}
            LOOP => self.look_at_loop(),
            _ => self.end_run(queues),
        }
        self.running.set(index);
        if is_contended {
            self.steal_time.begin_turn(self.measured_until.get());
        }
    }

    /// A turn of `queue` ends for which others waited.
    pub(super) fn end_contended_turn(&self, queue: &TaskQueue, queues: &Queues) {
        let now = clock::real();
        let ran = self.look_at_queue(now);
        queue.add_runtime(ran);
        queues.charge(queue, ran, self.steal_time.counted(ran, now), now);
    }

    /// Puts down what the queue that runs alone has run.
    pub(super) fn end_run(&self, queues: &Queues) {
        let index = self.running.get();
        if matches!(index, LOOP | NONE) {
            return;
        }
        let ran = self.look_at_queue(clock::real());
        if let Some(queue) = queues.at(index) {
            queue.add_runtime(ran);
        }
    }

    /// How long the executor has had nothing to run, in all.
    pub(super) fn slept(&self) -> Duration {
        self.slept.get()
    }

    /// What was counted since this was last called, when there have been so many `polls`.
    pub(super) fn take_stats(&self, polls: u64) -> ExecutorStats {
        ExecutorStats {
            in_tasks: self.in_tasks.take(),
            polling: self.polling.take(),
            looks_for_a_queue: self.scheduler_runs.take(),
            panics: 0,
            polls_of_tasks: polls - self.reported_polls.replace(polls),
        }
    }
}
