//! A bounded queue from a task of one executor to a task of another.
//!
//! The two ends are made anywhere and sent to their executors, where each
//! [connects](SharedSender::connect). From then on it stays on its thread. The methods of connected
//! ends take `&self`: put one in an `Rc` to use it from several tasks of its executor.
//!
//! ```
//! use glommio::{LocalExecutorBuilder, Placement, channels::shared_channel};
//!
//! let (sender, receiver) = shared_channel::new_bounded(8);
//! let producer = LocalExecutorBuilder::new(Placement::Unbound).spawn(|| async move {
//!     let sender = sender.connect().await;
//!     for number in 0..100 {
//!         sender.send(number).await.expect("the receiver is there");
//!     }
//! })?;
//! let consumer = LocalExecutorBuilder::new(Placement::Unbound).spawn(|| async move {
//!     let receiver = receiver.connect().await;
//!     let mut sum = 0;
//!     while let Some(number) = receiver.recv().await {
//!         sum += number;
//!     }
//!     sum
//! })?;
//! producer.join()?;
//! assert_eq!(consumer.join()?, 4950);
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! An end that is dropped, at whatever stage, closes the channel and wakes all who wait at the
//! other end. So do executors that end, as they drop their tasks. Which end is dropped first makes
//! no difference: the receiver gets what was sent before, and a sender whose receiver is gone gets
//! its item back.
//!
//! An item that is sent to a receiver that sleeps has notified it when the send is done: the thread
//! of the sender may compute for long, or block, next. While the receiver is awake, or looks again by
//! itself within 100 µs, notifying it may be put off: until half of the capacity was sent, the poll of
//! the sending task is over, or the round of tasks. A sender that waits for space is woken when half
//! of the capacity was taken, or the round of tasks is over in which some was.
//!
//! A future that waits, or the receiver as a stream, keeps its place while it is kept, also if it is
//! polled no more: as an arm of a `select!` in which another one has won. If it is notified then and
//! does not take what it waited for, the next that waits is notified: at once if it is dropped, or if
//! it is the stream and [`recv`](ConnectedReceiver::recv) is called; within milliseconds if it is
//! kept. That takes part in an executor: a small task of the end, made when several wait for the
//! first time.
//!
//! Each item that is sent or received without waiting counts in the poll of its task: after some,
//! once the slice is over, `send` and `recv` let other tasks run first (see
//! [`consume_budget`](crate::consume_budget)).
//!
//! Cost: an item that is sent while the receiver is awake, or was woken and has not run yet, is a
//! few loads and stores. A task that waits is woken once; if its executor sleeps, by a system call.
//! A burst wakes the other end a few times only. Once per round of its executor's tasks each end
//! makes sure, by a fence and a compare-exchange, that no task at the other end began to wait unseen,
//! in the nanoseconds in which something was sent or taken; a receiver that begins to wait in the
//! middle of such a round sets two timers. Before a task waits it looks for up to 50 µs whether it
//! has to, with other tasks in between, if that has helped recently.

mod connected;
mod endpoint;
mod ends;
mod futures;
#[cfg(all(test, loom))]
mod loom_tests;
mod standby;
mod waits;

pub use connected::{ConnectedReceiver, ConnectedSender};
use ends::{ReceivingEnd, SendingEnd};
use futures::{Receiving, Sending};

use super::many::{nothing_there, take_many};
use crate::error::GlommioError;
use crate::executor::current;
use crate::reactor::budget;

/// A channel that holds `size` items, rounded up to a power of two: at least one.
///
/// # Panics
///
/// As [`spsc_queue::make`](super::spsc_queue::make).
pub fn new_bounded<T: Send + Sized>(size: usize) -> (SharedSender<T>, SharedReceiver<T>) {
    let (sending, receiving) = ends::make(size);
    (
        SharedSender { end: sending },
        SharedReceiver { end: receiving },
    )
}

/// The sending end on its way to its executor.
///
/// Dropping it closes the channel.
pub struct SharedSender<T: Send + Sized> {
    end: SendingEnd<T>,
}

/// The receiving end on its way to its executor.
///
/// Dropping it closes the channel.
pub struct SharedReceiver<T: Send + Sized> {
    end: ReceivingEnd<T>,
}

/// The sending end for threads that run no executor; made by [`ConnectedSender::into_foreign`].
///
/// It may outlive the executor that it comes from. Dropping it closes the channel.
pub struct ForeignSender<T: Send> {
    end: SendingEnd<T>,
}

impl<T: 'static + Send + Sized> SharedSender<T> {
    /// Binds this end to the executor that runs here, and waits until the other end has been bound
    /// to one, or was dropped.
    ///
    /// Connect two ends on one executor concurrently: awaiting one before the other is
    /// begun waits forever.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops this end.
    pub async fn connect(self) -> ConnectedSender<T> {
        drop(current::expect());
        budget::consume().await;
        self.handshake().await
    }

    /// As [`connect`](Self::connect), wherever it is.
    pub(super) async fn handshake(self) -> ConnectedSender<T> {
        self.end.meet().await;
        self.bind()
    }

    /// For an end of which it is known where the other one is.
    pub(super) fn bind(self) -> ConnectedSender<T> {
        ConnectedSender::new(self.end)
    }
}

