//! A queue between tasks of one executor, bounded or not, without atomics.
//!
//! It decouples tasks that run in different task queues. A [`LocalSender`] can be cloned. There is
//! one [`LocalReceiver`], but its methods take `&self`: put it in an `Rc` to use it from several
//! tasks. Values leave in the order in which they entered, and each goes to one receiving task.
//!
//! ```
//! use glommio::{LocalExecutor, channels::local_channel, spawn_local};
//!
//! LocalExecutor::default().run(async {
//!     let (sender, receiver) = local_channel::new_bounded(2);
//!     let producer = spawn_local(async move {
//!         for number in 0..10 {
//!             sender.send(number).await.expect("the receiver is there");
//!         }
//!     });
//!     let mut sum = 0;
//!     while let Some(number) = receiver.recv().await {
//!         sum += number;
//!     }
//!     producer.await;
//!     assert_eq!(sum, 45);
//! });
//! ```
//!
//! A value that is there is taken by the first task that asks. A task that was woken for it and
//! finds it gone waits on, in its old place. If a task that was woken does not look, since it has
//! given the future or the stream up, whether it keeps it or not, the next one is woken.

mod line;
#[cfg(all(test, not(loom)))]
mod tests;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::{fmt, mem};

use futures_core::Stream;

use self::line::Line;
use super::kept::trim;
use super::many::{nothing_there, take_many};
use crate::error::{GlommioError, ResourceType};
use crate::noted::waits_at;
use crate::panic::drop_all;
use crate::reactor::budget;
use crate::wait_queue::{WaitKey, poll_first};

/// A channel that holds any number of values: sending never waits.
pub fn new_unbounded<T>() -> (LocalSender<T>, LocalReceiver<T>) {
    new(usize::MAX)
}

/// A channel that holds at most `size` values: sending to a full one waits. Memory is taken as it
/// fills.
///
/// A channel of size 0 is always full: nothing can be sent through it.
pub fn new_bounded<T>(size: usize) -> (LocalSender<T>, LocalReceiver<T>) {
    new(size)
}

fn new<T>(capacity: usize) -> (LocalSender<T>, LocalReceiver<T>) {
    let channel = Rc::new(Channel {
        state: RefCell::new(ChannelState {
            items: VecDeque::new(),
            capacity,
            senders: 1,
            is_receiver_gone: false,
        }),
        senders: Line::default(),
        receivers: Line::default(),
    });
    let sender = LocalSender {
        channel: Rc::clone(&channel),
    };
    (sender, LocalReceiver { channel })
}

/// The sending half. The channel ends when the last clone is dropped and all values have been
/// received.
pub struct LocalSender<T> {
    channel: Rc<Channel<T>>,
}

/// The receiving half. Dropping it drops the values that were not received, and closes the channel.
/// If destructors of values panic, all are dropped all the same, and the first panic goes on.
pub struct LocalReceiver<T> {
    channel: Rc<Channel<T>>,
}

struct Channel<T> {
    state: RefCell<ChannelState<T>>,
    senders: Line,
    receivers: Line,
}

struct ChannelState<T> {
    items: VecDeque<T>,
    /// `usize::MAX` if unbounded: more do not fit into memory.
    capacity: usize,
    senders: usize,
    is_receiver_gone: bool,
}

impl<T> ChannelState<T> {
    #[inline]
    fn is_full(&self) -> bool {
        self.items.len() >= self.capacity
    }

    /// Whether an item can be stored now.
    #[inline]
    fn takes_more(&self) -> bool {
        !self.is_receiver_gone && !self.is_full()
    }

    #[inline]
    fn take(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        trim(&mut self.items);
        Some(item)
    }
}

