//! Owns the tasks, the task queues and the loop that runs them; drives the reactor.
//!
//! This module owns [`LocalExecutor`]. Its [`core`] composes parts that each own their
//! state: the queues with their shares ([`queues`]), the registry of all tasks ([`tasks`]; each task
//! is dropped by its executor at the latest), what other threads send ([`remote`]), and what is
//! counted ([`progress`], [`meter`]). The [`run_loop`] is what they do together; the [`scheduler`]
//! returns a woken task to its queue.
//!
//! Invariants:
//!
//! 1. No borrow of the core's cells is held while user code runs: polls, destructors, wakers and
//!    `SharesManager`s may all come back in.
//! 2. A queue is in `ready` or has its turn exactly if it `is_active`; a queue with runnable tasks
//!    is active.
//! 3. Every task in the registry is counted in its queue's `unfinished`. A task that is polled
//!    inside the call that spawns it comes there only if that poll did not end it; until then the
//!    queue cannot go, for it is the current one.
//!
//! Cost: spawning is one allocation, and a slab entry for a task that outlives its first poll; a
//! wake on this thread a push; a task switch a pop and the poll. None takes an atomic operation.

mod blocking;
mod budget;
mod builder;
mod core;
pub(crate) mod current;
#[cfg(feature = "debugging")]
mod dump;
#[cfg(feature = "debugging")]
mod dumps;
mod isolation;
mod join_set;
mod meter;
pub(crate) mod placement;
mod plan;
mod pool;
mod pool_handles;
mod progress;
mod proxy;
mod queues;
mod registry;
mod remote;
mod restarts;
mod run_loop;
mod scheduler;
mod settings;
mod shard;
#[cfg(feature = "simulation")]
mod simulated;
mod slices;
mod spawn;
mod spawn_here;
mod stall;
mod steal_time;
mod task_builder;
mod task_panic;
mod task_queue;
mod task_span;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::panic::resume_unwind;
use std::rc::Rc;

pub use budget::{Unconstrained, consume_budget, unconstrained};
pub use builder::{ExecutorJoinHandle, LocalExecutorBuilder};
#[cfg(feature = "debugging")]
pub use dump::{dump, dump_all, dump_on_signal};
#[cfg(feature = "debugging")]
pub use dumps::{Dump, NoDump, Resource, TaskDump, TaskState};
pub use pool::LocalExecutorPoolBuilder;
pub use pool_handles::PoolThreadHandles;
pub use proxy::{ExecutorProxy, allocate_dma_buffer, executor, yield_if_needed};
pub use shard::ShardExitPolicy;
pub use spawn::{ScopedTask, Task};
pub use spawn_here::{spawn_local, spawn_local_into, spawn_scoped_local, spawn_scoped_local_into};
pub use stall::{DefaultStallDetectionHandler, StallDetection, StallDetectionHandler};
pub use task_builder::TaskBuilder;
pub use task_panic::PanicPolicy;

pub(crate) use self::core::Core;
use crate::error::Result;
#[cfg(feature = "metrics")]
use crate::metrics::ExecutorMetrics;
use crate::noted;
use crate::panic::{self, FirstPanic};
use crate::shares::TaskQueueHandle;
use crate::task::OtherTask;

/// A single-threaded executor with its own io_uring (or [epoll](crate::Driver)), tied to the thread that created
/// it.
///
/// Made by [`LocalExecutorBuilder::make`], or on a thread of its own by
/// [`LocalExecutorBuilder::spawn`]. Dropping it drops the futures of all its unfinished tasks,
/// while it is still the current executor, and then waits until the kernel has released all
/// buffers.
///
/// # Forking
///
/// An executor belongs to the process that made it. In a child of `fork(2)` it cannot run, nor can
/// one go on that was running: both panic. Dropped in a child, it is left as it is: no destructor
/// of its tasks runs, and the parent's executor is not affected. The child can make executors of
/// its own.
///
/// # Examples
///
/// ```
/// use glommio::LocalExecutor;
///
/// let executor = LocalExecutor::default();
/// let name = String::from("executor");
/// assert_eq!(executor.run(async { name.len() }), 8);
/// assert_eq!(executor.run(async { glommio::executor().id() }), executor.id());
///
/// let task = executor.spawn(async { 6 * 7 });
/// assert_eq!(executor.run(task), 42);
/// ```
#[derive(Debug)]
pub struct LocalExecutor {
    core: Rc<Core>,
}

