//! How far the tasks of an executor have come, in numbers: tasks queued, and polls.
//!
//! Each poll takes one task out of its queue, so that the difference is what is runnable, and a
//! number of polls at which all tasks have run that were runnable at some time is known then.

use std::cell::Cell;

use super::task_queue::TaskQueue;

/// The bit that tells the numbers of polls inside other polls from those of tasks that were queued.
const NESTED: u32 = 1 << 31;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Tasks queued so far.
    arrivals: Cell<u64>,
    /// Polls of queued tasks so far.
    polls: Cell<u64>,
    /// Polls of tasks by the one that spawned them, so far: they are numbered by themselves.
    nested_polls: Cell<u64>,
    /// With that many polls, as many tasks have run as were runnable after the last batch of
    /// timers.
    batch_end: Cell<u64>,
    /// Runnable tasks that were queued when the reactor last woke some, which is when an epoch
    /// begins.
    expected: Cell<u64>,
    epoch: Cell<u64>,
}

impl Progress {
    /// A task is queued. Returns the epoch in which it is.
    #[inline]
    pub(super) fn queued(&self) -> u64 {
        self.arrivals.update(|arrivals| arrivals + 1);
        self.epoch.get()
    }

    /// A queued task is polled. Returns how many were, with this one.
    #[inline]
    pub(super) fn polled(&self) -> u64 {
        let number = self.polls.get() + 1;
        self.polls.set(number);
        number
    }

    /// A task is polled by the one that spawns it. Returns the [name](Self::poll_name) of the poll.
    #[inline]
    pub(super) fn polled_inside(&self) -> u32 {
        let number = self.nested_polls.get() + 1;
        self.nested_polls.set(number);
        number as u32 | NESTED
    }

    /// By what a task knows the poll of this number.
    #[inline]
    pub(super) fn poll_name(number: u64) -> u32 {
        number as u32 & !NESTED
    }

    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals.get()
    }

    #[inline]
    pub(super) fn polls(&self) -> u64 {
        self.polls.get()
    }

    pub(super) fn nested_polls(&self) -> u64 {
        self.nested_polls.get()
    }

    /// Tasks that wait for their turn.
    #[inline]
    pub(super) fn runnable(&self) -> u64 {
        self.arrivals.get() - self.polls.get()
    }

    /// A batch of timers has woken tasks: those that are runnable now.
    pub(super) fn begin_batch(&self) {
        self.batch_end.set(self.arrivals.get());
    }

    /// Whether those of the last batch have run.
    #[inline]
    pub(super) fn is_batch_done(&self) -> bool {
        self.polls.get() >= self.batch_end.get()
    }

    /// Tasks were woken from outside: those that are runnable now are expected to run soon.
    pub(super) fn begin_epoch(&self) {
        self.expected.set(self.runnable());
        self.epoch.update(|epoch| epoch + 1);
    }

    /// Whether some that are expected have not run.
    pub(super) fn expects_tasks(&self) -> bool {
        self.expected.get() > 0
    }

    /// How many tasks of `queue` are expected.
    #[inline]
    pub(super) fn expected_of(&self, queue: &TaskQueue) -> u64 {
        match self.expected.get() {
            0 => 0,
            _ => queue.queued_before(self.epoch.get()),
        }
    }

    /// So many that were expected have run.
    #[inline]
    pub(super) fn expected_have_run(&self, tasks: u64) {
        self.expected.update(|expected| expected - tasks);
    }
}

#[cfg(test)]
impl Progress {
    pub(super) fn expected(&self) -> u64 {
        self.expected.get()
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_polls_do_not_start_again() {
        let progress = Progress::default();
        progress.nested_polls.set(u64::from(u32::MAX));
        let names = [progress.polled_inside(), progress.polled_inside()];
        assert_eq!(progress.nested_polls(), u64::from(u32::MAX) + 2);
        assert_eq!(names, [NESTED, NESTED | 1]);
    }
}
