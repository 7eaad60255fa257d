//! Building many executors at once, each on a thread of its own.
//!
//! ```text
//!   calling thread     plan all ──▶ create all threads ──▶ start them ──▶ PoolThreadHandles
//!                                          │                   │                 │
//!   thread of a shard                      └─ waits ───────────┴▶ build, run ────┴▶ joined
//! ```
//!
//! All or nothing: no shard builds its executor before the thread of each exists. When one cannot
//! be created, those that wait give up.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use super::placement::PoolPlacement;
use super::plan::{Knobs, joined, next_id};
use super::stall::StallDetectionHandler;
use crate::error::{GlommioError, Result};
use crate::reactor::TimerPrecision;

/// Configures and makes a pool of executors, called shards, that run the same program on different
/// CPUs.
///
/// All settings are those of [`LocalExecutorBuilder`](crate::LocalExecutorBuilder), with the same
/// defaults, and apply to each shard.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, executor};
///
/// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
///     .name("shard")
///     .on_all_shards(|| async { executor().id() })?;
/// let ids: Vec<usize> = shards.join_all().into_iter().collect::<Result<_, _>>()?;
/// assert_ne!(ids[0], ids[1]);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub struct LocalExecutorPoolBuilder {
    placement: PoolPlacement,
    knobs: Knobs,
    /// Makes a handler for each shard, on the thread of the builder: what makes them need not be
    /// `Send`.
    stall_handlers: Option<Box<dyn Fn() -> Box<dyn StallDetectionHandler>>>,
}

impl LocalExecutorPoolBuilder {
    /// A builder for as many executors as `placement` says, on the CPUs that it says.
    ///
    /// The placement is checked when the executors are made.
    pub fn new(placement: PoolPlacement) -> Self {
        LocalExecutorPoolBuilder {
            placement,
            knobs: Knobs::default(),
            stall_handlers: None,
        }
    }

    /// How long a shard looks for work before it sleeps. Default: not at all.
    ///
    /// **Ignored for [`PoolPlacement::Unbound`]**: spinning on a CPU that others share only takes
    /// time from them.
    #[must_use]
    pub fn spin_before_park(mut self, spin: Duration) -> Self {
        self.knobs.spin_before_park = spin;
        self
    }

    /// Maximum delay for coalescing timers. Default zero; at most one second. See
    /// [`LocalExecutorBuilder::timer_slack`](crate::LocalExecutorBuilder::timer_slack).
    #[must_use]
    pub fn timer_slack(mut self, slack: Duration) -> Self {
        self.knobs.timer_slack = slack;
        self
    }

    /// Whether the shards spend CPU time to have timers fire within a microsecond of their
    /// deadlines. Default [`TimerPrecision::Balanced`].
    #[must_use]
    pub fn timer_precision(mut self, precision: TimerPrecision) -> Self {
        self.knobs.timer_precision = precision;
        self
    }