impl<T> LocalSender<T> {
    /// Sends an item if there is space for it now.
    ///
    /// # Errors
    ///
    /// `Closed` if the receiver is gone, else `WouldBlock` if the channel is full. Both carry the
    /// item.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, channels::local_channel};
    ///
    /// let (sender, receiver) = local_channel::new_bounded(1);
    /// assert!(sender.is_empty());
    /// sender.try_send("first")?;
    /// assert!(sender.is_full() && sender.len() == 1);
    /// assert!(matches!(sender.try_send("second"), Err(GlommioError::WouldBlock(_))));
    /// drop(receiver);
    /// assert!(matches!(sender.try_send("third"), Err(GlommioError::Closed(_))));
    /// # Ok::<_, GlommioError<&str>>(())
    /// ```
    pub fn try_send(&self, item: T) -> Result<(), GlommioError<T>> {
        let mut state = self.channel.state.borrow_mut();
        if !state.takes_more() {
            let refused = ResourceType::Channel(item);
            return Err(if state.is_receiver_gone {
                GlommioError::Closed(refused)
            } else {
                GlommioError::WouldBlock(refused)
            });
        }
        state.items.push_back(item);
        drop(state);
        self.channel.receivers.notify();
        Ok(())
    }

    /// Sends an item; waits while the channel is full. Tasks that wait are served first come, first
    /// served. Does not yield if there is space, unless the slice of the task is over.
    ///
    /// # Errors
    ///
    /// `Closed` with the item if the receiver is gone, or goes while this waits.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is done, the item was not sent and is dropped.
    #[inline]
    pub fn send(&self, item: T) -> impl Future<Output = Result<(), GlommioError<T>>> {
        Sending {
            sender: self,
            item: Some(item),
            key: None,
        }
    }

    /// Whether the channel holds as many values as it may. Never true if it is unbounded.
    pub fn is_full(&self) -> bool {
        self.channel.state.borrow().is_full()
    }

    /// How many values were sent and not yet received. 0 if the receiver is gone.
    pub fn len(&self) -> usize {
        self.channel.state.borrow().items.len()
    }

    /// Whether no value waits to be received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Clone for LocalSender<T> {
    fn clone(&self) -> Self {
        self.channel.state.borrow_mut().senders += 1;
        LocalSender {
            channel: Rc::clone(&self.channel),
        }
    }
}

impl<T> Drop for LocalSender<T> {
    fn drop(&mut self) {
        let mut state = self.channel.state.borrow_mut();
        state.senders -= 1;
        if state.senders == 0 {
            drop(state);
            self.channel.receivers.notify_all();
        }
    }
}

/// An item on its way into a full channel.
struct Sending<'a, T> {
    sender: &'a LocalSender<T>,
    /// There until it is sent.
    item: Option<T>,
    key: Option<WaitKey>,
}

/// Nothing is pinned in it.
impl<T> Unpin for Sending<'_, T> {}

impl<T> Future for Sending<'_, T> {
    type Output = Result<(), GlommioError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(budget::poll_leave(cx));
        let Sending { sender, item, key } = &mut *self;
        // Most of the time there is space, and nothing has to be prepared for waiting.
        if key.is_none() {
            let mut state = sender.channel.state.borrow_mut();
            if state.takes_more()
                && let Some(item) = item.take()
            {
                state.items.push_back(item);
                drop(state);
                budget::spend();
                sender.channel.receivers.notify();
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_in_order(cx)
    }
}

impl<T> Sending<'_, T> {
    /// For a future that has just found no room, or was woken.
    #[inline(never)]
    fn poll_in_order(&mut self, cx: &Context<'_>) -> Poll<Result<(), GlommioError<T>>> {
        let Sending { sender, item, key } = self;
        let Channel {
            state,
            senders,
            receivers,
        } = &*sender.channel;
        let sent = ready!(poll_first(cx, key.is_none(), |waker| {
            let mut state = state.borrow_mut();
            if state.is_full() && !state.is_receiver_gone {
                senders.wait(key, waker);
                return waits_at(Poll::Pending, "room in a local channel", senders);
            }
            senders.finish(key, waker);
            let item = item.take().expect("a future that is done is not polled");
            Poll::Ready(if state.is_receiver_gone {
                Err(GlommioError::Closed(ResourceType::Channel(item)))
            } else {
                state.items.push_back(item);
                Ok(())
            })
        }));
        budget::spend();
        receivers.notify();
        Poll::Ready(sent)
    }
}

