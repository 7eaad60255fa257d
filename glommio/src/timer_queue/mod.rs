//! Timer queues: deadlines in, payloads out in order, no clock anywhere.
//!
//! Two queues with one interface and one behaviour:
//!
//! | queue | arm, cancel | what it is for |
//! |---|---|---|
//! | `ClassicQueue` | O(log n) and a hash | the default, and the baseline |
//! | `StagedWheel` | O(1) | the feature `timing-wheel` |
//!
//! ```text
//!   mod.rs ──┬── classic.rs
//!            └── wheel/mod.rs ──┬── inline.rs                up to 255 timers
//!                               └── hierarchy.rs             more: level.rs, then current_tick.rs
//!                                          both over reclaim.rs ── slab.rs ── page_table.rs
//! ```
//!
//! All of them keep these promises. *Never early*: a timer fires only at a poll whose `now` is at
//! or past its deadline, to the nanosecond. *Never late by structure*: it fires at the first such
//! poll, budget permitting. *In order*: by deadline, then by arming, across polls. *The next
//! expiry* is the earliest deadline or a bound before it, and a poll at a bound brings the queue
//! on. *Handles* are safe forever: once the timer is gone they name nothing. *Payloads* are moved,
//! never dropped: a waker's destructor may come back to the queue, so it runs in the caller's
//! hands. *A poll does bounded work* and says when something is left. A clock that stands still or
//! runs backwards does no harm, and a deadline of 584 years or more means never.
//!
//! The payload is a type parameter and the time comes in: the module knows neither wakers nor
//! clocks.

#![forbid(unsafe_code)]

#[cfg(any(not(feature = "timing-wheel"), feature = "bench", test))]
mod classic;
mod epoch;
mod peak;
#[cfg(any(feature = "timing-wheel", feature = "bench", test))]
mod wheel;

#[cfg(feature = "bench")]
pub use self::{
    classic::{ClassicHandle, ClassicQueue},
    wheel::{StagedWheel, TimerHandle},
};

/// The queue of the reactor.
#[cfg(not(feature = "timing-wheel"))]
pub(crate) type TimerQueue<T> = classic::ClassicQueue<T>;
/// Names a timer of the reactor's queue.
#[cfg(not(feature = "timing-wheel"))]
pub(crate) type Handle = classic::ClassicHandle;

/// The queue of the reactor.
#[cfg(feature = "timing-wheel")]
pub(crate) type TimerQueue<T> = wheel::StagedWheel<T>;
/// Names a timer of the reactor's queue.
#[cfg(feature = "timing-wheel")]
pub(crate) type Handle = wheel::TimerHandle;

#[cfg(any(test, all(fuzzing, feature = "bench")))]
mod tests;
#[cfg(all(fuzzing, feature = "bench"))]
pub use tests::follow_bytes;