impl<T: 'static + Send + Sized> SharedReceiver<T> {
    /// As [`SharedSender::connect`].
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops this end.
    pub async fn connect(self) -> ConnectedReceiver<T> {
        drop(current::expect());
        budget::consume().await;
        self.handshake().await
    }

    /// As [`connect`](Self::connect), wherever it is.
    pub(super) async fn handshake(self) -> ConnectedReceiver<T> {
        self.end.meet().await;
        self.bind()
    }

    /// As that of the sender.
    pub(super) fn bind(self) -> ConnectedReceiver<T> {
        ConnectedReceiver::new(self.end)
    }
}

impl<T: Send + Sized> ConnectedSender<T> {
    /// Sends an item if there is space for it now. Sent is not received: if the receiver goes, the
    /// item is dropped.
    ///
    /// # Errors
    ///
    /// `Closed` if the receiver is gone or this end was [closed](Self::close), else `WouldBlock` if
    /// the channel is full. Both carry the item.
    #[inline]
    pub fn try_send(&self, item: T) -> Result<(), GlommioError<T>> {
        self.end.store(item)?;
        self.stored();
        Ok(())
    }

    /// Sends an item; waits while the channel is full. Tasks that wait are woken first come, first
    /// served. Does not yield if there is space, unless the slice of the task is over.
    ///
    /// # Errors
    ///
    /// `Closed` with the item if the receiver is gone or this end was [closed](Self::close), also
    /// if that happens while this waits.
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

    /// Ends the channel: the receiver gets what was sent, and then `None`. Nothing more can be
    /// sent, and tasks that wait to do so get their items back.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, channels::shared_channel};
    ///
    /// let (sender, receiver) = shared_channel::new_bounded(4);
    /// LocalExecutor::default().run(async {
    ///     // Both ends may be on one executor.
    ///     let (sender, receiver) = futures_lite::future::zip(sender.connect(), receiver.connect()).await;
    ///     sender.try_send(1).unwrap();
    ///     sender.close();
    ///     assert!(sender.try_send(2).is_err());
    ///     let mut group = Vec::new();
    ///     assert_eq!(receiver.recv_many(&mut group, 64).await, 1);
    ///     assert_eq!(receiver.recv().await, None);
    ///     assert!(receiver.try_recv().is_err());
    /// });
    /// ```
    pub fn close(&self) {
        self.end.close();
    }

    /// Takes this end to a thread that runs no executor: a callback of a C library, or another
    /// runtime.
    pub fn into_foreign(self) -> ForeignSender<T> {
        self.endpoint.flush();
        ForeignSender { end: self.end }
    }
}

impl<T: Send> ForeignSender<T> {
    /// As [`ConnectedSender::try_send`], from any thread.
    pub fn try_send(&self, item: T) -> Result<(), GlommioError<T>> {
        self.end.try_send(item)
    }

    /// How many items can be sent. The receiver may be freeing more space at this moment.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutor, channels::shared_channel};
    ///
    /// let (sender, receiver) = shared_channel::new_bounded(4);
    /// LocalExecutor::default().run(async {
    ///     let (sender, _receiver) = futures_lite::future::zip(sender.connect(), receiver.connect()).await;
    ///     let sender = sender.into_foreign();
    ///     assert!(sender.try_send(1).is_ok());
    ///     assert_eq!(sender.free_space(), 3);
    /// });
    /// ```
    pub fn free_space(&self) -> usize {
        self.end.free_space()
    }
}

impl<T: Send + Sized> ConnectedReceiver<T> {
    /// The next item; waits for it. `None` once the sender is closed or gone and all items were
    /// received, and every time after that. Tasks that wait are woken first come, first served.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item.
    #[inline]
    pub fn recv(&self) -> impl Future<Output = Option<T>> {
        Receiving {
            receiver: self,
            key: None,
        }
    }

    /// The next item, if it is there. This is no future, and does not count in the
    /// [budget](crate::consume_budget) of the task.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is none yet, `Closed` once [`recv`](Self::recv) would give `None`.
    #[inline]
    pub fn try_recv(&self) -> Result<T, GlommioError<()>> {
        match self.end.take() {
            Some(Some(item)) => {
                self.endpoint.changed(self.end.lines());
                Ok(item)
            }
            nothing => Err(nothing_there(nothing.is_some())),
        }
    }

    /// Waits for items, and appends at most `limit` of those that are there to `buffer`, as
    /// [`LocalReceiver::recv_many`](super::local_channel::LocalReceiver::recv_many). Counts as one
    /// receive in the budget of the task.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item: none is taken before it is done.
    pub async fn recv_many(&self, buffer: &mut Vec<T>, limit: usize) -> usize {
        take_many(buffer, limit, self.recv(), || self.try_recv().ok()).await
    }
}

impl_debug! { [T: Send + Sized] SharedSender[T], it, debug => it.end.describe(debug) }

impl_debug! { [T: Send] ForeignSender[T], it, debug => it.end.describe(debug) }

impl_debug! { [T: Send + Sized] SharedReceiver[T], it, debug => it.end.describe(debug) }
