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
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::executor;
///
/// let task = executor().spawn_local(async { executor().id() });
/// assert_eq!(task.await, executor().id());
/// # });
/// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// assert!(glommio::executor().id() > 0);
    /// # });
    /// ```
    pub fn id(&self) -> usize {
        current::expect().id()
    }

    /// What the executor uses: [`Driver::IoUring`] or [`Driver::Epoll`].
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// assert_ne!(glommio::executor().driver(), glommio::Driver::Auto);
    /// # });
    /// ```
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

    /// Whether the running task should yield: the slice is over, a timer is due, or another thread
    /// woke a task here. Stays true until the executor's next turn.
    ///
    /// Meant for inner loops that cannot `.await` at every step; usually costs a few loads. It
    /// reads the clock during the first 20 µs after a turn of the executor. Once these are
    /// over, and again when tasks have submitted I/O or set an earlier timer since, one call
    /// makes a non-blocking system call, which submits pending operations and arms a kernel
    /// timer for the end of the slice. False outside an executor.
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::executor;
    ///
    /// let mut sum = 0_u64;
    /// for number in 0..10_000 {
    ///     sum += number;
    ///     executor().yield_if_needed().await;
    /// }
    /// assert_eq!(sum, 49_995_000);
    /// # });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{executor, spawn_local};
    /// use std::{cell::RefCell, rc::Rc};
    ///
    /// let order = Rc::new(RefCell::new(Vec::new()));
    /// let other = spawn_local({
    ///     let order = order.clone();
    ///     async move {
    ///         executor().yield_now().await;
    ///         order.borrow_mut().push("other");
    ///     }
    /// });
    /// executor().yield_now().await;
    /// order.borrow_mut().push("this");
    /// other.await;
    /// assert_eq!(*order.borrow(), ["other", "this"]);
    /// # });
    /// ```
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{Latency, Shares, executor, spawn_local_into};
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let queue = executor().create_task_queue(Shares::default(), Latency::NotImportant, "other");
    /// let has_run = Rc::new(Cell::new(false));
    /// let other = spawn_local_into({
    ///     let has_run = has_run.clone();
    ///     async move { has_run.set(true) }
    /// }, queue)?;
    /// while !has_run.get() {
    ///     executor().yield_task_queue_now().await;
    /// }
    /// other.await;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn yield_task_queue_now(&self) {
        current::with(|core| core.map(|core| core.yield_current_queue()));
        self.yield_now().await;
    }

    /// Adds a task queue. Its index is one more than that of the queue before it; `label` names it
    /// in reports of stalls.
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
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{Latency, Shares, executor, spawn_local_into};
    ///
    /// let queue = executor().create_task_queue(Shares::default(), Latency::NotImportant, "import");
    /// let task = spawn_local_into(std::future::pending::<()>(), queue)?;
    /// assert!(executor().remove_task_queue(queue).is_err(), "it has an unfinished task");
    /// task.cancel().await;
    /// # // The queue has its turn until the task that it ran last is over.
    /// executor().yield_task_queue_now().await;
    /// executor().remove_task_queue(queue)?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn remove_task_queue(&self, handle: TaskQueueHandle) -> Result<(), ()> {
        current::expect().remove_queue(handle)
    }

    /// The queue of the task that is being polled.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{Latency, Shares, executor, spawn_local_into};
    ///
    /// let queue = executor().create_task_queue(Shares::default(), Latency::NotImportant, "import");
    /// let task = spawn_local_into(async { executor().current_task_queue() }, queue)?;
    /// assert_eq!(task.await, queue);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
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
    /// last called: reading resets all but the queue's number and shares. For how current the
    /// figures are, see [`executor_stats`](Self::executor_stats).
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{TaskQueueHandle, executor};
    ///
    /// executor().yield_task_queue_now().await;
    /// let stats = executor().task_queue_stats(TaskQueueHandle::default())?;
    /// println!("{} turns, {:?}", stats.queue_selected(), stats.runtime());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
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
        let stats = current::expect().queues.take_stats();
        output.extend(stats);
        output
    }

    /// The file I/O of the executor since this was last called: reading resets.
    ///
    /// It is counted when it has completed with success. See [`RingIoStats`](crate::RingIoStats)
    /// for what is counted; nothing on sockets is.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{executor, io::BufferedFile};
    ///
    /// let file = BufferedFile::open("/proc/self/comm").await?;
    /// file.close().await?;
    /// let stats = executor().io_stats().all_rings();
    /// assert_eq!((stats.files_opened(), stats.files_closed()), (1, 1));
    /// assert_eq!(executor().io_stats().all_rings().files_opened(), 0, "reading resets");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn io_stats(&self) -> IoStats {
        current::expect().reactor().io_counters().take()
    }

    /// As [`io_stats`](Self::io_stats), of what the tasks of one queue requested. The two are
    /// counted apart: reading one does not reset the other.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{executor, io::BufferedFile};
    ///
    /// let file = BufferedFile::open("/proc/self/comm").await?;
    /// let queue = executor().current_task_queue();
    /// let stats = executor().task_queue_io_stats(queue)?.all_rings();
    /// assert_eq!(stats.files_opened(), 1);
    /// # file.close().await?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
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
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// let mut sum = 0_u64;
/// for number in 0..10_000 {
///     sum += number;
///     glommio::yield_if_needed().await;
/// }
/// assert_eq!(sum, 49_995_000);
/// # });
/// ```
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
