//! What the executors of this process do, in numbers that any thread can read.
//!
//! With the feature `metrics` only. Each executor counts for itself, in memory that no other thread
//! writes to: [`executors`] lists them, and [`ExecutorMetrics::snapshot`] reads one. Counters only
//! grow, for as long as the executor lives, so a program that reads them twice has the rate in
//! between.
//!
//! ```
//! use glommio::{LocalExecutorBuilder, metrics, timer::sleep};
//! use std::time::Duration;
//!
//! let executor = LocalExecutorBuilder::default().make()?;
//! executor.run(async {
//!     for _ in 0..10 {
//!         sleep(Duration::from_micros(100)).await;
//!     }
//! });
//! let metrics = metrics::executors().into_iter().find(|it| it.id() == executor.id());
//! let now = metrics.expect("it is alive").snapshot();
//! assert!(now.timers_armed > 0);
//! assert_eq!(now.timers_live(), 0);
//! println!("a timer is late by {:?} at most", now.timer_lateness.max());
//! println!("{} tasks wait, {} blocking calls", now.tasks_runnable(), now.blocking_calls_live());
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! # Cost
//!
//! Without the feature, nothing: no field and no instruction. With it, a store for each turn of the
//! executor, for each timer that is armed, re-armed or cancelled, for each completion and system
//! call; and for each timer 16 bytes for its deadline, and a counter of the histogram when it fires.
//! Polls of tasks cost nothing more: they are counted anyway. `docs/benchmarks.md` says how to
//! measure it.

mod prometheus;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use prometheus::prometheus_text;

use crate::ring::Driver;
pub use crate::stats::Histogram;
use crate::stats::{PoolCounts, RingCounts, RunCounts, SharedCounts, TimerCounts};
use crate::sys::fork_detect::PerProcess;

/// The executors of this process that have not been dropped, in the order in which they were made.
/// A child of `fork(2)` has none of its parent's.
pub fn executors() -> Vec<ExecutorMetrics> {
    let Some(alive) = registry() else {
        return Vec::new();
    };
    alive.iter().cloned().map(ExecutorMetrics).collect()
}

/// The metrics of one executor. When that is gone, they stay what they were in the end.
#[derive(Clone, Debug)]
pub struct ExecutorMetrics(Arc<Parts>);

impl ExecutorMetrics {
    /// The number of the executor; see [`LocalExecutor::id`](crate::LocalExecutor::id).
    pub fn id(&self) -> usize {
        self.0.id
    }

    /// `{name}-{id}`, after the builder's name: that of its thread, if it was made with one.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorBuilder, executor};
    ///
    /// let name = LocalExecutorBuilder::default().name("broker").make()?.run(async {
    ///     executor().metrics().name().to_owned()
    /// });
    /// assert!(name.starts_with("broker-"));
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The metrics now. The executor goes on counting meanwhile, so that numbers of one snapshot
    /// need not fit together to the last one. `polls`, `first_polls` and `tasks_queued` are those of
    /// the last turn, and stand still while a task keeps the thread; the others are up to date.
    pub fn snapshot(&self) -> Snapshot {
        let parts = &*self.0;
        let (run, timers, ring) = (&parts.run, &parts.timers, &parts.ring);
        let [blocking, files, lookups] = &parts.pools;
        Snapshot {
            executor: parts.id,
            name: parts.name.clone(),
            shard: parts.shard,
            driver: parts.driver,
            turns: run.turns.read(),
            parks: run.parks.read(),
            slice_overruns: run.slice_overruns.read(),
            polls: run.polls.read(),
            first_polls: run.first_polls.read(),
            tasks_queued: run.tasks_queued.read(),
            wakes_by_io: run.wakes_by_io.read(),
            wakes_by_threads: run.wakes_by_threads.read(),
            tasks_panicked: run.tasks_panicked.read(),
            datagrams_received: run.datagrams_received.read(),
            datagram_pauses: run.datagram_pauses.read(),
            timers_armed: timers.armed.read(),
            timers_rearmed: timers.rearmed.read(),
            timers_cancelled: timers.cancelled.read(),
            timers_fired: timers.fired.read(),
            timer_lateness: timers.lateness.snapshot(),
            ring_enters: ring.enters.read(),
            ring_submissions: ring.submissions.read(),
            blocking_calls: blocking.begun.read() + files.begun.read(),
            blocking_calls_done: blocking.done.read() + files.done.read(),
            lookups: lookups.begun.read(),
            lookups_done: lookups.done.read(),
        }
    }
}

