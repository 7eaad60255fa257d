//! What pauses and moves the clock.

use std::time::Duration;

use crate::clock;
use crate::reactor::quiescence::quiescent;
use crate::reactor::{current, deadline_after};
use crate::timer::sleep_until;

/// Pauses the clock of the executor on this thread; see [the module](super#paused-clocks). Changes
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
pub async fn advance(duration: Duration) {
    pause();
    sleep_until(deadline_after(clock::now(), duration)).await;
    quiescent().await;
}
