//! How the rows are measured. Each function makes its queue and drops it, outside of what it times.

use std::task::Waker;
use std::time::{Duration, Instant};

use crate::queues::TimerQueue;

pub mod basics;
pub mod burst;
pub mod exactness;
pub mod expiry;
pub mod latency;
pub mod memory;
pub mod mix;

/// What was measured, in the order of the rows.
pub struct Figures {
    pub values: Vec<f64>,
    /// Whether the queue fired other timers than those that were due.
    pub is_astray: bool,
}

impl<const ROWS: usize> From<[f64; ROWS]> for Figures {
    fn from(values: [f64; ROWS]) -> Self {
        Figures {
            values: values.into(),
            is_astray: false,
        }
    }
}

impl Figures {
    /// Figures of polls that fired `fired` timers where `due` were due.
    ///
    /// # Panics
    /// If that is not so and the queue says that it is exact.
    fn of_polls<Q: TimerQueue>(values: &[f64], fired: usize, due: usize) -> Self {
        let is_astray = fired != due;
        let name = Q::NAME;
        assert!(
            !is_astray || !Q::IS_EXACT,
            "{name} fired {fired} timers where {due} were due"
        );
        Figures {
            values: values.into(),
            is_astray,
        }
    }
}

/// Polls until nothing more is due.
#[inline]
fn expire_all<Q: TimerQueue>(queue: &mut Q, now: Instant, expired: &mut Vec<Waker>) {
    while queue.expire(now, usize::MAX, expired) {}
}

/// Nanoseconds to an operation.
fn per(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_nanos() as f64 / operations as f64
}
