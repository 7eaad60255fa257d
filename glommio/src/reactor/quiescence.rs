//! What the modules above ask of a paused clock and of a reactor in a simulation.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use super::{Reactor, current};
use crate::clock::{self, Clock};
use crate::sys::door::is_simulated;

impl Reactor {
    /// The clock of the executor, which runs here, goes on.
    pub(crate) fn resume_clock(&self) {
        // That of a simulation is not the executor's.
        if !is_simulated() {
            clock::resume();
            self.paused.wake_waiting();
        }
    }

    /// Has the executor's clock be `clock` when it is next entered.
    pub(crate) fn set_clock(&self, clock: Clock) {
        self.clock.set(clock);
    }

    /// The clock does not move on while it is paused and this lives.
    pub(crate) fn hold_clock(&self) -> Arc<()> {
        Arc::clone(&self.paused.held)
    }

    /// Whether a turn at the time `now` of its clock would have an effect, besides on tasks that are
    /// runnable.
    pub(crate) fn has_work(&self, now: Instant) -> bool {
        self.sleep.is_notified()
            || self.round_ends.are_any()
            || self.timers.has_more_due()
            || self.next_deadline().is_some_and(|next| next <= now)
            || self.driver.ring().queued() > 0
            || self.driver.ring().completions_posted()
            || self.driver.ring().needs_enter_to_reap()
            || self.driver.completions.are_undelivered()
            || self.driver.in_flight.borrow().has_backlog()
    }

    /// The earliest deadline of its timers, if it is ever to be reached.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.paused.in_reach(self.timers.next_expiry())
    }

    /// Whether tasks wait until nothing but the clock can go on.
    pub(crate) fn is_quiescing(&self) -> bool {
        self.paused.is_waited_for()
    }

    /// Its node is about to end.
    pub(crate) fn lose_operations(&self) {
        self.driver.ring().lose_operations();
    }

    /// Wakes tasks that wait until nothing but the clock can go on. True if there are any.
    pub(crate) fn quiesce(&self) -> bool {
        self.paused.wake_waiting()
    }
}

/// Waits until nothing is left to do at the time that the paused clock of the running executor
/// shows. Over at once if it is not paused.
pub(crate) async fn quiescent() {
    let reactor = current::current();
    let woken = reactor.upgrade().map(|it| it.paused.woken());
    poll_fn(|cx| match reactor.upgrade() {
        Some(it) if clock::is_paused() && Some(it.paused.woken()) == woken => {
            it.paused.wait(cx.waker());
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}
