//! Polls tasks whose panics do not end the executor.

#![forbid(unsafe_code)]

use std::io::Write;
use std::process;

use super::core::Core;
use super::current;
use super::proxy::ExecutorProxy;
use super::stall::Name;
use super::task_panic::PanicPolicy;
use super::task_queue::TaskQueue;
use crate::error::Result;
use crate::panic::{self, Payload};
use crate::shares::TaskQueueHandle;
use crate::task::Runnable;

impl Core {
    /// Polls a task of `queue`, whose policy is not to unwind.
    #[inline(never)]
    pub(super) fn run_isolated(&self, task: Runnable, queue: &TaskQueue) -> bool {
        // Of one that has unwound before.
        self.task_panics.name.take();
        task.run_isolated(|payload| self.has_panicked(queue, payload))
    }

    #[cold]
    fn has_panicked(&self, queue: &TaskQueue, payload: &Payload) {
        let name = self.task_panics.name.take();
        let name = name.as_deref().unwrap_or("unnamed");
        let message = panic::message(payload).unwrap_or("no message");
        if queue.on_panic() == PanicPolicy::Abort {
            // As a message of the runtime's own, it goes past the log and the test harness.
            let _ = writeln!(
                std::io::stderr(),
                "glommio: a task has panicked ({name}, in task queue {:?}: {message}), and the policy is \
                 `PanicPolicy::Abort`. The process is aborted.",
                queue.name(),
            );
            process::abort();
        }
        self.task_panics.isolated.update(|panics| panics + 1);
        self.reactor.counts().tasks_panicked.add(1);
        let (executor, queue) = (self.id(), queue.name());
        panic::log(|| {
            tracing::error!(
                executor,
                queue,
                task = name,
                "a task has panicked: {message}"
            )
        });
    }
}

/// While it unwinds, the task that the executor polls is called `name`.
pub(super) struct Panicking<'a>(pub(super) &'a Name);

impl Drop for Panicking<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            current::peek(|core| core.map(|core| core.task_panics.name.set(Some(self.0.clone()))));
        }
    }
}

impl ExecutorProxy {
    /// What a panic of a task of the queue `handle` does from now on. At first it does what was set
    /// for the executor, which is [`PanicPolicy::Unwind`] by default.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{Latency, Shares, PanicPolicy, executor, spawn_local_into};
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let plugins = executor().create_task_queue(Shares::default(), Latency::NotImportant, "plugins");
    /// executor().on_task_panic(plugins, PanicPolicy::Isolate)?;
    /// spawn_local_into(async { panic!("a bug in a plugin") }, plugins)?.detach();
    /// executor().yield_task_queue_now().await;
    /// # while executor().executor_stats().tasks_panicked() == 0 {
    /// #     executor().yield_task_queue_now().await;
    /// # }
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn on_task_panic(&self, handle: TaskQueueHandle, policy: PanicPolicy) -> Result<(), ()> {
        current::expect().queues.set_on_panic(handle, policy)
    }
}
