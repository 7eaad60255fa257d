//! What happens on the thread of a shard, and what the pool hears of it.
//!
//! ```text
//!   thread of a shard    build, start? run ──▶ output, error or panic ──▶ restart? ──▶ ended ──┐
//!                             ▲                                              │                 ▼
//!                             └──────────────────────────────────────────────┘   handles: joined in that order
//!                        EndPool: a failure sets the notice that all shards can wait for
//! ```
//!
//! An executor is made while the threads of the others are created, so that most of them find the
//! start given and need not sleep until it is.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::LocalExecutor;
use super::plan::Plan;
use super::restarts::RestartLimit;
use super::stall::SharedHandler;
use crate::clock;
use crate::error::Result;
use crate::panic::{self, Payload};
use crate::sys::affinity::AffinityMask;
use crate::waiters::Notice;

/// What the death of one shard means to its pool; see
/// [`LocalExecutorPoolBuilder::on_shard_end`](crate::LocalExecutorPoolBuilder::on_shard_end).
///
/// A shard dies of a panic that leaves its executor, or because its executor could not be made. One
/// whose future has returned an output has ended in good order, and none of this applies. Each death
/// is an event in the log, with the number of the shard and the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardEnd {
    /// The others run on. [`PoolThreadHandles::join_first`](crate::PoolThreadHandles::join_first)
    /// returns at once, with the reason.
    #[default]
    Report,
    /// The others are told, by the token of
    /// [`ExecutorProxy::pool_ending`](crate::ExecutorProxy::pool_ending), and should end by
    /// themselves.
    EndPool {
        /// How long they have for that. One that still runs then is not killed:
        /// [`PoolThreadHandles`](crate::PoolThreadHandles) gives an error of the kind `TimedOut`
        /// for it, and its thread runs on until the process ends.
        grace: Duration,
    },
    /// A fresh executor is made on the same thread and so on the same CPU, and runs the future that
    /// a further clone of `fut_gen` returns. By then all tasks of the old one have been dropped: the
    /// other ends of their channels and meshes are `Closed`.
    ///
    /// Thread-locals of the program keep their values. The new executor has a new number; the thread
    /// keeps its name, and a stall handler is used again.
    Restart {
        /// How often a shard is restarted within a minute, at most. A death after that is final, and
        /// reported as by [`Report`](Self::Report).
        per_minute: u32,
    },
}

/// Starts the shards of a pool. If it is dropped instead, they give up.
pub(super) struct Starter(Arc<Ends>);

impl Starter {
    pub(super) fn new(ends: &Arc<Ends>) -> Self {
        Starter(Arc::clone(ends))
    }

    pub(super) fn start(self) {
        self.0.decide(true);
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.0.decide(false);
    }
}

