//! The clock of an executor, and how tests pause and move it.
//!
//! All deadlines of this crate are instants of one clock, which [`now`] reads: that of the system, unless a
//! test has paused it. Programs that use `now` instead of `Instant::now` can be tested with a paused
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
//! | [`now`], [`system_now`], sleeps, intervals, actions, `DelayQueue` | [`Instant::now`], [`SystemTime::now`], files' times |
//! | `timeout` and the timeouts of sockets and of connecting | shares of task queues, preemption, stall detection, statistics of running time |
//! | `overload`, `DeadlineQueue` of the controllers, metrics of timers | grace periods and restarts of shards, idle blocking threads |
//!
//! While a file operation, a blocking call or the lookup of a name is in flight, the clock stands still
//! until it is over. It does not wait for what happens outside of the executor: other threads and
//! executors, child processes, signals, sockets whose peers are elsewhere. For those, a paused clock runs
//! far ahead: time limits pass at once while the executor has nothing to do. So a test that talks to them
//! should [`hold`] the clock meanwhile, or leave it alone. Tasks of one executor may talk over sockets of
//! the loopback interface.
//!
//! A task that polls the clock in a loop, instead of waiting for a deadline, keeps it from moving.

#![forbid(unsafe_code)]

#[cfg(feature = "simulation")]
mod paused;

use std::time::{Instant, SystemTime};

#[cfg(feature = "simulation")]
#[cfg_attr(docsrs, doc(cfg(feature = "simulation")))]
pub use paused::{advance, pause, resume};

use crate::clock;
use crate::sys::door;

/// The time by the clock of the executor on this thread; that of the system, as [`Instant::now`], if no
/// executor runs here or its clock was never paused.
///
/// On one executor, no reading is earlier than one before it. Those of different executors can be
/// compared only if none of their clocks was paused.
#[inline]
pub fn now() -> Instant {
    clock::now()
}

/// The date by the clock of the executor on this thread; that of the system, as [`SystemTime::now`], if no
/// executor runs here or its clock was never paused.
///
/// It moves as [`now`] does, also with a paused clock. In a simulation it begins with the year 2020, drifts with the clock
/// of the node, and goes on while the node is off: so a deadline that is kept in a file can be tested.
///
/// # Examples
///
/// ```
/// use glommio::{time, timer::sleep};
/// use std::time::{Duration, SystemTime};
///
/// const DAY: Duration = Duration::from_secs(86_400);
/// glommio::LocalExecutor::default().run(async {
///     # #[cfg(feature = "simulation")]
///     time::pause();
///     # #[cfg(not(feature = "simulation"))]
///     # const DAY: Duration = Duration::from_millis(1);
///     let expires = time::system_now() + DAY;
///     let in_the_file = expires.duration_since(SystemTime::UNIX_EPOCH)?.as_secs();
///     sleep(DAY).await;
///     assert!(time::system_now() >= SystemTime::UNIX_EPOCH + Duration::from_secs(in_the_file));
///     Ok::<_, std::time::SystemTimeError>(())
/// })?;
/// # Ok::<_, std::time::SystemTimeError>(())
/// ```
pub fn system_now() -> SystemTime {
    door::date()
}

/// Keeps the clock of the executor on this thread where it is while it is paused, until what is
/// returned is dropped.
///
/// Use it while a task waits for another thread, process or host, which the executor cannot see, so that
/// no time limit ends that wait just because a paused clock takes no time. A task that holds the clock and
/// waits for a deadline waits forever.
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
        _clock: crate::reactor::current::try_current().map(|it| it.hold_clock()),
    }
}

/// While it lives, a paused clock stays where it is: see [`hold`]. It may be dropped on any thread.
#[derive(Debug)]
#[must_use = "dropping it ends the hold"]
pub struct Hold {
    #[cfg(feature = "simulation")]
    _clock: Option<std::sync::Arc<()>>,
}
