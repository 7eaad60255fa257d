//! Detached tasks, groups of tasks, and values that belong to a task.
//!
//! [`JoinHandle`] awaits or cancels a detached task. [`JoinSet`] holds many tasks and gives their
//! outputs as they are done. [`LocalKey`], declared with [`task_local!`](crate::task_local), is a
//! value that all code of a task can see.
//!
//! ```
//! use glommio::{LocalExecutor, spawn_local, task::JoinSet};
//!
//! LocalExecutor::default().run(async {
//!     let handle = spawn_local(async { 1 }).detach(); // runs on, also if the handle is dropped
//!     assert_eq!(handle.await, Some(1));
//!
//!     let mut squares = JoinSet::new();
//!     for number in 1..=3 {
//!         squares.spawn(async move { number * number });
//!     }
//!     let mut sum = 0;
//!     while let Some(square) = squares.join_next().await {
//!         sum += square.expect("no task was cancelled");
//!     }
//!     assert_eq!(sum, 14);
//! });
//! ```
//!
//! A task is a future on the heap that its executor polls, always on the same thread, and that any
//! thread may wake. It ends when the future is ready, when it is cancelled, when it panics, or with
//! its executor. A detached task also ends when neither a handle nor a waker is left. In each case
//! the future is dropped on the executor's thread before the awaiting task is woken.
//!
//! Waking a task on its own thread costs a queue entry, on another thread a remote wake for the
//! owner, one per task however often it is woken. A waker that outlives its executor does nothing.

#![allow(unsafe_code)]

// How the module is built
// =====================
//
// This module owns the task cell. It does not know executors: where a task waits for its turn, and
// how a remote wake reaches the owner's thread, comes in as a `Schedule`.
//
// ```text
//                          ┌───────────────────────── wake ──────────────────────┐
//                          ▼                                                     │
//   spawn ──▶ Runnable in a run queue ── run ──▶ polled ── Pending ──▶ waits for a waker
//                          ▲                       │ │                           │
//                          └── woken meanwhile ────┘ │ Ready, panic              │ cancel, or
//                                                    ▼                           ▼ no waker left
//             JoinHandle ◀── output ───────── future dropped ◀── run ──── closed, scheduled
//                          (awaiter woken)                                 once more
// ```
//
// References to a task, and on which thread they live:
//
// | reference | means | thread | kept as |
// |---|---|---|---|
// | `OwnedTask` | the executor knows the task | owner | flag |
// | `Runnable` | it waits for its turn | owner | flag |
// | `JoinHandle` | the output may be taken | owner | flag |
// | a poll or destructor in progress | | owner | flag |
// | `Waker` | it may be woken | any | counted |
// | `RemoteWake` | it is on its way to the owner | any | counted |
//
// Invariants
// ----------
//
// The notes in this module cite them by number.
//
// **1. Plain state is touched by one thread.** State, awaiter, links and stage are reached through
// `OwnedTask`, `Runnable` and `JoinHandle`, which cannot leave the thread that spawned the task,
// and by waker functions and `RemoteWake::deliver` where `Schedule` says that they are on it.
// Everything else a waker does touches only the atomic word, the vtable and the schedule.
//
// **2. A live task is registered.** `LIVE` is cleared by the `run` that answers true or unwinds, by
// dropping a `Runnable`, or by `shutdown`; and dropping an `OwnedTask` shuts its task down first.
// So as long as the future may be polled, the executor's reference keeps the task.
//
// **3. User code is destroyed by the owner.** While `FUTURE` or `OUTPUT` is set, one of the owner's
// holds is: the future's task is live, or running, or held by the `Runnable` or handle that is just
// closing it; an output is stored only for a handle, which drops it. The word's `OWNED` bit is
// cleared only when all holds are gone, and no thread frees the memory before. So whoever frees it
// finds neither future nor output nor awaiter, only the schedule.
//
// **4. Memory is freed once, after every access.** Each reference is given up by a release
// operation on the word; the one that leaves no reference acquires and frees. `OWNED` alone in the
// word means that no other thread can reach the task, since references are made only from
// references: the owner then frees it without an atomic write.
//
// **5. A wake is not lost.** On the owner thread it sets `SCHEDULED`, and a `Runnable` is made at
// once or after the poll in progress. Elsewhere it marks the word, and either sends a remote wake
// or finds one under way. The owner clears the mark before it schedules, by a read-modify-write
// that reads from every wake before it in the word's order; so the poll that follows sees what
// these wakers published, and a later wake sends a new remote wake.
//
// **6. A task that nobody can wake is closed.** It is live, not scheduled, without handle, and
// nobody outside refers to it. Three events can make that come true: a poll ends, the handle is
// dropped, the last counted reference goes. The first two happen on the owner thread and look. The
// third looks if it happens on the owner thread; if not, it leaves a remote wake, and delivering
// that looks.
//
// **7. Remote wakes are bounded by tasks.** A remote wake is sent only where none is under way. So
// the link in the header belongs to the one that is, from `RemoteWake` to `RemoteWake`: the thread
// that sends the next has seen, in the word, that the owner has delivered the last.
//
// **8. A panic leaves the cell whole.** A flag that says what the stage holds is cleared before the
// destructor is called, and what must follow user code (waking the awaiter, giving up a hold)
// stands in a destructor of ours. Of two panics at once the second is contained (`panic.rs`).
//
// Cost
// ----
//
// Waking and polling on the owner thread change plain memory only. Cloning and dropping a waker is
// one atomic operation each. A foreign wake is one, or two with its remote wake, besides the
// sending. Spawning takes one cell: eight words, the schedule, and the future or its output.

