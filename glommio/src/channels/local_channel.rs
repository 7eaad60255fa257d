//! A queue between tasks of one executor, bounded or not, without atomics.
//!
//! It decouples tasks that run in different task queues. There is one [`LocalSender`] and one
//! [`LocalReceiver`], but their methods take `&self`: put either in an `Rc` to use it from several
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
//! finds it gone waits on, in its old place; one that is dropped before it looks passes the wake-up
//! on.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::{fmt, mem};

use futures_core::Stream;

use crate::error::{GlommioError, ResourceType};
use crate::panic::drop_all;
use crate::reactor::wake;
use crate::wait_queue::{Removed, WaitKey, WaitQueue, poll_first};

/// A channel that holds any number of values: sending never waits.
///
/// # Examples
///
/// ```
/// use glommio::channels::local_channel;
///
/// let (sender, receiver) = local_channel::new_unbounded();
/// sender.try_send(1)?;
/// drop(sender);
/// glommio::LocalExecutor::default().run(async {
///     assert_eq!(receiver.recv().await, Some(1));
///     assert_eq!(receiver.recv().await, None);
/// });
/// # Ok::<_, glommio::GlommioError<i32>>(())
/// ```
pub fn new_unbounded<T>() -> (LocalSender<T>, LocalReceiver<T>) {
    new(usize::MAX)
}

/// A channel that holds at most `size` values: sending to a full one waits. Memory is taken as it
/// fills.
///
/// A channel of size 0 is always full: nothing can be sent through it.
///
/// # Examples
///
/// ```
/// use glommio::{GlommioError, ResourceType, channels::local_channel};
///
/// let (sender, _receiver) = local_channel::new_bounded(1);
/// sender.try_send("fits").unwrap();
/// let refused = sender.try_send("does not").unwrap_err();
/// assert!(matches!(refused, GlommioError::WouldBlock(ResourceType::Channel("does not"))));
/// ```
pub fn new_bounded<T>(size: usize) -> (LocalSender<T>, LocalReceiver<T>) {
    new(size)
}

fn new<T>(capacity: usize) -> (LocalSender<T>, LocalReceiver<T>) {
    let channel = Rc::new(RefCell::new(Channel {
        items: VecDeque::new(),
        capacity,
        is_sender_gone: false,
        is_receiver_gone: false,
        senders: WaitQueue::new(),
        receivers: WaitQueue::new(),
    }));
    let sender = LocalSender {
        channel: Rc::clone(&channel),
    };
    (sender, LocalReceiver { channel })
}

/// The sending half. Dropping it ends the channel once all values have been received.
pub struct LocalSender<T> {
    channel: Rc<RefCell<Channel<T>>>,
}

/// The receiving half. Dropping it drops the values that were not received, and closes the channel.
/// If destructors of values panic, all are dropped all the same, and the first panic goes on.
pub struct LocalReceiver<T> {
    channel: Rc<RefCell<Channel<T>>>,
}

#[derive(Debug)]
struct Channel<T> {
    items: VecDeque<T>,
    /// `usize::MAX` if unbounded: more do not fit into memory.
    capacity: usize,
    is_sender_gone: bool,
    is_receiver_gone: bool,
    senders: WaitQueue,
    receivers: WaitQueue,
}

impl<T> Channel<T> {
    #[inline]
    fn is_full(&self) -> bool {
        self.items.len() >= self.capacity
    }

    /// Whether an item can be stored now.
    #[inline]
    fn takes_more(&self) -> bool {
        !self.is_receiver_gone && !self.is_full()
    }

    /// Stores an item. What is returned is to be woken.
    #[inline]
    fn push(&mut self, item: T) -> Option<Waker> {
        self.items.push_back(item);
        self.receivers.notify_oldest()
    }
}

