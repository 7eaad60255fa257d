//! Sending and receiving as futures of their own, whose first look is compiled into the task that
//! awaits them. Of an `async fn` the compiler makes a function that hands its result over in
//! memory.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::connected::{ConnectedReceiver, ConnectedSender};
use crate::error::{GlommioError, ResourceType};
use crate::noted::waits_at;
use crate::reactor::budget;
use crate::wait_queue::WaitKey;

/// An item on its way into a channel.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Sending<'a, T: Send> {
    pub(super) sender: &'a ConnectedSender<T>,
    /// There until it is sent.
    pub(super) item: Option<T>,
    pub(super) key: Option<WaitKey>,
}

/// Nothing is pinned in it.
impl<T: Send> Unpin for Sending<'_, T> {}

impl<T: Send> Future for Sending<'_, T> {
    type Output = Result<(), GlommioError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(budget::poll_leave(cx));
        let this = &mut *self;
        // Most of the time there is space, and nothing has to be prepared for waiting.
        if this.key.is_none()
            && let Some(item) = this.item.take()
        {
            this.item = this.sender.end.try_store(item);
            if this.item.is_none() {
                this.sender.stored();
                budget::spend();
                return Poll::Ready(Ok(()));
            }
        }
        this.poll_in_order(cx)
    }
}

impl<T: Send> Sending<'_, T> {
    /// For a future that has just found no room, or was woken.
    #[inline(never)]
    fn poll_in_order(&mut self, cx: &Context<'_>) -> Poll<Result<(), GlommioError<T>>> {
        let Sending { sender, item, key } = self;
        let ConnectedSender { end, endpoint, .. } = sender;
        let store = || {
            let refused = end.store(item.take().expect("a future that is done is not polled"));
            if let Err(GlommioError::WouldBlock(ResourceType::Channel(back))) = refused {
                *item = Some(back);
                return None;
            }
            Some(refused)
        };
        let is_worth_storing = || end.is_worth_storing();
        let sent = ready!(waits_at(
            endpoint.poll(end.lines(), key, cx, is_worth_storing, store),
            "room in a shared channel",
            &**end.lines(),
        ));
        budget::spend();
        if sent.is_ok() {
            sender.stored();
        }
        Poll::Ready(sent)
    }
}

impl<T: Send> Drop for Sending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            let ConnectedSender { end, endpoint, .. } = self.sender;
            endpoint.leave(end.lines(), &mut self.key);
        }
    }
}

/// A future item.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Receiving<'a, T: Send> {
    pub(super) receiver: &'a ConnectedReceiver<T>,
    pub(super) key: Option<WaitKey>,
}

impl<T: Send> Future for Receiving<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        ready!(budget::poll_leave(cx));
        let Receiving { receiver, key } = &mut *self;
        if key.is_none() {
            // What has polled the stream has given up on it, and would keep the next wake-up to
            // itself.
            receiver.leave();
            if let Some(item) = receiver.end.take() {
                return Poll::Ready(receiver.taken(item));
            }
        }
        let ConnectedReceiver { end, endpoint, .. } = receiver;
        let item = ready!(waits_at(
            endpoint.poll(end.lines(), key, cx, || true, || end.take()),
            "a value of a shared channel",
            &**end.lines(),
        ));
        Poll::Ready(receiver.taken(item))
    }
}

impl<T: Send> Drop for Receiving<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            let ConnectedReceiver { end, endpoint, .. } = self.receiver;
            endpoint.leave(end.lines(), &mut self.key);
        }
    }
}
