//! Owns the tasks, the task queues and the loop that runs them; drives the reactor.
//!
//! This module owns [`LocalExecutor`] and its core, the registry of all tasks (each task is dropped
//! by its executor at the latest), the queues with their shares, and the scheduler that returns a
//! woken task to its queue.
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
pub(crate) mod current;
mod join_set;
mod meter;
pub(crate) mod placement;
mod plan;
mod pool;
mod proxy;
mod run_loop;
mod slices;
mod spawn;
mod spawn_here;
mod stall;
mod stolen;
mod task_builder;
mod task_queue;
mod task_span;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub use budget::{Unconstrained, consume_budget, unconstrained};
pub use builder::{ExecutorJoinHandle, LocalExecutorBuilder};
use meter::Meter;
use placement::Placement;
pub use pool::{LocalExecutorPoolBuilder, PoolThreadHandles};
pub use proxy::{ExecutorProxy, allocate_dma_buffer, executor, yield_if_needed};
use slices::Slices;
use spawn::Nesting;
pub use spawn::{ScopedTask, Task};
pub use spawn_here::{spawn_local, spawn_local_into, spawn_scoped_local, spawn_scoped_local_into};
use stall::Stalls;
pub use stall::{DefaultStallDetectionHandler, StallDetection, StallDetectionHandler};
pub use task_builder::TaskBuilder;
use task_queue::TaskQueue;

use crate::error::{ExecutorErrorKind, GlommioError, QueueErrorKind, Result};
use crate::fair_queue::FairQueue;
use crate::mailbox::{Notifier, RemoteWakeQueue, Taken};
#[cfg(feature = "metrics")]
use crate::metrics::ExecutorMetrics;
use crate::metrics::Registered;
use crate::panic::{self, FirstPanic};
use crate::reactor::Reactor;
use crate::shares::{Latency, Shares, TaskQueueHandle};
use crate::task::{
    Biased, BiasedRef, CellStore, Local, OtherTask, RemoteWake, Runnable, Schedule, TaskList,
};

/// A single-threaded executor with its own io_uring, tied to the thread that created it.
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
/// let length = executor.run(async { name.len() });
/// assert_eq!(length, 8);
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
    /// task, detached or not, comes out of this call; `future` has been dropped then.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        assert!(
            current::with(|core| core.is_none()),
            "There is already an LocalExecutor running on this thread"
        );
        self.core.reactor.assert_own();
        let _entered = current::enter(Rc::clone(&self.core));
        let _other_task = OtherTask::begin();
        self.core.block_on(future)
    }

    /// The number of this executor: unique in the process, never 0, never reused.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, executor};
    ///
    /// let local = LocalExecutor::default();
    /// assert_eq!(local.run(async { executor().id() }), local.id());
    /// ```
    pub fn id(&self) -> usize {
        self.core.id()
    }

    /// Spawns `future` into the default task queue, also while the executor is not running; it is
    /// first polled in the next [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// let executor = glommio::LocalExecutor::default();
    /// let task = executor.spawn(async { 6 * 7 });
    /// assert_eq!(executor.run(task), 42);
    /// ```
    pub fn spawn<T>(&self, future: impl Future<Output = T> + 'static) -> Task<T>
    where
        T: 'static,
    {
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

impl Default for LocalExecutor {
    /// An executor that is not bound to a CPU.
    ///
    /// # Panics
    ///
    /// Panics if the executor cannot be built; [`LocalExecutorBuilder::make`] returns the error.
    fn default() -> Self {
        match LocalExecutorBuilder::new(Placement::Unbound).make() {
            Ok(executor) => executor,
            Err(error) => panic!("building a default LocalExecutor failed: {error}"),
        }
    }
}

impl Drop for LocalExecutor {
    fn drop(&mut self) {
        if self.core.reactor.is_inherited() {
            // Its threads are not in this process and its locks may be held by them for ever; and
            // destructors of tasks would do twice what they do in the parent.
            std::mem::forget(Rc::clone(&self.core));
            tracing::warn!(
                "a LocalExecutor of the parent process was dropped in a forked child: it is leaked"
            );
            return;
        }
        self.core.shutdown();
    }
}

/// The part of an executor that other threads share. Outlives it for as long as a waker does.
pub(super) struct RemoteHandle {
    id: usize,
    remote_wakes: RemoteWakeQueue<RemoteWake>,
    notifier: Arc<Notifier>,
}

impl Local for RemoteHandle {
    #[inline]
    fn is_local(&self) -> bool {
        current::is_current(self)
    }
}

/// The executor proper, shared with the thread-local while it runs.
pub(crate) struct Core {
    remote: Biased<RemoteHandle>,
    cells: Box<CellStore>,
    reactor: Rc<Reactor>,
    /// By index; `None` where a queue was removed.
    queues: RefCell<Vec<Option<Rc<TaskQueue>>>>,
    /// Indexes of the active queues, but for the one whose turn it is.
    ready: RefCell<FairQueue<usize>>,
    /// Of the active queues.
    slices: Slices,
    current_queue: Cell<TaskQueueHandle>,
    /// Tasks queued so far.
    arrivals: Cell<u64>,
    /// Polls of queued tasks so far.
    polls: Cell<u64>,
    /// Polls of tasks by the one that spawned them, so far: they are numbered by themselves.
    nested_polls: Cell<u32>,
    /// With that many polls, as many tasks have run as were runnable after the last batch of
    /// timers.
    batch_end: Cell<u64>,
    /// Runnable tasks that were queued when the reactor last woke some, which is when a period
    /// begins.
    expected: Cell<u64>,
    period: Cell<u64>,
    meter: Meter,
    /// Those that are not over, but for the one that is being polled for the first time.
    tasks: TaskList,
    /// Wakes from other threads that were taken out of their queue and not delivered yet.
    taken_wakes: RefCell<Taken<RemoteWake>>,
    /// How deep spawns that poll at once are nested.
    nesting: Nesting,
    is_closing: Cell<bool>,
    stalls: Stalls,
    /// Its metrics, in the list of all.
    #[cfg_attr(
        not(feature = "metrics"),
        expect(dead_code, reason = "nothing is listed")
    )]
    registered: Registered,
}

