//! The two lists that a task can be in, linked through the tasks themselves: joining one takes no
//! memory, and a million tasks that come and go leave nothing behind.
//!
//! Both belong to the owner's thread, like the links. A task is in the queue while its [`Runnable`]
//! is there, and in the list while its [`OwnedTask`] is: these are the references that keep it.

use std::cell::Cell;
use std::{fmt, mem};

use super::header::{LISTED, TaskPtr};
use super::state::LIVE;
use super::{OwnedTask, Runnable};
use crate::tuning;

/// Runnable tasks, first come first served. Those left when it is dropped are closed.
#[derive(Default)]
pub(crate) struct RunQueue {
    first: Cell<Option<TaskPtr>>,
    last: Cell<Option<TaskPtr>>,
}

impl RunQueue {
    #[inline]
    pub(crate) fn push(&self, runnable: Runnable) {
        let task = runnable.0;
        mem::forget(runnable);
        match self.last.replace(Some(task)) {
            Some(last) => last.header().next_runnable.set(Some(task)),
            None => self.first.set(Some(task)),
        }
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Runnable> {
        let task = self.first.get()?;
        let next = task.header().next_runnable.take();
        self.first.set(next);
        match next {
            None => self.last.set(None),
            Some(next) => {
                // Loaded while this task runs.
                if tuning::get().tasks_prefetched > 0 {
                    next.prefetch();
                    next.header().prefetch_neighbours();
                }
            }
        }
        Some(Runnable(task))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let next = |task: &TaskPtr| task.header().next_runnable.get();
        std::iter::successors(self.first.get(), next).count()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }
}

impl Drop for RunQueue {
    fn drop(&mut self) {
        while let Some(runnable) = self.pop() {
            drop(runnable);
        }
    }
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunQueue")
            .field("is_empty", &self.is_empty())
            .finish()
    }
}

/// The executor's references to its tasks that are not over, in the order in which they were
/// registered. Those left when it is dropped are shut down.
#[derive(Default)]
pub(crate) struct TaskList {
    first: Cell<Option<TaskPtr>>,
    last: Cell<Option<TaskPtr>>,
}

impl TaskList {
    #[inline]
    pub(crate) fn push(&self, task: OwnedTask) {
        let task = into_pointer(task);
        let before = self.last.replace(Some(task));
        match before {
            Some(last) => last.header().next.set(Some(task)),
            None => self.first.set(Some(task)),
        }
        task.header().previous.set(before);
        task.header().mark(LISTED);
    }

    /// Runs a task, which is in this list unless it is over, by `run`, which has its result from
    /// [`Runnable::run`]. If that is its end, also by a panic, takes it off the list and calls
    /// `at_end`, which must not panic. Whether it was.
    #[inline]
    pub(crate) fn run(
        &self,
        runnable: Runnable,
        run: impl FnOnce(Runnable) -> bool,
        at_end: impl Fn(),
    ) -> bool {
        struct Ending<'a, F: Fn()> {
            list: &'a TaskList,
            task: TaskPtr,
            at_end: F,
        }
        impl<F: Fn()> Drop for Ending<'_, F> {
            // Called out of line it would have the guard written to memory at each poll.
            #[inline]
            fn drop(&mut self) {
                // It was live before it ran, and so the list still keeps it: only an executor that
                // dies takes tasks off the list otherwise, and it does not die
                // while it runs one.
                if let Some(task) = self.list.remove(self.task) {
                    (self.at_end)();
                    drop(task);
                }
            }
        }
        let task = runnable.0;
        if !task.state().has(LIVE) {
            // It was shut down: nothing is left to run but a destructor at the most.
            return run(runnable);
        }
        let ending = Ending {
            list: self,
            task,
            at_end,
        };
        let is_over = run(runnable);
        if is_over {
            drop(ending);
        } else {
            mem::forget(ending);
        }
        is_over
    }

    /// Takes off the task that was registered first.
    pub(crate) fn pop(&self) -> Option<OwnedTask> {
        self.remove(self.first.get()?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.get().is_none()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        std::iter::successors(self.first.get(), |task| task.header().next.get()).count()
    }

    #[inline]
    fn remove(&self, task: TaskPtr) -> Option<OwnedTask> {
        let header = task.header();
        if !header.is_marked(LISTED) {
            return None;
        }
        header.unmark(LISTED);
        let (previous, next) = (header.previous.take(), header.next.take());
        match previous {
            Some(previous) => previous.header().next.set(next),
            None => self.first.set(next),
        }
        match next {
            Some(next) => next.header().previous.set(previous),
            None => self.last.set(previous),
        }
        Some(OwnedTask(task))
    }
}

impl Drop for TaskList {
    fn drop(&mut self) {
        while let Some(task) = self.pop() {
            drop(task);
        }
    }
}

fn into_pointer(task: OwnedTask) -> TaskPtr {
    let pointer = task.0;
    mem::forget(task);
    pointer
}
