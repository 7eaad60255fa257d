//! The clock of an executor, and how tests pause and move it.
//!
//! All deadlines of this crate are instants of one clock, which [`now`] reads: that of the system, unless a
//! test has paused it. Programs that use `now` in place of `Instant::now` can be tested with a paused
//! clock.
//!
//! # Paused clocks
//!
//! With the feature `simulation`, each executor's clock can be paused: by `pause`, by
//! `LocalExecutorBuilder::start_paused`, or by
//! `#[glommio::test(start_paused = true)]`. It then stands still while anything can run. When all tasks
//! wait, it moves to the next deadline, exactly, and takes no time for that: a test of a limit of an
//! hour takes microseconds, and everything happens at the nanosecond at which it is due.
//!
//! ```
//! use glommio::{LocalExecutorBuilder, time, timer::sleep};
//! use std::time::Duration;
//!
//! const HOUR: Duration = Duration::from_secs(3600);
//! # #[cfg(feature = "simulation")]
//! LocalExecutorBuilder::default().start_paused(true).make()?.run(async {
//!     let start = time::now();
//!     sleep(HOUR).await;
//!     assert_eq!(time::now() - start, HOUR);
//! });
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! | goes by the executor's clock | goes by the system's |
//! |---|---|
//! | sleeps, intervals, actions, `DelayQueue` | [`Instant::now`], files' times |
//! | `timeout` and the timeouts of sockets and of connecting | shares of task queues, preemption, stall detection, statistics of running time |
//! | `overload`, `DeadlineQueue` of the controllers, metrics of timers | grace periods and restarts of shards, idle blocking threads |
//!
//! While a file operation, a blocking call or the lookup of a name is in flight, the clock stands still
//! until it is over. It does not wait for what happens outside of the executor: other threads and
//! executors, child processes, signals, sockets whose peers are elsewhere. To those a paused executor
//! that has nothing to do looks like one in a hurry, so a test that talks to them should [`hold`] the
//! clock meanwhile, or leave it alone. Tasks of one executor may talk over sockets of the loopback
//! interface.
//!
//! A task that polls the clock in a loop, instead of waiting for a deadline, keeps it from moving.

#![forbid(unsafe_code)]

#[cfg(feature = "simulation")]
use std::sync::Arc;
#[cfg(feature = "simulation")]
use std::time::Duration;
use std::time::Instant;

use crate::clock;
#[cfg(feature = "simulation")]
use crate::reactor::{current, deadline_after, settled};
#[cfg(feature = "simulation")]
use crate::timer::sleep_until;

/// What the clock of the executor on this thread says; that of the system, as [`Instant::now`], if no
/// executor runs here or its clock was never paused.
///
/// On one executor, no reading is earlier than one before it. Those of different executors can be
/// compared only if none of their clocks was paused.
///
/// # Examples
///
/// ```
/// use glommio::{time, timer::sleep};
/// use std::time::Duration;
///
/// glommio::LocalExecutor::default().run(async {
///     let start = time::now();
///     sleep(Duration::from_millis(1)).await;
///     assert!(time::now() - start >= Duration::from_millis(1));
/// });
/// ```
#[inline]
pub fn now() -> Instant {
    clock::now()
}

/// Keeps the clock of the executor on this thread where it is while it is paused, until what is
/// returned is dropped.
///
/// For what the executor cannot know of: a task waits for another thread, process or host, and no time
/// limit is to end that just because a paused clock takes no time. A task that holds the clock and
/// waits for a deadline waits for ever.
///
/// Has no effect without the feature `simulation`, in a simulation, and where no executor runs.
///
/// # Examples
///
/// ```
/// use glommio::{LocalExecutor, channels::oneshot, future::timeout, time};
/// use std::{thread, time::Duration};
///
/// LocalExecutor::default().run(async {
///     # #[cfg(feature = "simulation")]
///     time::pause();
///     let (sender, receiver) = oneshot::shared();
///     thread::spawn(move || {
///         thread::sleep(Duration::from_millis(5));
///         sender.send(42)
///     });
///     let held = time::hold();
///     let received = timeout(Duration::from_secs(60), receiver).await;
///     drop(held);
///     assert_eq!(received.ok().and_then(Result::ok), Some(42));
/// });
/// ```
#[inline]
pub fn hold() -> Hold {
    Hold {
        #[cfg(feature = "simulation")]
        _clock: current::try_current().map(|it| it.hold_clock()),
    }
}

/// While it lives, a paused clock stays where it is: see [`hold`]. It may be dropped on any thread.
#[derive(Debug)]
#[must_use = "dropping it ends the hold"]
pub struct Hold {
    #[cfg(feature = "simulation")]
    _clock: Option<Arc<()>>,
}

/// Pauses the clock of the executor on this thread; see [the module](self#paused-clocks). Changes
/// nothing if it is paused.
///
/// # Panics
///
/// Panics if no executor is running on this thread.
///
/// # Examples
///
/// ```
/// use glommio::{time, timer::sleep};
/// use std::time::{Duration, Instant};
///
/// glommio::LocalExecutor::default().run(async {
///     time::pause();
///     sleep(Duration::from_secs(3600)).await; // takes no time
///     time::resume();
///     let resumed = Instant::now();
///     sleep(Duration::from_millis(1)).await; // takes a millisecond
///     assert!(resumed.elapsed() >= Duration::from_millis(1));
/// });
/// ```
#[cfg(feature = "simulation")]
#[cfg_attr(docsrs, doc(cfg(feature = "simulation")))]
pub fn pause() {
    let _running = current::expect();
    clock::pause_at(clock::now());
}

/// Has the clock of the executor on this thread go on, at the pace of the system's, from what it
/// says: see [`pause`]. Changes nothing if it is not paused.
///
/// # Panics
///
/// Panics if no executor is running on this thread.
#[cfg(feature = "simulation")]
#[cfg_attr(docsrs, doc(cfg(feature = "simulation")))]
pub fn resume() {
    current::expect().resume_clock();
}

/// Pauses the clock of the executor on this thread, and moves it on by `duration`.
///
/// It stops at each deadline on the way, until all tasks wait again, so that everything happens in
/// its order and at its time. When this is over, what is due at the last moment has happened, too:
/// `advance(Duration::ZERO)` waits until nothing can go on but the clock.
///
/// # Panics
///
/// Panics when it is first polled if no executor is running on this thread.
///
/// # Cancel safety
///
/// Dropped, it leaves the clock paused, where it is.
///
/// # Examples
///
/// ```
/// use glommio::{spawn_local, time, timer::sleep};
/// use std::{cell::Cell, rc::Rc, time::Duration};
///
/// glommio::LocalExecutor::default().run(async {
///     let retries = Rc::new(Cell::new(0));
///     let counted = Rc::clone(&retries);
///     spawn_local(async move {
///         for wait in [1, 2, 4, 8] {
///             sleep(Duration::from_secs(wait)).await;
///             counted.set(counted.get() + 1);
///         }
///     })
///     .detach();
///     time::advance(Duration::from_secs(3)).await;
///     assert_eq!(retries.get(), 2);
///     time::advance(Duration::from_secs(12)).await;
///     assert_eq!(retries.get(), 4);
/// });
/// ```
#[cfg(feature = "simulation")]
#[cfg_attr(docsrs, doc(cfg(feature = "simulation")))]
pub async fn advance(duration: Duration) {
    pause();
    sleep_until(deadline_after(clock::now(), duration)).await;
    settled().await;
}
