//! Spawning tasks, and calls on blocking threads, in the running executor.

#![allow(unsafe_code)]

use std::future::Future;
use std::rc::Rc;

use super::core::Core;
use super::current;
use super::proxy::{ExecutorProxy, executor};
use super::spawn::{ScopedTask, Start, Task};
use crate::error::Result;
use crate::noted;
use crate::shares::TaskQueueHandle;

impl ExecutorProxy {
    /// Spawns a task into the queue of the task being polled.
    ///
    /// The future is polled once before this returns, on the caller's stack (unless such calls are
    /// nested very deeply, or inside those of large futures): do not hold a `RefCell` borrow across the call that the future also
    /// takes.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn_local<T>(&self, future: impl Future<Output = T> + 'static) -> Task<T>
    where
        T: 'static,
    {
        let core = current::expect();
        noted::spawns_here();
        let task = core.task_of(future);
        Task::new(core.start(task, core.current_queue(), Start::AtOnce))
    }

    /// Spawns a task into the queue `handle`. It is queued, never polled inside the call.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn_local_into<T>(
        &self,
        future: impl Future<Output = T> + 'static,
        handle: TaskQueueHandle,
    ) -> Result<Task<T>, ()>
    where
        T: 'static,
    {
        let core = current::expect();
        core.queue(handle)?;
        noted::spawns_here();
        let task = core.task_of(future);
        Ok(Task::new(core.start(task, handle, Start::Queued)))
    }

    /// As [`spawn_local`](Self::spawn_local), for a future that borrows.
    ///
    /// # Safety
    ///
    /// The returned task is awaited or dropped before what its future borrows goes away; in
    /// particular it is not passed to `mem::forget`. It is not dropped inside a poll or the
    /// destructor of its own future, nor of one that borrows from it, directly or through
    /// further tasks: the future could not be dropped before what it borrows. [`ScopedTask`]
    /// aborts the process in that case.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{TaskQueueHandle, executor};
    ///
    /// let words = vec![String::from("borrowed"), String::from("words")];
    /// // SAFETY: both tasks are awaited here, before `words` goes away, and are not forgotten.
    /// let first = unsafe { executor().spawn_scoped_local(async { words[0].len() }) };
    /// let second = async { words[1].len() };
    /// let second = unsafe { executor().spawn_scoped_local_into(second, TaskQueueHandle::default()) };
    /// assert_eq!((first.await, second.unwrap().await), (8, 5));
    /// # });
    /// ```
    #[cfg_attr(feature = "debugging", track_caller)]
    pub unsafe fn spawn_scoped_local<'a, T>(
        &self,
        future: impl Future<Output = T> + 'a,
    ) -> ScopedTask<'a, T> {
        let core = current::expect();
        noted::spawns_here();
        // SAFETY: awaiting or dropping the task, which the caller promises, drops the future. Where
        // it is in use, the drop does not return.
        let task = unsafe { core.scoped_task_of(future) };
        ScopedTask::new(core.start(task, core.current_queue(), Start::AtOnce))
    }

    /// As [`spawn_local_into`](Self::spawn_local_into), for a future that borrows.
    ///
    /// # Safety
    ///
    /// As [`spawn_scoped_local`](Self::spawn_scoped_local).
    #[cfg_attr(feature = "debugging", track_caller)]
    pub unsafe fn spawn_scoped_local_into<'a, T>(
        &self,
        future: impl Future<Output = T> + 'a,
        handle: TaskQueueHandle,
    ) -> Result<ScopedTask<'a, T>, ()> {
        let core = current::expect();
        core.queue(handle)?;
        noted::spawns_here();
        // SAFETY: as in `spawn_scoped_local`.
        let task = unsafe { core.scoped_task_of(future) };
        Ok(ScopedTask::new(core.start(task, handle, Start::Queued)))
    }

    /// Runs `func` on one of the executor's blocking threads, started when the future is first
    /// polled (a future that is never polled never runs it).
    ///
    /// The pool has as many threads as
    /// [`blocking_thread_pool_placement`](crate::LocalExecutorBuilder::blocking_thread_pool_placement)
    /// says, by default one, and more, up to 64, when calls have waited for a millisecond. Further
    /// calls wait their turn, first come first served. It is made for calls that block, not for
    /// computing.
    ///
    /// # Panics
    ///
    /// A panic of `func` comes out where the future is awaited. The future panics, too, if the
    /// executor is dropped, or about to be, before `func` has begun to run.
    ///
    /// If the system has no thread to give, the call waits for those of the pool, and the executor
    /// asks again every 100 ms while it runs. So if the pool has no thread yet, the future panics
    /// if it is polled while the executor is not running, and a `block_on` of it in a task waits
    /// forever.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its first poll, `func` never runs. Dropped later, it runs to its end and its
    /// result is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::executor;
    ///
    /// let name = executor()
    ///     .spawn_blocking(|| std::fs::read_to_string("/proc/self/comm"))
    ///     .await?;
    /// assert!(name.ends_with('\n'));
    /// # Ok::<_, std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn spawn_blocking<F, R>(&self, func: F) -> impl Future<Output = R> + use<F, R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let core = current::expect();
        let call = core.reactor().blocking().call(func);
        // The future belongs to this thread's executor, as all others.
        let _not_send = std::marker::PhantomData::<Rc<Core>>;
        async move {
            let _bound = _not_send;
            call.await
                .unwrap_or_else(|error| panic!("a blocking call cannot be made: {error}"))
        }
    }
}

