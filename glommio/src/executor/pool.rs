//! Building many executors at once, each on a thread of its own.
//!
//! ```text
//!   calling thread     plan all ──▶ create all threads ──▶ start them ──▶ PoolThreadHandles
//!                                          │                   │                 │
//!   thread of a shard                      └─ build, wait ─────┴▶ run ───────────┴▶ joined
//! ```
//!
//! All or nothing: no shard runs before the thread of each exists. When one cannot be created,
//! those that wait give up.

use std::fmt::Display;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use super::placement::PoolPlacement;
use super::plan::{Config, next_id};
use super::pool_handles::PoolThreadHandles;
use super::settings::setting_methods;
use super::shard::{self, Ends, RestartHook, ShardExitPolicy, Starter};
use super::stall::StallDetectionHandler;
use crate::error::Result;

/// Configures and makes a pool of executors, called shards, that run the same program on different
/// CPUs.
///
/// All settings are those of [`LocalExecutorBuilder`](crate::LocalExecutorBuilder), with the same
/// defaults, and apply to each shard.
///
/// # Examples
///
/// ```
/// use glommio::{
///     DefaultStallDetectionHandler, Driver, LocalExecutorPoolBuilder, PoolPlacement, PanicPolicy,
///     TimerPrecision, executor,
/// };
/// use std::time::Duration;
///
/// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
///     .name("shard")
///     .driver(Driver::Auto)
///     .spin_before_park(Duration::from_micros(20))
///     .timer_slack(Duration::from_micros(500))
///     .timer_precision(TimerPrecision::Balanced)
///     .preempt_timer(Duration::from_millis(10))
///     .on_task_panic(PanicPolicy::Isolate)
///     .io_memory(1 << 20)
///     .ring_depth(256)
///     .record_io_latencies(true)
///     .blocking_thread_pool_placement(PoolPlacement::Unbound(2))
///     .detect_stalls(Some(Box::new(|| Box::new(DefaultStallDetectionHandler {}))))
///     .on_all_shards(|| async { executor().id() })?;
/// let ids: Vec<usize> = shards.join_all().into_iter().collect::<Result<_, _>>()?;
/// assert_ne!(ids[0], ids[1]);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[must_use = "it makes no executor by itself"]
pub struct LocalExecutorPoolBuilder {
    placement: PoolPlacement,
    config: Config,
    /// Makes a handler for each shard, on the thread of the builder: what makes them need not be
    /// `Send`.
    stall_handlers: Option<Box<dyn Fn() -> Box<dyn StallDetectionHandler>>>,
    on_shard_end: ShardExitPolicy,
    on_shard_restart: Option<RestartHook>,
}

impl LocalExecutorPoolBuilder {
    /// A builder for as many executors as `placement` says, on the CPUs that it says.
    ///
    /// The placement is checked when the executors are made.
    pub fn new(placement: PoolPlacement) -> Self {
        LocalExecutorPoolBuilder {
            placement,
            config: Config::default(),
            stall_handlers: None,
            on_shard_end: ShardExitPolicy::default(),
            on_shard_restart: None,
        }
    }

    setting_methods!();

    /// Makes the stall detection handler of each shard; see
    /// [`LocalExecutorBuilder::detect_stalls`](crate::LocalExecutorBuilder::detect_stalls). Default
    /// `None`: stalls are not detected.
    ///
    /// `handler_gen` is called once per shard, on the thread that calls
    /// [`on_all_shards`](Self::on_all_shards) and before there are others. An error on
    /// the shard's thread, for example because the handler's signal is not a valid signal number,
    /// is the shard's entry in [`PoolThreadHandles::join_all`].
    pub fn detect_stalls(
        mut self,
        handler_gen: Option<Box<dyn Fn() -> Box<dyn StallDetectionHandler + 'static>>>,
    ) -> Self {
        self.stall_handlers = handler_gen;
        self
    }

    /// What happens when a shard dies. Default [`ShardExitPolicy::Report`].
    pub fn on_shard_end(mut self, policy: ShardExitPolicy) -> Self {
        self.on_shard_end = policy;
        self
    }

