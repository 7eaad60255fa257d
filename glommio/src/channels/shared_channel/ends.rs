//! The two ends of a channel, at whatever stage: in their executors or on the way there.

use std::fmt;

use super::waits::Waits;
use crate::channels::spsc_queue::{self, ConsumerEnd, Line, Lines, ProducerEnd};
use crate::error::{GlommioError, ResourceType};
use crate::loom::sync::Arc;
use crate::panic;

/// The ends of a new channel.
pub(super) fn make<T: Send>(size: usize) -> (SendingEnd<T>, ReceivingEnd<T>) {
    let (producer, consumer) = spsc_queue::make_ends(size, Waits::new);
    (SendingEnd { producer }, ReceivingEnd { consumer })
}

const _: () = assert!(cfg!(loom) || size_of::<Line<Waits>>() == 128);

/// The sending end at any stage. On the line of each side are the tasks that wait for that side.
pub(super) struct SendingEnd<T: Send> {
    producer: ProducerEnd<T, Waits>,
}

/// The receiving end at any stage.
pub(super) struct ReceivingEnd<T: Send> {
    consumer: ConsumerEnd<T, Waits>,
}

impl<T: Send> SendingEnd<T> {
    /// Tells the other end that this one is in its executor, and waits for it to say the same, or to
    /// be dropped.
    pub(super) async fn meet(&self) {
        let is_gone = || self.producer.consumer_disconnected();
        self.senders().meet(self.receivers(), is_gone).await;
    }

    /// The tasks that wait for space.
    pub(super) fn senders(&self) -> &Waits {
        &self.lines().consumer.beside
    }

    /// The tasks that wait for items.
    fn receivers(&self) -> &Waits {
        &self.lines().producer.beside
    }

    #[inline]
    pub(super) fn lines(&self) -> &Arc<Lines<Waits>> {
        self.producer.lines()
    }

    /// How many items the channel holds.
    pub(super) fn capacity(&self) -> usize {
        self.producer.capacity()
    }

    /// Stores an item; tells no receiver.
    #[inline]
    pub(super) fn store(&self, item: T) -> Result<(), GlommioError<T>> {
        let closed = |item| Err(GlommioError::Closed(ResourceType::Channel(item)));
        if self.producer.has_disconnected() {
            return closed(item);
        }
        match self.producer.try_push(item) {
            None => Ok(()),
            Some(item) if self.producer.consumer_disconnected() => closed(item),
            Some(item) => Err(GlommioError::WouldBlock(ResourceType::Channel(item))),
        }
    }

    /// Stores an item; tells no receiver. Gives the item back if that cannot be done, for whatever
    /// reason.
    #[inline]
    pub(super) fn try_store(&self, item: T) -> Option<T> {
        if self.producer.has_disconnected() {
            Some(item)
        } else {
            self.producer.try_push(item)
        }
    }

    /// Stores an item, and tells a receiver at once.
    pub(super) fn try_send(&self, item: T) -> Result<(), GlommioError<T>> {
        self.store(item)?;
        self.receivers().begin(false);
        self.receivers().notify_one();
        self.drop_late();
        Ok(())
    }

    /// After an item was stored, and the receivers were told or are going to be: has it dropped if
    /// the receiver has just gone. See [`waits`](super::waits).
    #[inline]
    pub(super) fn drop_late(&self) {
        if self.producer.consumer_disconnected() {
            panic::contain(
                "the destructor of an item without a receiver panicked",
                || self.producer.drop_late(),
            );
        }
    }

    /// Whether it is worth waking up to store: it can go on for a while, or learns that it is over.
    pub(super) fn is_worth_storing(&self) -> bool {
        self.producer.is_half_free() || self.is_closed()
    }

    pub(super) fn close(&self) {
        if !self.producer.disconnect() {
            self.receivers().tasks.notify_all();
            self.senders().tasks.notify_all();
        }
    }

    /// How many items can be stored.
    pub(super) fn free_space(&self) -> usize {
        self.producer.free_space()
    }

    fn is_closed(&self) -> bool {
        self.producer.has_disconnected() || self.producer.consumer_disconnected()
    }

    pub(super) fn describe(&self, mut shown: fmt::DebugStruct<'_, '_>) -> fmt::Result {
        (shown.field("free_space", &self.free_space()))
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T: Send> Drop for SendingEnd<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T: Send> ReceivingEnd<T> {
    /// As that of the sending end.
    pub(super) async fn meet(&self) {
        let is_gone = || self.consumer.producer_disconnected();
        self.receivers().meet(self.senders(), is_gone).await;
    }

    /// The tasks that wait for items.
    pub(super) fn receivers(&self) -> &Waits {
        &self.lines().producer.beside
    }

    /// The tasks that wait for space.
    fn senders(&self) -> &Waits {
        &self.lines().consumer.beside
    }

    #[inline]
    pub(super) fn lines(&self) -> &Arc<Lines<Waits>> {
        self.consumer.lines()
    }

    /// How many items the channel holds.
    pub(super) fn capacity(&self) -> usize {
        self.consumer.capacity()
    }

    /// Takes an item, or learns that there will be none; tells no sender.
    #[inline]
    pub(super) fn take(&self) -> Option<Option<T>> {
        // Looked at first, for items may come until it is set, and none after it.
        let is_over = self.consumer.producer_disconnected();
        match self.consumer.try_pop() {
            None if !is_over => None,
            item => Some(item),
        }
    }

    pub(super) fn describe(&self, mut shown: fmt::DebugStruct<'_, '_>) -> fmt::Result {
        (shown.field("is_closed", &self.consumer.producer_disconnected())).finish_non_exhaustive()
    }
}

impl<T: Send> Drop for ReceivingEnd<T> {
    fn drop(&mut self) {
        self.consumer.disconnect();
        self.senders().tasks.notify_all();
        // Last, as it may panic.
        self.consumer.retire(|| self.receivers().wait_until_seen());
    }
}
