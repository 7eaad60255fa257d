//! Spawning, and what a user holds of a task.

#![allow(unsafe_code)]

use std::future::Future;
use std::io::Write;
use std::marker::PhantomData;
use std::pin::Pin;
use std::process;
use std::task::{Context, Poll, Waker};

use super::core::Core;
use super::scheduler::Scheduler;
use crate::reactor::TaskPoll;
use crate::reactor::budget::{self, Budget};
use crate::shares::TaskQueueHandle;
use crate::task::{self, JoinHandle, OtherTask, OwnedTask, Runnable};

/// When a new task is first polled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Inside the call that spawns it, unless such calls are nested too deeply.
    AtOnce,
    /// When its queue comes to it.
    Queued,
}

/// A task that is not set going yet.
pub(super) struct NewTask<T> {
    runnable: Runnable,
    handle: JoinHandle<T>,
    owned: OwnedTask,
    future_bytes: usize,
}

impl<T> NewTask<T> {
    /// Its future has so many bytes, in a box.
    pub(super) fn of_bytes(self, future_bytes: usize) -> Self {
        NewTask {
            future_bytes,
            ..self
        }
    }
}

/// A future that is boxed before it goes through functions that would keep copies of it.
pub(super) type BoxedFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Futures from this size on are boxed where they go through several functions.
pub(super) const LARGE_BYTES: usize = 8 << 10;

/// Futures may be large, and each function that one passes through may keep a copy on the stack, up
/// to the end of the first poll. So what spawns makes the task first of all, and has only the task
/// from then on.
impl Core {
    #[inline]
    pub(super) fn task_of<F>(&self, future: F) -> NewTask<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let (runnable, handle, owned) = task::spawn(future, self.scheduler(), self.tasks.cells());
        NewTask {
            runnable,
            handle,
            owned,
            future_bytes: size_of::<F>(),
        }
    }

    /// As [`task_of`](Self::task_of), for a future that borrows.
    ///
    /// # Safety
    ///
    /// The future and its output are dropped, with the help of the handle, before anything that they
    /// borrow is.
    #[inline]
    pub(super) unsafe fn scoped_task_of<F: Future>(&self, future: F) -> NewTask<F::Output> {
        // SAFETY: the caller promises what `spawn_unchecked` wants.
        let (runnable, handle, owned) =
            unsafe { task::spawn_unchecked(future, self.scheduler(), self.tasks.cells()) };
        owned.set_borrows();
        NewTask {
            runnable,
            handle,
            owned,
            future_bytes: size_of::<F>(),
        }
    }

    /// Runs `future` as a task of the default queue until it is done.
    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        /// Sees to it that the future is gone when `run` is left, also by another task's panic.
        struct Main<T>(JoinHandle<T>);
        impl<T> Drop for Main<T> {
            fn drop(&mut self) {
                self.0.cancel_now();
            }
        }
        let queue = TaskQueueHandle::default();
        // SAFETY: `Main` lives until the end of this function and drops the future when it is
        // dropped, at the latest: on this thread, on which nothing is being polled then. The output
        // is taken out below, or dropped with the handle.
        let task = unsafe { self.scoped_task_of(future) };
        let mut main = Main(self.start(task, queue, Start::Queued));
        self.run_until(|| main.0.is_finished());
        match main.0.poll_output(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(output)) => output,
            Poll::Ready(None) | Poll::Pending => {
                unreachable!("the main task was finished, and only this call can cancel it")
            }
        }
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler::new(self.remote.refer())
    }

    /// Sets a new task of `queue`, which exists, going.
    #[inline]
    pub(super) fn start<T>(
        &self,
        task: NewTask<T>,
        queue: TaskQueueHandle,
        start: Start,
    ) -> JoinHandle<T> {
        let NewTask {
            runnable,
            handle,
            owned,
            future_bytes,
        } = task;
        owned.set_queue(queue.index());
        match start {
            Start::AtOnce if self.tasks.may_nest(future_bytes) => {
                let _nested = self.tasks.nest(future_bytes);
                self.poll_first(runnable, owned, queue);
            }
            _ => {
                self.tasks.register(owned, queue, &self.queues);
                self.enqueue(runnable, false);
            }
        }
        handle
    }

    #[inline(always)]
    fn poll_first(&self, runnable: Runnable, task: OwnedTask, queue: TaskQueueHandle) {
        struct Inside<'a> {
            core: &'a Core,
            outer: TaskPoll,
            outer_budget: Budget,
        }
        impl Drop for Inside<'_> {
            #[inline]
            fn drop(&mut self) {
                self.core.reactor.polls().resume(self.outer);
                budget::resume(self.outer_budget);
            }
        }
        let _inside = Inside {
            core: self,
            outer: self.begin_poll(&runnable, self.progress.polled_inside()),
            outer_budget: budget::begin(true),
        };
        let _other_task = OtherTask::begin();
        // Many a task is over with its first poll, also by a panic, and is never registered: during
        // this poll `task` is the executor's reference to it.
        let is_over = match self.queues.isolating(queue) {
            None => runnable.run(),
            Some(queue) => self.run_isolated(runnable, &queue),
        };
        if !is_over {
            self.tasks.register(task, queue, &self.queues);
        }
    }
}

