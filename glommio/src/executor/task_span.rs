//! The span of the log that a task with a name is in.
//!
//! Without a subscriber, or with one that does not want the span, making it is a load and a
//! comparison, and entering it a test. A subscriber is user code: its panics end here, so that
//! neither a task nor the unwinding of one is disturbed.

#![forbid(unsafe_code)]

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::Span;

use super::current;
use crate::panic;
use crate::shares::TaskQueueHandle;

/// The span of one task.
pub(super) struct TaskSpan(Span);

impl TaskSpan {
    /// That of the task `name` of `queue`, of the executor that runs on this thread.
    pub(super) fn new(name: &str, queue: TaskQueueHandle) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let mut span = Span::none();
        panic::log(|| {
            // No parent: a task that spawns the next of its kind would be kept by it, and all
            // before it.
            span = tracing::debug_span!(
                target: "glommio::task",
                parent: None,
                "task",
                executor = current::expect().id(),
                queue = queue_name(queue),
                name,
                id = NEXT_ID.fetch_add(1, Ordering::Relaxed),
            );
        });
        TaskSpan(span)
    }

    /// Enters the span, until what this returns is dropped.
    #[inline]
    pub(super) fn enter(&self) -> Option<Entered<'_>> {
        if self.0.is_disabled() {
            return None;
        }
        Some(Entered::begin(&self.0))
    }
}

impl Drop for TaskSpan {
    #[inline]
    fn drop(&mut self) {
        if !self.0.is_disabled() {
            close(mem::replace(&mut self.0, Span::none()));
        }
    }
}

/// The subscriber is told.
#[cold]
fn close(span: Span) {
    panic::log(|| drop(span));
}

/// A span that is entered.
pub(super) struct Entered<'a>(&'a Span);

impl<'a> Entered<'a> {
    fn begin(span: &'a Span) -> Self {
        panic::log(|| {
            span.with_subscriber(|(id, dispatch)| dispatch.enter(id));
        });
        Entered(span)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        panic::log(|| {
            self.0.with_subscriber(|(id, dispatch)| dispatch.exit(id));
        });
    }
}

/// Asked for only where the span is wanted.
fn queue_name(queue: TaskQueueHandle) -> String {
    let name = current::peek(|core| Some(core?.queues.at(queue.index())?.name().to_owned()));
    name.unwrap_or_default()
}