mod biased;
mod cells;
#[cfg(feature = "debugging")]
#[cfg_attr(docsrs, doc(cfg(feature = "debugging")))]
pub mod debugging;
mod header;
mod join_handle;
mod join_set;
mod lists;
mod local;
#[cfg(feature = "debugging")]
mod look;
mod raw;
mod runnable;
mod state;
#[cfg(test)]
mod tests;
mod waker;

use std::future::Future;
use std::marker::PhantomData;

pub(crate) use biased::{Biased, BiasedRef, Local};
pub(crate) use cells::CellStore;
use header::{BORROWS, Hold, TaskPtr};
pub use join_handle::JoinHandle;
pub use join_set::{AbortHandle, JoinError, JoinSet};
pub(crate) use lists::{RunQueue, TaskList};
pub(crate) use local::OtherTask;
pub use local::{AccessError, LocalKey, TaskLocalFuture};
#[doc(hidden)]
pub use local::{Bound, Slot};
#[cfg(feature = "debugging")]
pub(crate) use look::{Doing, SeenTask};
pub(crate) use runnable::{RemoteWake, Runnable, Schedule};
use state::{LIVE, REGISTERED};

/// The name that 0.9 exports for its inner task. No program can make one or is given one: what
/// `spawn_local` returns is [`glommio::Task`](crate::Task).
#[derive(Debug)]
pub struct Task {
    _stays_on_its_thread: PhantomData<*const ()>,
}

/// Makes a task of `future`, scheduled for the first time: the caller runs it, or queues it.
///
/// `cells` is the store of the owner that `schedule` names, and lives for as long as that can be
/// current: another store would be unsound. The executor keeps the [`OwnedTask`] until a
/// [`Runnable::run`] of the task answers true or unwinds, or until it dies.
pub(crate) fn spawn<F, S>(
    future: F,
    schedule: S,
    cells: &CellStore,
) -> (Runnable, JoinHandle<F::Output>, OwnedTask)
where
    F: Future + 'static,
    S: Schedule,
{
    // SAFETY: the future borrows nothing.
    unsafe { spawn_unchecked(future, schedule, cells) }
}

/// As [`spawn`], for a future that borrows.
///
/// # Safety
/// What the future borrows outlives the future: it has completed, or was dropped by
/// [`JoinHandle::cancel_now`] or [`OwnedTask::shutdown`], before the borrowed things go away. The
/// same holds for its output until that is taken or the handle is dropped.
pub(crate) unsafe fn spawn_unchecked<F, S>(
    future: F,
    schedule: S,
    cells: &CellStore,
) -> (Runnable, JoinHandle<F::Output>, OwnedTask)
where
    F: Future,
    S: Schedule,
{
    let task = raw::allocate(future, schedule, cells);
    // SAFETY: a new task is scheduled, has a handle and is registered; these are the three.
    let handle = unsafe { JoinHandle::new(task) };
    (Runnable(task), handle, OwnedTask(task))
}

/// The executor's own reference to a task that is not over.
///
/// Dropping it shuts the task down, if it is not over.
pub(crate) struct OwnedTask(TaskPtr);

impl OwnedTask {
    /// Notes in which queue the task waits for its turn; zero until then.
    ///
    /// # Panics
    /// Panics if `queue` does not fit 32 bits.
    pub(crate) fn set_queue(&self, queue: usize) {
        self.0.header().set_queue(queue);
    }

    pub(crate) fn queue(&self) -> usize {
        self.0.header().queue()
    }

    /// The future borrows: a panic of it is never [isolated](Runnable::run_isolated).
    pub(crate) fn set_borrows(&self) {
        self.0.header().mark(BORROWS);
    }

    /// The executor is about to die: drops future or output now and wakes the awaiter, which sees
    /// `None`. A future that is being polled is dropped at the end of that poll instead.
    ///
    /// Afterwards wakes do nothing. A `Runnable` that is still queued may be dropped or run;
    /// running it answers false.
    pub(crate) fn shutdown(&self) {
        self.0.shutdown();
    }
}

impl Drop for OwnedTask {
    #[inline]
    fn drop(&mut self) {
        let _registered = Hold(self.0, REGISTERED);
        if self.0.state().has(LIVE) {
            self.0.shutdown();
        }
    }
}

impl_debug! { OwnedTask, it: task: it.0.as_ptr() }
