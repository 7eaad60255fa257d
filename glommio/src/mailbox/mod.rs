//! What other threads may do to an executor: leave wakes, and make it look.
//!
//! This module owns the one word through which threads agree on whether an executor sleeps
//! ([`Notifier`]) and the queue through which they hand it work ([`RemoteWakeQueue`]). It knows
//! neither tasks nor rings: a wake is anything [`Linked`], and the sleeping is done elsewhere, on
//! the descriptor that the notifier lends.
//!
//! ```text
//!   any thread                                     the owner, each turn
//!   ──────────                                     ────────────────────
//!   push(wake) ──▶ queue  ────────────────────────▶ 2. take(): all that is there
//!       │                                              ▲
//!       └──▶ notify() ──▶ [ AWAKE│NOTIFIED│SLEEPING ] ─┘ 1. take()
//!                │                 ▲
//!                │                 └──────────────── 3. announce_sleep(), else turn again
//!                └── was SLEEPING ──▶ eventfd ─────▶ 4. sleep in the kernel, awake()
//! ```
//!
//! # Invariants
//!
//! 1. Wakes that were pushed before the owner's last [`Notifier::take`] are found by the look after
//!    it; those pushed later keep the owner from sleeping or wake it (proven in [`sleep`]).
//! 2. One sleep is ended by at most one signal, whatever the number of senders.
//! 3. After [`RemoteWakeQueue::close`] nothing is accepted; what was accepted before is taken, or
//!    returned by it.
//! 4. After [`Notifier::close_signal`] the descriptor is closed, however many still hold the
//!    notifier.
//! 5. No thread waits for another that was descheduled in one of these calls.
//!
//! # Cost
//!
//! A wake is one compare-exchange and one swap; one `write(2)` more if the owner sleeps. Looking is
//! one plain load while nothing came. The only lock is around that `write(2)`, so that an owner
//! that dies can take its descriptor along.

mod queue;
mod sleep;
#[cfg(test)]
mod tests;

pub(crate) use queue::{Link, Linked, RemoteWakeQueue, Taken};
pub(crate) use sleep::Notifier;
#[cfg(all(test, loom))]
pub(crate) use sleep::Signal;
