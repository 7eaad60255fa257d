//! The two lists that a task can be in. Joining one takes no memory, but for large tasks, and a million
//! tasks that come and go leave nothing behind.
//!
//! Both belong to the owner's thread, as link and marks do. A task is in the queue while its [`Runnable`]
//! is there, and in the list while its [`OwnedTask`] is: these are the references that keep it.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::mem;

use super::cells::CellStore;
use super::header::{LARGE, LISTED, TaskPtr};
use super::state::LIVE;
use super::{OwnedTask, Runnable};
use crate::tuning;

/// Runnable tasks: those that were spawned or woken, first come first served, and behind them those
/// that woke themselves while they were polled. Those left when it is dropped are closed.
///
/// How many go before the next one that woke itself is decided when it could run: after the executor
/// has looked at what is due. So a task that a timer wakes goes before all that compute and yield,
/// but for the one that runs already.
///
/// Tasks that wake each other do not keep the others from running forever: the woken tasks that
/// went before are followed by as many that woke themselves, up to an eighth of those (and one). So
/// each of them has at least an eighth of the polls that it would have first come first served, and
/// no more.
#[derive(Default)]
pub(crate) struct RunQueue {
    woken: Line,
    yielded: Line,
    /// How many have woken themselves.
    yielded_len: Cell<usize>,
    /// The last woken task that goes before the next of those, and how many such have.
    last_before: Cell<Option<TaskPtr>>,
    before: Cell<usize>,
    /// So many that woke themselves are next.
    turns: Cell<usize>,
}

/// Tasks in the order in which they came.
#[derive(Default)]
struct Line {
    first: Cell<Option<TaskPtr>>,
    last: Cell<Option<TaskPtr>>,
}

impl RunQueue {
    #[inline]
    pub(crate) fn push(&self, runnable: Runnable) {
        self.woken.push(runnable);
    }

    /// Appends a task that woke itself while it was polled.
    #[inline]
    pub(crate) fn push_yielded(&self, runnable: Runnable) {
        self.yielded_len.update(|len| len + 1);
        self.yielded.push(runnable);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.woken.first.get().is_none() {
            // They have all turns that there are, and none is due to them afterwards.
            self.turns.set(0);
            return self.pop_yielded();
        }
        match self.yielded_len.get() {
            0 => self.woken.pop(),
            yielded => self.pop_of_both(yielded),
        }
    }

    #[inline]
    fn pop_yielded(&self) -> Option<Runnable> {
        let task = self.yielded.pop()?;
        self.yielded_len.update(|len| len - 1);
        Some(task)
    }

    /// Takes out the next task where there are woken ones and so many that woke themselves. Out of line: where
    /// all tasks yield, or none does, it is not called.
    #[inline(never)]
    fn pop_of_both(&self, yielded: usize) -> Option<Runnable> {
        if let Some(left) = self.turns.get().checked_sub(1) {
            self.turns.set(left);
            return self.pop_yielded();
        }
        let last = self.last_before.get().or(self.woken.last.get());
        let task = self.woken.pop()?;
        let before = self.before.get() + 1;
        if Some(task.0) == last {
            self.last_before.set(None);
            self.before.set(0);
            self.turns.set(before.min(1 + yielded / 8));
        } else {
            self.last_before.set(last);
            self.before.set(before);
        }
        Some(task)
    }

    /// Takes out one of the first `most`: the one that `choose` says, told how many there are.
    pub(crate) fn pop_any(
        &self,
        most: usize,
        choose: impl FnOnce(usize) -> usize,
    ) -> Option<Runnable> {
        let next = |task: &TaskPtr| task.header().next_runnable.get();
        let in_line = || std::iter::successors(self.woken.first.get(), next);
        let count = in_line().take(most).count();
        let place = if count > 1 { choose(count) } else { 0 };
        if place == 0 {
            return self.pop();
        }
        let before = in_line().nth(place - 1)?;
        let task = next(&before)?;
        let after = task.header().next_runnable.take();
        before.header().next_runnable.set(after);
        if after.is_none() {
            self.woken.last.set(Some(before));
        }
        Some(Runnable(task))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Both in one test: this is asked before and after each poll.
        self.woken.first.get().is_none() & self.yielded.first.get().is_none()
    }
}

