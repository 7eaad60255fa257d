//! The loop: a turn of the reactor, the foreign mail, a round of tasks, again.
//!
//! ```text
//!     ┌─▶ turn (reap, hand over, sleep if idle, expire) ─▶ mail ─▶ round ─┐
//!     └──────────────────────────────────────────────────────────────────┘
//!   round:  queue with the least virtual runtime ─▶ its tasks, first come first served,
//!           until none is left, a task yielded the queue, or need_preempt()
//! ```

use std::rc::Rc;
use std::time::Duration;

use super::Core;
use super::stall::Watched;
use super::task_queue::TaskQueue;
use crate::reactor::TaskPoll;
use crate::shares::TaskQueueHandle;
use crate::task::Runnable;

/// Letters delivered in one turn: strangers who never stop writing must not keep the timers, the
/// completions and the tasks waiting.
const MAIL_BUDGET: usize = 1024;

/// How a round of tasks ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The queue has nothing more to run.
    Drained,
    /// A task gave the rest of the queue's turn away.
    Yielded,
    /// The reactor wants a look, or the main future is done.
    Stopped,
}

impl Core {
    /// Runs tasks until `is_done`, sleeping when there are none to run.
    pub(super) fn run_until(&self, is_done: impl Fn() -> bool) {
        // The time since the last run is nobody's.
        let mut was_here = false;
        while !is_done() {
            let was_idle = self.is_idle();
            if was_idle {
                self.ready.borrow_mut().settle_up();
            }
            let is_batch_done = self.polls.get() >= self.batch_end.get();
            let has_woken = self
                .reactor
                .turn(self.slice(), is_batch_done, || self.is_idle());
            if self.reactor.has_fired_in_part() {
                let runnable = self.runnable_tasks() as u64;
                self.batch_end.set(self.polls.get() + runnable);
            }
            let has_polled = was_here && !self.reactor.has_parked();
            self.meter
                .begin_round(self.reactor.round_start(), has_polled);
            was_here = true;
            let has_mail = self.deliver_mail();
            if has_woken || has_mail {
                self.for_each_ready(|queue| queue.expect_all());
            }
            if was_idle && self.impatient_queues.get() > 0 {
                // Nobody was there to say how long a slice may be: those who were woken are.
                self.reactor.restart_round(self.slice());
            }
            // Tasks that ask `need_preempt` before they let go would keep those who were woken, a due
            // timer's task among them, waiting for a whole slice each. So rounds are short until all
            // who were woken have had their turn, however many are before them.
            if self.has_several_runnable() && self.is_anybody_expected() {
                self.reactor.hurry();
            }
            self.run_round(&is_done);
        }
    }

    fn is_idle(&self) -> bool {
        self.ready.borrow().is_empty()
    }

    /// How long a round may last: what the most impatient active queue asks for.
    fn slice(&self) -> Duration {
        self.slice_beside(None)
    }

    /// The same while a queue has its turn.
    fn slice_beside(&self, running: Option<&TaskQueue>) -> Duration {
        if self.impatient_queues.get() == 0 {
            return self.preempt_timer;
        }
        let running = running.map(|queue| queue.slice(self.preempt_timer));
        self.ready
            .borrow()
            .iter()
            .filter_map(|&index| self.queue_at(index))
            .map(|queue| queue.slice(self.preempt_timer))
            .chain(running)
            .min()
            .unwrap_or(self.preempt_timer)
    }

    fn runnable_tasks(&self) -> usize {
        let ready = self.ready.borrow();
        let queues = ready.iter().filter_map(|&index| self.queue_at(index));
        queues.map(|queue| queue.runnable()).sum()
    }

    fn for_each_ready(&self, f: impl Fn(&TaskQueue)) {
        for &index in self.ready.borrow().iter() {
            if let Some(queue) = self.queue_at(index) {
                f(&queue);
            }
        }
    }

    fn is_anybody_expected(&self) -> bool {
        self.ready
            .borrow()
            .iter()
            .any(|&index| self.queue_at(index).is_some_and(|it| it.has_expected()))
    }

    /// Whether more than one task waits for its turn.
    fn has_several_runnable(&self) -> bool {
        let ready = self.ready.borrow();
        let mut queues = ready.iter();
        match (queues.next(), queues.next()) {
            (None, _) => false,
            (Some(&index), None) => self.queue_at(index).is_some_and(|it| it.runnable() > 1),
            (Some(_), Some(_)) => true,
        }
    }

