//! The running executor as its tasks see it.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use super::current;
use crate::error::Result;
use crate::memory::DmaBuffer;
use crate::ring::Driver;
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
///
/// # Examples
///
/// ```
/// use glommio::{Latency, Shares, executor, io::BufferedFile};
///
/// # glommio::LocalExecutor::default().run(async {
/// assert!(executor().id() > 0 && executor().driver() != glommio::Driver::Auto);
/// let queue = executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "import");
/// let task = executor().spawn_local_into(async { executor().current_task_queue() }, queue)?;
/// assert!(executor().remove_task_queue(queue).is_err(), "it has an unfinished task");
/// assert_eq!(task.await, queue);
/// assert_eq!(executor().spawn_local(async { 6 * 7 }).await, 42);
/// executor().yield_task_queue_now().await;
/// glommio::yield_if_needed().await; // as the method does
///
/// BufferedFile::open("/proc/self/comm").await?.close().await?;
/// assert_eq!(executor().io_stats().all_rings().files_opened(), 1);
/// assert_eq!(executor().io_stats().all_rings().files_opened(), 0, "reading resets");
/// let this_queue = executor().current_task_queue();
/// assert_eq!(executor().task_queue_io_stats(this_queue)?.all_rings().files_closed(), 1);
///
/// let stats = executor().task_queue_stats(queue)?;
/// println!("{} turns, {:?}", stats.queue_selected(), stats.runtime());
/// assert_eq!(executor().all_task_queue_stats(Vec::new()).len(), 2);
/// executor().yield_now().await;
/// assert!(executor().executor_stats().tasks_executed() > 0);
/// executor().remove_task_queue(queue)?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ExecutorProxy {}

impl ExecutorProxy {
    /// The number of the executor; see [`LocalExecutor::id`](crate::LocalExecutor::id).
    pub fn id(&self) -> usize {
        current::expect().id()
    }

    /// What the executor uses: [`Driver::IoUring`] or [`Driver::Epoll`]. A simulation counts as
    /// [`Driver::IoUring`].
    pub fn driver(&self) -> Driver {
        current::expect().reactor().driver()
    }

    /// The metrics of the executor, to be read on any thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::executor;
    ///
    /// let metrics = glommio::LocalExecutor::default().run(async { executor().metrics() });
    /// assert!(metrics.snapshot().polls > 0);
    /// ```
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics(&self) -> crate::metrics::ExecutorMetrics {
        current::expect().registered.metrics()
    }

    /// Whether the running task should yield: the slice is over, a timer is due, I/O has completed,
    /// or another thread woke a task here. Stays true until the executor's next turn.
    ///
    /// Meant for inner loops that cannot `.await` at every step. During the first 20 µs after a turn
    /// of the executor it reads the clock. Then, with io_uring, it usually costs a few loads: one
    /// call makes a non-blocking system call, which submits pending operations and arms a kernel
    /// timer for the end of the slice. So does one call each time that tasks have submitted I/O or
    /// set an earlier timer since. With epoll each call reads the clock, and one every 20 µs asks
    /// epoll. False outside an executor.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::executor;
    ///
    /// /// Sorts in steps, and says after how many it was asked to stop.
    /// fn sort_until_preempted(blocks: &mut [Vec<u32>]) -> usize {
    ///     for (done, block) in blocks.iter_mut().enumerate() {
    ///         if executor().need_preempt() {
    ///             return done;
    ///         }
    ///         block.sort_unstable();
    ///     }
    ///     blocks.len()
    /// }
    ///
    /// let mut blocks = vec![vec![3, 1, 2]; 10];
    /// assert_eq!(sort_until_preempted(&mut blocks), 10, "false outside an executor");
    /// glommio::LocalExecutor::default().run(async move {
    ///     let mut done = 0;
    ///     while done < blocks.len() {
    ///         done += sort_until_preempted(&mut blocks[done..]);
    ///         executor().yield_if_needed().await;
    ///     }
    /// });
    /// ```
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

    /// Lets other tasks of the same task queue run: those that are runnable, and those whose timers
    /// and operations the executor finds to be due. Outside an executor, yields once to its caller.
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

    /// Adds a task queue. Its index is one more than that of the queue before it; `label` names it
    /// in reports of stalls.
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
    pub fn executor_stats(&self) -> ExecutorStats {
        current::expect().take_stats()
    }

    /// What a task queue did since this or [`all_task_queue_stats`](Self::all_task_queue_stats) was
    /// last called: reading resets all but the queue's number and shares. For how current the
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
    pub fn all_task_queue_stats<V>(&self, mut output: V) -> V
    where
        V: Extend<TaskQueueStats>,
    {
        // Complete before `output`, which is the caller's code, sees the first of them.
        let stats = current::expect().queues.take_stats();
        output.extend(stats);
        output
    }

    /// The file I/O of the executor since this was last called: reading resets.
    ///
    /// It is counted when it has completed with success. See [`RingIoStats`](crate::RingIoStats)
    /// for what is counted; nothing on sockets is.
    pub fn io_stats(&self) -> IoStats {
        current::expect().reactor().io_counters().take()
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
        Ok(core.reactor().io_counters().take_queue(handle))
    }
}

/// As [`ExecutorProxy::yield_if_needed`].
///
/// # Cancel safety
///
/// Nothing is lost when it is dropped.
#[inline]
pub async fn yield_if_needed() {
    executor().yield_if_needed().await;
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