/// A spawned task. Await it for its output.
///
/// **Dropping a `Task` cancels it**: the future is not polled again and is dropped on the
/// executor's thread when the scheduler next comes to it. Call [`detach`](Self::detach) to let it
/// run on.
///
/// Awaiting panics if the task panicked; if the panic was [isolated](crate::PanicPolicy::Isolate), with
/// its payload.
#[must_use = "dropping a `Task` cancels it: await it, keep it, or call `.detach()` to let it run on"]
#[derive(Debug)]
pub struct Task<T>(Option<JoinHandle<T>>);

impl<T> Task<T> {
    pub(super) fn new(handle: JoinHandle<T>) -> Self {
        Task(Some(handle))
    }

    /// Lets the task run on by itself. The returned handle can be awaited for the output or
    /// dropped, which changes nothing.
    pub fn detach(mut self) -> JoinHandle<T> {
        self.0.take().expect("only taken here and in `cancel`")
    }

    /// Cancels the task and waits until its future has been dropped. The output if it was done
    /// before.
    ///
    /// # Panics
    ///
    /// With the payload of the panic, if the task has panicked and that was
    /// [isolated](crate::PanicPolicy::Isolate).
    ///
    /// # Cancel safety
    ///
    /// Dropping the returned future at any point, even unpolled, still cancels the task.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::spawn_local;
    ///
    /// assert_eq!(spawn_local(std::future::pending::<()>()).cancel().await, None);
    /// assert_eq!(spawn_local(async { 7 }).cancel().await, Some(7), "it was done before");
    /// assert_eq!(spawn_local(async { 7 }).detach().await, Some(7));
    /// # });
    /// ```
    pub async fn cancel(self) -> Option<T> {
        cancel(self.0.as_ref());
        let mut this = self;
        match &mut this.0 {
            Some(handle) => handle.await,
            None => None,
        }
    }
}

/// The first poll counts in the budget: a task may be done when it is spawned. A handle that was
/// waited for is ready without leave, also beside a future that takes all there is in each poll.
impl<R> Future for JoinHandle<R> {
    type Output = Option<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<R>> {
        if !self.is_first_poll() {
            return self.poll_output(cx);
        }
        budget::counted(cx, |cx| self.poll_output(cx))
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        poll_output(self.0.as_mut(), cx)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        cancel(self.0.as_ref());
    }
}

/// A spawned task whose future may borrow. Await it for its output.
///
/// Dropping it cancels the task and drops its future before the drop returns. Awaiting panics if
/// the task panicked.
///
/// # Aborts
///
/// Dropping it while its own future is being polled, or dropped, further up the stack ends the
/// process with a message: that future may borrow what its owner is about to free.
#[must_use = "dropping a `ScopedTask` cancels it: await it"]
#[derive(Debug)]
pub struct ScopedTask<'a, T> {
    handle: JoinHandle<T>,
    /// What the future borrows outlives this; invariant, as the future may also write to it.
    _borrows: PhantomData<&'a mut &'a ()>,
}

impl<T> ScopedTask<'_, T> {
    pub(super) fn new(handle: JoinHandle<T>) -> Self {
        ScopedTask {
            handle,
            _borrows: PhantomData,
        }
    }

    /// As [`Task::cancel`].
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// let lines = vec!["one", "two"];
    /// let endless = async {
    ///     let _borrowed = &lines;
    ///     std::future::pending::<()>().await
    /// };
    /// // SAFETY: the task is cancelled here, before `lines` goes away, and is not forgotten.
    /// let task = unsafe { glommio::spawn_scoped_local(endless) };
    /// assert_eq!(task.cancel().await, None);
    /// drop(lines);
    /// # });
    /// ```
    pub async fn cancel(mut self) -> Option<T> {
        self.handle.cancel();
        (&mut self.handle).await
    }
}

impl<T> Future for ScopedTask<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        poll_output(Some(&mut self.handle), cx)
    }
}

impl<T> Drop for ScopedTask<'_, T> {
    fn drop(&mut self) {
        self.handle.cancel_now();
        if !self.handle.is_finished() {
            abort_in_use();
        }
    }
}

/// A panic would not do: it can be caught, or unwinds through the code that borrows.
#[cold]
fn abort_in_use() -> ! {
    // Neither `eprintln`, which may panic, nor the log: the test harness and a buffering subscriber
    // would take the message with them.
    let _ = std::io::stderr().write_all(
        b"glommio: a ScopedTask was dropped while its own future was being polled or dropped further up \
          the stack. That future may use what it borrows, so the process is aborted. Await the task, or \
          drop it from elsewhere.\n",
    );
    process::abort();
}

fn cancel<T>(handle: Option<&JoinHandle<T>>) {
    if let Some(handle) = handle {
        handle.cancel();
    }
}

fn poll_output<T>(handle: Option<&mut JoinHandle<T>>, cx: &mut Context<'_>) -> Poll<T> {
    let handle = handle.expect("a detached task is not polled");
    Pin::new(handle).poll(cx).map(|output| {
        output
            .expect("task has failed: it panicked or was cancelled, or its output was taken before")
    })
}
