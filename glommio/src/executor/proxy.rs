//! The running executor as its tasks see it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use super::spawn::Start;
use super::{Core, ScopedTask, Task, current};
use crate::error::Result;
use crate::memory::DmaBuffer;
use crate::shares::{Latency, Shares, TaskQueueHandle};
use crate::stats::{ExecutorStats, IoStats, TaskQueueStats};

/// The executor that runs on this thread. Never panics; the methods may.
pub fn executor() -> ExecutorProxy {
    ExecutorProxy {}
}

/// Stands for the executor that runs on the thread on which a method is called.
///
/// Unless said otherwise, methods panic with `no LocalExecutor is running on this thread` outside a
/// call of [`LocalExecutor::run`](crate::LocalExecutor::run).
#[derive(Debug)]
pub struct ExecutorProxy {}

impl ExecutorProxy {
    /// The number of the executor; see [`LocalExecutor::id`](crate::LocalExecutor::id).
    pub fn id(&self) -> usize {
        current::expect().id()
    }

    /// The metrics of the executor, to be read on any thread.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics(&self) -> crate::metrics::ExecutorMetrics {
        current::expect().registered.metrics()
    }

    /// Whether the running task should yield: the slice is over, a timer is due, or another thread
    /// woke a task here. Stays true until the executor's next turn.
    ///
    /// Meant for inner loops that cannot `.await` at every step; usually costs a few loads. It
    /// reads the clock during the first 20 µs after a turn of the executor. Once these are
    /// over, and again when tasks have submitted I/O or set an earlier timer since, one call
    /// makes a non-blocking system call, which submits pending operations and arms a kernel
    /// timer for the end of the slice. False outside an executor.
    #[inline]
    pub fn need_preempt(&self) -> bool {
        current::peek(|core| core.cloned()).is_some_and(|core| core.reactor().need_preempt())
    }

    /// Gives the other tasks and the reactor a turn if [`need_preempt`](Self::need_preempt), else
    /// goes on at once. Returns at once outside an executor.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    #[inline]
    pub async fn yield_if_needed(&self) {
        if self.need_preempt() {
            self.yield_task_queue_now().await;
        }
    }

    /// Lets other tasks of the same task queue run. Outside an executor, yields once to its caller.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn yield_now(&self) {
        let has_yielded = Cell::new(false);
        poll_fn(|cx| {
            if has_yielded.replace(true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Ends the turn of the current task queue: the others that want to run get theirs, by their
    /// shares. Outside an executor, yields once to its caller.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn yield_task_queue_now(&self) {
        current::with(|core| core.map(|core| core.yield_current_queue()));
        self.yield_now().await;
    }

    /// Adds a task queue. Its index is one more than that of the queue before it; `label` is for
    /// people.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{Latency, Shares, executor, spawn_local_into};
    ///
    /// glommio::LocalExecutor::default().run(async {
    ///     let background =
    ///         executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "background");
    ///     let task = spawn_local_into(async { 1 + 1 }, background)?;
    ///     assert_eq!(task.await, 2);
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn create_task_queue(
        &self,
        shares: Shares,
        latency: Latency,
        label: &str,
    ) -> TaskQueueHandle {
        current::expect().create_queue(shares, latency, label)
    }

    /// Removes a task queue.
    ///
    /// # Errors
    ///
    /// As [`LocalExecutor::remove_task_queue`](crate::LocalExecutor::remove_task_queue).
    pub fn remove_task_queue(&self, handle: TaskQueueHandle) -> Result<(), ()> {
        current::expect().remove_queue(handle)
    }

    /// The queue of the task that is being polled.
    pub fn current_task_queue(&self) -> TaskQueueHandle {
        current::expect().current_queue()
    }

    /// What the executor did since this was last called, and sets it back to zero: reading resets.
    ///
    /// The times grow when a round of tasks ends, or when the executor goes over to another task
    /// queue. A round ends at the latest at the first switch of tasks after the
    /// [preemption interval](crate::LocalExecutorBuilder::preempt_timer). So they do not contain
    /// what the calling task has just done, and right after the start they are zero. The counts
    /// contain the poll that is in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::executor;
    ///
    /// glommio::LocalExecutor::default().run(async {
    ///     executor().executor_stats();
    ///     executor().yield_now().await;
    ///     assert_eq!(executor().executor_stats().tasks_executed(), 1);
    ///     assert_eq!(executor().executor_stats().tasks_executed(), 0, "reading resets");
    /// });
    /// ```
    pub fn executor_stats(&self) -> ExecutorStats {
        current::expect().take_stats()
    }

    /// What a task queue did since this or [`all_task_queue_stats`](Self::all_task_queue_stats) was
    /// last called: reading resets, but for the queue's number and shares. For how current the
    /// figures are, see [`executor_stats`](Self::executor_stats).
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue.
    pub fn task_queue_stats(&self, handle: TaskQueueHandle) -> Result<TaskQueueStats, ()> {
        let queue = current::expect().queue(handle)?;
        Ok(queue.take_stats())
    }

    /// As [`task_queue_stats`](Self::task_queue_stats) for every queue that there is, the default
    /// queue included: extends `output` by one entry for each, in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// let stats = glommio::executor().all_task_queue_stats(Vec::new());
    /// assert_eq!(stats.len(), 1);
    /// assert_eq!(stats[0].current_shares(), 1000);
    /// # });
    /// ```
    pub fn all_task_queue_stats<V>(&self, mut output: V) -> V
    where
        V: Extend<TaskQueueStats>,
    {
        // Complete before `output`, which is the caller's code, sees the first of them.
        let stats: Vec<_> = {
            let core = current::expect();
            let queues = core.queues.borrow();
            queues.iter().flatten().map(|it| it.take_stats()).collect()
        };
        output.extend(stats);
        output
    }

    /// The file I/O of the executor since this was last called: reading resets.
    ///
    /// It is counted when it has completed with success. See [`RingIoStats`](crate::RingIoStats)
    /// for what is counted; nothing on sockets is.
    pub fn io_stats(&self) -> IoStats {
        current::expect().reactor().take_io_stats()
    }

    /// As [`io_stats`](Self::io_stats), of what the tasks of one queue requested. The two are
    /// counted apart: reading one does not reset the other.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue.
    pub fn task_queue_io_stats(&self, handle: TaskQueueHandle) -> Result<IoStats, ()> {
        let core = current::expect();
        core.queue(handle)?;
        Ok(core.reactor().take_queue_io_stats(handle))
    }

    /// Spawns a task into the queue of the task being polled.
    ///
    /// The future is polled once before this returns, on the caller's stack (unless such calls are
    /// nested very deeply): do not hold a `RefCell` borrow across the call that the future also
    /// takes.
    pub fn spawn_local<T>(&self, future: impl Future<Output = T> + 'static) -> Task<T>
    where
        T: 'static,
    {
        let core = current::expect();
        let queue = core.current_queue();
        Task::new(core.spawn(future, queue, Start::AtOnce))
    }

    /// Spawns a task into the queue `handle`. It is queued, never polled inside the call.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
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
        Ok(Task::new(core.spawn(future, handle, Start::Queued)))
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
    pub unsafe fn spawn_scoped_local<'a, T>(
        &self,
        future: impl Future<Output = T> + 'a,
    ) -> ScopedTask<'a, T> {
        let core = current::expect();
        let queue = core.current_queue();
        // SAFETY: awaiting or dropping the task, which the caller promises, drops the future. Where
        // it is in use, the drop does not return.
        ScopedTask::new(unsafe { core.spawn_scoped(future, queue, Start::AtOnce) })
    }

    /// As [`spawn_local_into`](Self::spawn_local_into), for a future that borrows.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
    ///
    /// # Safety
    ///
    /// As [`spawn_scoped_local`](Self::spawn_scoped_local).
    pub unsafe fn spawn_scoped_local_into<'a, T>(
        &self,
        future: impl Future<Output = T> + 'a,
        handle: TaskQueueHandle,
    ) -> Result<ScopedTask<'a, T>, ()> {
        let core = current::expect();
        core.queue(handle)?;
        // SAFETY: as in `spawn_scoped_local`.
        Ok(ScopedTask::new(unsafe {
            core.spawn_scoped(future, handle, Start::Queued)
        }))
    }

    /// Runs `func` on one of the executor's blocking threads, started when the future is first
    /// polled (a future that is never polled never runs it).
    ///
    /// The pool has as many threads as
    /// [`blocking_thread_pool_placement`](crate::LocalExecutorBuilder::blocking_thread_pool_placement)
    /// says, by default one; further calls wait their turn, first come first served. It is made for
    /// calls that block, not for computing.
    ///
    /// # Panics
    ///
    /// A panic of `func` comes out where the future is awaited. The future panics, too, if the
    /// executor is dropped, or about to be, before `func` has begun to run.
    ///
    /// If the pool has no thread yet and the system has none to give, the call waits until the
    /// executor gets one, which it tries from turn to turn. So the future panics then if it is
    /// polled while the executor is not running, and a `block_on` of it in a task waits for
    /// ever.
    ///
    /// # Cancel safety
    ///
    /// Dropped before its first poll, `func` never runs. Dropped later, it runs to its end and its
    /// result is dropped.
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