    /// Takes in what other threads sent: wakes, and tasks that nobody can wake any more. True if there
    /// was anything.
    fn deliver_mail(&self) -> bool {
        if !self.owner.notifier.take() {
            return false;
        }
        for _ in 0..MAIL_BUDGET {
            let Some(mail) = self.owner.mailbox.receive() else {
                return true;
            };
            mail.deliver();
        }
        // The rest comes with the next turn, which must not sleep before.
        self.owner.notifier.notify();
        true
    }

    fn run_round(&self, is_done: &impl Fn() -> bool) {
        /// Ends a round, however it ends.
        struct Round<'a>(&'a Core);
        impl Drop for Round<'_> {
            fn drop(&mut self) {
                self.0.reactor.polls().end();
                self.0.end_run();
            }
        }
        let _round = Round(self);
        while let Some(queue) = self.next_queue() {
            // Alone, a queue is not charged, and nobody looks at the clock for its turns.
            let is_contended = !self.is_idle();
            self.begin_turn(&queue, is_contended);
            let turn = Turning {
                core: self,
                queue: &queue,
                is_contended,
            };
            // User code, which may panic: the queue must find back.
            queue.refresh_shares();
            let interval = || self.slice_beside(Some(&queue));
            let watched = self.stalls.begin(queue.handle(), interval);
            let how = self.run_queue(&queue, is_done);
            let stall = watched.and_then(Watched::end);
            drop(turn);
            if let Some(stall) = stall {
                // No queue pays for what the handler does.
                self.end_run();
                stall.report(self.id(), &queue);
                self.meter.look_at_loop();
            }
            // Also a queue that yields with nobody else to run gets here: the reactor has its look,
            // which is a few loads unless they find something.
            if how == Turn::Stopped || (!self.is_idle() && self.reactor.need_preempt()) {
                return;
            }
        }
    }

    fn next_queue(&self) -> Option<Rc<TaskQueue>> {
        self.meter.count_run();
        let index = self.ready.borrow_mut().take()?;
        let queue = self.queue_at(index);
        Some(queue.expect("a queue with runnable tasks is not removed"))
    }

    fn run_queue(&self, queue: &TaskQueue, is_done: &impl Fn() -> bool) -> Turn {
        self.current_queue.set(queue.handle());
        let mut polls = 0_u32;
        while let Some(task) = queue.pop() {
            self.polls.update(|polls| polls + 1);
            self.run_task(task);
            if is_done() {
                return Turn::Stopped;
            }
            if queue.has_yielded.take() {
                return Turn::Yielded;
            }
            polls += 1;
            if is_checked(polls) && self.reactor.need_preempt() {
                return Turn::Stopped;
            }
        }
        Turn::Drained
    }

    /// Has the reactor tell what `task` polls which task that is. Returns which it was before.
    #[inline]
    pub(super) fn begin_poll(&self, task: &Runnable) -> TaskPoll {
        let note = |number| task.number_poll(number);
        self.reactor.polls().begin(task.waker_data(), note)
    }

    /// Polls one task, and forgets it if that was its end, also by a panic.
    pub(super) fn run_task(&self, task: Runnable) {
        struct Ending<'a> {
            core: &'a Core,
            key: usize,
        }
        impl Drop for Ending<'_> {
            // Called out of line it would have the guard written to memory at each poll.
            #[inline]
            fn drop(&mut self) {
                self.core.forget_task(self.key);
            }
        }
        let ending = Ending {
            core: self,
            key: task.key(),
        };
        self.begin_poll(&task);
        let is_over = task.run();
        if is_over {
            drop(ending);
        } else {
            std::mem::forget(ending);
        }
    }
}

/// Whether preemption is checked after this many polls of a round. The check reads the clock while
/// the round is young, so very short tasks share one: after 1, 2, 4, 8 and from then on every 8.
fn is_checked(polls: u32) -> bool {
    polls.is_multiple_of(8) || (polls < 8 && polls.is_power_of_two())
}

/// Ends a queue's turn, however it ends.
struct Turning<'a> {
    core: &'a Core,
    queue: &'a Rc<TaskQueue>,
    /// Whether others waited when the turn began: alone, a queue is not charged.
    is_contended: bool,
}

impl Drop for Turning<'_> {
    fn drop(&mut self) {
        if self.is_contended {
            self.core.end_contended_turn(self.queue);
        }
        self.queue.has_yielded.set(false);
        if self.queue.has_runnable() {
            let index = self.queue.handle().index();
            let virtual_runtime = self.queue.virtual_runtime.get();
            self.core
                .ready
                .borrow_mut()
                .put_back(index, virtual_runtime);
        } else {
            self.core.deactivate(self.queue);
        }
        self.core.current_queue.set(TaskQueueHandle::default());
    }
}
