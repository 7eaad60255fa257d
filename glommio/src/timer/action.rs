//! Actions at points in time: tasks that wait, then run.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use super::Timer;
use crate::error::Result;
use crate::executor::{executor, spawn_local_into};
use crate::shares::TaskQueueHandle;
use crate::task::JoinHandle;

/// A future that runs once, at a deadline, as a detached task.
///
/// The deadline counts from the call that makes it. Waiting and action happen in the caller's task
/// queue or in that of the `_into` forms. **Dropping the handle does not cancel the action.**
///
/// # Examples
///
/// ```
/// use glommio::{TaskQueueHandle, timer::TimerActionOnce};
/// use std::time::{Duration, Instant};
///
/// # glommio::LocalExecutor::default().run(async {
/// let hour = Duration::from_secs(3600);
/// let answer = TimerActionOnce::do_in(Duration::from_millis(1), async { 42 });
/// assert_eq!(answer.join().await, Some(42));
///
/// let deadline = Instant::now() + Duration::from_millis(1);
/// let action = TimerActionOnce::do_at(deadline, async { Instant::now() });
/// assert!(action.join().await.unwrap() >= deadline);
///
/// // In another task queue:
/// let queue = TaskQueueHandle::default();
/// let resend = TimerActionOnce::do_in_into(hour, async { "resent" }, queue)?;
/// resend.rearm_in(2 * hour);
/// resend.rearm_at(deadline);
/// assert_eq!(resend.join().await, Some("resent"));
///
/// let never = TimerActionOnce::do_at_into(deadline + hour, async {}, queue)?;
/// never.destroy(); // does not wait
/// never.cancel().await;
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct TimerActionOnce<T> {
    handle: JoinHandle<T>,
    /// Shared with the task that waits.
    timer: Rc<RefCell<Timer>>,
}

impl<T: 'static> TimerActionOnce<T> {
    /// Runs `action` after `when`, in the task queue of the caller.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn do_in(when: Duration, action: impl Future<Output = T> + 'static) -> TimerActionOnce<T> {
        Self::do_in_into(when, action, executor().current_task_queue())
            .expect("the caller's own task queue exists")
    }

    /// As [`do_in`](Self::do_in), in the task queue `tq`.
    ///
    /// # Errors
    ///
    /// `QueueError` of kind `NotFound` if there is no such queue; the action is dropped.
    pub fn do_in_into(
        when: Duration,
        action: impl Future<Output = T> + 'static,
        tq: TaskQueueHandle,
    ) -> Result<TimerActionOnce<T>, ()> {
        Self::start(Timer::new(when), action, tq)
    }

    /// Runs `action` at `when`, in the task queue of the caller; as soon as the queue gets its turn
    /// if `when` is past.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn do_at(when: Instant, action: impl Future<Output = T> + 'static) -> TimerActionOnce<T> {
        Self::do_at_into(when, action, executor().current_task_queue())
            .expect("the caller's own task queue exists")
    }

    /// As [`do_at`](Self::do_at), in the task queue `tq`; errors are those of [`do_in_into`](Self::do_in_into).
    pub fn do_at_into(
        when: Instant,
        action: impl Future<Output = T> + 'static,
        tq: TaskQueueHandle,
    ) -> Result<TimerActionOnce<T>, ()> {
        Self::start(Timer::at(when), action, tq)
    }

    fn start(
        timer: Timer,
        action: impl Future<Output = T> + 'static,
        tq: TaskQueueHandle,
    ) -> Result<TimerActionOnce<T>, ()> {
        let timer = Rc::new(RefCell::new(timer));
        let awaited = Rc::clone(&timer);
        let task = spawn_local_into(
            async move {
                // Borrowed for one poll at a time: `rearm_at` finds it free in between.
                poll_fn(|cx| Pin::new(&mut *awaited.borrow_mut()).poll(cx)).await;
                action.await
            },
            tq,
        )?;
        Ok(TimerActionOnce {
            handle: task.detach(),
            timer,
        })
    }

    /// Cancels the action and waits until its future has been dropped. The value of an action that
    /// has finished is dropped.
    ///
    /// # Panics
    ///
    /// With the payload of the panic, if the action has panicked and that was
    /// [isolated](crate::PanicPolicy::Isolate).
    ///
    /// # Cancel safety
    ///
    /// Once polled, the action is cancelled whether or not this is awaited to its end.
    pub async fn cancel(self) {
        self.destroy();
        self.join().await;
    }

    /// Cancels the action without waiting: its future is dropped when the executor next comes to
    /// it, never having started or at the point where it is suspended. No effect on one that
    /// has finished, or whose executor is gone.
    pub fn destroy(&self) {
        self.handle.cancel();
        // This handle would keep it armed, and its expiry would wake the executor for no task.
        self.timer.borrow_mut().disarm();
    }

    /// Waits for the action. `None` if it was cancelled, or if its panic ended the call of `run`.
    ///
    /// # Panics
    ///
    /// With the payload of the panic, if the action has panicked and that was
    /// [isolated](crate::PanicPolicy::Isolate).
    ///
    /// # Cancel safety
    ///
    /// Dropping this leaves the action to run on.
    pub async fn join(self) -> Option<T> {
        self.handle.await
    }

    /// Moves the deadline to `dur` from now. No effect once the action has started, or when its
    /// executor is gone.
    pub fn rearm_in(&self, dur: Duration) {
        self.timer.borrow_mut().reset(dur);
    }

    /// Moves the deadline to `when`; to now if that is past. No effect once the action has started,
    /// or when its executor is gone.
    pub fn rearm_at(&self, when: Instant) {
        self.timer.borrow_mut().reset_at(when);
    }
}