impl Core {
    fn new(
        remote: RemoteHandle,
        reactor: Rc<Reactor>,
        preempt_timer: Duration,
        stalls: Stalls,
        registered: Registered,
    ) -> Self {
        let core = Core {
            remote: Biased::new(remote),
            cells: CellStore::new(),
            reactor,
            queues: RefCell::default(),
            ready: RefCell::new(FairQueue::new()),
            slices: Slices::new(preempt_timer),
            current_queue: Cell::default(),
            arrivals: Cell::new(0),
            polls: Cell::new(0),
            nested_polls: Cell::new(0),
            batch_end: Cell::new(0),
            expected: Cell::new(0),
            period: Cell::new(0),
            meter: Meter::new(),
            tasks: TaskList::default(),
            taken_wakes: RefCell::default(),
            nesting: Nesting::default(),
            is_closing: Cell::new(false),
            stalls,
            registered,
        };
        core.create_queue(Shares::default(), Latency::NotImportant, "default");
        core
    }

    pub(crate) fn id(&self) -> usize {
        self.remote.id
    }

    pub(crate) fn reactor(&self) -> &Rc<Reactor> {
        &self.reactor
    }

    pub(crate) fn create_queue(
        &self,
        shares: Shares,
        latency: Latency,
        name: &str,
    ) -> TaskQueueHandle {
        let handle = TaskQueueHandle::from_index(self.queues.borrow().len());
        // The place is taken first: reading the shares runs user code, which may create a queue.
        self.queues.borrow_mut().push(None);
        let queue = Rc::new(TaskQueue::new(handle, shares, latency, name));
        self.queues.borrow_mut()[handle.index()] = Some(queue);
        handle
    }

    pub(crate) fn remove_queue(&self, handle: TaskQueueHandle) -> Result<(), ()> {
        let queue = self.queue(handle)?;
        let is_default = handle == TaskQueueHandle::default();
        if is_default || queue.unfinished.get() > 0 || queue.is_active.get() {
            return Err(queue_error(handle, QueueErrorKind::StillActive));
        }
        self.queues.borrow_mut()[handle.index()] = None;
        self.reactor.forget_queue(handle);
        // Only now, with nothing borrowed: the destructor of its `SharesManager` may come back in.
        drop(queue);
        Ok(())
    }

    /// The queue that spawns from here go to: that of the task being polled.
    pub(crate) fn current_queue(&self) -> TaskQueueHandle {
        self.current_queue.get()
    }

    fn queue(&self, handle: TaskQueueHandle) -> Result<Rc<TaskQueue>, ()> {
        self.queue_at(handle.index())
            .ok_or_else(|| queue_error(handle, QueueErrorKind::NotFound))
    }

    fn queue_at(&self, index: usize) -> Option<Rc<TaskQueue>> {
        self.queues.borrow().get(index)?.clone()
    }