impl LocalExecutor {
    /// Runs the executor on the calling thread until `future` is done, and returns its output.
    ///
    /// `future` runs as a task of the default task queue. It may borrow from the caller's stack.
    /// Other tasks that are unfinished when it ends stay in the executor and go on in the next
    /// `run`.
    ///
    /// # Panics
    ///
    /// Panics if an executor is already running on this thread, and in a [forked](Self#forking)
    /// child of the process that made the executor. A panic of `future` or of any other
    /// task, detached or not, comes out of this call, unless [`PanicPolicy`] says otherwise; `future`
    /// has been dropped then.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        assert!(
            current::with(|core| core.is_none()),
            "There is already an LocalExecutor running on this thread"
        );
        self.core.reactor.assert_own();
        let _entered = current::enter(Rc::clone(&self.core));
        let _other_task = OtherTask::begin();
        noted::set_now();
        noted::spawns_here();
        self.core.block_on(future)
    }

    /// The number of this executor: unique in the process, never 0, never reused.
    pub fn id(&self) -> usize {
        self.core.id()
    }

    /// Spawns `future` into the default task queue, also while the executor is not running; it is
    /// first polled in the next [`run`](Self::run).
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn<T>(&self, future: impl Future<Output = T> + 'static) -> Task<T>
    where
        T: 'static,
    {
        noted::set_now();
        noted::spawns_here();
        let task = self.core.task_of(future);
        let queue = TaskQueueHandle::default();
        Task::new(self.core.start(task, queue, spawn::Start::Queued))
    }

    /// Switches stall detection on with a handler, off with `None`, or over to another handler. Off
    /// by default. See [`StallDetectionHandler`] for what it does and costs.
    ///
    /// Each turn of a task queue that begins from then on is timed. What the detection held before
    /// is released before this returns: its thread has ended, its handler is dropped
    /// (unless a method of it is just running).
    ///
    /// # Errors
    ///
    /// `IoError` of kind `InvalidInput` if the handler's signal is not a valid signal number, or
    /// one that cannot or must not be handled (`SIGKILL`, `SIGSTOP`, `SIGILL`, `SIGFPE`,
    /// `SIGSEGV`, `SIGBUS`); `IoError` if there is no thread for it. The detection is as it was
    /// before then.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{DefaultStallDetectionHandler, LocalExecutor};
    ///
    /// let executor = LocalExecutor::default();
    /// executor.detect_stalls(Some(Box::new(DefaultStallDetectionHandler {})))?;
    /// executor.run(async { /* its turns are timed */ });
    /// executor.detect_stalls(None)?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn detect_stalls(
        &self,
        handler: Option<Box<dyn StallDetectionHandler + 'static>>,
    ) -> Result<(), ()> {
        self.core.stalls.detect(handler, self.id())
    }

    /// The metrics of this executor, to be read on any thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let executor = glommio::LocalExecutor::default();
    /// let metrics = executor.metrics();
    /// executor.run(async { glommio::executor().yield_now().await });
    /// assert!(metrics.snapshot().polls >= 2);
    /// ```
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics(&self) -> ExecutorMetrics {
        self.core.registered.metrics()
    }

    /// Removes a task queue.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; of kind `StillActive` if it has
    /// unfinished tasks, runnable or waiting, or is the default queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{Latency, LocalExecutor, Shares, executor};
    ///
    /// let local = LocalExecutor::default();
    /// let queue = local.run(async {
    ///     executor().create_task_queue(Shares::default(), Latency::NotImportant, "import")
    /// });
    /// local.remove_task_queue(queue)?;
    /// assert!(local.remove_task_queue(queue).is_err(), "it is gone");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn remove_task_queue(&self, handle: TaskQueueHandle) -> Result<(), ()> {
        self.core.remove_queue(handle)
    }
}

impl Drop for LocalExecutor {
    fn drop(&mut self) {
        if self.core.reactor.is_inherited() {
            // Its threads are not in this process and its locks may be held by them forever; and
            // destructors of tasks would do twice what they do in the parent.
            std::mem::forget(Rc::clone(&self.core));
            tracing::warn!(
                "a LocalExecutor of the parent process was dropped in a forked child: it is leaked"
            );
            return;
        }
        // What destructors poll goes on in no later turn.
        crate::reactor::budget::unlimited(|| shut_down(&self.core));
    }
}

/// Drops every future, on this thread and with this executor current, before the reactor releases
/// what the kernel holds. A panic in one destructor does not keep the others from running.
fn shut_down(core: &Rc<Core>) {
    let _entered = current::enter(Rc::clone(core));
    core.tasks.close();
    core.remote.close();
    let mut panics = FirstPanic::default();
    // The handler is user code as well, and nothing that follows is a queue's turn.
    panics.catch(|| core.stalls.stop());
    let mut disarmed = Some(core.reactor.disarm_timers());
    // The destructors of tasks, of what the reactor gives back, and of `SharesManager`s may spawn
    // and create queues, so a queue goes only while there is no task. The default queue stays for
    // them; it has no manager.
    let mut queue_index = TaskQueueHandle::default().index();
    'dropping: loop {
        core.tasks.drop_all(&core.queues, &mut panics);
        // Before their tasks were over, each would be scheduled for having lost its last waker.
        drop(disarmed.take());
        core.reactor.shutdown(&mut panics);
        while core.tasks.are_over() {
            queue_index += 1;
            let Some(queue) = core.queues.take(queue_index) else {
                break 'dropping;
            };
            panics.catch(|| drop(queue));
        }
    }
    core.remote.close_signal();
    if let Some(payload) = panics.take() {
        // Where it cannot go on it would abort the process: past another panic, and out of the
        // destructor of a thread-local.
        if std::thread::panicking() || current::is_thread_ending() {
            panic::report(
                "a destructor panicked while an executor was dropped",
                payload,
            );
        } else {
            resume_unwind(payload);
        }
    }
}
