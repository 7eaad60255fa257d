//! Threads for calls that block, few and started at the first request.
//!
//! ```text
//!   BlockingCall ──first poll──▶ queue ──▶ pool thread: f()
//!        ▲                                    │
//!        └──── slot, task woken ◀─────────────┘
//! ```
//!
//! A result travels in a slot of its own, and the task is woken through its ordinary waker, so the
//! executor needs no special path: a foreign wake ends a sleep and raises `need_preempt`. A panic in
//! the closure is carried to where the call is awaited. A call that is discarded, since the pool closes,
//! says so in its slot: nothing waits for ever.
//!
//! If the system has no thread to give and there is none yet, calls are queued all the same, and a timer
//! of the executor tries again ([`RetryTimer`]). A call fails where there is none, or it would not come.

#![forbid(unsafe_code)]

mod call;
mod pool;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(crate) use pool::{BlockingPool, MAX_BLOCKING_CALLS, PoolSettings};

/// What a pool asks of the executor whose calls it makes, while it has no thread. Used on the executor's thread.
pub(crate) trait RetryTimer {
    /// Whether the executor runs tasks on this thread now: it comes to its timers again.
    fn is_in_round(&self) -> bool;

    /// Has [`BlockingPool::retry`] called after `wait`.
    fn retry_after(&self, wait: Duration);
}