impl<T> LocalSender<T> {
    /// Sends an item if there is room for it now.
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
        let mut channel = self.channel.borrow_mut();
        if !channel.takes_more() {
            let refused = ResourceType::Channel(item);
            return Err(match channel.is_receiver_gone {
                true => GlommioError::Closed(refused),
                false => GlommioError::WouldBlock(refused),
            });
        }
        let receiver = channel.push(item);
        drop(channel);
        receiver.into_iter().for_each(wake);
        Ok(())
    }

    /// Sends an item; waits while the channel is full. Tasks that wait are served first come, first
    /// served. Does not yield if there is room.
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
        self.channel.borrow().is_full()
    }

    /// How many values were sent and not yet received. 0 if the receiver is gone.
    pub fn len(&self) -> usize {
        self.channel.borrow().items.len()
    }

    /// Whether no value waits to be received.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Drop for LocalSender<T> {
    fn drop(&mut self) {
        self.channel.borrow_mut().is_sender_gone = true;
        notify_all(&self.channel, |channel| &mut channel.receivers);
    }
}

/// Wakes all that wait now.
fn notify_all<T>(channel: &RefCell<Channel<T>>, queue: impl Fn(&mut Channel<T>) -> &mut WaitQueue) {
    let waiting = queue(&mut channel.borrow_mut()).waiting();
    std::iter::from_fn(|| queue(&mut channel.borrow_mut()).notify_oldest())
        .take(waiting)
        .for_each(wake);
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
        let Sending { sender, item, key } = &mut *self;
        // Most of the time there is room, and nothing has to be prepared for waiting.
        if key.is_none() {
            let mut channel = sender.channel.borrow_mut();
            if channel.takes_more()
                && let Some(item) = item.take()
            {
                let receiver = channel.push(item);
                drop(channel);
                receiver.into_iter().for_each(wake);
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
        let receiver = ready!(poll_first(cx, key.is_none(), |waker| {
            let mut channel = sender.channel.borrow_mut();
            if channel.is_full() && !channel.is_receiver_gone {
                channel.senders.wait(key, waker, ());
                return Poll::Pending;
            }
            channel.senders.finish(key, waker);
            let item = item.take().expect("a future that is done is not polled");
            Poll::Ready(match channel.is_receiver_gone {
                true => Err(GlommioError::Closed(ResourceType::Channel(item))),
                false => Ok(channel.push(item)),
            })
        }))?;
        receiver.into_iter().for_each(wake);
        Poll::Ready(Ok(()))
    }

    /// Gives up waiting.
    #[cold]
    fn leave(&mut self) {
        let mut channel = self.sender.channel.borrow_mut();
        let left = channel.senders.leave(&mut self.key);
        let next = match &left {
            Some(Removed::Notified(())) if !channel.is_full() => channel.senders.notify_oldest(),
            _ => None,
        };
        drop(channel);
        next.into_iter().for_each(wake);
    }
}

impl<T> Drop for Sending<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            self.leave();
        }
    }
}

impl<T> LocalReceiver<T> {
    /// The next value; waits for it. `None` once the sender is gone and all values were received,
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

    /// The next value, if it is there.
    #[inline]
    fn take(&self) -> Option<T> {
        let mut channel = self.channel.borrow_mut();
        let item = channel.items.pop_front()?;
        let sender = channel.senders.notify_oldest();
        drop(channel);
        sender.into_iter().for_each(wake);
        Some(item)
    }

