//! What happens on the thread of a shard, and what the pool hears of it.
//!
//! ```text
//!   thread of a shard    build, start? run ──▶ output, error or panic ──▶ restart? ──▶ ended ──┐
//!                             ▲                                              │                 ▼
//!                             └────────────────── pause ─────────────────────┘   handles: joined in that order
//!                        EndPool: a failure sets the notice that all shards can wait for
//! ```
//!
//! An executor is made while the threads of the others are created, so that most of them find the
//! start given and need not sleep until it is.

#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::LocalExecutor;
use super::plan::Plan;
use super::restarts::RestartPace;
use super::stall::SharedHandler;
use crate::clock;
use crate::error::{BuilderErrorKind, GlommioError, Result};
use crate::panic;
use crate::reactor::deadline_after;
use crate::sys::affinity::AffinityMask;
use crate::waiters::Notice;

/// What the death of one shard means to its pool; see
/// [`LocalExecutorPoolBuilder::on_shard_end`](crate::LocalExecutorPoolBuilder::on_shard_end).
///
/// A shard dies of a panic that leaves its executor, because its executor could not be made, or, with
/// [`try_on_all_shards`](crate::LocalExecutorPoolBuilder::try_on_all_shards), of an error that its
/// future returns. Any other output is an end in good order, and none of this applies. Each death is
/// an event in the log, at the level `error`, with the number of the shard and the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShardExitPolicy {
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
    /// The thread waits before it: 10 ms, then twice as long each time, up to a second, until a start
    /// has lived for a second. An executor that cannot be made is such a death, too.
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

/// Called before a restart, with the number of the shard and why it has died. Its panics are contained.
pub(super) type RestartHook = AssertUnwindSafe<Box<dyn Fn(usize, &str) + Send + Sync>>;

/// What the threads of a pool and its handles share.
pub(super) struct Ends {
    /// Whether the shards run, once that is decided: none does before the thread of each exists.
    runs: OnceLock<bool>,
    policy: ShardExitPolicy,
    on_restart: Option<RestartHook>,
    /// The pool is to end.
    ending: Arc<Notice>,
    state: Mutex<EndsState>,
}

#[derive(Default)]
struct EndsState {
    /// Those that were not asked for yet, the first of them first.
    ended: VecDeque<usize>,
    told_at: Option<Instant>,
    /// Of what waits for the next end, be it a task or a thread.
    waiting: Option<Waker>,
}

/// What is next to be said of a shard.
pub(super) enum Next {
    Ended(usize),
    /// It was told to end and has not, for so long.
    Overdue(usize, Duration),
}

