//! Timers: futures that are done at a point in time, actions that run then, and time limits.
//!
//! Every timer holds its deadline and a handle straight into the timer queue of the executor it was
//! created in (with the feature `timing-wheel`, a record of the wheel): arming, re-arming and
//! cancelling need no lookup. A timer never fires early: it compares the full-resolution deadline
//! with the monotonic clock. An idle executor sleeps until the earliest deadline; a busy one notices
//! a due timer at its next task switch.
//!
//! Waits that are too long to count (`Duration::MAX`, say) are legal and never end.

#![forbid(unsafe_code)]

mod action;
mod sleep;
mod timeout;

pub use action::{TimerActionOnce, TimerActionRepeat};
pub use sleep::{Timer, sleep};
pub use timeout::timeout;