    /// Ends the turn of the current queue as soon as the running task suspends.
    pub(crate) fn yield_current_queue(&self) {
        if let Some(queue) = self.queue_at(self.current_queue.get().index()) {
            queue.has_yielded.set(true);
        }
    }

    /// Appends a runnable task to its queue.
    fn enqueue(&self, task: Runnable) {
        let queue_index = task.queue();
        let queues = self.queues.borrow();
        let queue = queues
            .get(queue_index)
            .and_then(Option::as_ref)
            .expect("a queue is not removed before its last task is over");
        self.arrivals.update(|arrivals| arrivals + 1);
        queue.push(self.period.get(), task);
        if !queue.is_active.get() {
            self.activate(queue);
        }
    }

    /// The queue, which had nothing to run, waits for its turn. Out of line: tasks that wake each
    /// other in an active queue need none of it.
    #[inline(never)]
    fn activate(&self, queue: &TaskQueue) {
        queue.is_active.set(true);
        let mut ready = self.ready.borrow_mut();
        let mut virtual_runtime = queue.virtual_runtime.get();
        if ready.is_ahead(virtual_runtime) {
            virtual_runtime = virtual_runtime.after_absence(queue.away());
        }
        let virtual_runtime = ready.join(queue.handle().index(), virtual_runtime);
        queue.virtual_runtime.set(virtual_runtime);
        self.slices.enter(queue.latency());
        if let Latency::Matters(latency) = queue.latency() {
            self.reactor.limit_slice(latency);
        }
    }

    fn deactivate(&self, queue: &TaskQueue) {
        queue.is_active.set(false);
        self.ready.borrow_mut().leave(queue.virtual_runtime.get());
        self.slices.leave(queue.latency());
    }

    /// Drops every future, on this thread and with this executor current, before the reactor
    /// releases what the kernel holds. A panic in one destructor does not keep the others from
    /// running.
    fn shutdown(self: &Rc<Self>) {
        let _entered = current::enter(Rc::clone(self));
        self.is_closing.set(true);
        // No task is to be woken any more.
        drop((self.remote.remote_wakes.close(), self.taken_wakes.take()));
        let mut panics = FirstPanic::default();
        // The handler is user code as well, and nothing that follows is a queue's turn.
        panics.catch(|| self.stalls.stop());
        // The destructors of tasks, of what the reactor gives back, and of `SharesManager`s may
        // spawn and create queues, so a queue goes only while there is no task. The default
        // queue stays for them; it has no manager.
        let mut queue_index = TaskQueueHandle::default().index();
        'dropping: loop {
            self.drop_tasks(&mut panics);
            self.reactor.shutdown(&mut panics);
            while self.tasks.is_empty() {
                queue_index += 1;
                let place = self
                    .queues
                    .borrow_mut()
                    .get_mut(queue_index)
                    .map(Option::take);
                let Some(queue) = place else {
                    break 'dropping;
                };
                panics.catch(|| drop(queue));
            }
        }
        self.remote.notifier.close_signal();
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

    /// Drops all futures. Keeps the first panic of a destructor in `panics`.
    fn drop_tasks(&self, panics: &mut FirstPanic) {
        // Destructors may spawn: what they spawn goes to the end of the list.
        while let Some(task) = self.tasks.pop() {
            panics.catch(|| task.shutdown());
            let queue = self.queue_at(task.queue());
            let queue = queue.expect("a queue is not removed before its last task is over");
            queue.unfinished.update(|tasks| tasks - 1);
        }
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("id", &self.id())
            .field("queues", &self.queues)
            .field("reactor", &self.reactor)
            .finish_non_exhaustive()
    }
}

fn queue_error(handle: TaskQueueHandle, kind: QueueErrorKind) -> GlommioError<()> {
    GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
        index: handle.index(),
        kind,
    })
}

/// Returns a woken task to its executor.
struct Scheduler(BiasedRef<RemoteHandle>);

impl Schedule for Scheduler {
    #[inline]
    fn is_owner(&self) -> bool {
        self.0.is_local()
    }

    #[inline]
    fn schedule(&self, task: Runnable) {
        current::peek(|core| core.expect("`is_owner` was asked before").enqueue(task));
    }

    fn send(&self, wake: RemoteWake) {
        // The executor is gone, and all futures with it: only the memory of the wakes is left.
        if let Err(wake) = self.0.remote_wakes.push(wake) {
            drop(wake);
        }
    }
}
