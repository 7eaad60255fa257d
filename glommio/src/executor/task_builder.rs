//! Spawning tasks that have names.
//!
//! A name is in the future that is spawned, so that a task without one is none the larger. While
//! the stall detection times a turn, each poll of a named task notes whether the budget ended in
//! it. Where the log has a subscriber that wants it, each poll is inside the task's span.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::isolation::Panicking;
use super::spawn::{BoxedFuture, LARGE_BYTES, Start};
use super::stall::{Name, Watched};
use super::task_span::TaskSpan;
use super::{Task, current};
use crate::error::Result;
use crate::noted;
use crate::shares::TaskQueueHandle;

/// Spawns a task with a name, under which it is reported.
///
/// [`StallDetectionHandler::stall_in_task`](crate::StallDetectionHandler::stall_in_task) is told it
/// if the task keeps the thread for too long. With the feature `debugging` it is also the task's
/// label, which `TaskDebugger` logs.
///
/// What the task logs through `tracing` stands in a span, `task`, of the target `glommio::task` and
/// the level `debug`: with the fields `executor`, `queue`, `name`, and `id`, a number that no other
/// task's span in the process has. The span is entered for each poll and for the drop of the
/// future, and has no parent.
///
/// A name costs the task ten words or so, and two tests for each poll; with stall detection on, two
/// readings of the clock for each poll; with a subscriber that wants the span, what that does with
/// it. Tasks without a name pay nothing.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, TaskBuilder, executor};
///
/// LocalExecutor::default().run(async {
///     let parser = TaskBuilder::new().name("parser").spawn_local(async { 6 * 7 });
///     let writers = [1, 2].map(|n| {
///         let name = format!("writer {n}");
///         TaskBuilder::new().name(name).spawn_local(async move { n })
///     });
///     assert_eq!(parser.await, 42);
///     let queue = executor().current_task_queue();
///     let index = TaskBuilder::new().name("index").spawn_local_into(async { 7 }, queue);
///     assert_eq!(index.unwrap().await, 7);
///     for (n, writer) in (1..).zip(writers) {
///         assert_eq!(writer.await, n);
///     }
/// });
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder spawns nothing by itself"]
pub struct TaskBuilder {
    name: Option<Name>,
}

impl TaskBuilder {
    /// A builder of tasks without a name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names the task.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// As [`spawn_local`](crate::spawn_local).
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn_local<T: 'static>(self, future: impl Future<Output = T> + 'static) -> Task<T> {
        let queue = current::expect().current_queue();
        noted::spawns_here();
        self.spawn_any(future, queue, Start::AtOnce)
    }

    /// As [`spawn_local_into`](crate::spawn_local_into).
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; the future is dropped.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn_local_into<T: 'static>(
        self,
        future: impl Future<Output = T> + 'static,
        handle: TaskQueueHandle,
    ) -> Result<Task<T>, ()> {
        // Asked first, so that a label is not left for another task.
        current::expect().queue(handle)?;
        noted::spawns_here();
        Ok(self.spawn_any(future, handle, Start::Queued))
    }

    fn spawn_any<T: 'static>(
        self,
        future: impl Future<Output = T> + 'static,
        queue: TaskQueueHandle,
        start: Start,
    ) -> Task<T> {
        let bytes = size_of_val(&future);
        if bytes < LARGE_BYTES {
            return self.spawn_bytes(future, bytes, queue, start);
        }
        let boxed: BoxedFuture<T> = Box::pin(future);
        self.spawn_bytes(boxed, bytes, queue, start)
    }

    fn spawn_bytes<T: 'static>(
        self,
        future: impl Future<Output = T> + 'static,
        bytes: usize,
        queue: TaskQueueHandle,
        start: Start,
    ) -> Task<T> {
        let core = current::expect();
        let task = match self.name {
            Some(name) => {
                let named = Named {
                    span: TaskSpan::new(&name, queue),
                    name,
                    future: Some(future),
                };
                named.label();
                core.task_of(named)
            }
            None => core.task_of(future),
        };
        Task::new(core.start(task.of_bytes(bytes), queue, start))
    }
}

pin_project! {
    /// The future of a task with a name.
    struct Named<F> {
        name: Name,
        span: TaskSpan,
        // None while the task is being dropped.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Named<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = this.span.enter();
            this.future.set(None);
        }
    }
}

impl<F> Named<F> {
    /// The next task that is spawned here is this one.
    fn label(&self) {
        #[cfg(feature = "debugging")]
        crate::task::debugging::label_next(self.name.clone());
    }
}

impl<F: Future> Future for Named<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let detector = current::peek(|core| core.and_then(|core| core.stalls.timing()));
        let _watched = detector.map(|detector| Watched::begin(detector, this.name));
        let _entered = this.span.enter();
        let _panicking = Panicking(this.name);
        let future = this.future.as_pin_mut();
        future.expect("it is there until the drop").poll(cx)
    }
}
