//! Building one executor, on this thread or on one of its own.

use std::future::Future;
use std::thread;

use super::LocalExecutor;
use super::placement::Placement;
use super::plan::{Config, Plan, joined, next_id};
use super::settings::setting_methods;
use super::stall::StallDetectionHandler;
use crate::error::Result;

/// Configures and makes a [`LocalExecutor`].
///
/// # Examples
///
/// ```
/// use glommio::{
///     DefaultStallDetectionHandler, Driver, LocalExecutorBuilder, Placement, PoolPlacement, PanicPolicy,
///     TimerPrecision,
/// };
/// use std::time::Duration;
///
/// let handle = LocalExecutorBuilder::new(Placement::Fixed(0))
///     .name("worker")
///     .driver(Driver::Auto)
///     .preempt_timer(Duration::from_millis(10))
///     .spin_before_park(Duration::from_micros(20))
///     .timer_slack(Duration::from_micros(500))
///     .timer_precision(TimerPrecision::Balanced)
///     .ring_depth(1024)
///     .io_memory(64 << 20)
///     .record_io_latencies(true)
///     .on_task_panic(PanicPolicy::Isolate)
///     .blocking_thread_pool_placement(PoolPlacement::Unbound(4))
///     .detect_stalls(Some(Box::new(DefaultStallDetectionHandler {})))
///     .spawn(|| async { glommio::executor().id() })?;
/// assert!(handle.join()? > 0);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Debug)]
#[must_use = "it makes no executor by itself"]
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

    setting_methods!();

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
    pub fn start_paused(mut self, start_paused: bool) -> LocalExecutorBuilder {
        self.config.start_paused = start_paused;
        self
    }

    /// The handler that decides what a stall is, a task that keeps the thread for too long, and is
    /// called for each. Default `None`: stalls are not detected. See [`StallDetectionHandler`] for
    /// what it does and costs.
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
    /// [timer slack](Self::timer_slack) is too long, if the name contains a zero byte, or if the process may
    /// use none of the placement's CPUs; `IoError` if a resource is missing or, with [`Driver::IoUring`](crate::Driver::IoUring), the kernel has no io_uring or
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
    /// Those of the placement and of the settings, and of creating the thread. Errors on the
    /// new thread come from [`ExecutorJoinHandle::join`].
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
    /// let handle = LocalExecutorBuilder::default().name("disk").spawn(|| async { 6 * 7 })?;
    /// assert!(handle.thread().name().unwrap().starts_with("disk-"));
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