    /// Calls `hook` before each [restart](ShardExitPolicy::Restart), with the number of the shard and why it
    /// has died. Default: none.
    ///
    /// It is called on the thread of the shard, where no executor runs at that time. A panic of it is
    /// logged and changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, ShardExitPolicy};
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let restarts = Arc::new(AtomicU32::new(0));
    /// let (count, earlier) = (restarts.clone(), restarts.clone());
    /// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(1))
    ///     .on_shard_end(ShardExitPolicy::Restart { per_minute: 5 })
    ///     .on_shard_restart(move |shard, reason| {
    ///         eprintln!("shard {shard} is restarted: {reason}");
    ///         count.fetch_add(1, Ordering::Relaxed);
    ///     })
    ///     .on_all_shards(move || async move {
    ///         assert_eq!(earlier.load(Ordering::Relaxed), 2, "dies twice");
    ///     })?;
    /// for result in shards.join_all() {
    ///     result?;
    /// }
    /// assert_eq!(restarts.load(Ordering::Relaxed), 2);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn on_shard_restart(mut self, hook: impl Fn(usize, &str) + Send + Sync + 'static) -> Self {
        self.on_shard_restart = Some(AssertUnwindSafe(Box::new(hook)));
        self
    }

    /// Makes the shards, each on a new thread, and runs on each the future that `fut_gen` returns
    /// there. Does not wait for them.
    ///
    /// `fut_gen` is cloned for each shard and called on the shard's thread, inside its executor, so
    /// the future need not be `Send`. No shard begins before the threads of all exist. With
    /// [`ShardExitPolicy::Restart`] each shard keeps its clone, and calls a clone of that at each start.
    ///
    /// A shard whose future returns has ended in good order, also with an `Err`: if that is to be
    /// logged and to count as a death, use [`try_on_all_shards`](Self::try_on_all_shards).
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
        self.start(fut_gen, |_| None)
    }

    /// As [`on_all_shards`](Self::on_all_shards), for futures that may fail: a shard whose future
    /// returns an error has died. That is logged, and is what [`on_shard_end`](Self::on_shard_end) is
    /// about. The error of a death that is final is what joining the shard returns.
    ///
    /// # Examples
    ///
    /// A service that ends when one of its shards cannot listen:
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, ShardExitPolicy, executor, net::TcpListener};
    /// use std::time::Duration;
    ///
    /// let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let address = taken.local_addr()?;
    /// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
    ///     .on_shard_end(ShardExitPolicy::EndPool { grace: Duration::from_secs(10) })
    ///     .try_on_all_shards(move || async move {
    ///         let _listener = TcpListener::bind(address)?;
    ///         executor().pool_ending().cancelled().await;
    ///         Ok::<_, glommio::GlommioError<()>>(())
    ///     })?;
    /// for result in shards.join_all() {
    ///     assert!(result?.is_err(), "the port is taken");
    /// }
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    #[must_use = "when `main` returns, the shards end with the process: join them"]
    pub fn try_on_all_shards<G, F, T, E>(
        self,
        fut_gen: G,
    ) -> Result<PoolThreadHandles<std::result::Result<T, E>>, ()>
    where
        G: FnOnce() -> F + Clone + Send + 'static,
        F: Future<Output = std::result::Result<T, E>> + 'static,
        T: Send + 'static,
        E: Display + Send + 'static,
    {
        self.start(fut_gen, |output| output.as_ref().err().map(E::to_string))
    }

    fn start<G, F, T>(
        self,
        fut_gen: G,
        failure: fn(&T) -> Option<String>,
    ) -> Result<PoolThreadHandles<T>, ()>
    where
        G: FnOnce() -> F + Clone + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let shards = self.placement.executor_count();
        let cpus = self.placement.generate_cpu_set()?;
        let mut planner = self.config.planner(shards, cpus)?;
        // All that users wrote for this thread runs before there is another one.
        let plans = (0..shards)
            .map(|_| {
                let handler = self.stall_handlers.as_ref().map(|generate| generate());
                let plan = planner.plan(next_id()?)?.with_stall_handler(handler);
                Ok((plan, fut_gen.clone()))
            })
            .collect::<Result<Vec<_>, ()>>()?;

        let ends = Arc::new(Ends::new(self.on_shard_end, self.on_shard_restart));
        let starter = Starter::new(&ends);
        let mut handles = Vec::with_capacity(shards);
        for (number, (plan, fut_gen)) in plans.into_iter().enumerate() {
            let of_shard = Arc::clone(&ends);
            match plan.spawn(move |plan| shard::run(plan, &of_shard, number, fut_gen, failure)) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    drop(starter);
                    for handle in handles {
                        // It gave up; the result of a shard that was not started is not used.
                        let _ = handle.join();
                    }
                    return Err(error.into());
                }
            }
        }
        starter.start();
        Ok(PoolThreadHandles::new(handles, ends))
    }
}

impl_debug! { LocalExecutorPoolBuilder, it: placement, on_shard_end, config; .. }
