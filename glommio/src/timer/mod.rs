//! Timers: futures that are done at a point in time, actions that run then, ticks, time limits, and
//! a collection whose items expire.
//!
//! Every timer holds its deadline and a handle straight into the timer queue of the executor it was
//! created in (with the feature `timing-wheel`, a record of the wheel): arming, re-arming and
//! cancelling need no lookup. A timer never fires early: it compares the full-resolution deadline
//! with the monotonic clock. An idle executor sleeps until the earliest deadline; a busy one
//! notices a due timer at its next task switch.
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
pub(crate) use timeout::limit;
/// [`timeout`] under the name that it has elsewhere.
#[doc(inline)]
pub use timeout::timeout as try_timeout;
pub use timeout::timeout;
