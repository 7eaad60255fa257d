//! What other threads may do to an executor: leave mail, and make it look.
//!
//! This room owns the one word through which threads agree on whether an executor sleeps
//! ([`Notifier`]) and the queue through which they hand it work ([`Mailbox`]). It knows neither
//! tasks nor rings: the mail is any `M`, and the sleeping is done elsewhere, on the descriptor that
//! the notifier lends.
//!
//! ```text
//!   any thread                                     the owner, each turn
//!   ──────────                                     ────────────────────
//!   send(mail) ──▶ queue  ────────────────────────▶ 2. receive() until empty
//!       │                                              ▲
//!       └──▶ notify() ──▶ [ AWAKE│NOTIFIED│SLEEPING ] ─┘ 1. take()
//!                │                 ▲
//!                │                 └──────────────── 3. announce_sleep(), else turn again
//!                └── was SLEEPING ──▶ eventfd ─────▶ 4. sleep in the kernel, awake()
//! ```
//!
//! # Invariants
//!
//! 1. Mail that was sent before the owner's last [`Notifier::take`] is found by the drain after it;
//!    mail that was sent later keeps the owner from sleeping or wakes it (proven in [`sleep`]).
//! 2. One sleep is ended by at most one signal, whatever the number of senders.
//! 3. After [`Mailbox::close`] nothing is accepted; whatever was accepted before is still received.
//! 4. After [`Notifier::close_signal`] the descriptor is closed, however many still hold the notifier.
//!
//! # Cost
//!
//! Sending is one queue push (a few atomics, rarely an allocation) and one swap; one `write(2)` more
//! if the owner sleeps. Looking is one plain load while nothing came. The only lock is around that
//! `write(2)`, so that an owner that dies can take its descriptor along.

#![forbid(unsafe_code)]

pub(crate) mod loom;
mod queue;
mod sleep;
#[cfg(test)]
mod tests;

pub(crate) use queue::Mailbox;
pub(crate) use sleep::Notifier;