impl<T> Drop for Sending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            let Channel { state, senders, .. } = &*self.sender.channel;
            senders.leave(&mut self.key, || !state.borrow().is_full());
        }
    }
}

impl<T> LocalReceiver<T> {
    /// The next value; waits for it. `None` once all senders are gone and all values were received,
    /// and every time after that.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value.
    #[inline]
    pub fn recv(&self) -> impl Future<Output = Option<T>> {
        Recv {
            receiver: self,
            key: None,
        }
    }

    /// The next value, if it is there. This is no future, and does not count in the
    /// [budget](crate::consume_budget) of the task.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is none yet, `Closed` once [`recv`](Self::recv) would give `None`.
    #[inline]
    pub fn try_recv(&self) -> Result<T, GlommioError<()>> {
        let is_over = self.channel.state.borrow().senders == 0;
        self.take().ok_or_else(|| nothing_there(is_over))
    }

    /// Waits for values, and appends at most `limit` of those that are there to `buffer`, without a
    /// further pause. Returns how many. That is 0 once [`recv`](Self::recv) would give `None`, and if
    /// `limit` is 0.
    ///
    /// Counts as one receive in the [budget](crate::consume_budget) of the task, however many values
    /// it takes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value: none is taken before it is done.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{GlommioError, LocalExecutor, channels::local_channel};
    ///
    /// LocalExecutor::default().run(async {
    ///     let (sender, receiver) = local_channel::new_unbounded();
    ///     (0..4).for_each(|number| sender.try_send(number).unwrap());
    ///     assert_eq!(receiver.try_recv().unwrap(), 0);
    ///     let mut group = Vec::new();
    ///     assert_eq!(receiver.recv_many(&mut group, 64).await, 3);
    ///     assert!(matches!(receiver.try_recv(), Err(GlommioError::WouldBlock(_))));
    /// });
    /// ```
    pub async fn recv_many(&self, buffer: &mut Vec<T>, limit: usize) -> usize {
        take_many(buffer, limit, self.recv(), || self.take()).await
    }

    /// The next value, if it is there.
    #[inline]
    fn take(&self) -> Option<T> {
        let item = self.channel.state.borrow_mut().take()?;
        self.channel.senders.notify();
        Some(item)
    }

