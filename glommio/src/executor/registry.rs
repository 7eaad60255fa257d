//! The tasks of one executor that are not over, and those that are being polled for the first time.

use std::cell::Cell;

use super::queues::Queues;
use crate::panic::FirstPanic;
use crate::shares::TaskQueueHandle;
#[cfg(feature = "debugging")]
use crate::task::SeenTask;
use crate::task::{CellStore, OwnedTask, Runnable, TaskList};

/// Spawns that poll at once nest on the native stack; deeper ones than this are queued.
const MAX_SPAWN_DEPTH: u32 = 32;

/// The futures on the stack are no larger than this in all, if several are nested: each takes as much
/// several times, in code that is not optimised.
const MAX_NESTED_BYTES: usize = 128 << 10;

/// Each task in the list is counted in its queue's `unfinished`. One that is polled inside the call
/// that spawns it comes there only if that poll did not end it; until then the queue cannot go, for
/// it is the current one.
pub(super) struct TaskRegistry {
    /// Those that are not over, but for the one that is being polled for the first time.
    list: TaskList,
    /// How deep spawns that poll at once are nested.
    nesting: Nesting,
    is_closing: Cell<bool>,
}

/// The first polls on the native stack, each inside the one before.
#[derive(Default)]
struct Nesting {
    depth: Cell<u32>,
    /// Of the futures.
    bytes: Cell<usize>,
}

impl TaskRegistry {
    pub(super) fn new() -> Self {
        TaskRegistry {
            list: TaskList::new(),
            nesting: Nesting::default(),
            is_closing: Cell::new(false),
        }
    }

    /// Where the cells of new tasks are.
    #[inline]
    pub(super) fn cells(&self) -> &CellStore {
        self.list.cells()
    }

    /// Whether a future of that size may be polled inside the call that spawns it.
    #[inline]
    pub(super) fn may_nest(&self, future_bytes: usize) -> bool {
        if self.is_closing.get() {
            return false;
        }
        let depth = self.nesting.depth.get();
        let bytes = self.nesting.bytes.get();
        depth == 0 || depth < MAX_SPAWN_DEPTH && bytes + future_bytes <= MAX_NESTED_BYTES
    }

    /// Counts a future of that size among those on the stack.
    #[inline]
    pub(super) fn nest(&self, future_bytes: usize) -> impl Drop {
        struct Nested<'a>(&'a Nesting, usize);
        impl Drop for Nested<'_> {
            #[inline]
            fn drop(&mut self) {
                self.0.depth.update(|depth| depth - 1);
                self.0.bytes.update(|bytes| bytes - self.1);
            }
        }
        self.nesting.depth.update(|depth| depth + 1);
        self.nesting.bytes.update(|bytes| bytes + future_bytes);
        Nested(&self.nesting, future_bytes)
    }

    /// Remembers a task that is not over.
    pub(super) fn register(&self, task: OwnedTask, queue: TaskQueueHandle, queues: &Queues) {
        let queue = queues
            .at(queue.index())
            .expect("a queue is not removed while a task is spawned into it");
        queue.unfinished.update(|tasks| tasks + 1);
        self.list.push(task);
    }

    /// Polls a task of the list by `run`, and calls `over` if that was its last poll, which it
    /// returns.
    #[inline]
    pub(super) fn run(
        &self,
        task: Runnable,
        run: impl FnOnce(Runnable) -> bool,
        over: impl Fn(),
    ) -> bool {
        self.list.run(task, run, over)
    }

    #[cfg(feature = "debugging")]
    pub(super) fn look(&self) -> Vec<SeenTask> {
        self.list.look()
    }

    pub(super) fn are_over(&self) -> bool {
        self.list.is_empty()
    }

    /// No new task is polled by the one that spawns it.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
    }

    /// Drops all futures. Keeps the first panic of a destructor in `panics`.
    pub(super) fn drop_all(&self, queues: &Queues, panics: &mut FirstPanic) {
        // Destructors may spawn: what they spawn is dropped in the next pass.
        while !self.list.is_empty() {
            for task in self.list.take_all() {
                panics.catch(|| task.shutdown());
                let queue = queues.at(task.queue());
                let queue = queue.expect("a queue is not removed before its last task is over");
                queue.unfinished.update(|tasks| tasks - 1);
            }
        }
    }
}
