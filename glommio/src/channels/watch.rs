//! The latest value only: configuration, state, progress.
//!
//! A [`Sender`] replaces the value; each [`Receiver`] sees it at any time, and learns that it
//! [changed](Receiver::changed) since it last looked. Values between two looks are skipped.
//!
//! [`watch`] makes the form for tasks of one executor, [`shared`] the one whose ends may be on any
//! threads.
//!
//! ```
//! use glommio::{LocalExecutor, channels::watch, spawn_local};
//!
//! LocalExecutor::default().run(async {
//!     let (level, mut watcher) = watch::watch(1);
//!     let follower = spawn_local(async move {
//!         while watcher.changed().await.is_ok() {
//!             if watcher.get() == 3 {
//!                 return "reached";
//!             }
//!         }
//!         "the sender is gone"
//!     });
//!     level.send(2)?;
//!     level.send(3)?;
//!     assert_eq!(follower.await, "reached");
//!     Ok::<_, glommio::GlommioError<i32>>(())
//! })?;
//! # Ok::<_, glommio::GlommioError<i32>>(())
//! ```

use std::cell::Ref;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::storage::sealed::{Handle, Storage as Sealed};
use super::storage::{Local, Shared, Storage};
use crate::error::{GlommioError, ResourceType};
use crate::noted::waits_at;
use crate::reactor::{budget, wake};
use crate::wait_queue::{WaitKey, WaitQueue, poll_waiting};

/// A value that tasks of one executor watch. Receivers count `initial` as seen.
pub fn watch<T>(initial: T) -> (Sender<T>, Receiver<T>) {
    new(initial)
}

/// A value that any threads watch. Receivers count `initial` as seen.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, channels::watch};
///
/// let (sender, mut receiver) = watch::shared(0);
/// let thread = std::thread::spawn(move || sender.send(1));
/// LocalExecutor::default().run(async move {
///     receiver.changed().await?;
///     assert_eq!(receiver.get(), 1);
///     assert!(receiver.changed().await.is_err(), "the sender is gone");
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// thread.join().unwrap().unwrap();
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub fn shared<T: Send>(initial: T) -> (SharedSender<T>, SharedReceiver<T>) {
    new(initial)
}

fn new<T, S: Storage>(initial: T) -> (Sender<T, S>, Receiver<T, S>) {
    let state = WatchState {
        version: 0,
        receivers: 1,
        is_sender_gone: false,
        waiters: WaitQueue::new(),
    };
    let channel = S::Handle::new(state, initial);
    let sender = Sender {
        channel: channel.clone(),
    };
    let receiver = Receiver {
        channel,
        seen: 0,
        key: None,
    };
    (sender, receiver)
}

/// The sender of [`shared`].
pub type SharedSender<T> = Sender<T, Shared>;

/// The receiver of [`shared`].
pub type SharedReceiver<T> = Receiver<T, Shared>;

/// The end that replaces the value. There is one.
pub struct Sender<T, S: Storage = Local> {
    channel: <S as Sealed>::Handle<WatchState, T>,
}

/// An end that sees the value. A clone has seen what the original has.
///
/// As a stream it gives each value that it finds, from the next change on, and ends when the sender
/// is gone.
pub struct Receiver<T, S: Storage = Local> {
    channel: <S as Sealed>::Handle<WatchState, T>,
    seen: u64,
    /// Its place among those who wait, for the stream and for [`Changed`] alike.
    key: Option<WaitKey>,
}

/// See [`Receiver::changed`].
#[must_use = "futures do nothing unless polled"]
pub struct Changed<'a, T, S: Storage = Local> {
    receiver: &'a mut Receiver<T, S>,
}

/// All but the value.
#[derive(Debug)]
struct WatchState {
    /// One more with each value.
    version: u64,
    receivers: usize,
    is_sender_gone: bool,
    waiters: WaitQueue,
}

impl<T, S: Storage> Sender<T, S> {
    /// Replaces the value, and wakes all receivers that wait for a change. The old value is dropped
    /// here.
    ///
    /// # Errors
    ///
    /// `Closed` with the value if there are no receivers.
    ///
    /// # Panics
    ///
    /// Panics in the local form while the value is [borrowed](Self::borrow), or inside
    /// [`with_current`](Self::with_current).
    pub fn send(&self, value: T) -> Result<(), GlommioError<T>> {
        let sent = self.channel.with_both(|state, current| {
            if state.receivers == 0 {
                return Err(GlommioError::Closed(ResourceType::Channel(value)));
            }
            state.version += 1;
            Ok((mem::replace(current, value), state.waiters.waiting()))
        });
        let (_before, waiting) = sent?;
        notify(&self.channel, waiting);
        Ok(())
    }

    /// Whether there are no receivers.
    pub fn is_closed(&self) -> bool {
        self.channel.with(|state| state.receivers == 0)
    }

