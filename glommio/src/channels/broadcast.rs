//! Every receiver sees every value: events, invalidations, control messages.
//!
//! Sending never waits. The channel keeps a value until all receivers have seen it, but no more of
//! them than its capacity; a receiver that is slower than that misses some, and is told
//! [how many](RecvError::Lagged).
//!
//! Each receiver gets a clone of the value: send an `Rc` or `Arc` if cloning is expensive.
//! [`broadcast`] makes the form for tasks of one executor, [`shared`] the one whose ends may be on
//! any threads. All ends share one lock there, so it is not made for mass data.
//!
//! ```
//! use glommio::{LocalExecutor, channels::broadcast};
//!
//! LocalExecutor::default().run(async {
//!     let (sender, mut first) = broadcast::broadcast(16);
//!     let mut second = sender.subscribe();
//!     assert_eq!(sender.receiver_count(), 2);
//!     assert_eq!(sender.send("stop").unwrap(), 2);
//!     assert_eq!(first.recv().await, Ok("stop"));
//!     assert_eq!(second.recv().await, Ok("stop"));
//! });
//! ```

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::kept::trim;
use super::storage::sealed::{Handle, Storage as Sealed};
use super::storage::{Local, Shared, Storage};
use crate::error::{GlommioError, ResourceType};
use crate::noted::waits_at;
use crate::panic::{contain, drop_all};
use crate::reactor::{budget, wake};
use crate::wait_queue::{PollWaker, WaitKey, WaitQueue, poll_waiting};

/// A channel between tasks of one executor that keeps the latest `capacity` values. Memory is taken
/// as it fills.
///
/// # Panics
///
/// Panics if `capacity` is 0.
pub fn broadcast<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    new(capacity)
}

/// A channel between any threads that keeps the latest `capacity` values. Values are cloned under
/// its lock: their `Clone` must not use the channel, which would wait for itself forever.
///
/// # Panics
///
/// Panics if `capacity` is 0.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, channels::broadcast};
///
/// let (sender, mut receiver) = broadcast::shared(4);
/// let thread = std::thread::spawn(move || sender.send(7).unwrap());
/// let value = LocalExecutor::default().run(async move { receiver.recv().await });
/// assert_eq!(value, Ok(7));
/// assert_eq!(thread.join().unwrap(), 1);
/// ```
pub fn shared<T: Clone + Send>(capacity: usize) -> (SharedSender<T>, SharedReceiver<T>) {
    new(capacity)
}

fn new<T: Clone, S: Storage>(capacity: usize) -> (Sender<T, S>, Receiver<T, S>) {
    assert!(
        capacity > 0,
        "a broadcast channel of capacity 0 keeps nothing"
    );
    let state = BroadcastState {
        ring: VecDeque::new(),
        next: 0,
        capacity,
        senders: 1,
        receivers: 0,
        waiters: WaitQueue::new(),
    };
    let sender = Sender {
        channel: S::Handle::new(state, ()),
    };
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// The sender of [`shared`].
pub type SharedSender<T> = Sender<T, Shared>;

/// The receiver of [`shared`].
pub type SharedReceiver<T> = Receiver<T, Shared>;

/// An end that sends. The channel ends when the last clone is dropped.
pub struct Sender<T, S: Storage = Local> {
    channel: Channel<T, S>,
}

/// An end that receives. A clone goes on where the original is.
///
/// As a stream it gives what [`recv`](Self::recv) gives, and ends instead of giving `Closed`.
pub struct Receiver<T, S: Storage = Local> {
    channel: Channel<T, S>,
    /// The number of the value that is to come.
    next: u64,
    /// Its place among those who wait, for the stream and for [`Recv`] alike.
    key: Option<WaitKey>,
}

/// See [`Receiver::recv`].
#[must_use = "futures do nothing unless polled"]
pub struct Recv<'a, T, S: Storage = Local> {
    receiver: &'a mut Receiver<T, S>,
}

type Channel<T, S> = <S as Sealed>::Handle<BroadcastState<<S as Sealed>::Item<T>>, ()>;

/// The latest values and who is there.
#[derive(Debug)]
struct BroadcastState<I> {
    /// Those numbered `next - ring.len()..next` that a receiver is to see yet.
    ring: VecDeque<Kept<I>>,
    next: u64,
    capacity: usize,
    senders: usize,
    receivers: usize,
    waiters: WaitQueue,
}

#[derive(Debug)]
struct Kept<I> {
    item: I,
    /// How many receivers are to see it yet. Not less than before it in the ring, as all see what is
    /// older first.
    unseen_by: usize,
}

/// Why [`Receiver::recv`] gave no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecvError {
    /// There is no sender, and nothing more to receive.
    Closed,
    /// So many values were overwritten before this receiver got to them. It goes on with the oldest
    /// that is there.
    Lagged(u64),
}

/// Why [`Receiver::try_recv`] gave no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is none yet.
    Empty,
    /// There is no sender, and nothing more to receive.
    Closed,
    /// So many values were overwritten before this receiver got to them. It goes on with the oldest
    /// that is there.
    Lagged(u64),
}

