//! Spawning tasks into a [`JoinSet`], and waiting for them: both need to know of the executor.

#![forbid(unsafe_code)]

use std::future::{Future, poll_fn};
use std::task::{Context, Poll, ready};

use super::current;
use super::spawn::{BoxedFuture, LARGE_BYTES, Start};
use crate::error;
use crate::noted::{self, Awaited, waits_for};
use crate::reactor::budget;
use crate::shares::TaskQueueHandle;
use crate::task::{AbortHandle, JoinError, JoinSet};

impl<T: 'static> JoinSet<T> {
    /// Spawns a task into the set, in the task queue of the caller, as
    /// [`spawn_local`](crate::spawn_local) does: the future is polled once before this returns.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread. A panic of that first poll comes out of
    /// this call, unless it is [isolated](crate::PanicPolicy::Isolate); the set has the task, as one that has panicked.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn(&mut self, future: impl Future<Output = T> + 'static) -> AbortHandle {
        // Asked first, so that a task that cannot be spawned is not a member.
        let queue = current::expect().current_queue();
        noted::spawns_here();
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
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn_into(
        &mut self,
        future: impl Future<Output = T> + 'static,
        handle: TaskQueueHandle,
    ) -> error::Result<AbortHandle, ()> {
        // Asked first, so that a refused task is not a member.
        current::expect().queue(handle)?;
        noted::spawns_here();
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

impl<T> JoinSet<T> {
    /// Waits for the next task that is done, and takes its output. `None` if the set is empty.
    ///
    /// # Errors
    ///
    /// [`JoinError`] if the task was cancelled, or has panicked (and its panic was
    /// [isolated](crate::PanicPolicy::Isolate), or caught further up than the executor's
    /// [`run`](crate::LocalExecutor::run), out of which it comes).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// One poll of [`join_next`](Self::join_next). Only the task that has polled last is woken.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{executor, task::JoinSet};
    /// use std::future::poll_fn;
    ///
    /// let mut set = JoinSet::new();
    /// set.spawn_into(async { 7 }, executor().current_task_queue()).unwrap();
    /// assert_eq!(poll_fn(|cx| set.poll_join_next(cx)).await, Some(Ok(7)));
    /// assert_eq!(poll_fn(|cx| set.poll_join_next(cx)).await, None, "the set is empty");
    ///
    /// set.spawn(std::future::pending());
    /// set.shutdown().await;
    /// assert!(set.is_empty());
    /// # });
    /// ```
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        ready!(budget::poll_leave(cx));
        let output = ready!(waits_for(self.poll_next(cx), || Awaited::Other(
            "a task of a JoinSet"
        )));
        budget::spend();
        Poll::Ready(output)
    }

    /// Cancels all tasks, and waits until their futures have been dropped. Outputs that were not
    /// taken are dropped.
    ///
    /// # Cancel safety
    ///
    /// All are cancelled with the first poll.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }
}
