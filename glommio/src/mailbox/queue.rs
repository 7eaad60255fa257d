//! The queue through which other threads hand work to an executor.
//!
//! It has no bound of its own, and needs none where a sender has at most one message under way per
//! thing it speaks of. Foreign wakes are such: they coalesce in the task, so that mail is bounded by
//! the number of tasks. A sender of another kind brings its own bound.

use std::{fmt, sync::Arc};

use concurrent_queue::ConcurrentQueue;

use super::sleep::{Notifier, Signal, WakeSignal};

/// Mail from any thread to one owner, which is notified of each message.
///
/// Messages of one sender are received in the order in which it sent them. Whoever drops the
/// mailbox last drops what nobody received: a message must be harmless to drop on any thread.
pub(crate) struct Mailbox<M, S = WakeSignal> {
    queue: ConcurrentQueue<M>,
    notifier: Arc<Notifier<S>>,
}

impl<M, S: Signal> Mailbox<M, S> {
    /// An open, empty mailbox whose owner looks when `notifier` tells it to.
    pub(crate) fn new(notifier: Arc<Notifier<S>>) -> Self {
        Self {
            queue: ConcurrentQueue::unbounded(),
            notifier,
        }
    }

    /// Any thread: leaves a message and notifies the owner.
    ///
    /// # Errors
    /// The mailbox is closed, the owner gone: the message comes back.
    pub(crate) fn send(&self, message: M) -> Result<(), M> {
        // An unbounded queue refuses only when it is closed.
        self.queue
            .push(message)
            .map_err(|error| error.into_inner())?;
        self.notifier.notify();
        Ok(())
    }

    /// Owner: the oldest message, if there is one.
    pub(crate) fn receive(&self) -> Option<M> {
        self.queue.pop().ok()
    }

    /// Owner, before it dies: from now on nothing is accepted.
    ///
    /// What was accepted before is still received, and should be: a message that refers to this
    /// mailbox, as a task does, would otherwise keep it alive for ever. One drain after this call
    /// gets all of it, also what a sender was just writing.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

impl<M, S> fmt::Debug for Mailbox<M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("waiting", &self.queue.len())
            .field("is_closed", &self.queue.is_closed())
            .finish()
    }
}
