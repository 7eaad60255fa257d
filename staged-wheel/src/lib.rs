//! A timer queue for very many timers: deadlines in, payloads out in order, no clock anywhere.
//!
//! [`StagedWheel`] keeps up to 255 timers in small dense arrays, and more in a hierarchical timing
//! wheel (Varghese and Lauck, *Hashed and Hierarchical Timing Wheels*, 1987) whose ticks are sorted
//! when they come: arming, re-arming and cancelling take O(1), and timers still fire in the exact
//! order of their deadlines, to the nanosecond. It was made for the reactor of the async runtime
//! glommio and depends on nothing but the standard library.
//!
//! ```
//! use std::time::{Duration, Instant};
//!
//! use staged_wheel::StagedWheel;
//!
//! let start = Instant::now();
//! let mut timers = StagedWheel::new(start);
//! let late = timers.insert(start + Duration::from_secs(5), "late");
//! timers.insert(start + Duration::from_secs(1), "soon");
//! assert_eq!(timers.next_expiry(), Some(start + Duration::from_secs(1)));
//!
//! // The time is an argument: here nothing waits for it.
//! let mut expired = Vec::new();
//! timers.expire(start + Duration::from_secs(2), 256, &mut expired);
//! assert_eq!(expired, ["soon"]);
//! assert_eq!(timers.cancel(late), Some("late"));
//! assert!(timers.is_empty());
//! ```
//!
//! # Which queue
//!
//! Both have one interface, and fire the same timers in the same order:
//!
//! | queue | arm, cancel | made of |
//! |---|---|---|
//! | [`StagedWheel`] | O(1) | dense arrays, then a hierarchical wheel |
//! | [`ClassicQueue`] | O(log n) and a hash | an ordered map and a hash map |
//!
//! The second is the kind of queue that glommio 0.9 has: it is here to compare with, and for those who
//! want a queue whose every part is from the standard library.
//!
//! # What is promised
//!
//! - **Never early**: a timer fires only at a poll whose `now` is at or past its deadline, to the
//!   nanosecond.
//! - **Never late by structure**: it fires at the first such poll, or at one that follows while polls
//!   return true.
//! - **In order**: by deadline, then by arming, across polls.
//! - **The next expiry** is the earliest deadline or a bound before it, and a poll at a bound brings
//!   the queue on. An owner that sleeps until then, polls, and sleeps again until the next one misses
//!   nothing.
//! - **Handles are safe for good**: once the timer is gone they name nothing, and neither reuse of its
//!   memory nor the end of the queue changes that.
//! - **Payloads are moved, never dropped**, by any method: a destructor that comes back to the queue
//!   runs in the caller's hands. Those that are armed when the queue is dropped are dropped with it.
//! - **A poll does bounded work**, and returns true when something is left: also with fewer timers
//!   than its budget.
//! - **A clock** that stands still or runs backwards does no harm. A deadline 584 years or more after
//!   the queue's epoch means never.
//!
//! Nothing panics but a wheel that is given more than 2^30 timers (51 GB with a `Waker` as payload).
//!
//! # How it is made
//!
//! ```text
//!   lib.rs ──┬── classic.rs
//!            └── wheel/mod.rs ──┬── inline.rs                up to 255 timers
//!                               └── hierarchy.rs             more: level.rs, then current_tick.rs
//!                                          both over reclaim.rs ── slab.rs ── page_table.rs
//! ```

#![deny(unsafe_code)]

mod classic;
mod epoch;
mod fired;
mod peak;
mod prefetch;
#[cfg(any(test, fuzzing))]
mod tests;
mod wheel;

pub use self::classic::{ClassicHandle, ClassicQueue};
pub use self::fired::Fired;
#[cfg(fuzzing)]
pub use self::tests::follow_bytes;
pub use self::wheel::{StagedWheel, TimerHandle};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