impl Line {
    #[inline]
    fn push(&self, runnable: Runnable) {
        let task = runnable.0;
        mem::forget(runnable);
        match self.last.replace(Some(task)) {
            Some(last) => last.header().next_runnable.set(Some(task)),
            None => self.first.set(Some(task)),
        }
    }

    #[inline]
    fn pop(&self) -> Option<Runnable> {
        let task = self.first.get()?;
        let next = task.header().next_runnable.take();
        self.first.set(next);
        match next {
            None => self.last.set(None),
            Some(next) => {
                // Loaded while this task runs.
                if tuning::get().tasks_prefetched > 0 {
                    next.prefetch();
                }
            }
        }
        Some(Runnable(task))
    }
}

impl Drop for RunQueue {
    fn drop(&mut self) {
        while let Some(runnable) = self.pop() {
            drop(runnable);
        }
    }
}

impl_debug! { RunQueue, it: is_empty: it.is_empty() }

/// The executor's references to its tasks that are not over, and the memory of all. Those left when it
/// is dropped are shut down.
///
/// A task is marked as listed, and found by [a look at all cells](CellStore::visit): that happens at
/// the end of an executor alone, and up to then joining and leaving touch no other task. Only the few
/// that are too large for a cell are listed one by one.
pub(crate) struct TaskList {
    cells: Box<CellStore>,
    len: Cell<usize>,
    large: RefCell<Vec<TaskPtr>>,
}

impl TaskList {
    pub(crate) fn new() -> Self {
        TaskList {
            cells: CellStore::new(),
            len: Cell::new(0),
            large: RefCell::default(),
        }
    }

    /// Where the cells of the tasks are.
    #[inline]
    pub(crate) fn cells(&self) -> &CellStore {
        &self.cells
    }

    /// Enters a task that was spawned with [`cells`](Self::cells).
    #[inline]
    pub(crate) fn push(&self, task: OwnedTask) {
        let task = into_pointer(task);
        self.len.update(|len| len + 1);
        let header = task.header();
        header.mark(LISTED);
        if header.is_marked(LARGE) {
            self.push_large(task);
        }
    }

    #[cold]
    fn push_large(&self, task: TaskPtr) {
        let mut large = self.large.borrow_mut();
        let place = u32::try_from(large.len()).expect("fewer than 2³² large tasks fit into memory");
        task.header().place.set(place);
        large.push(task);
    }

    /// Runs a task, which is in this list unless it is over. `run` calls [`Runnable::run`], and returns its result. If that is its end, also by a panic, takes it off the list and calls
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

    /// Takes all tasks off the list, in no particular order.
    pub(crate) fn take_all(&self) -> Vec<OwnedTask> {
        let taken = self.all();
        self.large.take();
        taken.iter().for_each(|task| task.header().unmark(LISTED));
        self.len.set(0);
        taken.into_iter().map(OwnedTask).collect()
    }

    /// The tasks in the list, in no particular order.
    pub(super) fn all(&self) -> Vec<TaskPtr> {
        let mut all = Vec::with_capacity(self.len.get());
        all.extend_from_slice(&self.large.borrow());
        self.cells.visit(|cell| {
            // SAFETY: a cell that is or was in use, by a task of this thread.
            all.extend(unsafe { TaskPtr::listed_in(cell) });
        });
        all
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    #[inline]
    fn remove(&self, task: TaskPtr) -> Option<OwnedTask> {
        let header = task.header();
        if !header.is_marked(LISTED) {
            return None;
        }
        header.unmark(LISTED);
        self.len.update(|len| len - 1);
        if header.is_marked(LARGE) {
            self.remove_large(header.place.get());
        }
        Some(OwnedTask(task))
    }

    #[cold]
    fn remove_large(&self, place: u32) {
        let mut large = self.large.borrow_mut();
        large.swap_remove(place as usize);
        if let Some(moved) = large.get(place as usize) {
            moved.header().place.set(place);
        }
        // A peak leaves nothing behind.
        let capacity = large.capacity();
        if large.len() < capacity / 4 {
            large.shrink_to(capacity / 2);
        }
    }
}

impl Drop for TaskList {
    fn drop(&mut self) {
        while !self.is_empty() {
            drop(self.take_all());
        }
    }
}

fn into_pointer(task: OwnedTask) -> TaskPtr {
    let pointer = task.0;
    mem::forget(task);
    pointer
}