    /// The values as a stream, which ends when [`recv`](Self::recv) would give `None`. Several
    /// streams of one receiver, and calls of `recv`, compete for the values.
    ///
    /// # Cancel safety
    ///
    /// Dropping the stream, or a future that waits for its next value, loses no value.
    pub fn stream(&self) -> impl Stream<Item = T> + '_ {
        Recv {
            receiver: self,
            key: None,
        }
    }

    /// As [`stream`](Self::stream), for a stream that owns the receiver: dropping it closes the
    /// channel.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures_lite::StreamExt;
    /// use glommio::channels::local_channel;
    ///
    /// let (sender, receiver) = local_channel::new_unbounded();
    /// (0..3).for_each(|number| sender.try_send(number).unwrap());
    /// glommio::LocalExecutor::default().run(async {
    ///     assert_eq!(receiver.stream().next().await, Some(0));
    ///     let mut numbers = receiver.into_stream();
    ///     assert_eq!(numbers.next().await, Some(1));
    ///     drop(numbers);
    ///     assert!(sender.try_send(3).is_err());
    /// });
    /// ```
    pub fn into_stream(self) -> OwnedChannelStream<T> {
        OwnedChannelStream {
            receiver: self,
            key: None,
        }
    }

    #[inline]
    fn poll_recv(&self, key: &mut Option<WaitKey>, cx: &Context<'_>) -> Poll<Option<T>> {
        ready!(budget::poll_leave(cx));
        // Most of the time a value is there, and nothing has to be prepared for waiting.
        if key.is_none()
            && let Some(item) = self.take()
        {
            budget::spend();
            return Poll::Ready(Some(item));
        }
        self.poll_in_order(key, cx)
    }

    /// For a future that has just found nothing, or was woken.
    #[inline(never)]
    fn poll_in_order(&self, key: &mut Option<WaitKey>, cx: &Context<'_>) -> Poll<Option<T>> {
        let Channel {
            state,
            senders,
            receivers,
        } = &*self.channel;
        let item = ready!(poll_first(cx, key.is_none(), |waker| {
            let mut state = state.borrow_mut();
            let item = state.take();
            if item.is_none() && state.senders > 0 {
                receivers.wait(key, waker);
                return waits_at(Poll::Pending, "a value of a local channel", senders);
            }
            receivers.finish(key, waker);
            Poll::Ready(item)
        }));
        budget::spend();
        if item.is_some() {
            senders.notify();
        }
        Poll::Ready(item)
    }

    /// Gives up waiting.
    #[cold]
    fn leave(&self, key: &mut Option<WaitKey>) {
        let Channel {
            state, receivers, ..
        } = &*self.channel;
        receivers.leave(key, || !state.borrow().items.is_empty());
    }
}

impl<T> Drop for LocalReceiver<T> {
    fn drop(&mut self) {
        let mut unclaimed = {
            let mut state = self.channel.state.borrow_mut();
            state.is_receiver_gone = true;
            mem::take(&mut state.items)
        };
        self.channel.senders.notify_all();
        drop_all(|| unclaimed.pop_front());
    }
}

/// A future value, and the stream of all of them.
struct Recv<'a, T> {
    receiver: &'a LocalReceiver<T>,
    key: Option<WaitKey>,
}

impl<T> Future for Recv<'_, T> {
    type Output = Option<T>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Recv { receiver, key } = &mut *self;
        receiver.poll_recv(key, cx)
    }
}

impl<T> Stream for Recv<'_, T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Recv { receiver, key } = &mut *self;
        receiver.poll_recv(key, cx)
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            self.receiver.leave(&mut self.key);
        }
    }
}

/// The values of a channel as a stream that owns its receiver; see
/// [`into_stream`](LocalReceiver::into_stream).
pub struct OwnedChannelStream<T> {
    receiver: LocalReceiver<T>,
    key: Option<WaitKey>,
}

impl<T> Stream for OwnedChannelStream<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let OwnedChannelStream { receiver, key } = &mut *self;
        receiver.poll_recv(key, cx)
    }
}

impl<T> Drop for OwnedChannelStream<T> {
    fn drop(&mut self) {
        if self.key.is_some() {
            self.receiver.leave(&mut self.key);
        }
    }
}

impl_debug! { [T: fmt::Debug] LocalSender[T], it, debug => describe(&it.channel, debug) }

impl_debug! { [T: fmt::Debug] LocalReceiver[T], it, debug => describe(&it.channel, debug) }

impl_debug! { [T] OwnedChannelStream[T], it, debug => describe(&it.receiver.channel, debug) }

/// The items are not printed: their `Debug` is user code, which may use the channel.
fn describe<T>(channel: &Channel<T>, mut shown: fmt::DebugStruct<'_, '_>) -> fmt::Result {
    let state = channel.state.borrow();
    let (len, is_full) = (state.items.len(), state.is_full());
    let is_closed = state.senders == 0 || state.is_receiver_gone;
    drop(state);
    (shown.field("len", &len))
        .field("is_full", &is_full)
        .field("is_closed", &is_closed)
        .finish_non_exhaustive()
}
