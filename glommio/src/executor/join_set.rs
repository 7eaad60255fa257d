//! Spawning tasks into a [`JoinSet`].

#![forbid(unsafe_code)]

use std::future::Future;

use super::current;
use super::spawn::{BoxedFuture, LARGE_BYTES, Start};
use crate::error::Result;
use crate::shares::TaskQueueHandle;
use crate::task::{AbortHandle, JoinSet};

impl<T: 'static> JoinSet<T> {
    /// Spawns a task into the set, in the task queue of the caller, as
    /// [`spawn_local`](crate::spawn_local) does: the future is polled once before this returns.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread. A panic of that first poll comes out of
    /// this call; the set has the task, as one that has panicked.
    pub fn spawn(&mut self, future: impl Future<Output = T> + 'static) -> AbortHandle {
        // Asked first, so that a task that cannot be spawned is not a member.
        let queue = current::expect().current_queue();
        self.spawn_any(future, queue, Start::AtOnce)
    }

    /// Spawns a task into the set, in the task queue `handle`. It is queued, never polled inside
    /// the call.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{Latency, Shares, executor, task::JoinSet};
    ///
    /// glommio::LocalExecutor::default().run(async {
    ///     let background =
    ///         executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "background");
    ///     let mut set = JoinSet::new();
    ///     set.spawn_into(async { 1 + 1 }, background)?;
    ///     assert_eq!(set.join_next().await, Some(Ok(2)));
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn spawn_into(
        &mut self,
        future: impl Future<Output = T> + 'static,
        handle: TaskQueueHandle,
    ) -> Result<AbortHandle, ()> {
        // Asked first, so that a refused task is not a member.
        current::expect().queue(handle)?;
        Ok(self.spawn_any(future, handle, Start::Queued))
    }

    fn spawn_any(
        &mut self,
        future: impl Future<Output = T> + 'static,
        queue: TaskQueueHandle,
        start: Start,
    ) -> AbortHandle {
        let bytes = size_of_val(&future);
        if bytes < LARGE_BYTES {
            return self.spawn_bytes(future, bytes, queue, start);
        }
        let boxed: BoxedFuture<T> = Box::pin(future);
        self.spawn_bytes(boxed, bytes, queue, start)
    }

    fn spawn_bytes(
        &mut self,
        future: impl Future<Output = T> + 'static,
        bytes: usize,
        queue: TaskQueueHandle,
        start: Start,
    ) -> AbortHandle {
        self.add(future, |it| {
            let core = current::expect();
            let task = core.task_of(it.run()).of_bytes(bytes);
            core.start(task, queue, start)
        })
    }
}