impl<I> BroadcastState<I> {
    /// The item numbered `next`, for a receiver that is there.
    fn item(&self, next: u64) -> Result<&I, TryRecvError> {
        let behind = self.next - next;
        let kept = self.ring.len() as u64;
        match behind.checked_sub(kept) {
            _ if behind == 0 && self.senders == 0 => Err(TryRecvError::Closed),
            _ if behind == 0 => Err(TryRecvError::Empty),
            None | Some(0) => Ok(&self.ring[(kept - behind) as usize].item),
            Some(missed) => Err(TryRecvError::Lagged(missed)),
        }
    }

    /// Where the items numbered `next` and later begin in the ring.
    fn position(&self, next: u64) -> usize {
        let behind = usize::try_from(self.next - next).unwrap_or(usize::MAX);
        self.ring.len().saturating_sub(behind)
    }

    /// A receiver has seen the item numbered `next`, which was there. Returns it if it was the last
    /// that had to.
    fn seen(&mut self, next: u64) -> Option<I> {
        let behind = usize::try_from(self.next - next).ok()?;
        let position = self.ring.len().checked_sub(behind)?;
        self.ring[position].unseen_by -= 1;
        self.release()
    }

    /// Takes the oldest item out if all receivers have seen it.
    fn release(&mut self) -> Option<I> {
        let is_seen = self.ring.front().is_some_and(|kept| kept.unseen_by == 0);
        let kept = is_seen.then(|| self.ring.pop_front())?;
        trim(&mut self.ring);
        kept.map(|kept| kept.item)
    }
}

impl<T: Clone, S: Storage> Sender<T, S> {
    /// Sends a value to all receivers that there are, and says how many these are. If the channel
    /// is full its oldest value is dropped.
    ///
    /// # Errors
    ///
    /// `Closed` with the value if there are no receivers. There may be some again later, by
    /// [`subscribe`](Self::subscribe).
    pub fn send(&self, value: T) -> Result<usize, GlommioError<T>> {
        if self.receiver_count() == 0 {
            return Err(GlommioError::Closed(ResourceType::Channel(value)));
        }
        let item = S::item(value);
        let sent = self.channel.with(|state| {
            if state.receivers == 0 {
                return Err(item);
            }
            let is_full = state.ring.len() == state.capacity;
            let oldest = is_full.then(|| state.ring.pop_front());
            state.ring.push_back(Kept {
                item,
                unseen_by: state.receivers,
            });
            state.next += 1;
            Ok((oldest, state.receivers, state.waiters.waiting()))
        });
        match sent {
            Err(item) => Err(GlommioError::Closed(ResourceType::Channel(S::value(item)))),
            Ok((oldest, receivers, waiting)) => {
                notify(&self.channel, waiting);
                drop(oldest);
                Ok(receivers)
            }
        }
    }

    /// A receiver that sees the values sent from now on.
    pub fn subscribe(&self) -> Receiver<T, S> {
        let next = self.channel.with(|state| {
            state.receivers += 1;
            state.next
        });
        Receiver {
            channel: self.channel.clone(),
            next,
            key: None,
        }
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.channel.with(|state| state.receivers)
    }
}

/// Wakes so many, the oldest first; those who wait only since then have seen what they are woken
/// for.
fn notify<I>(channel: &impl Handle<BroadcastState<I>, ()>, waiting: usize) {
    std::iter::from_fn(|| channel.with(|state| state.waiters.notify_oldest()))
        .take(waiting)
        .for_each(wake);
}

impl<T, S: Storage> Clone for Sender<T, S> {
    fn clone(&self) -> Self {
        self.channel.with(|state| state.senders += 1);
        Sender {
            channel: self.channel.clone(),
        }
    }
}

impl<T, S: Storage> Drop for Sender<T, S> {
    fn drop(&mut self) {
        let waiting = self.channel.with(|state| {
            state.senders -= 1;
            match state.senders {
                0 => state.waiters.waiting(),
                _ => 0,
            }
        });
        notify(&self.channel, waiting);
    }
}

