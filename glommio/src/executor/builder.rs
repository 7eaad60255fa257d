//! Building one executor, on this thread or on one of its own.

use std::future::Future;
use std::thread;
use std::time::Duration;

use super::LocalExecutor;
use super::placement::{Placement, PoolPlacement};
use super::plan::{Config, Plan, joined, next_id};
use super::stall::StallDetectionHandler;
use super::task_panic::TaskPanic;
use crate::error::Result;
use crate::reactor::TimerPrecision;
use crate::ring::Driver;

/// Configures and makes a [`LocalExecutor`].
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutorBuilder, Placement};
/// use std::time::Duration;
///
/// let handle = LocalExecutorBuilder::new(Placement::Fixed(0))
///     .name("worker")
///     .preempt_timer(Duration::from_millis(10))
///     .spawn(|| async { glommio::executor().id() })?;
/// assert!(handle.join()? > 0);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Debug)]
pub struct LocalExecutorBuilder {
    placement: Placement,
    config: Config,
    stall_handler: Option<Box<dyn StallDetectionHandler>>,
}

impl LocalExecutorBuilder {
    /// A builder for an executor on the CPUs that `placement` says.
    pub fn new(placement: Placement) -> LocalExecutorBuilder {
        LocalExecutorBuilder {
            placement,
            config: Config::default(),
            stall_handler: None,
        }
    }