    /// The prefix of the names of the threads: each is called `{name}-{executor id}`. Default
    /// `unnamed`.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.knobs.name);
        self
    }

    /// The size in bytes of each shard's own arena for direct-I/O buffers. Default 10 MiB; rounded
    /// and reserved as in
    /// [`LocalExecutorBuilder::io_memory`](crate::LocalExecutorBuilder::io_memory).
    #[must_use]
    pub fn io_memory(mut self, io_memory: usize) -> Self {
        self.knobs.io_memory_bytes = io_memory;
        self
    }

    /// The entries of the submission queue of each shard's ring. Default 128; rounded and clamped
    /// as in [`LocalExecutorBuilder::ring_depth`](crate::LocalExecutorBuilder::ring_depth).
    ///
    /// # Panics
    ///
    /// Panics if it is 0.
    #[must_use]
    pub fn ring_depth(mut self, ring_depth: usize) -> Self {
        self.knobs.set_ring_depth(ring_depth);
        self
    }

    /// How long a task queue for which latency does not matter may run before
    /// [`need_preempt`](crate::ExecutorProxy::need_preempt) turns true. Default 100 ms.
    #[must_use]
    pub fn preempt_timer(mut self, dur: Duration) -> Self {
        self.knobs.preempt_timer = dur;
        self
    }

    /// Whether to record how long file reads take. Default false.
    #[must_use]
    pub fn record_io_latencies(mut self, enabled: bool) -> Self {
        self.knobs.record_io_latencies = enabled;
        self
    }

    /// How many threads run the blocking calls of one shard, and where. Default: one, and more, up to
    /// 64, when calls have waited for a millisecond, on the CPUs of its shard; see
    /// [`LocalExecutorBuilder::blocking_thread_pool_placement`](crate::LocalExecutorBuilder::blocking_thread_pool_placement).
    ///
    /// The placement applies to each shard separately: with `MaxSpread(2, None)` every shard has
    /// two threads, and those of all shards are on the same two CPUs.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, TimerPrecision};
    /// use std::time::Duration;
    ///
    /// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
    ///     .spin_before_park(Duration::from_micros(20))
    ///     .timer_slack(Duration::from_micros(500))
    ///     .timer_precision(TimerPrecision::Balanced)
    ///     .preempt_timer(Duration::from_millis(10))
    ///     .io_memory(1 << 20)
    ///     .ring_depth(256)
    ///     .record_io_latencies(true)
    ///     .blocking_thread_pool_placement(PoolPlacement::Unbound(2))
    ///     .on_all_shards(|| async {})?;
    /// for result in shards.join_all() {
    ///     result?;
    /// }
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn blocking_thread_pool_placement(mut self, placement: PoolPlacement) -> Self {
        self.knobs.blocking_pool = Some(placement);
        self
    }

    /// Makes the stall detection handler of each shard; see
    /// [`LocalExecutorBuilder::detect_stalls`](crate::LocalExecutorBuilder::detect_stalls). Default
    /// `None`: stalls are not detected.
    ///
    /// `handler_gen` is called once per shard, on the thread that calls
    /// [`on_all_shards`](Self::on_all_shards) and before there are others. What fails on the
    /// shard's thread, for example because the handler's signal is not a valid signal number,
    /// is the shard's entry in [`PoolThreadHandles::join_all`].
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{
    ///     DefaultStallDetectionHandler, LocalExecutorPoolBuilder, PoolPlacement,
    /// };
    ///
    /// LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
    ///     .detect_stalls(Some(Box::new(|| Box::new(DefaultStallDetectionHandler {}))))
    ///     .on_all_shards(|| async { /* its turns are timed */ })?
    ///     .join_all();
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use]
    pub fn detect_stalls(
        mut self,
        handler_gen: Option<Box<dyn Fn() -> Box<dyn StallDetectionHandler + 'static>>>,
    ) -> Self {
        self.stall_handlers = handler_gen;
        self
    }

    /// Makes the shards, each on a new thread, and runs on each the future that `fut_gen` returns
    /// there. Does not wait for them.
    ///
    /// `fut_gen` is cloned for each shard and called on the shard's thread, inside its executor, so
    /// the future need not be `Send`. No shard begins before the threads of all exist.
    ///
    /// # Errors
    ///
    /// Those of the [placement](PoolPlacement::generate_cpu_set) and of the settings, before any
    /// thread is created; `IoError` if a thread cannot be created, in which case those that were
    /// created have ended when this returns, and `fut_gen` was not called. A shard whose executor
    /// cannot be made does not stop the others: the error is its entry in
    /// [`PoolThreadHandles::join_all`].
    #[must_use = "when `main` returns, the shards end with the process: join them"]
    pub fn on_all_shards<G, F, T>(self, fut_gen: G) -> Result<PoolThreadHandles<T>, ()>
    where
        G: FnOnce() -> F + Clone + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let shards = self.placement.executor_count();
        let cpus = self.placement.generate_cpu_set()?;
        let mut planner = self.knobs.planner(cpus)?;
        // All that users wrote for this thread runs before there is another one.
        let plans = (0..shards)
            .map(|_| {
                let handler = self.stall_handlers.as_ref().map(|generate| generate());
                let plan = planner.plan(next_id()?)?.with_stall_handler(handler);
                Ok((plan, fut_gen.clone()))
            })
            .collect::<Result<Vec<_>, ()>>()?;

        let mut handles = Vec::with_capacity(shards);
        let mut starts = Vec::with_capacity(shards);
        for (plan, fut_gen) in plans {
            let (start, started) = mpsc::channel();
            match plan.spawn(move || started.recv().map_err(given_up), fut_gen) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    drop(starts);
                    for handle in handles {
                        // It gave up; the result of a shard that was not started is not used.
                        let _ = handle.join();
                    }
                    return Err(error.into());
                }
            }
            starts.push(start);
        }
        for start in starts {
            start.send(()).expect("each thread waits for its start");
        }
        Ok(PoolThreadHandles { handles })
    }
}

impl std::fmt::Debug for LocalExecutorPoolBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalExecutorPoolBuilder")
            .field("placement", &self.placement)
            .field("knobs", &self.knobs)
            .finish_non_exhaustive()
    }
}

/// Ends a thread that waits for its start, when that of another shard could not be created.
fn given_up(_: mpsc::RecvError) -> GlommioError<()> {
    io::Error::from(io::ErrorKind::Interrupted).into()
}

/// Owned permission to wait for the shards of a pool. Dropping it lets their threads run on.
#[derive(Debug)]
pub struct PoolThreadHandles<T> {
    handles: Vec<thread::JoinHandle<Result<T, ()>>>,
}

impl<T> PoolThreadHandles<T> {
    /// The threads of the shards, in the order in which the placement hands out CPUs.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
    ///
    /// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
    ///     .name("shard")
    ///     .on_all_shards(|| async {})?;
    /// assert!(shards.handles().iter().all(|it| it.thread().name().unwrap().starts_with("shard-")));
    /// for result in shards.join_all() {
    ///     result?;
    /// }
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn handles(&self) -> &Vec<thread::JoinHandle<Result<T, ()>>> {
        &self.handles
    }

    /// Waits for all shards and returns what became of each, in the order of
    /// [`handles`](Self::handles): the output of its future, or why its executor could not be made,
    /// or `BuilderError(ThreadPanic)` with what its thread panicked with.
    pub fn join_all(self) -> Vec<Result<T, ()>> {
        self.handles.into_iter().map(joined).collect()
    }
}