    /// The values as a stream, which ends when [`recv`](Self::recv) would give `None`. Several
    /// streams of one receiver, and calls of `recv`, compete for the values.
    ///
    /// # Cancel safety
    ///
    /// Dropping the stream, or a future that waits for its next value, loses no value.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::StreamExt;
    /// use glommio::channels::local_channel;
    ///
    /// let (sender, receiver) = local_channel::new_unbounded();
    /// for number in 1..=3 {
    ///     sender.try_send(number)?;
    /// }
    /// drop(sender);
    /// let sum = receiver.stream().fold(0, |sum, number| sum + number).await;
    /// assert_eq!(sum, 6);
    /// # Ok::<_, glommio::GlommioError<i32>>(())
    /// # }).unwrap();
    /// ```
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
    /// use futures_lite::{Stream, StreamExt};
    /// use glommio::channels::local_channel;
    ///
    /// let (sender, receiver) = local_channel::new_unbounded();
    /// let mut numbers: Box<dyn Stream<Item = i32> + Unpin> = Box::new(receiver.into_stream());
    /// sender.try_send(7)?;
    /// glommio::LocalExecutor::default().run(async {
    ///     assert_eq!(numbers.next().await, Some(7));
    /// });
    /// drop(numbers);
    /// assert!(sender.try_send(8).is_err());
    /// # Ok::<_, glommio::GlommioError<i32>>(())
    /// ```
    pub fn into_stream(self) -> OwnedChannelStream<T> {
        OwnedChannelStream {
            receiver: self,
            key: None,
        }
    }

    #[inline]
    fn poll_recv(&self, key: &mut Option<WaitKey>, cx: &Context<'_>) -> Poll<Option<T>> {
        // Most of the time a value is there, and nothing has to be prepared for waiting.
        if key.is_none()
            && let Some(item) = self.take()
        {
            return Poll::Ready(Some(item));
        }
        self.poll_in_order(key, cx)
    }

    /// For a future that has just found nothing, or was woken.
    #[inline(never)]
    fn poll_in_order(&self, key: &mut Option<WaitKey>, cx: &Context<'_>) -> Poll<Option<T>> {
        let (item, sender) = ready!(poll_first(cx, key.is_none(), |waker| {
            let mut channel = self.channel.borrow_mut();
            let item = channel.items.pop_front();
            if item.is_none() && !channel.is_sender_gone {
                channel.receivers.wait(key, waker, ());
                return Poll::Pending;
            }
            channel.receivers.finish(key, waker);
            let sender = match item {
                Some(_) => channel.senders.notify_oldest(),
                None => None,
            };
            Poll::Ready((item, sender))
        }));
        sender.into_iter().for_each(wake);
        Poll::Ready(item)
    }

    /// Gives up waiting.
    fn leave(&self, key: &mut Option<WaitKey>) {
        let mut channel = self.channel.borrow_mut();
        let left = channel.receivers.leave(key);
        let next = match &left {
            Some(Removed::Notified(())) if !channel.items.is_empty() => {
                channel.receivers.notify_oldest()
            }
            _ => None,
        };
        drop(channel);
        next.into_iter().for_each(wake);
    }
}

impl<T> Drop for LocalReceiver<T> {
    fn drop(&mut self) {
        let mut unclaimed = {
            let mut channel = self.channel.borrow_mut();
            channel.is_receiver_gone = true;
            mem::take(&mut channel.items)
        };
        notify_all(&self.channel, |channel| &mut channel.senders);
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

impl<T: fmt::Debug> fmt::Debug for LocalSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(&self.channel, f, "LocalSender")
    }
}

impl<T: fmt::Debug> fmt::Debug for LocalReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(&self.channel, f, "LocalReceiver")
    }
}

impl<T> fmt::Debug for OwnedChannelStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        describe(&self.receiver.channel, f, "OwnedChannelStream")
    }
}

/// The items are not printed: their `Debug` is code of others, which may use the channel.
fn describe<T>(
    channel: &RefCell<Channel<T>>,
    f: &mut fmt::Formatter<'_>,
    name: &str,
) -> fmt::Result {
    let channel = channel.borrow();
    let (len, is_full) = (channel.items.len(), channel.is_full());
    let is_closed = channel.is_sender_gone || channel.is_receiver_gone;
    drop(channel);
    f.debug_struct(name)
        .field("len", &len)
        .field("is_full", &is_full)
        .field("is_closed", &is_closed)
        .finish_non_exhaustive()
}
