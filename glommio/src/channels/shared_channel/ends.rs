//! The two ends of a channel, at whatever stage: in their executors or on the way there.

use std::fmt;
use std::task::{Context, Poll, ready};

use crate::channels::spsc_queue::{self, Consumer, Producer};
use crate::channels::waiters::Waiters;
use crate::error::{GlommioError, ResourceType};
use crate::mailbox::loom::sync::Arc;
use crate::wait_queue::WaitKey;

/// The ends of a new channel.
pub(super) fn make<T: Send>(size: usize) -> (SendingEnd<T>, ReceivingEnd<T>) {
    let (producer, consumer) = spsc_queue::make(size);
    let ends = Arc::new(Ends {
        senders: Waiters::new(),
        receivers: Waiters::new(),
    });
    let sending = SendingEnd {
        producer,
        ends: Arc::clone(&ends),
    };
    (sending, ReceivingEnd { consumer, ends })
}

/// What both ends share besides the ring.
struct Ends {
    senders: Waiters,
    receivers: Waiters,
}

/// The sending end at any stage.
pub(super) struct SendingEnd<T: Send> {
    producer: Producer<T>,
    ends: Arc<Ends>,
}

/// The receiving end at any stage.
pub(super) struct ReceivingEnd<T: Send> {
    consumer: Consumer<T>,
    ends: Arc<Ends>,
}

impl<T: Send> SendingEnd<T> {
    /// Tells the other end, if it was not told yet, that this one is in its executor.
    pub(super) fn arrive(&self) {
        self.ends.senders.arrive();
        self.ends.receivers.notify_all();
    }

    /// Waits for the other end to arrive, or to be dropped.
    pub(super) async fn meet(&self) {
        self.arrive();
        let Ends { senders, receivers } = &*self.ends;
        let has_come = || receivers.has_arrived() || self.producer.consumer_disconnected();
        senders.wait(|| has_come().then_some(())).await;
        senders.shrink();
    }

    /// Stores an item; tells no receiver.
    fn store(&self, item: T) -> Result<(), GlommioError<T>> {
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

    pub(super) fn try_send(&self, item: T) -> Result<(), GlommioError<T>> {
        self.store(item)?;
        self.ends.receivers.notify_one();
        Ok(())
    }

    pub(super) async fn send(&self, item: T) -> Result<(), GlommioError<T>> {
        let mut refused = match self.try_send(item) {
            Err(GlommioError::WouldBlock(ResourceType::Channel(item))) => Some(item),
            sent => return sent,
        };
        let store = || {
            let item = refused.take().expect("it is stored once");
            match self.store(item) {
                Err(GlommioError::WouldBlock(ResourceType::Channel(item))) => {
                    refused = Some(item);
                    None
                }
                sent => Some(sent),
            }
        };
        self.ends.senders.wait(store).await?;
        self.ends.receivers.notify_one();
        Ok(())
    }

    pub(super) fn close(&self) {
        if !self.producer.disconnect() {
            self.ends.receivers.notify_all();
            self.ends.senders.notify_all();
        }
    }

    /// How many items can be stored.
    pub(super) fn free_space(&self) -> usize {
        self.producer.free_space()
    }

    fn is_closed(&self) -> bool {
        self.producer.has_disconnected() || self.producer.consumer_disconnected()
    }

    pub(super) fn describe(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.debug_struct(name)
            .field("free_space", &self.free_space())
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
    pub(super) fn arrive(&self) {
        self.ends.receivers.arrive();
        self.ends.senders.notify_all();
    }

    /// As that of the sending end.
    pub(super) async fn meet(&self) {
        self.arrive();
        let Ends { senders, receivers } = &*self.ends;
        let has_come = || senders.has_arrived() || self.consumer.producer_disconnected();
        receivers.wait(|| has_come().then_some(())).await;
        receivers.shrink();
    }

    /// Takes an item, or learns that there will be none; tells no sender.
    fn take(&self) -> Option<Option<T>> {
        // Looked at first, for items may come until it is set, and none after it.
        let is_over = self.consumer.producer_disconnected();
        match self.consumer.try_pop() {
            None if !is_over => None,
            item => Some(item),
        }
    }

    /// The next item, or `None` at the end.
    pub(super) async fn receive(&self) -> Option<T> {
        let receivers = &self.ends.receivers;
        let item = receivers.wait(|| self.take()).await;
        self.taken(item)
    }

    /// One poll of the same, by something that [leaves](Self::leave) in the end.
    pub(super) fn poll_receive(
        &self,
        key: &mut Option<WaitKey>,
        cx: &Context<'_>,
    ) -> Poll<Option<T>> {
        let receivers = &self.ends.receivers;
        let item = ready!(receivers.poll(key, cx, || self.take()));
        Poll::Ready(self.taken(item))
    }

    /// Gives up waiting.
    pub(super) fn leave(&self, key: &mut Option<WaitKey>) {
        self.ends.receivers.leave(key);
    }

    /// Tells the senders that `item` was taken.
    fn taken(&self, item: Option<T>) -> Option<T> {
        if item.is_some() {
            self.ends.senders.notify_one();
        }
        item
    }

    pub(super) fn describe(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        f.debug_struct(name)
            .field("is_closed", &self.consumer.producer_disconnected())
            .finish_non_exhaustive()
    }
}

impl<T: Send> Drop for ReceivingEnd<T> {
    fn drop(&mut self) {
        self.consumer.disconnect();
        self.ends.senders.notify_all();
        // Last, as it may panic. An item that is being sent just now is dropped with the other end.
        self.consumer.clear();
    }
}
