//! Sleeping, time limits, ticks, actions that run later, and a collection whose items expire.
//!
//! | to | use |
//! |---|---|
//! | wait | [`sleep()`], [`sleep_until()`] |
//! | bound how long a future may take | [`future::timeout`](crate::future::timeout); [`timeout()`] for futures of `Result`s |
//! | tick | [`interval()`], [`interval_at()`] |
//! | run something later, unless it is cancelled or put off | [`TimerActionOnce`] |
//! | run something again and again | [`TimerActionRepeat`] |
//! | hold many items until their deadlines | [`DelayQueue`] |
//! | poll a timer by hand, and reset it | [`Timer`] |
//!
//! ```
//! use glommio::timer::{interval, sleep};
//! use std::time::{Duration, Instant};
//!
//! glommio::LocalExecutor::default().run(async {
//!     let start = Instant::now();
//!     sleep(Duration::from_millis(1)).await;
//!     assert!(start.elapsed() >= Duration::from_millis(1), "never early");
//!
//!     let mut ticks = interval(Duration::from_millis(1));
//!     for _ in 0..3 {
//!         ticks.tick().await;
//!     }
//! });
//! ```
//!
//! A timer never fires early: its deadline is compared with the monotonic clock in nanoseconds. An
//! idle executor sleeps until the earliest deadline; a busy one notices a due timer at its next task
//! switch, or at the next [`yield_if_needed`](crate::yield_if_needed) of the running task.
//!
//! Arming, re-arming and cancelling need no lookup: every timer holds a handle into the timer queue
//! of the executor that it was created in (with the feature `timing-wheel`, a record of the wheel).
//!
//! Waits that are too long to count (`Duration::MAX`, say) are legal and never end.

#![forbid(unsafe_code)]

mod action;
pub mod delay_queue;
mod interval;
mod sleep;
mod timeout;

pub use action::{TimerActionOnce, TimerActionRepeat};
pub use delay_queue::DelayQueue;
pub use interval::{Interval, MissedTickBehavior, Tick, interval, interval_at};
pub use sleep::{Timer, sleep, sleep_until};
/// [`timeout`] under a name that cannot be taken for [`future::timeout`](crate::future::timeout).
#[doc(inline)]
pub use timeout::timeout as try_timeout;
pub use timeout::timeout;
pub(crate) use timeout::{Limit, Limited, Timeout};