/// A future that runs again and again, as a detached task, until it says that it is done.
///
/// The first run has no delay. The next one starts the returned duration after the end of the one
/// before it; runs never overlap, and missed ones are not made up. `None` ends it for good.
/// **Dropping the handle does not cancel it.**
///
/// # Examples
///
/// ```
/// use glommio::{TaskQueueHandle, timer::TimerActionRepeat};
/// use std::{cell::Cell, rc::Rc, time::Duration};
///
/// glommio::LocalExecutor::default().run(async {
///     let runs = Rc::new(Cell::new(0));
///     let count = Rc::clone(&runs);
///     let action = TimerActionRepeat::repeat(move || {
///         let count = Rc::clone(&count);
///         async move {
///             count.set(count.get() + 1);
///             (count.get() < 3).then_some(Duration::from_millis(1))
///         }
///     });
///     assert_eq!(action.join().await, Some(()));
///     assert_eq!(runs.get(), 3);
///
///     let heartbeat = || async { Some(Duration::from_secs(1)) };
///     let other_queue = TaskQueueHandle::default();
///     TimerActionRepeat::repeat_into(heartbeat, other_queue).unwrap().cancel().await;
///     let stopped = TimerActionRepeat::repeat(heartbeat);
///     stopped.destroy(); // does not wait
///     assert_eq!(stopped.join().await, None);
/// });
/// ```
pub struct TimerActionRepeat {
    handle: JoinHandle<()>,
    /// That of the task, which keeps it: a run that destroys its own action goes on to the next
    /// wait, and the timer of that wait ends with the task.
    timer: Weak<RefCell<Timer>>,
}

impl fmt::Debug for TimerActionRepeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timer = self.timer.upgrade();
        let wait = timer.and_then(|timer| timer.try_borrow().ok()?.remaining());
        f.debug_struct("TimerActionRepeat")
            .field("handle", &self.handle)
            // `None` while the action runs, and once it has ended.
            .field("next_run_in", &wait)
            .finish()
    }
}

impl TimerActionRepeat {
    /// Repeats what `action_gen` makes, in the task queue of the caller.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn repeat<G, F>(action_gen: G) -> TimerActionRepeat
    where
        G: Fn() -> F + 'static,
        F: Future<Output = Option<Duration>> + 'static,
    {
        Self::repeat_into(action_gen, executor().current_task_queue())
            .expect("the caller's own task queue exists")
    }

    /// As [`repeat`](Self::repeat), in the task queue `tq`; errors are those of
    /// [`TimerActionOnce::do_in_into`].
    pub fn repeat_into<G, F>(action_gen: G, tq: TaskQueueHandle) -> Result<TimerActionRepeat, ()>
    where
        G: Fn() -> F + 'static,
        F: Future<Output = Option<Duration>> + 'static,
    {
        let awaited = Rc::new(RefCell::new(Timer::new(Duration::ZERO)));
        let timer = Rc::downgrade(&awaited);
        let task = spawn_local_into(
            async move {
                while let Some(wait) = action_gen().await {
                    awaited.borrow_mut().reset(wait);
                    suspend(&awaited).await;
                }
            },
            tq,
        )?;
        Ok(TimerActionRepeat {
            handle: task.detach(),
            timer,
        })
    }

    /// As [`TimerActionOnce::join`]: `Some` if the action said itself that it is done.
    pub async fn join(self) -> Option<()> {
        self.handle.await
    }

    /// As [`TimerActionOnce::cancel`].
    pub async fn cancel(self) {
        self.destroy();
        self.join().await;
    }

    /// Cancels the action without waiting. No effect on one that has ended, or whose executor is
    /// gone.
    pub fn destroy(&self) {
        self.handle.cancel();
    }
}

/// Waits for `timer`, and suspends at least once however near its deadline is: an action that asks
/// for no wait would never yield the thread otherwise.
async fn suspend(timer: &RefCell<Timer>) {
    let mut is_resumed = false;
    poll_fn(|cx| {
        let polled = Pin::new(&mut *timer.borrow_mut()).poll(cx);
        if std::mem::replace(&mut is_resumed, true) {
            return polled.map(drop);
        }
        if polled.is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
}