impl<T: Clone, S: Storage> Receiver<T, S> {
    /// The next value; waits for it.
    ///
    /// # Errors
    ///
    /// [`Lagged`](RecvError::Lagged) once after values were missed, [`Closed`](RecvError::Closed)
    /// after the last value of the last sender.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no value.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::channels::broadcast::{RecvError, TryRecvError, broadcast};
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let (sender, mut receiver) = broadcast(2);
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// for number in 1..=5 {
    ///     sender.send(number).unwrap();
    /// }
    /// drop(sender);
    /// assert_eq!(receiver.recv().await, Err(RecvError::Lagged(3)));
    /// assert_eq!(receiver.recv().await, Ok(4));
    /// assert_eq!(receiver.recv().await, Ok(5));
    /// assert_eq!(receiver.recv().await, Err(RecvError::Closed));
    /// # });
    /// ```
    pub fn recv(&mut self) -> Recv<'_, T, S> {
        Recv { receiver: self }
    }

    /// The next value, if it is there.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv), and [`Empty`](TryRecvError::Empty) if there is none yet.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let next = self.next;
        let item = self
            .channel
            .with(|state| state.item(next).map(S::another::<T>));
        self.take(item)
    }

    fn poll_recv(&mut self, cx: &Context<'_>) -> Poll<Result<T, RecvError>> {
        ready!(budget::poll_leave(cx));
        let Receiver { channel, next, key } = self;
        let item = ready!(poll_waiting(cx, |waker: &mut PollWaker<'_>| {
            channel.with(|state| {
                let item = state.item(*next).map(S::another::<T>);
                if let Err(TryRecvError::Empty) = item {
                    state.waiters.wait(key, waker, ());
                    return waits_at(Poll::Pending, "a value of a broadcast channel", state);
                }
                state.waiters.finish(key, waker);
                Poll::Ready(item)
            })
        }));
        budget::spend();
        Poll::Ready(self.take(item).map_err(|error| match error {
            TryRecvError::Lagged(missed) => RecvError::Lagged(missed),
            TryRecvError::Closed => RecvError::Closed,
            TryRecvError::Empty => unreachable!("that is waited for"),
        }))
    }

    /// Goes on behind what was found.
    fn take(&mut self, item: Result<S::Item<T>, TryRecvError>) -> Result<T, TryRecvError> {
        match item {
            // First of all the clone, which may panic: then the value is there to be received
            // again.
            Ok(item) => {
                let value = S::value(item);
                let next = self.next;
                self.next += 1;
                let released = self.channel.with(|state| state.seen(next));
                contain("the destructor of a value panicked", || drop(released));
                Ok(value)
            }
            Err(error) => {
                if let TryRecvError::Lagged(missed) = error {
                    self.next += missed;
                }
                Err(error)
            }
        }
    }
}

impl<T, S: Storage> Receiver<T, S> {
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

impl<T, S: Storage> Clone for Receiver<T, S> {
    fn clone(&self) -> Self {
        self.channel.with(|state| {
            state.receivers += 1;
            let unseen = state.position(self.next)..;
            let unseen = state.ring.range_mut(unseen);
            unseen.for_each(|kept| kept.unseen_by += 1);
        });
        Receiver {
            channel: self.channel.clone(),
            next: self.next,
            key: None,
        }
    }
}

impl<T, S: Storage> Drop for Receiver<T, S> {
    fn drop(&mut self) {
        self.leave();
        self.channel.with(|state| {
            state.receivers -= 1;
            let unseen = state.position(self.next)..;
            let unseen = state.ring.range_mut(unseen);
            unseen.for_each(|kept| kept.unseen_by -= 1);
        });
        drop_all(|| self.channel.with(BroadcastState::release));
    }
}

impl<T: Clone, S: Storage> Stream for Receiver<T, S> {
    type Item = Result<T, RecvError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let received = ready!(self.poll_recv(cx));
        Poll::Ready(match received {
            Err(RecvError::Closed) => None,
            received => Some(received),
        })
    }
}

/// Nothing is pinned in it.
impl<T, S: Storage> Unpin for Receiver<T, S> {}

impl<T: Clone, S: Storage> Future for Recv<'_, T, S> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.receiver.poll_recv(cx)
    }
}

impl<T, S: Storage> Drop for Recv<'_, T, S> {
    fn drop(&mut self) {
        self.receiver.leave();
    }
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecvError::Closed => f.write_str("Channel is closed"),
            RecvError::Lagged(missed) => write!(f, "{missed} values were overwritten unread"),
        }
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TryRecvError::Empty => f.write_str("Channel is empty"),
            TryRecvError::Closed => RecvError::Closed.fmt(f),
            TryRecvError::Lagged(missed) => RecvError::Lagged(*missed).fmt(f),
        }
    }
}

impl Error for RecvError {}
impl Error for TryRecvError {}

impl_debug! { [T, S: Storage] Sender[T, S], it, debug => describe(&it.channel, debug) }

impl_debug! { [T, S: Storage] Receiver[T, S], it, debug => describe(&it.channel, debug) }

impl_debug! { [T, S: Storage] Recv['_, T, S], it: receiver }

/// The values are not printed: their `Debug` is user code, which may use the channel.
fn describe<I>(
    channel: &impl Handle<BroadcastState<I>, ()>,
    mut shown: fmt::DebugStruct<'_, '_>,
) -> fmt::Result {
    let (len, senders, receivers) =
        channel.with(|state| (state.ring.len(), state.senders, state.receivers));
    (shown.field("len", &len))
        .field("senders", &senders)
        .field("receivers", &receivers)
        .finish_non_exhaustive()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_peak_of_values_gives_its_memory_back() {
        const PEAK: usize = 100_000;
        let (sender, mut receiver) = broadcast(PEAK);
        for number in 0..PEAK {
            sender.send(number).expect("the receiver is there");
        }
        let capacity = || sender.channel.with(|state| state.ring.capacity());
        assert!(capacity() >= PEAK);
        while receiver.try_recv().is_ok() {}
        assert!(capacity() < PEAK / 100, "{}", capacity());
    }
}