/// What an executor has done since it was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The number of the executor.
    pub executor: usize,
    /// Its [name](ExecutorMetrics::name).
    pub name: String,
    /// The number of the shard in its pool, if it is one; see
    /// [`PoolThreadHandles::handles`](crate::PoolThreadHandles::handles).
    pub shard: Option<usize>,
    /// The driver of the executor: [`Driver::IoUring`] or [`Driver::Epoll`].
    pub driver: Driver,
    /// Turns of the reactor: looks at I/O, timers and other threads.
    pub turns: u64,
    /// Turns in which the thread went to sleep.
    pub parks: u64,
    /// Rounds of tasks that lasted a millisecond longer than they should have, or more: a task did
    /// not give the thread back when the slice was over or a timer was due.
    pub slice_overruns: u64,
    /// Polls of tasks by the scheduler.
    pub polls: u64,
    /// Polls of tasks inside the calls that spawned them.
    pub first_polls: u64,
    /// Tasks that were put into a task queue, by whatever woke or spawned them.
    pub tasks_queued: u64,
    /// Operations of the driver that have completed for a task or a socket.
    pub wakes_by_io: u64,
    /// Wakes that came from other threads, equal ones counted once.
    pub wakes_by_threads: u64,
    /// Tasks that have panicked and left the others running; see
    /// [`PanicPolicy::Isolate`](crate::PanicPolicy::Isolate).
    pub tasks_panicked: u64,
    /// Datagrams that [`recv_many`](crate::net::UdpSocket::recv_many) and
    /// [`try_recv_many`](crate::net::UdpSocket::try_recv_many) have received, those that came as one
    /// counted each.
    pub datagrams_received: u64,
    /// Receives of `recv_many` that found no free buffer in their
    /// [pool](crate::net::DatagramPool), and waited for one.
    pub datagram_pauses: u64,
    /// Timers that were armed. Timeouts of sockets count; a timer whose deadline is found to have
    /// passed before it is armed does not.
    pub timers_armed: u64,
    /// Armed timers that were given another deadline.
    pub timers_rearmed: u64,
    /// Timers that were taken back before they fired.
    pub timers_cancelled: u64,
    /// Timers that have fired.
    pub timers_fired: u64,
    /// How long after its deadline each of them fired.
    pub timer_lateness: Histogram,
    /// With io_uring, system calls for the ring; with epoll, batches of operations that were begun,
    /// empty ones included, without the system calls for them.
    pub ring_enters: u64,
    /// Operations that the driver has taken.
    pub ring_submissions: u64,
    /// Calls given to the blocking threads, with those on files that the driver cannot do.
    pub blocking_calls: u64,
    /// Blocking calls that are over.
    pub blocking_calls_done: u64,
    /// Host names given to the threads that look them up.
    pub lookups: u64,
    /// Look-ups that are over.
    pub lookups_done: u64,
}

impl Snapshot {
    /// Timers that are armed now.
    pub fn timers_live(&self) -> u64 {
        let gone = self.timers_fired + self.timers_cancelled;
        self.timers_armed.saturating_sub(gone)
    }

    /// Tasks that wait for their turn in a task queue.
    pub fn tasks_runnable(&self) -> u64 {
        self.tasks_queued.saturating_sub(self.polls)
    }

    /// Blocking calls that are queued or running now, without lookups.
    pub fn blocking_calls_live(&self) -> u64 {
        self.blocking_calls.saturating_sub(self.blocking_calls_done)
    }
}

/// Those that have not been dropped.
type Registry = Vec<Arc<Parts>>;

/// That of this process. The lock of its parent's may be held forever, by a thread that was not
/// forked.
fn registry() -> Option<MutexGuard<'static, Registry>> {
    static EXECUTORS: PerProcess<Mutex<Registry>> = PerProcess::new();
    // Each executor has asked where it is before it is listed, so that this does not fail.
    let registry = EXECUTORS.get().ok()?;
    // Nothing under the lock can leave it half changed.
    Some(registry.lock().unwrap_or_else(PoisonError::into_inner))
}

/// What the parts of an executor count.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: usize,
    pub(crate) name: String,
    pub(crate) shard: Option<usize>,
    pub(crate) driver: Driver,
    pub(crate) run: SharedCounts<RunCounts>,
    pub(crate) timers: SharedCounts<TimerCounts>,
    pub(crate) ring: SharedCounts<RingCounts>,
    /// For the blocking calls of users, for those of this crate, and for lookups.
    pub(crate) pools: [SharedCounts<PoolCounts>; 3],
}

/// Keeps an executor in the list, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registered(Arc<Parts>);

impl Registered {
    pub(crate) fn new(parts: Parts) -> Self {
        let parts = Arc::new(parts);
        if let Some(mut alive) = registry() {
            alive.push(Arc::clone(&parts));
        }
        Registered(parts)
    }

    pub(crate) fn metrics(&self) -> ExecutorMetrics {
        ExecutorMetrics(Arc::clone(&self.0))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(mut alive) = registry() {
            alive.retain(|it| !Arc::ptr_eq(it, &self.0));
        }
    }
}
