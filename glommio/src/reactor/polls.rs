//! Which task is being polled, told to those whom it polls.
//!
//! Polls of tasks are numbered, and a task remembers the number of its latest. So what waits in a
//! task can tell whether the task has polled it each time, without a list of what waits and without
//! a clock.
//!
//! A wait that the task gave up in one poll, and another one that it begins in the next, look like
//! one that was polled in both. What tells them apart is a sleep in between: it began after the last
//! look at the wait, and has ended in this poll, before the wait is looked at again. So looks at
//! waits are numbered, too, and a sleep remembers the number of the last look before it.

use std::cell::Cell;
use std::ptr;
use std::task::Waker;

/// Tells the polls of one executor's tasks apart.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    under_way: Cell<TaskPoll>,
    looks: Cell<u32>,
}

/// A poll of a task, seen from inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskPoll {
    /// Where the task's own wakers point.
    task: *const (),
    /// Numbers come again after 2³² polls, and one that is zero counts as none: what waits in that
    /// poll begins anew.
    number: u32,
    /// The number of the task's poll before this one.
    before: u32,
    /// The last look before a sleep of the task that has ended in this poll; of several, the latest.
    slept_after: u32,
}

impl Polls {
    /// A poll of the task whose own wakers point to `task` begins. `number` is that of no other
    /// poll, and `before` that of the task's poll before this one, or zero. Returns the poll
    /// that was under way, for a poll inside another one to [go back](Self::resume) to.
    #[inline]
    pub(crate) fn begin(&self, task: *const (), number: u32, before: u32) -> TaskPoll {
        self.under_way.replace(TaskPoll {
            task,
            number,
            before,
            slept_after: 0,
        })
    }

    /// A poll inside `outer` is over.
    #[inline]
    pub(crate) fn resume(&self, outer: TaskPoll) {
        self.under_way.set(outer);
    }

    /// No task is being polled.
    #[inline]
    pub(crate) fn end(&self) {
        self.under_way.set(TaskPoll::default());
    }

    pub(crate) fn under_way(&self) -> TaskPoll {
        self.under_way.get()
    }

    /// A wait is looked at. Returns the number of the look, never zero.
    pub(crate) fn look(&self) -> u32 {
        self.looks.set(self.looks.get().checked_add(1).unwrap_or(1));
        self.looks.get()
    }

    /// The number of the last look.
    #[inline]
    pub(super) fn last_look(&self) -> u32 {
        self.looks.get()
    }

    /// A sleep is over of what `waker` wakes, which has slept since `last_look`.
    #[inline]
    pub(super) fn has_slept(&self, last_look: u32, waker: &Waker) {
        let mut poll = self.under_way.get();
        if poll.is_of(waker) {
            poll.slept_after = poll.slept_after.max(last_look);
            self.under_way.set(poll);
        }
    }
}

impl TaskPoll {
    /// Differs from that of other polls of the executor; zero outside of polls.
    pub(crate) fn number(self) -> u32 {
        self.number
    }

    /// Whether `earlier` is the number of this poll, or of the one before it of the same task.
    pub(crate) fn is_or_follows(self, earlier: u32) -> bool {
        earlier != 0 && (earlier == self.number || earlier == self.before)
    }

    /// Whether the task has slept between `look` and now.
    pub(crate) fn has_slept_since(self, look: u32) -> bool {
        self.slept_after >= look
    }

    /// Whether `waker` is the task's own, and not one that something in the task has made.
    pub(crate) fn is_of(self, waker: &Waker) -> bool {
        !self.task.is_null() && self.task == waker.data()
    }
}

impl Default for TaskPoll {
    fn default() -> Self {
        TaskPoll {
            task: ptr::null(),
            number: 0,
            before: 0,
            slept_after: 0,
        }
    }
}
