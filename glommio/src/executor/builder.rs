//! Building executors, on this thread or on one of their own.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::placement::{Placement, PoolPlacement};
use super::{Core, LocalExecutor, Owner};
use crate::error::{BuilderErrorKind, ExecutorErrorKind, GlommioError, Result};
use crate::mailbox::{Mailbox, Notifier};
use crate::reactor::{BlockingPool, PoolSettings, Reactor, Settings};
use crate::sys::affinity::AffinityMask;

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
    spin_before_park: Option<Duration>,
    timer_slack: Duration,
    name: String,
    io_memory_bytes: usize,
    ring_depth: usize,
    preempt_timer: Duration,
    record_io_latencies: bool,
    blocking_pool: Option<PoolPlacement>,
}

impl LocalExecutorBuilder {
    /// A builder for an executor on the CPUs that `placement` says.
    pub fn new(placement: Placement) -> LocalExecutorBuilder {
        LocalExecutorBuilder {
            placement,
            spin_before_park: None,
            timer_slack: Duration::ZERO,
            name: String::from("unnamed"),
            io_memory_bytes: 10 << 20,
            ring_depth: 128,
            preempt_timer: Duration::from_millis(100),
            record_io_latencies: false,
            blocking_pool: None,
        }
    }

    /// How long to look for work before sleeping. Default: not at all.
    ///
    /// **Ignored for [`Placement::Unbound`]**: spinning on a CPU that others share only takes time
    /// from them.
    #[must_use]
    pub fn spin_before_park(mut self, spin: Duration) -> LocalExecutorBuilder {
        self.spin_before_park = Some(spin);
        self
    }

    /// How late timers may be so that the executor wakes once for many of them. Default zero: it wakes
    /// for each deadline. At most one second.
    ///
    /// An executor that sleeps, or whose tasks [ask](crate::ExecutorProxy::need_preempt) whether to
    /// let go of the thread, lets up to `slack` pass after the earliest deadline; all that are due by
    /// then fire in one go, in their order. When the executor is awake for another reason, what is due
    /// fires at once. No timer is ever early, and none later than the slack and the usual delay of a
    /// wake-up. That goes for all deadlines alike: sleeps, `timeout`, timed actions, the timeouts
    /// of sockets. It is what `PR_SET_TIMERSLACK` is to a thread (`prctl(2)`).
    ///
    /// What it buys is CPU time where deadlines lie close together, a wake-up being far dearer than a
    /// timer: `docs/benchmarks.md` has figures. A deadline that comes alone gains nothing and is late
    /// by all of the slack.
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
        self.timer_slack = slack;
        self
    }

    /// The prefix of the thread's name in [`spawn`](Self::spawn): `{name}-{executor id}`. Default
    /// `unnamed`. Ignored by [`make`](Self::make), which has no thread to name.
    #[must_use]
    pub fn name(mut self, name: &str) -> LocalExecutorBuilder {
        name.clone_into(&mut self.name);
        self
    }

    /// The size in bytes of the arena for direct-I/O buffers. Default 10 MiB; rounded up to a multiple
    /// of 4096, at least 64 KiB. Reserved when the first buffer is taken from it, so executors without
    /// direct I/O pay nothing.
    #[must_use]
    pub fn io_memory(mut self, io_memory: usize) -> LocalExecutorBuilder {
        self.io_memory_bytes = io_memory;
        self
    }

    /// The entries of the ring's submission queue. Default 128; rounded up to a power of two and
    /// clamped to 32768. More operations than that may be in flight; this bounds one batch.
    ///
    /// # Panics
    ///
    /// Panics if it is 0.
    #[must_use]
    pub fn ring_depth(mut self, ring_depth: usize) -> LocalExecutorBuilder {
        assert!(ring_depth > 0, "ring depth should be strictly positive");
        self.ring_depth = ring_depth;
        self
    }

    /// How long a task queue for which latency does not matter may run before
    /// [`need_preempt`](crate::ExecutorProxy::need_preempt) turns true. Default 100 ms. A slice lasts
    /// at least some 20 µs whatever is asked for.
    #[must_use]
    pub fn preempt_timer(mut self, dur: Duration) -> LocalExecutorBuilder {
        self.preempt_timer = dur;
        self
    }

    /// Whether to record how long file reads take. Default false.
    #[must_use]
    pub fn record_io_latencies(mut self, enabled: bool) -> LocalExecutorBuilder {
        self.record_io_latencies = enabled;
        self
    }

    /// How many threads run blocking calls, and where. Default: one, placed like the executor.
    #[must_use]
    pub fn blocking_thread_pool_placement(
        mut self,
        placement: PoolPlacement,
    ) -> LocalExecutorBuilder {
        self.blocking_pool = Some(placement);
        self
    }

    /// Makes the executor on the calling thread, which stays bound to the placement's CPUs from then
    /// on, also when the executor has been dropped.
    ///
    /// # Errors
    ///
    /// `BuilderError` if the placement cannot be met; `IoError` of kind `InvalidInput` if the
    /// [timer slack](Self::timer_slack) is too long; `IoError` if the kernel has no io_uring, forbids
    /// it, or another resource is missing (the text says what to change);
    /// `ReactorError(MemLockLimit)` if locked memory ran out.
    pub fn make(self) -> Result<LocalExecutor, ()> {
        self.plan()?.build()
    }

    /// Makes the executor on a new thread and runs there the future that `fut_gen` returns.
    ///
    /// `fut_gen` is called on the new thread, so the future need not be `Send`.
    ///
    /// # Errors
    ///
    /// Those of the placement and of the settings, and of creating the thread. What fails on the new thread comes from
    /// [`ExecutorJoinHandle::join`].
    #[must_use = "the executor is not running if this failed"]
    pub fn spawn<G, F, T>(self, fut_gen: G) -> Result<ExecutorJoinHandle<T>, ()>
    where
        G: FnOnce() -> F + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let plan = self.plan()?;
        let handle = thread::Builder::new()
            .name(plan.thread_name.clone())
            .spawn(move || {
                let executor = plan.build()?;
                Ok(executor.run(async move { fut_gen().await }))
            })?;
        Ok(ExecutorJoinHandle(handle))
    }

    /// Checks everything that does not need the executor's thread.
    fn plan(self) -> Result<Plan, ()> {
        let id = next_id()?;
        if self.name.contains('\0') {
            let error = "the name of a thread has no zero byte";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error).into());
        }
        if self.timer_slack > LONGEST_TIMER_SLACK {
            let error = format!(
                "a timer slack of {:?} is too long: it must be at most {LONGEST_TIMER_SLACK:?}",
                self.timer_slack
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error).into());
        }
        let notifier = Arc::new(Notifier::new()?);
        let is_bound = self.placement != Placement::Unbound;
        let pool_placement = self
            .blocking_pool
            .unwrap_or_else(|| PoolPlacement::from(self.placement.clone()));
        let cpus = self.placement.generate_cpu_set()?.next().cpu_binding();
        let affinity = match cpus {
            Some(cpus) => Some(AffinityMask::from_cpus(cpus)?),
            None => None,
        };
        let threads = pool_placement.executor_count();
        let mut pool_cpus = pool_placement.generate_cpu_set()?;
        // Threads inherit the mask of their creator: one that is not to be bound gets the mask from
        // before the executor binds itself.
        let inherited = AffinityMask::of_calling_thread()?;
        let pool_affinity = (0..threads)
            .map(|_| match pool_cpus.next().cpu_binding() {
                Some(cpus) => Ok(AffinityMask::from_cpus(cpus)?),
                None => Ok(inherited),
            })
            .collect::<Result<Vec<_>, ()>>()?;
        let thread_name = format!("{}-{id}", self.name);
        Ok(Plan {
            id,
            notifier,
            affinity,
            settings: Settings {
                ring_depth: self.ring_depth,
                spin_before_park: self
                    .spin_before_park
                    .filter(|_| is_bound)
                    .unwrap_or_default(),
                timer_slack: self.timer_slack,
            },
            blocking: PoolSettings {
                thread_name: thread_name.clone(),
                affinity: pool_affinity,
            },
            thread_name,
            preempt_timer: self.preempt_timer,
        })
    }
}