    /// How long to look for work before sleeping. Default: not at all.
    ///
    /// **Ignored for [`Placement::Unbound`]**: spinning on a CPU that others share only takes time
    /// from them.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, Placement};
    /// use std::time::Duration;
    ///
    /// let executor = LocalExecutorBuilder::new(Placement::Fixed(0))
    ///     .spin_before_park(Duration::from_micros(20))
    ///     .make()?;
    /// # drop(executor);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn spin_before_park(mut self, spin: Duration) -> LocalExecutorBuilder {
        self.config.spin_before_park = spin;
        self
    }

    /// Maximum delay for coalescing timers. Default zero: the executor wakes for each deadline. At
    /// most one second.
    ///
    /// An executor that sleeps, or whose tasks [ask](crate::ExecutorProxy::need_preempt) whether to
    /// yield the thread, lets up to `slack` pass after the earliest deadline; all that are due by
    /// then fire together, in their order. When the executor is awake for another reason, what
    /// is due fires at once. No timer is ever early, and none later than the slack and the
    /// usual delay of a wake-up. That goes for all deadlines alike: sleeps, `timeout`, timed
    /// actions, the timeouts of sockets. It is what `PR_SET_TIMERSLACK` is to a thread
    /// (`prctl(2)`).
    ///
    /// What it buys is CPU time where deadlines lie close together, a wake-up being far dearer than
    /// a timer: `docs/benchmarks.md` has figures. A deadline that comes alone gains nothing and
    /// is late by all of the slack.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, timer::sleep};
    /// use std::time::{Duration, Instant};
    ///
    /// let executor = LocalExecutorBuilder::default()
    ///     .timer_slack(Duration::from_micros(500))
    ///     .make()?;
    /// let start = Instant::now();
    /// executor.run(sleep(Duration::from_millis(2)));
    /// assert!(start.elapsed() >= Duration::from_millis(2));
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn timer_slack(mut self, slack: Duration) -> LocalExecutorBuilder {
        self.config.timer_slack = slack;
        self
    }

    /// Whether the executor spends CPU time to have timers fire within a microsecond of their
    /// deadlines. Default [`TimerPrecision::Balanced`].
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, TimerPrecision, timer::sleep_until};
    /// use std::time::{Duration, Instant};
    ///
    /// let executor = LocalExecutorBuilder::default()
    ///     .timer_precision(TimerPrecision::Tightest)
    ///     .make()?;
    /// let deadline = Instant::now() + Duration::from_micros(100);
    /// executor.run(sleep_until(deadline));
    /// assert!(Instant::now() >= deadline, "never early");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn timer_precision(mut self, precision: TimerPrecision) -> LocalExecutorBuilder {
        self.config.timer_precision = precision;
        self
    }

    /// Whether the executor uses io_uring or epoll. Default [`Driver::Auto`]: io_uring where it is allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{Driver, LocalExecutorBuilder};
    ///
    /// let executor = LocalExecutorBuilder::default().driver(Driver::Epoll).make()?;
    /// executor.run(async {
    ///     // Unless the environment says otherwise.
    ///     println!("{:?}", glommio::executor().driver());
    /// });
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn driver(mut self, driver: Driver) -> LocalExecutorBuilder {
        self.config.driver = driver;
        self
    }

    /// The prefix of the thread's name in [`spawn`](Self::spawn): `{name}-{executor id}`. Default
    /// `unnamed`. Ignored by [`make`](Self::make), which has no thread to name.
    #[must_use]
    pub fn name(mut self, name: &str) -> LocalExecutorBuilder {
        name.clone_into(&mut self.config.name);
        self
    }

    /// The size in bytes of the arena for direct-I/O buffers. Default 10 MiB; rounded up to a
    /// multiple of 4096, at least 64 KiB. Reserved when the first buffer is taken from it, and
    /// registered with the kernel at the first direct I/O from it: executors without direct I/O pay
    /// nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, allocate_dma_buffer};
    ///
    /// let executor = LocalExecutorBuilder::default().io_memory(64 << 20).make()?;
    /// executor.run(async {
    ///     assert_eq!(allocate_dma_buffer(8 << 20).len(), 8 << 20);
    /// });
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn io_memory(mut self, io_memory: usize) -> LocalExecutorBuilder {
        self.config.io_memory_bytes = io_memory;
        self
    }

    /// The entries of the ring's submission queue. Default 128; rounded up to a power of two and
    /// clamped to 32768. More operations than that may be in flight; this bounds one batch.
    ///
    /// # Panics
    ///
    /// Panics if it is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// let executor = glommio::LocalExecutorBuilder::default().ring_depth(1024).make()?;
    /// # drop(executor);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn ring_depth(mut self, ring_depth: usize) -> LocalExecutorBuilder {
        self.config.set_ring_depth(ring_depth);
        self
    }

    /// How long a task queue for which latency does not matter may run before
    /// [`need_preempt`](crate::ExecutorProxy::need_preempt) turns true. Default 100 ms. A slice
    /// lasts at least some 20 µs whatever is asked for.
    #[must_use]
    pub fn preempt_timer(mut self, dur: Duration) -> LocalExecutorBuilder {
        self.config.preempt_timer = dur;
        self
    }

    /// What a panic of a task does. Default [`TaskPanic::Unwind`]: it ends the executor.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, TaskPanic, spawn_local};
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let executor = LocalExecutorBuilder::default()
    ///     .on_task_panic(TaskPanic::Isolate)
    ///     .make()?;
    /// executor.run(async {
    ///     spawn_local(async { panic!("a bug") }).detach();
    ///     assert_eq!(glommio::executor().executor_stats().tasks_panicked(), 1);
    /// });
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn on_task_panic(mut self, policy: TaskPanic) -> LocalExecutorBuilder {
        self.config.on_task_panic = policy;
        self
    }

    /// Whether to record how long file reads take. Default false.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, executor, io::BufferedFile};
    ///
    /// let io = LocalExecutorBuilder::default().record_io_latencies(true).make()?;
    /// io.run(async {
    ///     let file = BufferedFile::open("/proc/self/exe").await?;
    ///     file.read_at(0, 64).await?;
    ///     let stats = executor().io_stats().all_rings();
    ///     println!("p99: {:?} µs", stats.io_latency_us().quantile(0.99));
    ///     file.close().await
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn record_io_latencies(mut self, enabled: bool) -> LocalExecutorBuilder {
        self.config.record_io_latencies = enabled;
        self
    }

    /// Whether the [clock](crate::time) of the executor is paused when it starts. Default false.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, time, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const HOUR: Duration = Duration::from_secs(3600);
    /// let executor = LocalExecutorBuilder::default().start_paused(true).make()?;
    /// executor.run(async {
    ///     let start = time::now();
    ///     sleep(HOUR).await;
    ///     assert_eq!(time::now() - start, HOUR);
    /// });
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[cfg(feature = "simulation")]
    #[cfg_attr(docsrs, doc(cfg(feature = "simulation")))]
    #[must_use]
    pub fn start_paused(mut self, start_paused: bool) -> LocalExecutorBuilder {
        self.config.start_paused = start_paused;
        self
    }

    /// How many threads run the blocking calls of users, and where. Default: one, and one more
    /// whenever a call has waited for a millisecond, up to 64, so that calls may wait for each other;
    /// those that have been idle for ten seconds end, but for one. They are placed like the executor.
    ///
    /// A given placement means what it says: no other threads make these calls. The library's own, on
    /// files and for host names, have threads of their own.
    ///
    /// They start when they are needed, but a placement that cannot be met, or of no thread at all,
    /// is an error when the executor is made. Those of an unbound pool may run wherever the
    /// thread that makes the executor could before it was bound.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, PoolPlacement};
    ///
    /// let executor = LocalExecutorBuilder::default()
    ///     .blocking_thread_pool_placement(PoolPlacement::Unbound(4))
    ///     .make()?;
    /// # drop(executor);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn blocking_thread_pool_placement(
        mut self,
        placement: PoolPlacement,
    ) -> LocalExecutorBuilder {
        self.config.blocking_pool = Some(placement);
        self
    }

    /// The handler that decides what a stall is, a task that keeps the thread for too long, and is
    /// called for each. Default `None`: stalls are not detected. See [`StallDetectionHandler`] for
    /// what it does and costs.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{DefaultStallDetectionHandler, LocalExecutorBuilder};
    ///
    /// let executor = LocalExecutorBuilder::default()
    ///     .detect_stalls(Some(Box::new(DefaultStallDetectionHandler {})))
    ///     .make()?;
    /// # drop(executor);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn detect_stalls(
        mut self,
        handler: Option<Box<dyn StallDetectionHandler + 'static>>,
    ) -> LocalExecutorBuilder {
        self.stall_handler = handler;
        self
    }

    /// Makes the executor on the calling thread, which stays bound to the placement's CPUs from
    /// then on, also when the executor has been dropped.
    ///
    /// # Errors
    ///
    /// `BuilderError` if the placement cannot be met; `IoError` of kind `InvalidInput` if the
    /// [timer slack](Self::timer_slack) is too long, or if the process may use none of the placement's
    /// CPUs; `IoError` if a resource is missing or, with [`Driver::IoUring`], the kernel has no io_uring or
    /// forbids it (the text says what to change); `ReactorError(MemLockLimit)` if locked memory ran out; those of
    /// [`LocalExecutor::detect_stalls`].
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, Placement};
    ///
    /// match LocalExecutorBuilder::new(Placement::Unbound).make() {
    ///     Ok(executor) => assert_eq!(executor.run(async { 1 + 1 }), 2),
    ///     // Says what to change, for example if no descriptor is left.
    ///     Err(error) => eprintln!("cannot run: {error}"),
    /// }
    /// ```
    pub fn make(self) -> Result<LocalExecutor, ()> {
        self.plan()?.build()
    }

    /// Makes the executor on a new thread and runs there the future that `fut_gen` returns.
    ///
    /// `fut_gen` is called on the new thread, so the future need not be `Send`.
    ///
    /// # Errors
    ///
    /// Those of the placement and of the settings, and of creating the thread. What fails on the
    /// new thread comes from [`ExecutorJoinHandle::join`].
    #[must_use = "the executor is not running if this failed"]
    pub fn spawn<G, F, T>(self, fut_gen: G) -> Result<ExecutorJoinHandle<T>, ()>
    where
        G: FnOnce() -> F + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let handle = self.plan()?.spawn(move |mut plan| plan.run(fut_gen))?;
        Ok(ExecutorJoinHandle(handle))
    }

    fn plan(self) -> Result<Plan, ()> {
        // Used up even if the placement is refused.
        let id = next_id()?;
        let cpus = self.placement.generate_cpu_set()?;
        let plan = self.config.planner(1, cpus)?.plan(id)?;
        Ok(plan.with_stall_handler(self.stall_handler))
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

impl Default for LocalExecutorBuilder {
    /// A builder for an executor that is not bound to a CPU.
    fn default() -> Self {
        LocalExecutorBuilder::new(Placement::Unbound)
    }
}

/// Owned permission to wait for an executor's thread. Dropping it lets the thread run on.
#[derive(Debug)]
pub struct ExecutorJoinHandle<T: Send + 'static>(thread::JoinHandle<Result<T, ()>>);

impl<T: Send + 'static> ExecutorJoinHandle<T> {
    /// The executor's thread.
    ///
    /// # Examples
    ///
    /// ```
    /// let handle = glommio::LocalExecutorBuilder::default().name("disk").spawn(|| async {})?;
    /// assert!(handle.thread().name().unwrap().starts_with("disk-"));
    /// handle.join()?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn thread(&self) -> &thread::Thread {
        self.0.thread()
    }

    /// Waits for the executor's future and returns its output.
    ///
    /// # Errors
    ///
    /// Why the executor could not be made, or `BuilderError(ThreadPanic)` with what its thread
    /// panicked with.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{BuilderErrorKind, GlommioError, LocalExecutorBuilder};
    ///
    /// let handle = LocalExecutorBuilder::default().spawn(|| async { 6 * 7 })?;
    /// assert_eq!(handle.join()?, 42);
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let handle = LocalExecutorBuilder::default().spawn(|| async { panic!("a bug") })?;
    /// let error: GlommioError<()> = handle.join().map(|()| ()).unwrap_err();
    /// assert!(matches!(error, GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(_))));
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn join(self) -> Result<T, ()> {
        joined(self.0)
    }
}
