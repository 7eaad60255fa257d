//! The ends of a channel in their executors: what the futures of both and the public methods share.

use std::cell::Cell;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::endpoint::Endpoint;
use super::ends::{ReceivingEnd, SendingEnd};
use super::waits::Side;
use crate::noted::waits_at;
use crate::reactor::budget;
use crate::wait_queue::WaitKey;

/// The sending end in its executor.
///
/// Dropping it [closes](Self::close) the channel.
pub struct ConnectedSender<T: Send + Sized> {
    pub(super) end: SendingEnd<T>,
    pub(super) endpoint: Endpoint,
    stays: PhantomData<*const ()>,
}

/// The receiving end in its executor. It is also a stream of the items.
///
/// Dropping it closes the channel, and drops the items that were not received; also those that are
/// being sent at that moment, on either thread.
pub struct ConnectedReceiver<T: Send + Sized> {
    pub(super) end: ReceivingEnd<T>,
    pub(super) endpoint: Endpoint,
    /// Of the stream, if that waits.
    pub(super) key: Cell<Option<WaitKey>>,
    stays: PhantomData<*const ()>,
}

impl<T: Send + Sized> ConnectedSender<T> {
    pub(super) fn new(end: SendingEnd<T>) -> Self {
        let endpoint = Endpoint::new(Side::Sending, end.capacity());
        ConnectedSender {
            end,
            endpoint,
            stays: PhantomData,
        }
    }

    /// Tells the receivers that an item was stored.
    #[inline]
    pub(super) fn stored(&self) {
        self.endpoint.changed(self.end.lines());
        self.end.drop_late();
    }
}

impl<T: Send + Sized> ConnectedReceiver<T> {
    pub(super) fn new(end: ReceivingEnd<T>) -> Self {
        let endpoint = Endpoint::new(Side::Receiving, end.capacity());
        ConnectedReceiver {
            end,
            endpoint,
            key: Cell::default(),
            stays: PhantomData,
        }
    }

    /// Tells the senders that `item` was taken.
    #[inline]
    pub(super) fn taken(&self, item: Option<T>) -> Option<T> {
        budget::spend();
        if item.is_some() {
            self.endpoint.changed(self.end.lines());
        }
        item
    }

    /// The stream waits no longer.
    #[inline]
    pub(super) fn leave(&self) {
        let mut key = self.key.take();
        if key.is_some() {
            self.endpoint.leave(self.end.lines(), &mut key);
        }
    }
}

/// The items, until [`recv`](ConnectedReceiver::recv) would give `None`.
impl<T: Send + Sized> Stream for ConnectedReceiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        let ConnectedReceiver {
            end, endpoint, key, ..
        } = &mut *this;
        ready!(budget::poll_leave(cx));
        let item = ready!(waits_at(
            endpoint.poll(end.lines(), key.get_mut(), cx, || true, || end.take()),
            "a value of a shared channel",
            &**end.lines(),
        ));
        Poll::Ready(this.taken(item))
    }
}

impl<T: Send + Sized> Drop for ConnectedReceiver<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

impl_debug! { [T: Send + Sized] ConnectedSender[T], it, debug => it.end.describe(debug) }

impl_debug! { [T: Send + Sized] ConnectedReceiver[T], it, debug => it.end.describe(debug) }
