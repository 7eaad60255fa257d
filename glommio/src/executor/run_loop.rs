//! The loop: a turn of the reactor, the remote wakes, a round of tasks, again.
//!
//! ```text
//!     ┌─▶ turn (reap, hand over, sleep if idle, expire) ─▶ wakes ─▶ round ─┐
//!     └────────────────────────────────────────────────────────────────────┘
//!   round:  queue with the least virtual runtime ─▶ its tasks, first come first served, but those
//!           last that woke themselves, until none is left, a task yielded the queue, or need_preempt()
//! ```

use std::rc::Rc;

use super::core::Core;
use super::progress::Progress;
use super::stall::TimedTurn;
use super::task_panic::PanicPolicy;
use super::task_queue::TaskQueue;
use crate::noted;
use crate::reactor::{TaskPoll, budget};
use crate::task::Runnable;

/// Remote wakes delivered in one turn: other threads that wake without pause must not delay the
/// timers, the completions and the tasks.
const REMOTE_WAKE_BUDGET: usize = 1024;

impl Core {
    /// Runs tasks until `is_done`, sleeping when there are none to run.
    pub(super) fn run_until(&self, is_done: impl Fn() -> bool) {
        // The time since the last run is not counted.
        let mut was_here = false;
        while !is_done() {
            self.pass(was_here, &is_done);
            was_here = true;
        }
        self.publish_counts();
    }

    /// Once through the loop, which `was_here` just before.
    pub(super) fn pass(&self, was_here: bool, is_done: &impl Fn() -> bool) {
        if self.is_idle() {
            self.queues.settle_up();
        }
        let is_batch_done = self.progress.is_batch_done();
        let turn = self.reactor.turn(
            || self.queues.least_slice(),
            is_batch_done,
            || self.is_idle(),
        );
        self.publish_counts();
        if turn.batch_is_partial {
            self.progress.begin_batch();
        }
        let has_polled = was_here && !turn.parked;
        self.meter.begin_round(turn.round_start, has_polled);
        noted::begin_round(turn.round_start);
        let has_remote_wakes = self.deliver_remote_wakes();
        if turn.woke || has_remote_wakes {
            self.progress.begin_epoch();
        }
        // Tasks that ask `need_preempt` before they yield would delay woken tasks, such as that
        // of a due timer, by a whole slice each. So they are asked soon until all woken tasks
        // have run, however many are before them.
        if self.progress.runnable() > 1 && self.progress.expects_tasks() {
            self.reactor.shorten_slice();
        }
        #[cfg(test)]
        self.compare_with_scan();
        self.run_round(is_done);
    }

    /// Shows other threads what was counted, if there are metrics.
    fn publish_counts(&self) {
        let first_polls = self.progress.nested_polls();
        let counts = self.reactor.counts();
        counts.publish(self.progress.polls(), first_polls, self.progress.arrivals());
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queues.are_idle()
    }

    /// Takes in what other threads sent: wakes, and tasks without a waker left. True if there was
    /// anything.
    fn deliver_remote_wakes(&self) -> bool {
        if !self.remote.take_notification() {
            return false;
        }
        #[cfg(feature = "debugging")]
        self.listed.answer(|| self.dump());
        for _ in 0..REMOTE_WAKE_BUDGET {
            let Some(wake) = self.remote.next_wake() else {
                return true;
            };
            self.reactor.counts().wakes_by_threads.add(1);
            wake.deliver();
        }
        // The rest comes with the next turn, which must not sleep before.
        self.remote.notify();
        true
    }

