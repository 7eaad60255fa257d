//! Graceful shutdown of a group of tasks.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::error::{GlommioError, ResourceType, Result};
use crate::executor::{Task, executor};
use crate::noted::waits_at;
use crate::reactor::{budget, wake};
use crate::shares::TaskQueueHandle;
use crate::wait_queue::{WaitKey, WaitQueue, poll_waiting};

/// Counts the tasks, requests or whatever else is inside, and closes when the last of them has
/// left.
///
/// ```text
///   open ──close──▶ closing ──last pass dropped──▶ closed
///      └──close, nothing inside──────────────────────▲
/// ```
///
/// A clone is a handle to the same gate.
///
/// # Examples
///
/// ```
/// use glommio::{sync::Gate, timer::sleep};
/// use std::{cell::Cell, rc::Rc, time::Duration};
///
/// glommio::LocalExecutor::default().run(async {
///     let gate = Gate::new();
///     let done = Rc::new(Cell::new(0));
///     for _ in 0..3 {
///         let done = done.clone();
///         gate.spawn(async move {
///             sleep(Duration::from_millis(1)).await;
///             done.set(done.get() + 1);
///         })?
///         .detach();
///     }
///     gate.close().await?;
///     assert_eq!(done.get(), 3);
///     assert!(gate.spawn(async {}).is_err());
///     Ok::<_, glommio::GlommioError<()>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    state: Rc<RefCell<GateState>>,
}

#[derive(Debug)]
struct GateState {
    phase: Phase,
    visitors: usize,
    closers: WaitQueue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Closing,
    Closed,
}

impl Gate {
    /// An open gate with nothing inside.
    #[allow(clippy::new_without_default, reason = "0.9 has no `Default`")]
    pub fn new() -> Self {
        Gate {
            state: Rc::new(RefCell::new(GateState {
                phase: Phase::Open,
                visitors: 0,
                closers: WaitQueue::new(),
            })),
        }
    }

    /// Enters. The gate does not close before the pass is dropped.
    ///
    /// # Errors
    ///
    /// `Closed` once [`close`](Self::close) was called.
    pub fn enter(&self) -> Result<Pass, ()> {
        let mut state = self.state.borrow_mut();
        if state.phase != Phase::Open {
            return Err(GlommioError::Closed(ResourceType::Gate));
        }
        state.visitors += 1;
        Ok(Pass {
            state: Rc::clone(&self.state),
        })
    }

    /// Spawns a task into the current task queue. It is queued, never polled inside the call. It is
    /// inside from now on until its future is dropped: because it is done, or because it was
    /// cancelled, also before it ever ran.
    ///
    /// # Errors
    ///
    /// `Closed` once [`close`](Self::close) was called; the future is dropped.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<Task<T>, ()> {
        self.spawn_into(future, executor().current_task_queue())
    }

    /// As [`spawn`](Self::spawn), into the task queue `handle`.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), and `QueueError` of kind `NotFound` if there is no such queue.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use glommio::{TaskQueueHandle, sync::Gate};
    ///
    /// let gate = Gate::new();
    /// let task = gate.spawn_into(async { 7 }, TaskQueueHandle::default())?;
    /// let pass = gate.enter()?;
    /// let closed = gate.close();
    /// assert_eq!(task.await, 7);
    /// assert!(!gate.is_open() && !gate.is_closed());
    /// drop(pass);
    /// closed.await?;
    /// assert!(gate.is_closed());
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    #[cfg_attr(feature = "debugging", track_caller)]
    pub fn spawn_into<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
        handle: TaskQueueHandle,
    ) -> Result<Task<T>, ()> {
        let pass = self.enter()?;
        executor().spawn_local_into(Inside { future, pass }, handle)
    }

    /// Closes the gate: from now on nothing enters, whether the returned future is polled or not.
    /// It is done when everything that is inside has left. Any number of calls may wait at a
    /// time.
    ///
    /// # Errors
    ///
    /// `Closed` if everything had left before this was called, and the gate had been closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up waiting; the gate goes on closing, and this can be called
    /// again.
    pub fn close(&self) -> impl Future<Output = Result<(), ()>> + use<> {
        let mut state = self.state.borrow_mut();
        let was_closed = state.phase == Phase::Closed;
        if state.phase == Phase::Open {
            state.phase = match state.visitors {
                0 => Phase::Closed,
                _ => Phase::Closing,
            };
        }
        drop(state);
        let closing = Closing {
            gate: self.clone(),
            key: None,
        };
        async move {
            if was_closed {
                return budget::checked(Err(GlommioError::Closed(ResourceType::Gate))).await;
            }
            closing.await;
            Ok(())
        }
    }

    /// Whether [`close`](Self::close) was not called yet.
    pub fn is_open(&self) -> bool {
        self.state.borrow().phase == Phase::Open
    }

    /// Whether [`close`](Self::close) was called and everything has left.
    pub fn is_closed(&self) -> bool {
        self.state.borrow().phase == Phase::Closed
    }
}

pin_project! {
    /// A future, with a pass that is dropped right after it.
    struct Inside<F> {
        #[pin]
        future: F,
        pass: Pass,
    }
}

impl<F: Future> Future for Inside<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

/// Waits until the last visitor has left.
struct Closing {
    gate: Gate,
    key: Option<WaitKey>,
}

impl Future for Closing {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(budget::poll_leave(cx));
        let Closing { gate, key } = &mut *self;
        ready!(poll_waiting(cx, |waker| {
            let mut state = gate.state.borrow_mut();
            if state.phase == Phase::Closed {
                state.closers.finish(key, waker);
                return Poll::Ready(());
            }
            state.closers.wait(key, waker, ());
            waits_at(Poll::Pending, "the closing of a gate", &*state)
        }));
        budget::spend();
        Poll::Ready(())
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        // All are notified at once, so there is nothing to pass on.
        let left = self.gate.state.borrow_mut().closers.leave(&mut self.key);
        drop(left);
    }
}

/// Keeps a [`Gate`] from closing until this is dropped.
#[must_use = "dropping the pass leaves the gate"]
#[derive(Debug)]
pub struct Pass {
    state: Rc<RefCell<GateState>>,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        state.visitors -= 1;
        if state.visitors > 0 || state.phase != Phase::Closing {
            return;
        }
        state.phase = Phase::Closed;
        let waiting = state.closers.waiting();
        drop(state);
        std::iter::from_fn(|| self.state.borrow_mut().closers.notify_oldest())
            .take(waiting)
            .for_each(wake);
    }
}
