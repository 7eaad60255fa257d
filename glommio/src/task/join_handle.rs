//! The handle of a spawned task.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::task::{Context, Poll};

use super::header::{AWAITED, Hold, PANICKED, TaskPtr};
use super::state::{FUTURE, HANDLE, LIVE, OUTPUT, RUNNING};
use crate::noted::{Awaited, waits_for};
use crate::panic::Fenced;

/// Awaits the output of a detached task, or cancels the task.
///
/// Awaiting gives `Some` with the output, or `None` if the task was cancelled, panicked, or went
/// down with its executor; `None` again if polled after that. A panic that was
/// [isolated](crate::PanicPolicy::Isolate) goes on in the task that awaits the handle. Only the last task that polled the
/// handle is woken. Dropping the handle changes nothing for the task: it runs on.
///
/// # Cancel safety
/// Waiting for the handle may be given up at any point; the output stays until it is taken or the
/// handle is dropped.
///
/// # Examples
/// ```
/// use glommio::{LocalExecutor, spawn_local, timer::sleep};
/// use std::time::Duration;
///
/// LocalExecutor::default().run(async {
///     let short = spawn_local(async { 1 + 2 }).detach();
///     let long = spawn_local(sleep(Duration::from_secs(3600))).detach();
///     assert_eq!(short.await, Some(3));
///     long.cancel();
///     assert_eq!(long.await, None);
/// });
/// ```
pub struct JoinHandle<R> {
    /// Holds the task by `HANDLE`. The pointer also keeps the handle on its thread, which is the
    /// owner's: it may look at the state.
    task: TaskPtr,
    _output: PhantomData<*const R>,
}

impl<R> JoinHandle<R> {
    /// # Safety
    /// `HANDLE` is set and belongs to this handle; the task's output is an `R`.
    pub(super) unsafe fn new(task: TaskPtr) -> Self {
        Self {
            task,
            _output: PhantomData,
        }
    }

    /// Requests that the task be cancelled.
    ///
    /// Its future is not polled again and is dropped when the scheduler reaches the task; waiters
    /// see `None` after that. A task that cancels itself finishes the poll in progress, and its
    /// output, if that poll ends with one, is discarded. No effect on a task that is over.
    pub fn cancel(&self) {
        self.task.cancel();
    }

    /// As [`cancel`](Self::cancel), but the future has been dropped on return, unless it is being
    /// polled right now: then it is dropped at the end of that poll.
    pub(crate) fn cancel_now(&self) {
        self.task.cancel_now();
    }

    /// Whether the task is over: awaiting the handle would not wait.
    pub(crate) fn is_finished(&self) -> bool {
        !self.task.state().has(FUTURE | RUNNING)
    }

    /// Whether this is the first poll since the output was taken, or of all.
    pub(crate) fn is_first_poll(&self) -> bool {
        let header = self.task.header();
        let is_first = !header.is_marked(AWAITED);
        header.mark(AWAITED);
        is_first
    }

    /// One poll of the handle. It does not count in the budget of the task, which is further up.
    pub(crate) fn poll_output(&mut self, cx: &Context<'_>) -> Poll<Option<R>> {
        let header = self.task.header();
        if !self.is_finished() {
            header.set_awaiter(cx.waker());
        }
        // Looked at anew: cloning a waker is user code.
        if header.state.has(OUTPUT) {
            if header.is_marked(PANICKED) {
                resume_unwind(self.task.take_panic());
            }
            header.state.remove(OUTPUT);
            header.unmark(AWAITED);
            // SAFETY: (1) `HANDLE` keeps the task, and this is its owner thread (invariant 1). (2)
            // `OUTPUT` said that the stage holds an output, an `R` by the contract of
            // `new`; now no other thread takes it.
            let output = unsafe { (header.vtable.output)(self.task).cast::<R>().read() };
            Poll::Ready(Some(output))
        } else if self.is_finished() {
            header.unmark(AWAITED);
            Poll::Ready(None)
        } else {
            waits_for(Poll::Pending, || Awaited::Task(self.task.id()))
        }
    }
}

impl<R> Drop for JoinHandle<R> {
    fn drop(&mut self) {
        // User code, and so dropped last, also if the output's destructor panics.
        let _awaiter = Fenced::new(self.task.header().take_awaiter());
        let is_live = self.task.state().has(LIVE);
        {
            let _handle = Hold(self.task, HANDLE);
            if self.task.state().has(OUTPUT) {
                self.task.drop_output();
            }
        }
        if is_live {
            // The executor's reference keeps a live task (invariant 2).
            self.task.abandon_if_unreachable();
        }
    }
}

impl_debug! { [R] JoinHandle[R], it: is_finished: it.is_finished(); .. }
