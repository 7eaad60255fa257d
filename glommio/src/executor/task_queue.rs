//! One task queue: its runnable tasks, and what the scheduler knows of them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::task_panic::PanicPolicy;
use crate::clock;
use crate::fair_queue::VirtualRuntime;
use crate::shares::{Latency, Shares, TaskQueueHandle};
use crate::stats::TaskQueueStats;
use crate::sys::door;
use crate::task::{RunQueue, Runnable};

/// Tasks that are looked at for the next one to run in a random order: enough for each order of those that a
/// test has, and few, as they are in a list.
const TASKS_SEEN: usize = 16;

pub(super) struct TaskQueue {
    handle: TaskQueueHandle,
    name: String,
    latency: Latency,
    shares: Shares,
    on_panic: Cell<PanicPolicy>,
    current_shares: Cell<usize>,
    shares_read_at: Cell<Instant>,
    runnable: RunQueue,
    /// Tasks ever queued, and ever taken out.
    queued: Cell<u64>,
    taken: Cell<u64>,
    /// The epoch in which a task was last queued, and how many had ever been before the first of
    /// that epoch.
    epoch: Cell<u64>,
    queued_before: Cell<u64>,
    /// Waiting for its turn or having it.
    pub(super) is_active: Cell<bool>,
    /// A task ended the queue's turn.
    pub(super) has_yielded: Cell<bool>,
    /// Tasks that are not over.
    pub(super) unfinished: Cell<usize>,
    pub(super) virtual_runtime: Cell<VirtualRuntime>,
    /// The end of the last turn that was charged, by the clock less all such turns.
    charged_at: Cell<Instant>,
    /// How long tasks ran, and in how many turns, since the statistics were last read.
    runtime: Cell<Duration>,
    turns: Cell<u64>,
}

impl TaskQueue {
    pub(super) fn new(
        handle: TaskQueueHandle,
        shares: Shares,
        latency: Latency,
        name: &str,
        on_panic: PanicPolicy,
    ) -> Self {
        let now = clock::real();
        TaskQueue {
            handle,
            name: name.to_owned(),
            latency,
            on_panic: Cell::new(on_panic),
            current_shares: Cell::new(shares.current()),
            shares,
            shares_read_at: Cell::new(now),
            runnable: RunQueue::default(),
            queued: Cell::new(0),
            taken: Cell::new(0),
            epoch: Cell::new(0),
            queued_before: Cell::new(0),
            is_active: Cell::new(false),
            has_yielded: Cell::new(false),
            unfinished: Cell::new(0),
            virtual_runtime: Cell::default(),
            charged_at: Cell::new(now),
            runtime: Cell::default(),
            turns: Cell::new(0),
        }
    }

    #[inline]
    pub(super) fn handle(&self) -> TaskQueueHandle {
        self.handle
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    #[inline]
    pub(super) fn latency(&self) -> Latency {
        self.latency
    }

    /// What a panic of one of its tasks does.
    #[inline]
    pub(super) fn on_panic(&self) -> PanicPolicy {
        self.on_panic.get()
    }

    pub(super) fn set_on_panic(&self, policy: PanicPolicy) {
        self.on_panic.set(policy);
    }

    /// Appends a runnable task, behind those that others woke if it `has_yielded`. Epochs are
    /// counted up by the executor.
    #[inline]
    pub(super) fn push(&self, epoch: u64, task: Runnable, has_yielded: bool) {
        let queued = self.queued.get();
        if self.epoch.get() != epoch {
            self.epoch.set(epoch);
            self.queued_before.set(queued);
        }
        self.queued.set(queued + 1);
        let has_yielded = has_yielded && !door::is_task_order_random();
        match has_yielded {
            false => self.runnable.push(task),
            true => self.runnable.push_yielded(task),
        }
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<Runnable> {
        if door::is_task_order_random() {
            return self.runnable.pop_any(TASKS_SEEN, door::draw_task);
        }
        self.runnable.pop()
    }

    /// So many tasks were taken out in the turn that is over.
    pub(super) fn count_taken(&self, tasks: u64) {
        self.taken.update(|taken| taken + tasks);
    }

    /// Between turns: how many of the runnable tasks were queued before the present `epoch`.
    pub(super) fn queued_before(&self, epoch: u64) -> u64 {
        let queued = if self.epoch.get() == epoch {
            self.queued_before.get()
        } else {
            self.queued.get()
        };
        queued.saturating_sub(self.taken.get())
    }

    /// Between turns.
    #[cfg(test)]
    pub(super) fn runnable(&self) -> u64 {
        self.queued.get() - self.taken.get()
    }

    #[inline]
    pub(super) fn has_runnable(&self) -> bool {
        !self.runnable.is_empty()
    }

    #[inline]
    pub(super) fn count_turn(&self) {
        self.turns.update(|turns| turns + 1);
    }

    pub(super) fn add_runtime(&self, ran: Duration) {
        self.runtime.update(|runtime| runtime + ran);
    }

    /// What was counted since this was last called.
    pub(super) fn take_stats(&self) -> TaskQueueStats {
        TaskQueueStats {
            queue: self.handle,
            shares: self.shares(),
            ran: self.runtime.take(),
            turns: self.turns.take(),
        }
    }

    /// The weight, as it was read last.
    #[inline]
    pub(super) fn shares(&self) -> usize {
        self.current_shares.get()
    }

    /// Charges a turn that counts as `ran` and ends at `now`, by the clock less all such turns.
    pub(super) fn charge(&self, ran: Duration, now: Instant) {
        self.charged_at.set(now);
        let charged = self.virtual_runtime.get().after_turn(ran, self.shares());
        self.virtual_runtime.set(charged);
    }

    /// How long ago that was, by the same clock.
    pub(super) fn away(&self, now: Instant) -> Duration {
        now - self.charged_at.get()
    }

    /// Asks a dynamic weight again if its answer is too old. Runs user code.
    pub(super) fn refresh_shares(&self) {
        let Some(period) = self.shares.adjustment_period() else {
            return;
        };
        let now = clock::real();
        if now.duration_since(self.shares_read_at.get()) > period {
            self.shares_read_at.set(now);
            self.current_shares.set(self.shares.current());
        }
    }
}

impl_debug! { TaskQueue, it: index: it.handle.index(), name, latency, shares: it.shares(); .. }