/// As [`ExecutorProxy::yield_if_needed`].
#[inline]
pub async fn yield_if_needed() {
    executor().yield_if_needed().await;
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
pub fn spawn_local<T>(future: impl Future<Output = T> + 'static) -> Task<T>
where
    T: 'static,
{
    executor().spawn_local(future)
}

/// As [`ExecutorProxy::spawn_local_into`].
///
/// # Errors
///
/// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
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
pub unsafe fn spawn_scoped_local<'a, T>(future: impl Future<Output = T> + 'a) -> ScopedTask<'a, T> {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { executor().spawn_scoped_local(future) }
}

/// As [`ExecutorProxy::spawn_scoped_local_into`].
///
/// # Errors
///
/// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
///
/// # Safety
///
/// As [`ExecutorProxy::spawn_scoped_local`].
pub unsafe fn spawn_scoped_local_into<'a, T>(
    future: impl Future<Output = T> + 'a,
    handle: TaskQueueHandle,
) -> Result<ScopedTask<'a, T>, ()> {
    // SAFETY: the caller's promise is the one that is asked for.
    unsafe { executor().spawn_scoped_local_into(future, handle) }
}

/// A buffer of `size` bytes from the [I/O memory](crate::LocalExecutorBuilder::io_memory) of the
/// executor, or from the ordinary allocator if that is full.
///
/// For buffers that are soon dropped: I/O memory that is kept is not available to others, and
/// direct I/O costs more without. Use
/// [`allocate_dma_buffer_global`](crate::allocate_dma_buffer_global) for buffers that are kept. A
/// buffer of 0 bytes is empty and takes none.
///
/// What is in it is not specified: zeros, or what an earlier buffer of this executor held.
///
/// # Panics
///
/// Panics with `no LocalExecutor is running on this thread` outside an executor, and if `size` is
/// more than half the address space.
///
/// # Examples
///
/// ```
/// use glommio::ByteSliceMutExt;
///
/// # glommio::LocalExecutor::default().run(async {
/// let mut buffer = glommio::allocate_dma_buffer(4096);
/// assert_eq!(buffer.write_at(4000, &[1; 200]), 96);
/// # });
/// ```
pub fn allocate_dma_buffer(size: usize) -> DmaBuffer {
    current::expect().reactor().allocate_dma_buffer(size)
}