impl Default for LocalExecutorBuilder {
    /// A builder for an executor that is not bound to a CPU.
    fn default() -> Self {
        LocalExecutorBuilder::new(Placement::Unbound)
    }
}

/// An executor that lacks only its thread.
struct Plan {
    id: usize,
    notifier: Arc<Notifier>,
    affinity: Option<AffinityMask>,
    settings: Settings,
    blocking: PoolSettings,
    thread_name: String,
    preempt_timer: Duration,
}

impl Plan {
    fn build(self) -> Result<LocalExecutor, ()> {
        // First of all: memory is placed on the NUMA node of the CPU that touches it first.
        if let Some(affinity) = &self.affinity {
            affinity.apply()?;
        }
        let owner = Owner {
            id: self.id,
            mailbox: Mailbox::new(Arc::clone(&self.notifier)),
            notifier: Arc::clone(&self.notifier),
        };
        let blocking = BlockingPool::new(self.blocking);
        let reactor = Reactor::new(self.settings, self.notifier, blocking)?;
        Ok(LocalExecutor {
            core: std::rc::Rc::new(Core::new(owner, reactor, self.preempt_timer)),
        })
    }
}

/// An executor that wakes once a second has nothing more to save; a longer slack is a mistake in the unit
/// and would keep timeouts from doing their work.
const LONGEST_TIMER_SLACK: Duration = Duration::from_secs(1);

/// Counts executors; a number is used up even if its executor cannot be built.
fn next_id() -> Result<usize, ()> {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        last.checked_add(1)
    })
    .map(|last| last + 1)
    .map_err(|last| GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(last)))
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
    pub fn join(self) -> Result<T, ()> {
        match self.0.join() {
            Ok(output) => output,
            Err(panic) => Err(GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(
                panic.into(),
            ))),
        }
    }
}
