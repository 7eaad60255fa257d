//! What is decided about executors before their threads exist.
//!
//! ```text
//!   LocalExecutorBuilder ──────┐  Config                 plan           build
//!                              ├─────────▶ Planner ──────────▶ Plan ──────────▶ LocalExecutor
//!   LocalExecutorPoolBuilder ──┘  + CPUs           for each           on its thread
//! ```
//!
//! Owns the configuration that both builders have, with their defaults and checks. What can be refused is
//! refused by the planner, on the thread of the caller; what only the executor's own thread can
//! find out, such as that the kernel gives it no ring, is an error of [`Plan::build`].

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, thread};

use super::LocalExecutor;
use super::core::Core;
use super::placement::{CpuSetGenerator, PoolPlacement, check_shards};
use super::queues::Queues;
use super::stall::{StallDetectionHandler, Stalls};
use super::task_panic::PanicPolicy;
use crate::blocking::MAX_BLOCKING_CALLS;
use crate::error::{BuilderErrorKind, ExecutorErrorKind, GlommioError, Result};
use crate::mailbox::Notifier;
use crate::reactor::{PoolsSettings, Reactor, Settings, TimerPrecision};
use crate::ring::Driver;
use crate::sys::affinity::AffinityMask;
use crate::sys::door;
use crate::waiters::Notice;

/// What can be set about an executor besides its placement.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) spin_before_park: Duration,
    pub(super) timer_slack: Duration,
    pub(super) timer_precision: TimerPrecision,
    pub(super) driver: Driver,
    pub(super) name: String,
    pub(super) io_memory_bytes: usize,
    ring_depth: usize,
    pub(super) preempt_timer: Duration,
    pub(super) on_task_panic: PanicPolicy,
    pub(super) record_io_latencies: bool,
    pub(super) start_paused: bool,
    /// If not given, as many threads as are needed, placed like their executor.
    pub(super) blocking_pool: Option<PoolPlacement>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            spin_before_park: Duration::ZERO,
            timer_slack: Duration::ZERO,
            timer_precision: TimerPrecision::default(),
            driver: Driver::default(),
            name: String::from("unnamed"),
            io_memory_bytes: 10 << 20,
            ring_depth: 128,
            preempt_timer: Duration::from_millis(100),
            on_task_panic: PanicPolicy::default(),
            record_io_latencies: false,
            start_paused: false,
            blocking_pool: None,
        }
    }
}

impl Config {
    pub(super) fn set_ring_depth(&mut self, ring_depth: usize) {
        assert!(ring_depth > 0, "ring depth should be strictly positive");
        self.ring_depth = ring_depth;
    }

    /// What plans so many `executors` with this configuration, one for each set of CPUs that `cpus`
    /// hands out.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the configuration.
    pub(super) fn planner(
        mut self,
        executors: usize,
        cpus: CpuSetGenerator,
    ) -> Result<Planner, ()> {
        if self.name.contains('\0') {
            let text = "the name of an executor must not contain a zero byte";
            return Err(invalid(text.into()));
        }
        if self.timer_slack > LONGEST_TIMER_SLACK {
            return Err(invalid(format!(
                "a timer slack of {:?} is too long: it must be at most {LONGEST_TIMER_SLACK:?}",
                self.timer_slack
            )));
        }
        let blocking = self.blocking_pool.take().map(bindings).transpose()?;
        Ok(Planner {
            config: self,
            executors,
            cpus,
            blocking,
        })
    }
}

/// An executor that wakes once a second has nothing more to save; a longer slack is a mistake in
/// the unit and would keep timeouts from doing their work.
const LONGEST_TIMER_SLACK: Duration = Duration::from_secs(1);

fn invalid(text: String) -> GlommioError<()> {
    io::Error::new(io::ErrorKind::InvalidInput, text).into()
}

/// The CPUs that a thread is bound to; `None` for a thread that is not.
type Binding = Option<Vec<usize>>;

fn next_binding(cpus: &mut CpuSetGenerator) -> Binding {
    let binding = cpus.next().cpu_binding();
    binding.map(|cpus| cpus.into_iter().collect())
}

/// Where the threads for blocking calls are to run. Those that would never have anything to do are
/// left out.
fn bindings(placement: PoolPlacement) -> Result<Vec<Binding>, ()> {
    let threads = placement.executor_count().min(MAX_BLOCKING_CALLS);
    // A pool of executors may be empty, but then no thread would run these calls.
    check_shards(threads)?;
    let mut cpus = placement.generate_cpu_set()?;
    Ok((0..threads).map(|_| next_binding(&mut cpus)).collect())
}

/// Plans executors that differ only in their numbers and CPUs.
pub(super) struct Planner {
    config: Config,
    executors: usize,
    cpus: CpuSetGenerator,
    /// The threads for blocking calls of each executor, if they were asked for.
    blocking: Option<Vec<Binding>>,
}