    fn run_round(&self, is_done: &impl Fn() -> bool) {
        /// Ends a round, however it ends.
        struct Round<'a>(&'a Core);
        impl Drop for Round<'_> {
            fn drop(&mut self) {
                self.0.reactor.polls().end();
                budget::begin(false);
                self.0.meter.end_run(&self.0.queues);
            }
        }
        let _round = Round(self);
        while let Some(queue) = self.next_queue() {
            // Alone, a queue is not charged, and its turns do not read the clock.
            let is_contended = !self.is_idle();
            self.meter.begin_turn(&queue, is_contended, &self.queues);
            let turn = Turning {
                core: self,
                queue: &queue,
                is_contended,
                polls_before: self.progress.polls(),
                expected: self.progress.expected_of(&queue),
            };
            let expected_end = turn.polls_before + turn.expected;
            // User code, which may panic: the queue must be put back.
            queue.refresh_shares();
            if is_contended {
                let now = self.meter.measured_until();
                if let Some(slice) = self.queues.begin_charged_turn(&queue, now) {
                    self.reactor.limit_slice(now, slice);
                }
            }
            let timed = self
                .stalls
                .begin(queue.handle(), || self.queues.least_slice());
            let stops = self.run_queue(&queue, is_contended, expected_end, is_done);
            let stall = timed.and_then(TimedTurn::end);
            drop(turn);
            if let Some(stall) = stall {
                // No queue pays for what the handler does.
                self.meter.end_run(&self.queues);
                stall.report(self.id(), &queue);
                self.meter.look_at_loop();
            }
            // Also a queue that yields with no other to run gets here: the reactor is asked, which
            // is a few loads unless they find something.
            if stops || (!self.is_idle() && self.reactor.need_preempt()) {
                return;
            }
        }
    }

    fn next_queue(&self) -> Option<Rc<TaskQueue>> {
        self.meter.count_run();
        self.queues.next()
    }

    /// The tasks that the executor waits for have run when there were `expected_end` polls. Whether
    /// the reactor is due for a turn, or the main future is done.
    fn run_queue(
        &self,
        queue: &TaskQueue,
        is_contended: bool,
        expected_end: u64,
        is_done: &impl Fn() -> bool,
    ) -> bool {
        self.queues.set_current(queue);
        let reactor = &*self.reactor;
        while let Some(task) = queue.pop() {
            let number = self.progress.polled();
            self.begin_poll(&task, Progress::poll_name(number));
            budget::begin(is_contended || queue.has_runnable());
            let over = || queue.unfinished.update(|tasks| tasks - 1);
            let is_over = match queue.on_panic() {
                PanicPolicy::Unwind => self.tasks.run(task, Runnable::run, over),
                _ => (self.tasks).run(task, |task| self.run_isolated(task, queue), over),
            };
            reactor.end_poll();
            if is_over && is_done() {
                return true;
            }
            if queue.has_yielded.get() {
                return false;
            }
            // Asking may cost a look at the clock, and is for those who wait.
            if queue.has_runnable() && reactor.ends_round(number < expected_end) {
                return true;
            }
        }
        false
    }

    /// Has the reactor tell what `task` polls which poll that is. Returns which it was before.
    #[inline]
    pub(super) fn begin_poll(&self, task: &Runnable, number: u32) -> TaskPoll {
        let before = task.number_poll(number);
        let polls = self.reactor.polls();
        polls.begin(task.waker_data(), number, before)
    }
}

/// Ends a queue's turn, however it ends.
struct Turning<'a> {
    core: &'a Core,
    queue: &'a Rc<TaskQueue>,
    /// Whether others waited when the turn began: alone, a queue is not charged.
    is_contended: bool,
    polls_before: u64,
    /// How many tasks of the queue were expected.
    expected: u64,
}

impl Drop for Turning<'_> {
    fn drop(&mut self) {
        if self.is_contended {
            let queues = &self.core.queues;
            self.core.meter.end_contended_turn(self.queue, queues);
        }
        let polls = self.core.progress.polls() - self.polls_before;
        self.queue.count_taken(polls);
        let expected = polls.min(self.expected);
        self.core.progress.expected_have_run(expected);
        self.core.queues.end_turn(self.queue, !self.is_contended);
    }
}