impl Ends {
    pub(super) fn new(policy: ShardExitPolicy, on_restart: Option<RestartHook>) -> Self {
        Ends {
            runs: OnceLock::new(),
            policy,
            on_restart,
            ending: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// The first decision counts.
    fn decide(&self, runs: bool) {
        let _first = self.runs.set(runs);
    }

    /// Which of `shards`, of which there is at least one, has ended or is overdue. If none has, it is
    /// to be asked again when `waker` is woken, and at the moment that the error may name.
    pub(super) fn next(
        &self,
        shards: &[usize],
        waker: &Waker,
    ) -> std::result::Result<Next, Option<Instant>> {
        // Outside of the lock, as the drop of the one before: wakers may run foreign code.
        let waker = waker.clone();
        let mut state = self.lock();
        // One that was overdue may end later.
        while let Some(shard) = state.ended.pop_front() {
            if shards.contains(&shard) {
                return Ok(Next::Ended(shard));
            }
        }
        let due = match (self.policy, state.told_at) {
            (ShardExitPolicy::EndPool { grace }, Some(told_at)) => {
                let due = deadline_after(told_at, grace);
                if due <= clock::real() {
                    return Ok(Next::Overdue(shards[0], grace));
                }
                Some(due)
            }
            _ => None,
        };
        let before = state.waiting.replace(waker);
        drop(state);
        drop(before);
        Err(due)
    }

    fn lock(&self) -> MutexGuard<'_, EndsState> {
        // Nothing under the lock panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl_debug! { Ends, it: policy; .. }

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
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(panic::wake);
        if self.ends_pool {
            // Last: those that are told end after it.
            self.ends.ending.give();
        }
    }
}

/// Runs a shard on the calling thread, which is its own, until it is over for good. `failure` says of
/// an output why it is a death, if it is one.
///
/// # Errors
///
/// Of the kind `Interrupted` if the pool has not started; else why there is no executor, or what it
/// panicked with.
pub(super) fn run<G, F, T>(
    mut plan: Plan,
    ends: &Ends,
    shard: usize,
    mut fut_gen: G,
    failure: fn(&T) -> Option<String>,
) -> Result<T, ()>
where
    G: FnOnce() -> F + Clone,
    F: Future<Output = T>,
{
    plan.shard = Some((shard, Arc::clone(&ends.ending)));
    let mut restarts = match ends.policy {
        ShardExitPolicy::Restart { per_minute } => Some(Restarts::new(&mut plan, per_minute)),
        ShardExitPolicy::Report | ShardExitPolicy::EndPool { .. } => None,
    };
    let mut built = caught(|| build(&mut plan, restarts.as_ref()));
    if !*ends.runs.wait() {
        panic::contain(PANICKED_AGAIN, || drop(built));
        return Err(io::Error::from(io::ErrorKind::Interrupted).into());
    }
    let mut ended = Ended {
        ends,
        shard,
        ends_pool: false,
    };
    loop {
        // A clone is made for restarts alone.
        let again = restarts.as_ref().map(|_| fut_gen.clone());
        let started = clock::real();
        let run = || {
            let executor = built?;
            let output = executor.run(async move { fut_gen().await });
            // In here: what its tasks hold may panic, as may the text of an error.
            drop(executor);
            let death = failure(&output);
            Ok((output, death))
        };
        let (end, death) = match caught(run) {
            Ok((output, death)) => (Ok(output), death),
            Err(error) => {
                let reason = reason(&error);
                (Err(error), Some(reason))
            }
        };
        let Some(death) = death else {
            panic::log(|| tracing::info!(shard, "a shard has ended"));
            return end;
        };
        let now = clock::real();
        let pause = (restarts.as_mut()).and_then(|it| it.pace.next(now - started, now));
        let (Some(restarts), Some(again), Some(pause)) = (&restarts, again, pause) else {
            panic::log(|| tracing::error!(shard, "a shard has died: {death}"));
            ended.ends_pool = matches!(ends.policy, ShardExitPolicy::EndPool { .. });
            return end;
        };
        panic::log(|| {
            tracing::error!(shard, ?pause, "a shard has died and is restarted: {death}");
        });
        panic::contain(PANICKED_AGAIN, || drop(end));
        if let Some(hook) = &ends.on_restart {
            panic::contain("the hook for restarts has panicked", || hook(shard, &death));
        }
        thread::sleep(pause);
        fut_gen = again;
        built = caught(|| rebuild(&mut plan, restarts));
    }
}

const PANICKED_AGAIN: &str = "what a dead shard has left has panicked when it was dropped";

/// A panic of `f` is an error.
fn caught<R>(f: impl FnOnce() -> Result<R, ()>) -> Result<R, ()> {
    panic::catch(f).unwrap_or_else(|payload| {
        Err(GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(
            payload.into(),
        )))
    })
}

fn reason(error: &GlommioError<()>) -> String {
    match error {
        GlommioError::BuilderError(BuilderErrorKind::ThreadPanic(payload)) => {
            let message = payload.message().unwrap_or("no message");
            format!("it panicked: {message}")
        }
        error => error.to_string(),
    }
}

/// What a shard is restarted with.
struct Restarts {
    pace: RestartPace,
    handler: Option<SharedHandler>,
    /// From before the first executor binds the thread: blocking threads may inherit it.
    unbound: Option<AffinityMask>,
}

impl Restarts {
    fn new(plan: &mut Plan, per_minute: u32) -> Self {
        Restarts {
            pace: RestartPace::new(per_minute),
            handler: plan.stall_handler.take().map(SharedHandler::new),
            unbound: AffinityMask::of_calling_thread().ok().flatten(),
        }
    }
}

/// Makes the executor of the calling thread.
fn build(plan: &mut Plan, restarts: Option<&Restarts>) -> Result<LocalExecutor, ()> {
    if let Some(restarts) = restarts {
        plan.stall_handler = restarts.handler.as_ref().map(SharedHandler::boxed);
    }
    plan.build()
}

/// Makes the next executor of the calling thread.
fn rebuild(plan: &mut Plan, restarts: &Restarts) -> Result<LocalExecutor, ()> {
    if let Some(mask) = &restarts.unbound {
        mask.apply()?;
    }
    plan.renew()?;
    build(plan, Some(restarts))
}
