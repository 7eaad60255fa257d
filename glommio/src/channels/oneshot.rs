//! One value, once: the answer to a request.
//!
//! [`oneshot`] makes the form for tasks of one executor, [`shared`] the one whose ends may be on
//! any threads.
//!
//! ```
//! use glommio::{LocalExecutor, channels::oneshot, spawn_local};
//!
//! LocalExecutor::default().run(async {
//!     let (reply, answer) = oneshot::oneshot();
//!     spawn_local(async move { reply.send(6 * 7) }).detach();
//!     assert_eq!(answer.await?, 42);
//!     Ok::<_, glommio::GlommioError<()>>(())
//! })?;
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::{fmt, mem};

use super::many::nothing_there;
use super::storage::sealed::{Handle as _, Storage as Sealed};
use super::storage::{Local, Shared, Storage};
use crate::error::{GlommioError, ResourceType};
use crate::noted::waits_at;
use crate::panic::fenced;
use crate::reactor::{budget, wake};
use crate::wait_queue::poll_waiting;

/// A channel for one value, between tasks of one executor.
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    new()
}

/// A channel for one value, between any threads: also ones that run no executor.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, channels::oneshot};
///
/// let (sender, receiver) = oneshot::shared();
/// let thread = std::thread::spawn(move || sender.send("hello").is_ok());
/// let greeting = LocalExecutor::default().run(receiver)?;
/// assert_eq!(greeting, "hello");
/// assert!(thread.join().unwrap());
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
pub fn shared<T: Send>() -> (SharedSender<T>, SharedReceiver<T>) {
    new()
}

fn new<T, S: Storage>() -> (Sender<T, S>, Receiver<T, S>) {
    let state = S::Handle::new(OneshotState::Empty(None), ());
    let sender = Sender {
        state: state.clone(),
    };
    (sender, Receiver { state })
}

/// The sender of [`shared`].
pub type SharedSender<T> = Sender<T, Shared>;

/// The receiver of [`shared`].
pub type SharedReceiver<T> = Receiver<T, Shared>;

/// The sending half. Dropped without a value, it ends the wait of the receiver with an error.
pub struct Sender<T, S: Storage = Local> {
    state: <S as Sealed>::Handle<OneshotState<T>, ()>,
}

/// The receiving half: a future of the value.
///
/// # Errors
///
/// `Closed` if the sender was dropped without sending; also if this is polled again after its end.
///
/// # Cancel safety
///
/// The value is lost with the receiver, and only with it: poll it by reference (`&mut receiver`) to
/// give up one wait.
#[must_use = "futures do nothing unless polled"]
pub struct Receiver<T, S: Storage = Local> {
    state: <S as Sealed>::Handle<OneshotState<T>, ()>,
}

/// What is between the two.
#[derive(Debug)]
enum OneshotState<T> {
    /// Nothing yet; who waits for it.
    Empty(Option<Waker>),
    /// A value that was not received yet.
    Sent(T),
    /// An end is gone, or the value has been received.
    Closed,
}

impl<T> OneshotState<T> {
    /// The value, which is there or never will be.
    fn take(&mut self) -> Result<T, GlommioError<()>> {
        match mem::replace(self, OneshotState::Closed) {
            OneshotState::Sent(value) => Ok(value),
            _ => Err(nothing_there(true)),
        }
    }
}

impl<T, S: Storage> Sender<T, S> {
    /// Sends the value.
    ///
    /// # Errors
    ///
    /// `Closed` with the value if the receiver is gone.
    pub fn send(self, value: T) -> Result<(), GlommioError<T>> {
        let waiting = self.state.with(|state| match state {
            OneshotState::Empty(waiting) => {
                let waiting = waiting.take();
                *state = OneshotState::Sent(value);
                Ok(waiting)
            }
            _ => Err(GlommioError::Closed(ResourceType::Channel(value))),
        })?;
        waiting.into_iter().for_each(wake);
        Ok(())
    }

    /// Whether the receiver is gone: a value would not arrive.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, receiver) = glommio::channels::oneshot::oneshot();
    /// assert!(!sender.is_closed());
    /// drop(receiver);
    /// assert!(sender.is_closed());
    /// assert_eq!(sender.send(7).unwrap_err().into_inner(), Some(7));
    /// ```
    pub fn is_closed(&self) -> bool {
        self.state
            .with(|state| matches!(state, OneshotState::Closed))
    }
}

impl<T, S: Storage> Drop for Sender<T, S> {
    fn drop(&mut self) {
        let waiting = self.state.with(|state| match state {
            OneshotState::Empty(waiting) => {
                let waiting = waiting.take();
                *state = OneshotState::Closed;
                waiting
            }
            OneshotState::Sent(_) | OneshotState::Closed => None,
        });
        waiting.into_iter().for_each(wake);
    }
}

impl<T, S: Storage> Receiver<T, S> {
    /// The value, if it is there. This is no future, and does not count in the
    /// [budget](crate::consume_budget) of the task.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if it was not sent yet, `Closed` if it never will be, or was received.
    ///
    /// # Examples
    ///
    /// ```
    /// let (sender, mut receiver) = glommio::channels::oneshot::oneshot();
    /// assert!(receiver.try_recv().is_err(), "it was not sent yet");
    /// sender.send(7).unwrap();
    /// assert_eq!(receiver.try_recv().unwrap(), 7);
    /// ```
    pub fn try_recv(&mut self) -> Result<T, GlommioError<()>> {
        self.state.with(|state| match state {
            OneshotState::Empty(_) => Err(nothing_there(false)),
            state => state.take(),
        })
    }
}

impl<T, S: Storage> Future for Receiver<T, S> {
    type Output = Result<T, GlommioError<()>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(budget::poll_leave(cx));
        let received = ready!(poll_waiting(cx, |waker| {
            self.state.with(|state| match state {
                OneshotState::Empty(Some(known)) if waker.is_same(known) => {
                    waits_at(Poll::Pending, "the value of a oneshot channel", known)
                }
                OneshotState::Empty(known) => {
                    if let Some(own) = waker.take()
                        && let Some(before) = known.replace(own)
                    {
                        waker.drop_later(before);
                    }
                    waits_at(Poll::Pending, "the value of a oneshot channel", known)
                }
                _ => Poll::Ready(state.take()),
            })
        }));
        budget::spend();
        Poll::Ready(received)
    }
}

/// Nothing is pinned in it.
impl<T, S: Storage> Unpin for Receiver<T, S> {}

impl<T, S: Storage> Drop for Receiver<T, S> {
    fn drop(&mut self) {
        // A value, or a waker: user code.
        let unclaimed = self
            .state
            .with(|state| mem::replace(state, OneshotState::Closed));
        fenced(|| drop(unclaimed));
    }
}

impl_debug! { [T, S: Storage] Sender[T, S], it: is_closed: it.is_closed() }

impl<T, S: Storage> fmt::Debug for Receiver<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = self.state.with(|state| match state {
            OneshotState::Empty(_) => "empty",
            OneshotState::Sent(_) => "sent",
            OneshotState::Closed => "closed",
        });
        f.debug_struct("Receiver").field("stage", &stage).finish()
    }
}
