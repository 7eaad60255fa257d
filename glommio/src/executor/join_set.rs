//! Spawning tasks into a [`JoinSet`].

#![forbid(unsafe_code)]

use std::future::Future;

use super::executor;
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
        super::current::expect();
        self.add(future, |it| executor().spawn_local(it.run()).detach())
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
        super::current::expect().queue(handle)?;
        Ok(self.add(future, |it| {
            let task = executor().spawn_local_into(it.run(), handle);
            task.expect("the queue was there").detach()
        }))
    }
}