/// What the threads of a pool and its handles share.
#[derive(Debug)]
pub(super) struct Ends {
    /// Whether the shards run, once that is decided: none does before the thread of each exists.
    runs: OnceLock<bool>,
    policy: ShardEnd,
    /// The pool is to end.
    ending: Arc<Notice>,
    state: Mutex<EndsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct EndsState {
    /// Those that were not asked for yet, the first of them first.
    ended: VecDeque<usize>,
    told_at: Option<Instant>,
}

/// What is next to be said of a shard.
pub(super) enum Next {
    Ended(usize),
    /// It was told to end and has not, for so long.
    Overdue(usize, Duration),
}

impl Ends {
    pub(super) fn new(policy: ShardEnd) -> Self {
        Ends {
            runs: OnceLock::new(),
            policy,
            ending: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The first decision counts.
    fn decide(&self, runs: bool) {
        let _first = self.runs.set(runs);
    }

    /// Whether the shards are told to end, and may be overdue then.
    pub(super) fn has_grace(&self) -> bool {
        matches!(self.policy, ShardEnd::EndPool { .. })
    }

    /// Waits until one of `shards`, of which there is at least one, has ended or is overdue.
    pub(super) fn next(&self, shards: &[usize]) -> Next {
        let mut state = self.lock();
        loop {
            while let Some(shard) = state.ended.pop_front() {
                // One that was overdue may end later.
                if shards.contains(&shard) {
                    return Next::Ended(shard);
                }
            }
            state = match (self.policy, state.told_at) {
                (ShardEnd::EndPool { grace }, Some(told_at)) => {
                    let left = grace.saturating_sub(clock::real() - told_at);
                    if left.is_zero() {
                        return Next::Overdue(shards[0], grace);
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                _ => (self.changed.wait(state)).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, EndsState> {
        // Nothing under the lock panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells that the thread of a shard is about to end, when it is dropped.
struct Ended<'a> {
    ends: &'a Ends,
    shard: usize,
    ends_pool: bool,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut state = self.ends.lock();
        // At a time, so that the shard whose death ends the pool is not overdue itself.
        state.ended.push_back(self.shard);
        if self.ends_pool {
            state.told_at.get_or_insert_with(clock::real);
        }
        drop(state);
        self.ends.changed.notify_all();
        if self.ends_pool {
            // Last: those that are told end after it.
            self.ends.ending.give();
        }
    }
}

/// Runs a shard on the calling thread, which is its own, until it is over for good.
///
/// # Errors
///
/// Of the kind `Interrupted` if the pool has not started; else why there is no executor.
pub(super) fn run<G, F, T>(mut plan: Plan, ends: &Ends, shard: usize, fut_gen: G) -> Result<T, ()>
where
    G: FnOnce() -> F + Clone,
    F: Future<Output = T>,
{
    plan.shard = Some((shard, Arc::clone(&ends.ending)));
    let mut restarts = match ends.policy {
        ShardEnd::Restart { per_minute } => Some(Restarts::new(&mut plan, per_minute)),
        ShardEnd::Report | ShardEnd::EndPool { .. } => None,
    };
    let built = build(&mut plan, restarts.as_ref());
    if !*ends.runs.wait() {
        if let Err(Death::Panic(payload)) = built {
            panic::discard(payload);
        }
        return Err(io::Error::from(io::ErrorKind::Interrupted).into());
    }
    let mut ended = Ended {
        ends,
        shard,
        ends_pool: false,
    };
    let end = match &mut restarts {
        Some(restarts) => run_again_and_again(&mut plan, built, shard, fut_gen, restarts),
        None => run_once(built, fut_gen),
    };
    let death = match end {
        Ok(output) => return Ok(output),
        Err(death) => death,
    };
    let text = death.text();
    panic::log(|| tracing::error!(shard, "a shard has died: {text}"));
    ended.ends_pool = ends.has_grace();
    // Before a panic goes on: another one while it does would be the end of the process.
    drop(ended);
    death.go_on()
}

/// Why a shard has no output.
enum Death {
    Error(crate::error::GlommioError<()>),
    Panic(Payload),
}

impl Death {
    fn text(&self) -> String {
        match self {
            Death::Error(error) => error.to_string(),
            Death::Panic(payload) => {
                let message = panic::message(payload).unwrap_or("no message");
                format!("it panicked: {message}")
            }
        }
    }

    /// Gives it to whatever joins the thread.
    fn go_on<T>(self) -> Result<T, ()> {
        match self {
            Death::Error(error) => Err(error),
            Death::Panic(payload) => resume_unwind(payload),
        }
    }
}

type Built = std::result::Result<LocalExecutor, Death>;

/// Makes the executor of the calling thread.
fn build(plan: &mut Plan, restarts: Option<&Restarts>) -> Built {
    if let Some(restarts) = restarts {
        plan.stall_handler = restarts.handler.as_ref().map(SharedHandler::boxed);
    }
    match panic::catch(|| plan.build()) {
        Ok(result) => result.map_err(Death::Error),
        Err(payload) => Err(Death::Panic(payload)),
    }
}

fn run_once<G, F, T>(built: Built, fut_gen: G) -> std::result::Result<T, Death>
where
    G: FnOnce() -> F,
    F: Future<Output = T>,
{
    let executor = built?;
    // The executor is dropped in there, too: what its tasks hold may panic.
    let run = move || executor.run(async move { fut_gen().await });
    panic::catch(run).map_err(Death::Panic)
}

/// What a shard is restarted with.
struct Restarts {
    limit: RestartLimit,
    handler: Option<SharedHandler>,
    /// From before the first executor binds the thread: blocking threads may inherit it.
    unbound: Option<AffinityMask>,
}

impl Restarts {
    fn new(plan: &mut Plan, per_minute: u32) -> Self {
        Restarts {
            limit: RestartLimit::new(per_minute),
            handler: plan.stall_handler.take().map(SharedHandler::new),
            unbound: AffinityMask::of_calling_thread().ok().flatten(),
        }
    }
}

fn run_again_and_again<G, F, T>(
    plan: &mut Plan,
    mut built: Built,
    shard: usize,
    fut_gen: G,
    restarts: &mut Restarts,
) -> std::result::Result<T, Death>
where
    G: FnOnce() -> F + Clone,
    F: Future<Output = T>,
{
    loop {
        let death = match run_once(built, fut_gen.clone()) {
            Ok(output) => return Ok(output),
            Err(death) => death,
        };
        if !restarts.limit.allows(clock::real()) {
            return Err(death);
        }
        let text = death.text();
        panic::log(|| tracing::error!(shard, "a shard has died and is restarted: {text}"));
        if let Death::Panic(payload) = death {
            panic::discard(payload);
        }
        if let Some(mask) = &restarts.unbound {
            mask.apply().map_err(|it| Death::Error(it.into()))?;
        }
        plan.renew().map_err(Death::Error)?;
        built = build(plan, Some(restarts));
    }
}
