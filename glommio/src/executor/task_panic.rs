//! What a panic of a task may do to its executor.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::cell::Cell;

/// What a panic of a task does to its executor.
///
/// Set for an executor with
/// [`LocalExecutorBuilder::on_task_panic`](crate::LocalExecutorBuilder::on_task_panic), and for one
/// task queue with [`ExecutorProxy::on_task_panic`](crate::ExecutorProxy::on_task_panic).
///
/// It is about panics of a poll, also of the first, inside the call that spawns the task. Always as
/// with `Unwind` are: panics of destructors, those of the future that is given to
/// [`LocalExecutor::run`](crate::LocalExecutor::run), and those of scoped tasks, since what borrows
/// from the caller must not outlive a panic that the caller should see.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutorBuilder, PanicPolicy, executor, spawn_local, task::JoinSet};
///
/// # std::panic::set_hook(Box::new(|_| {}));
/// let server = LocalExecutorBuilder::default()
///     .on_task_panic(PanicPolicy::Isolate)
///     .make()?;
/// server.run(async {
///     let mut connections = JoinSet::new();
///     connections.spawn(async { panic!("a bug in a handler") });
///     connections.spawn(async { "answered" });
///     let failed = connections.join_next().await.unwrap().unwrap_err();
///     assert!(failed.is_panic());
///     assert_eq!(connections.join_next().await, Some(Ok("answered")));
///     assert_eq!(executor().executor_stats().tasks_panicked(), 1);
/// });
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PanicPolicy {
    /// The panic unwinds out of [`LocalExecutor::run`](crate::LocalExecutor::run), and so ends the
    /// thread of an executor that has one. A panic of the first poll unwinds through the call that
    /// spawns the task. As in glommio 0.9.
    #[default]
    Unwind,
    /// The task ends, all others go on. What awaits its [`Task`](crate::Task) or
    /// [`JoinHandle`](crate::task::JoinHandle) panics with the same payload; a
    /// [`JoinSet`](crate::task::JoinSet) gives an error that
    /// [`is_panic`](crate::task::JoinError::is_panic).
    ///
    /// Each is an event of the level `error` in the log, with the executor, the queue, the task's
    /// [name](crate::TaskBuilder) and the message, and is counted in
    /// [`tasks_panicked`](crate::ExecutorStats::tasks_panicked).
    ///
    /// State that the task shared with others may be half-changed.
    Isolate,
    /// The process is aborted, with a message, when the task's own destructors have run.
    Abort,
}

/// What an executor knows of panics that it has caught.
#[derive(Default)]
pub(super) struct PanicPolicies {
    pub(super) isolated: Cell<u64>,
    /// Of the task that is unwinding.
    pub(super) name: Cell<Option<Cow<'static, str>>>,
}
