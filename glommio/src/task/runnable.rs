//! What a task hands to its executor: its turn, and wakes from other threads.

#![allow(unsafe_code)]

use std::mem;
use std::panic::resume_unwind;
use std::ptr::NonNull;

use super::header::{BORROWS, PANICKED, TaskPtr};
use super::state::LIVE;
use crate::mailbox::{Link, Linked};
use crate::panic::{self, Payload};

/// What a task asks of its executor. One value lies in each task.
///
/// Dropped with the task's memory, by whichever thread is last, possibly long after the executor.
pub(crate) trait Schedule: Send + Sync + 'static {
    /// Whether this is the owner's thread and the owner is current on it.
    ///
    /// Only then is the task's plain state touched: answering true on another thread than the one
    /// that spawned the task is unsound. Must work at any time, also while thread-locals are being
    /// destroyed (answer false), and must not panic.
    fn is_owner(&self) -> bool;

    /// Owner, current: appends to the run queue. Must not run the task inside this call. It
    /// `has_yielded` if it was woken while it was polled, as a rule by itself.
    fn schedule(&self, runnable: Runnable, has_yielded: bool);

    /// Any thread: hands the remote wake to the owner, which will [`deliver`](RemoteWake::deliver)
    /// it. If the owner is gone for good, drops the remote wake; no other will be sent for this
    /// task then.
    fn send(&self, wake: RemoteWake);
}

/// A task whose turn will come. At most one exists per task.
///
/// Dropping it without running closes the task: the future is dropped, waiters see `None`.
pub(crate) struct Runnable(pub(super) TaskPtr);

impl Runnable {
    /// Polls the task once, or drops its future if it was cancelled.
    ///
    /// True: the task is over, and the caller drops its [`OwnedTask`]. That happens once per task,
    /// unless `shutdown` ended it. A panic in the future or a destructor of the task unwinds out of
    /// here; then the task is over as well.
    pub(crate) fn run(self) -> bool {
        let task = self.0;
        mem::forget(self);
        // SAFETY: owner thread, since `Runnable` does not leave it; the reference is handed over.
        unsafe { (task.header().vtable.run)(task) }
    }

    /// As [`run`](Self::run), but a panic of the poll ends here: it goes to `panicked`, then to the
    /// join handle, if there is one. A panic of a destructor unwinds, and so does one of a task that
    /// [borrows](OwnedTask::set_borrows).
    ///
    /// The executor has the task's [`OwnedTask`], as invariant 2 says, and keeps it during the call.
    pub(crate) fn run_isolated(self, panicked: impl FnOnce(&Payload)) -> bool {
        let task = self.0;
        if !task.state().has(LIVE) || task.header().is_marked(BORROWS) {
            return self.run();
        }
        match panic::catch(|| self.run()) {
            Ok(is_over) => is_over,
            Err(payload) if task.header().is_marked(PANICKED) => {
                panicked(&payload);
                task.keep_panic(payload);
                true
            }
            Err(payload) => resume_unwind(payload),
        }
    }

    /// The queue that the task was [put into](OwnedTask::set_queue).
    #[inline]
    pub(crate) fn queue(&self) -> usize {
        self.0.header().queue()
    }

    /// What the data pointer of each of the task's own wakers is.
    #[inline]
    pub(crate) fn waker_data(&self) -> *const () {
        self.0.as_ptr().cast_const().cast()
    }

    /// Notes the number of the poll that is about to begin. Returns what was noted at the poll
    /// before, or zero.
    #[inline]
    pub(crate) fn number_poll(&self, number: u32) -> u32 {
        self.0.header().number_poll(number)
    }
}

impl Drop for Runnable {
    fn drop(&mut self) {
        self.0.run_closed();
    }
}

impl_debug! { Runnable, it: task: it.0.as_ptr() }

/// A wake from another thread to the owner of a task: it was woken, or its last waker is gone.
///
/// Dropping it tells the task that its owner is gone for good; it frees memory, and runs no user
/// code.
pub(crate) struct RemoteWake(pub(super) TaskPtr);

// SAFETY: a remote wake is a counted reference. Dropping it touches the word, and perhaps frees
// bare memory and the schedule (invariant 3), which may happen on any thread. `deliver` is the
// owner's.
unsafe impl Send for RemoteWake {}

// SAFETY: a remote wake is a reference to its task, which keeps the link's memory, and has the link
// to itself (invariant 7).
unsafe impl Linked for RemoteWake {
    fn into_link(self) -> NonNull<Link> {
        let task = self.0;
        mem::forget(self);
        task.link()
    }

    unsafe fn from_link(link: NonNull<Link>) -> Self {
        // SAFETY: promised by the caller.
        RemoteWake(unsafe { TaskPtr::from_link(link) })
    }
}

impl RemoteWake {
    /// Owner, current: schedules the task, or disposes of it if nothing can ever wake it.
    pub(crate) fn deliver(self) {
        let task = self.0;
        mem::forget(self);
        let delivered = task.header().word.deliver();
        if delivered.is_last {
            // SAFETY: the last reference is gone (invariant 4).
            unsafe { task.free() };
        } else if delivered.is_owned {
            // The remote wake's reference is given up, but the owner's side remains, and ends only
            // on this thread.
            if delivered.is_woken {
                // SAFETY: owner thread, as this function demands; the owner's side keeps the task.
                unsafe { (task.header().vtable.schedule)(task) };
            } else {
                task.abandon_if_unreachable();
            }
        }
    }
}

impl Drop for RemoteWake {
    fn drop(&mut self) {
        if self.0.header().word.undelivered() {
            // SAFETY: the last reference is gone (invariant 4).
            unsafe { self.0.free() };
        }
    }
}

impl_debug! { RemoteWake, _it: ; .. }