impl Planner {
    /// Plans an executor on the next CPUs.
    ///
    /// # Errors
    ///
    /// That of making an eventfd.
    pub(super) fn plan(&mut self, id: usize) -> Result<Plan, ()> {
        let binding = next_binding(&mut self.cpus);
        Ok(Plan {
            id,
            notifier: Arc::new(Notifier::new()?),
            settings: Settings {
                ring_depth: self.config.ring_depth,
                executors: self.executors,
                // To spin on a CPU that belongs to others as well only takes time from them.
                spin_before_park: match binding {
                    Some(_) => self.config.spin_before_park,
                    None => Duration::ZERO,
                },
                timer_slack: self.config.timer_slack,
                timer_precision: self.config.timer_precision,
                driver: self.config.driver,
                io_memory_bytes: self.config.io_memory_bytes,
                record_io_latencies: self.config.record_io_latencies,
                start_paused: self.config.start_paused,
            },
            binding,
            blocking: self.blocking.clone(),
            thread_name: format!("{}-{id}", self.config.name),
            preempt_timer: self.config.preempt_timer,
            on_task_panic: self.config.on_task_panic,
            stall_handler: None,
            shard: None,
        })
    }
}

/// An executor that lacks only its thread.
pub(super) struct Plan {
    id: usize,
    notifier: Arc<Notifier>,
    binding: Binding,
    /// None if as many threads as are needed are to be where the executor is.
    blocking: Option<Vec<Binding>>,
    settings: Settings,
    thread_name: String,
    preempt_timer: Duration,
    on_task_panic: PanicPolicy,
    pub(super) stall_handler: Option<Box<dyn StallDetectionHandler>>,
    /// The number of the executor in its pool, and what is given when that is to end.
    pub(super) shard: Option<(usize, Arc<Notice>)>,
}

impl Plan {
    /// Has the executor detect its stalls.
    pub(super) fn with_stall_handler(
        mut self,
        handler: Option<Box<dyn StallDetectionHandler>>,
    ) -> Self {
        self.stall_handler = handler;
        self
    }

    /// Plans a further executor that follows this one on its thread.
    ///
    /// # Errors
    ///
    /// That of making an eventfd.
    pub(super) fn renew(&mut self) -> Result<(), ()> {
        self.id = next_id()?;
        self.notifier = Arc::new(Notifier::new()?);
        Ok(())
    }

    /// Makes the executor of the calling thread, which is bound to the executor's CPUs.
    pub(super) fn build(&mut self) -> Result<LocalExecutor, ()> {
        // Threads inherit the mask of their creator: one that is not to be bound gets the mask from
        // before the executor binds itself.
        let inherited = AffinityMask::of_calling_thread()?;
        let mask = |binding: &Binding| match binding {
            Some(cpus) => AffinityMask::from_cpus(cpus.iter().copied()).map(Some),
            None => Ok(inherited),
        };
        let own = mask(&self.binding)?;
        let placed = self.blocking.as_ref().map(|it| it.iter().map(mask));
        let placed = placed.map(Iterator::collect::<io::Result<_>>).transpose()?;
        let pools = PoolsSettings {
            thread_name: self.thread_name.clone(),
            placed,
            own,
            inherited,
        };
        // Before anything is allocated: memory is placed on the NUMA node of the CPU that touches
        // it first.
        if let (Some(_), Some(own)) = (&self.binding, own) {
            own.apply()?;
        }
        let reactor = Reactor::new(self.settings, Arc::clone(&self.notifier), pools)?;
        let stalls = Stalls::new(inherited);
        #[cfg(feature = "metrics")]
        let registered = {
            let shard = self.shard.as_ref().map(|it| it.0);
            reactor.list_metrics((self.id, &self.thread_name, shard))
        };
        let core = Core::new(
            self.id,
            Arc::clone(&self.notifier),
            reactor,
            Queues::new(self.preempt_timer, self.on_task_panic),
            stalls,
            self.shard.as_ref().map(|it| Arc::clone(&it.1)),
            #[cfg(feature = "metrics")]
            registered,
        );
        let executor = LocalExecutor {
            core: Rc::new(core),
        };
        executor.detect_stalls(self.stall_handler.take())?;
        Ok(executor)
    }

    /// Makes the executor and runs the future of `fut_gen` in it.
    pub(super) fn run<F: Future>(&mut self, fut_gen: impl FnOnce() -> F) -> Result<F::Output, ()> {
        let executor = self.build()?;
        Ok(executor.run(async move { fut_gen().await }))
    }

    /// Calls `body` on the executor's thread, which is new. What it returns is the thread's result.
    ///
    /// # Errors
    ///
    /// That of creating the thread.
    pub(super) fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce(Plan) -> Result<T, ()> + Send + 'static,
    ) -> io::Result<thread::JoinHandle<Result<T, ()>>> {
        thread::Builder::new()
            .name(self.thread_name.clone())
            .spawn(move || body(self))
    }
}

/// Waits for the thread of an executor.
pub(super) fn joined<T>(handle: thread::JoinHandle<Result<T, ()>>) -> Result<T, ()> {
    handle.join().unwrap_or_else(|panic| {
        Err(GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(
            panic.into(),
        )))
    })
}

/// Counts executors; a number is used up even if its executor cannot be built.
pub(super) fn next_id() -> Result<usize, ()> {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    if let Some(id) = door::next_executor_id() {
        return Ok(id);
    }
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
        last.checked_add(1)
    })
    .map(|last| last + 1)
    .map_err(|last| GlommioError::ExecutorError(ExecutorErrorKind::InvalidId(last)))
}
