//! Statistics: what the executor did with its time, and its file I/O.
//!
//! Types only. For the statistics of 0.9 the executor counts turns and time, the reactor counts
//! operations; both return what accumulated since they were last read. All other events are
//! counted by the types of `counts.rs`, which never start anew.

#![forbid(unsafe_code)]

mod counts;
#[cfg(feature = "metrics")]
mod histogram;
mod io;

use std::time::Duration;

pub(crate) use counts::{PoolCounts, RingCounts, RunCounts, SharedCounts, TimerCounts};
#[cfg(feature = "metrics")]
pub use histogram::Histogram;
pub(crate) use io::{Counted, ReadLatency};
pub use io::{IoStats, RingIoStats};

use crate::shares::TaskQueueHandle;

/// What an executor did since its statistics were last read.
///
/// From [`ExecutorProxy::executor_stats`](crate::ExecutorProxy::executor_stats), where it is said
/// when the figures are brought up to date.
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// use glommio::executor;
///
/// executor().yield_now().await;
/// let stats = executor().executor_stats();
/// println!("{} polls in {} rounds", stats.tasks_executed(), stats.scheduler_runs());
/// assert!(stats.total_runtime() >= stats.executor_runtime());
/// # });
/// ```
#[derive(Debug, Copy, Clone, Default)]
pub struct ExecutorStats {
    pub(crate) in_tasks: Duration,
    pub(crate) polling: Duration,
    pub(crate) looks_for_a_queue: u64,
    pub(crate) polls_of_tasks: u64,
    pub(crate) panics: u64,
}

impl ExecutorStats {
    /// How often the scheduler polled a task, whichever its queue. The first poll of a task, if
    /// [`spawn_local`](crate::spawn_local) makes it at once, is the spawning task's work and not
    /// counted.
    pub fn tasks_executed(&self) -> u64 {
        self.polls_of_tasks
    }

    /// How many tasks have panicked and left the others running, as
    /// [`PanicPolicy::Isolate`](crate::PanicPolicy::Isolate) says.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{PanicPolicy, TaskQueueHandle, executor, spawn_local};
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// executor().on_task_panic(TaskQueueHandle::default(), PanicPolicy::Isolate)?;
    /// spawn_local(async { panic!("a bug") }).detach();
    /// assert_eq!(executor().executor_stats().tasks_panicked(), 1);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn tasks_panicked(&self) -> u64 {
        self.panics
    }

    /// How often the scheduler looked for a task queue to run, in vain included.
    pub fn scheduler_runs(&self) -> u64 {
        self.looks_for_a_queue
    }

    /// How long tasks ran, and how long the executor looked at I/O in between. Neither sleep nor
    /// [spinning](crate::LocalExecutorBuilder::spin_before_park) is in it.
    pub fn total_runtime(&self) -> Duration {
        self.in_tasks + self.polling
    }

    /// How long tasks ran. Neither sleep nor
    /// [spinning](crate::LocalExecutorBuilder::spin_before_park) is in it.
    pub fn executor_runtime(&self) -> Duration {
        self.in_tasks
    }
}

/// What a task queue did since its statistics were last read.
///
/// From [`ExecutorProxy::task_queue_stats`](crate::ExecutorProxy::task_queue_stats) and
/// [`ExecutorProxy::all_task_queue_stats`](crate::ExecutorProxy::all_task_queue_stats).
///
/// # Examples
///
/// ```
/// # glommio::LocalExecutor::default().run(async {
/// for queue in glommio::executor().all_task_queue_stats(Vec::new()) {
///     println!(
///         "queue {} with {} shares: {} turns, {:?}",
///         queue.index().index(),
///         queue.current_shares(),
///         queue.queue_selected(),
///         queue.runtime(),
///     );
/// }
/// # });
/// ```
#[derive(Debug, Copy, Clone)]
pub struct TaskQueueStats {
    pub(crate) queue: TaskQueueHandle,
    pub(crate) shares: usize,
    pub(crate) ran: Duration,
    pub(crate) turns: u64,
}

impl TaskQueueStats {
    /// How long the queue's tasks ran.
    pub fn runtime(&self) -> Duration {
        self.ran
    }

    /// How often the queue was chosen to run.
    pub fn queue_selected(&self) -> u64 {
        self.turns
    }

    /// The queue.
    pub fn index(&self) -> TaskQueueHandle {
        self.queue
    }

    /// The queue's shares as last read, between 1 and 1000.
    pub fn current_shares(&self) -> usize {
        self.shares
    }
}