    /// Calls `f` with the value. In the shared form it runs under the lock of the channel: it must
    /// be short, and must not use the channel, which would wait for itself forever.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::channels::watch;
    ///
    /// let (sender, receiver) = watch::watch(vec![1, 2]);
    /// assert_eq!(sender.with_current(|numbers| numbers.len()), 2);
    /// assert_eq!(sender.borrow().len(), 2);
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// ```
    pub fn with_current<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.channel.lend(|_| (), f)
    }

    /// A clone of the value. For the `Clone` of the value the same holds as for
    /// [`with_current`](Self::with_current).
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.channel.lend(|_| (), T::clone)
    }
}

impl<T> Sender<T> {
    /// Lends the value. [`send`](Self::send) panics while it is lent, so do not hold this across an
    /// await.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.channel.borrow()
    }
}

/// Wakes so many, the oldest first; those who wait only since then have seen what they are woken
/// for.
fn notify<T>(channel: &impl Handle<WatchState, T>, waiting: usize) {
    std::iter::from_fn(|| channel.with(|state| state.waiters.notify_oldest()))
        .take(waiting)
        .for_each(wake);
}

impl<T, S: Storage> Drop for Sender<T, S> {
    fn drop(&mut self) {
        let waiting = self.channel.with(|state| {
            state.is_sender_gone = true;
            state.waiters.waiting()
        });
        notify(&self.channel, waiting);
    }
}

impl<T, S: Storage> Receiver<T, S> {
    /// Waits until there is a value that this receiver has not seen, and counts the latest as seen.
    ///
    /// # Errors
    ///
    /// `Closed` once the sender is gone and its last value was seen.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    pub fn changed(&mut self) -> Changed<'_, T, S> {
        Changed { receiver: self }
    }

    /// As [`Sender::with_current`]. The value does not count as seen by that.
    ///
    /// # Examples
    ///
    /// ```
    /// let (_sender, receiver) = glommio::channels::watch::watch(vec![1, 2]);
    /// assert_eq!(receiver.with_current(|numbers| numbers.len()), 2);
    /// assert_eq!(receiver.borrow().len(), 2);
    /// ```
    pub fn with_current<R>(&self, f: impl FnOnce(&T) -> R) -> R {
        self.channel.lend(|_| (), f)
    }

    /// As [`Sender::get`]. The value does not count as seen by that.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        self.channel.lend(|_| (), T::clone)
    }

    fn poll_changed(&mut self, cx: &Context<'_>) -> Poll<Result<(), GlommioError<()>>> {
        ready!(budget::poll_leave(cx));
        let Receiver { channel, seen, key } = self;
        let changed = ready!(poll_waiting(cx, |waker| {
            channel.with(|state| {
                if *seen == state.version && !state.is_sender_gone {
                    state.waiters.wait(key, waker, ());
                    return waits_at(Poll::Pending, "a change of a watched value", state);
                }
                state.waiters.finish(key, waker);
                if mem::replace(seen, state.version) == state.version {
                    return Poll::Ready(Err(GlommioError::Closed(ResourceType::Channel(()))));
                }
                Poll::Ready(Ok(()))
            })
        }));
        budget::spend();
        Poll::Ready(changed)
    }

    /// Gives up waiting. All are notified at once, so there is nothing to pass on.
    fn leave(&mut self) {
        if self.key.is_some() {
            let left = self
                .channel
                .with(|state| state.waiters.leave(&mut self.key));
            drop(left);
        }
    }
}

impl<T> Receiver<T> {
    /// Lends the value, which does not count as seen by that. [`Sender::send`] panics while it is
    /// lent, so do not hold this across an await.
    pub fn borrow(&self) -> Ref<'_, T> {
        self.channel.borrow()
    }
}

impl<T, S: Storage> Clone for Receiver<T, S> {
    fn clone(&self) -> Self {
        self.channel.with(|state| state.receivers += 1);
        Receiver {
            channel: self.channel.clone(),
            seen: self.seen,
            key: None,
        }
    }
}

impl<T, S: Storage> Drop for Receiver<T, S> {
    fn drop(&mut self) {
        self.leave();
        self.channel.with(|state| state.receivers -= 1);
    }
}

impl<T: Clone, S: Storage> Stream for Receiver<T, S> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let changed = ready!(self.poll_changed(cx));
        let Receiver { channel, seen, .. } = &mut *self;
        // There may be a later value by now, which is seen, too.
        let mut value = || channel.lend(|state| *seen = state.version, T::clone);
        Poll::Ready(changed.ok().map(|()| value()))
    }
}

impl<T, S: Storage> Unpin for Receiver<T, S> {}

impl<T, S: Storage> Future for Changed<'_, T, S> {
    type Output = Result<(), GlommioError<()>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.receiver.poll_changed(cx)
    }
}

impl<T, S: Storage> Drop for Changed<'_, T, S> {
    fn drop(&mut self) {
        self.receiver.leave();
    }
}

impl_debug! { [T, S: Storage] Sender[T, S], it:
    version: it.channel.with(|state| state.version),
    receivers: it.channel.with(|state| state.receivers)
}

impl_debug! { [T, S: Storage] Receiver[T, S], it:
    version: it.channel.with(|state| state.version), seen
}

impl_debug! { [T, S: Storage] Changed['_, T, S], it: receiver }