/// As [`ExecutorProxy::spawn_local`].
///
/// # Examples
///
/// ```
/// glommio::LocalExecutor::default().run(async {
///     let task = glommio::spawn_local(async { "done" });
///     assert_eq!(task.await, "done");
/// });
/// ```
#[cfg_attr(feature = "debugging", track_caller)]
pub fn spawn_local<T>(future: impl Future<Output = T> + 'static) -> Task<T>
where
    T: 'static,
{
    // Not by the method, which would have one more copy of a large future on the stack.
    let core = current::expect();
    noted::spawns_here();
    let task = core.task_of(future);
    Task::new(core.start(task, core.current_queue(), Start::AtOnce))
}

/// As [`ExecutorProxy::spawn_local_into`].
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::{Latency, Shares, executor, spawn_local_into};
///
/// let requests = executor().create_task_queue(Shares::Static(500), Latency::NotImportant, "requests");
/// let task = spawn_local_into(async { "answer" }, requests)?;
/// assert_eq!(task.await, "answer");
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[cfg_attr(feature = "debugging", track_caller)]
pub fn spawn_local_into<T>(
    future: impl Future<Output = T> + 'static,
    handle: TaskQueueHandle,
) -> Result<Task<T>, ()>
where
    T: 'static,
{
    executor().spawn_local_into(future, handle)
}

/// As [`ExecutorProxy::spawn_scoped_local`].
///
/// # Safety
///
/// As [`ExecutorProxy::spawn_scoped_local`].
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::{TaskQueueHandle, spawn_scoped_local, spawn_scoped_local_into};
///
/// let name = String::from("borrowed");
/// // SAFETY: both tasks are awaited here, before `name` goes away, and are not forgotten.
/// let task = unsafe { spawn_scoped_local(async { name.len() }) };
/// let other = unsafe { spawn_scoped_local_into(async { name.len() }, TaskQueueHandle::default()) };
/// assert_eq!((task.await, other.unwrap().await), (8, 8));
/// # });
/// ```
#[cfg_attr(feature = "debugging", track_caller)]
pub unsafe fn spawn_scoped_local<'a, T>(future: impl Future<Output = T> + 'a) -> ScopedTask<'a, T> {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { executor().spawn_scoped_local(future) }
}

/// As [`ExecutorProxy::spawn_scoped_local_into`].
///
/// # Safety
///
/// As [`ExecutorProxy::spawn_scoped_local`].
#[cfg_attr(feature = "debugging", track_caller)]
pub unsafe fn spawn_scoped_local_into<'a, T>(
    future: impl Future<Output = T> + 'a,
    handle: TaskQueueHandle,
) -> Result<ScopedTask<'a, T>, ()> {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { executor().spawn_scoped_local_into(future, handle) }
}
