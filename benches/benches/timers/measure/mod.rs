//! How the cases are measured. Each function makes its queue and drops it, outside of what it
//! times.

use std::task::Waker;
use std::time::Instant;

use crate::queues::TimerQueue;

pub mod basics;
pub mod burst;
pub mod expiry;
pub mod fixed;
pub mod latency;
pub mod memory;
pub mod mix;
pub mod peak;
pub mod table;

/// What the reactor allows a poll to fire.
pub const BUDGET: usize = 256;

/// Polls until nothing more is due.
#[inline]
pub fn expire_all<Q: TimerQueue>(queue: &mut Q, now: Instant, expired: &mut Vec<Waker>) {
    while queue.expire(now, usize::MAX, expired) {}
}

/// Whether a queue that fired `fired` timers where `due` were due went astray.
///
/// # Panics
/// If it did and says that it does not.
pub fn is_astray<Q: TimerQueue>(fired: usize, due: usize) -> bool {
    assert!(
        fired == due || !Q::IS_EXACT,
        "{} fired {fired} timers where {due} were due",
        Q::NAME,
    );
    fired != due
}
