//! Tasks for HTTP/2.

use std::future::Future;

use glommio::{Task, TaskQueueHandle, executor, spawn_local_into};

use crate::connections::ConnectionTasks;

/// Spawns hyper's tasks, which HTTP/2 has for each stream: in the task queue of the connection's
/// task, or in a queue of their own. To be used on threads that run an executor.
///
/// The tasks are detached. Those of a connection that [`Connections`](crate::Connections) watch
/// [contain panics](crate::Connections#panics); for another one that panics, the executor's
/// [`PanicPolicy`](glommio::PanicPolicy) decides, as for any task.
#[derive(Clone, Copy, Debug, Default)]
pub struct GlommioExecutor {
    queue: Option<TaskQueueHandle>,
}

impl GlommioExecutor {
    /// Spawns in the task queue of the caller.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns in the task queue `queue`, so that requests have shares of their own.
    ///
    /// The queue is to outlive the connections: a stream whose queue is gone is reset.
    pub fn in_queue(queue: TaskQueueHandle) -> Self {
        GlommioExecutor { queue: Some(queue) }
    }
}

impl<F> hyper::rt::Executor<F> for GlommioExecutor
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        let queue = self
            .queue
            .unwrap_or_else(|| executor().current_task_queue());
        // Queued, not polled inside the call: hyper is in the middle of something. The queue may be
        // gone, and then so is the future.
        match ConnectionTasks::current() {
            Some(tasks) => {
                let future = tasks.contain_future(future);
                let _ = spawn_local_into(future, queue).map(Task::detach);
            }
            None => {
                let _ = spawn_local_into(future, queue).map(Task::detach);
            }
        }
    }
}
