//! The delivery of completions.
//!
//! ```text
//!   ring ── take_in: the state of what they complete ──▶ deliveries ── deliver ──▶ wakers, sinks
//! ```
//!
//! Wakers and sinks are user code, which may come back to the reactor. Completions are then
//! delivered in their order all the same: what such a call takes goes to the end of the line, and
//! the outer call delivers it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::in_flight::Delivery;
use crate::panic::{self, wake};
use crate::ring::{Completion, Ring};
use crate::stats::{RunCounts, SharedCounts};

/// See the module.
pub(super) struct Completions {
    /// What is to be told of completions that were reaped, in the order of these.
    deliveries: RefCell<VecDeque<Delivery>>,
    /// A call of [`deliver`](Self::deliver) is at it.
    is_delivering: Cell<bool>,
    /// A waker or a sink was called since this was last taken.
    has_woken: Cell<bool>,
    /// Scratch space, kept for its allocation.
    reaped: Cell<Vec<Completion>>,
    counts: SharedCounts<RunCounts>,
}

impl Completions {
    pub(super) fn new(counts: SharedCounts<RunCounts>) -> Self {
        Completions {
            deliveries: RefCell::default(),
            is_delivering: Cell::new(false),
            has_woken: Cell::new(false),
            reaped: Cell::default(),
            counts,
        }
    }

    /// Whether a delivery is under way.
    #[inline]
    pub(super) fn is_delivering(&self) -> bool {
        self.is_delivering.get()
    }

    /// Whether something waits to be told.
    #[inline]
    pub(super) fn are_undelivered(&self) -> bool {
        !self.deliveries.borrow().is_empty()
    }

    /// Whether a waker or a sink was called since [`take_woken`](Self::take_woken).
    #[inline]
    pub(super) fn has_woken(&self) -> bool {
        self.has_woken.get()
    }

    #[inline]
    pub(super) fn take_woken(&self) -> bool {
        self.has_woken.take()
    }

    /// Has `complete` move what `ring` has posted into the state of what it completes. Wakes
    /// nothing.
    #[inline]
    pub(super) fn take_in(
        &self,
        ring: &Ring,
        mut complete: impl FnMut(Completion, &mut VecDeque<Delivery>),
    ) {
        let mut reaped = self.reaped.take();
        ring.reap(&mut reaped);
        let mut deliveries = self.deliveries.borrow_mut();
        for completion in reaped.drain(..) {
            complete(completion, &mut deliveries);
        }
        self.reaped.set(reaped);
    }

    /// Tells what waits for the completions that were taken in, unless that is under way.
    pub(super) fn deliver(&self) {
        if self.is_delivering.replace(true) {
            return;
        }
        scopeguard::defer! { self.is_delivering.set(false) };
        // Not `while let`, which would hold the borrow while others run.
        loop {
            let Some(delivery) = self.deliveries.borrow_mut().pop_front() else {
                return;
            };
            match delivery {
                Delivery::Wake(waker) => {
                    self.has_woken.set(true);
                    self.counts.wakes_by_io.add(1);
                    wake(waker);
                }
                Delivery::Sink(sink, outcome) => {
                    self.has_woken.set(true);
                    self.counts.wakes_by_io.add(1);
                    panic::contain("a listener for completions panicked", move || {
                        sink.complete(outcome);
                    });
                }
                Delivery::Release(descriptor) => {
                    panic::contain("letting go of a file panicked", || drop(descriptor));
                }
                Delivery::Discard(op) => {
                    panic::contain("discarding the result of an operation panicked", || {
                        drop(op)
                    });
                }
            }
        }
    }
}
