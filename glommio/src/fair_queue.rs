//! Members ordered by virtual runtime: which one runs next. Pure; knows neither tasks nor clocks.
//!
//! Each member accumulates the time it ran divided by its weight; the waiting member with the least
//! runs next (stride scheduling, Waldspurger and Weihl 1995, with measured instead of fixed
//! quanta). A member that was away re-enters level with the runnable ones, so absence earns no
//! credit. Nor is it a loss: what a member used beyond its part is forgiven while it is away, at the
//! pace at which others run that are not charged for it, and altogether when no member is runnable,
//! since then it delayed none.
//!
//! No turn is charged more than [`MOST_CHARGED`]: so a member waits until each other one has used
//! its part of that, and no longer, however long its turns and small its weight. Nor do those that
//! come and go keep it waiting: they start level with the least of what they leave behind.
//!
//! Times are nanoseconds in 128 bits, which outlast any machine: nothing is ever reset. Members
//! with equal virtual runtime take turns in the order in which they came, but those last that had a
//! turn while no other waited, as they were not charged for it.
//!
//! Cost: O(log n) in the waiting members, a few nanoseconds for one.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Accumulated run time divided by weight, in nanoseconds at weight [`WEIGHT_UNIT`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VirtualRuntime(u128);

/// The least that a turn is charged: a member that gives its turn back at once again and again must
/// not stay the cheapest forever.
const MIN_TURN: Duration = Duration::from_micros(10);

/// The most that a turn is charged, by weight.
const MOST_CHARGED: Duration = Duration::from_secs(1);

/// The weight at which virtual time runs as fast as real time.
const WEIGHT_UNIT: u64 = 1000;

impl VirtualRuntime {
    /// The value after a turn of `ran` at `weight`, which is from 1 to [`WEIGHT_UNIT`].
    pub(crate) fn after_turn(self, ran: Duration, weight: usize) -> Self {
        let ran_ns = ran.clamp(MIN_TURN, MOST_CHARGED).as_nanos() as u64;
        let charged_ns = ran_ns * WEIGHT_UNIT / weight.max(1) as u64;
        VirtualRuntime(self.0 + u128::from(charged_ns.min(MOST_CHARGED.as_nanos() as u64)))
    }

    /// The value after an absence in which others ran for so long without being charged.
    pub(crate) fn after_absence(self, away: Duration) -> Self {
        VirtualRuntime(self.0.saturating_sub(away.as_nanos()))
    }
}

/// The waiting members.
#[derive(Debug)]
pub(crate) struct FairQueue<M> {
    /// With whether the last turn was free, and the number of the arrival.
    waiting: BinaryHeap<Reverse<(VirtualRuntime, bool, u64, M)>>,
    arrivals: u64,
    /// The most that the least virtual runtime ever was: where a newcomer starts.
    level: VirtualRuntime,
    /// The largest that a member ever had.
    most: VirtualRuntime,
}

impl<M: Ord> FairQueue<M> {
    pub(crate) fn new() -> Self {
        FairQueue {
            waiting: BinaryHeap::new(),
            arrivals: 0,
            level: VirtualRuntime::default(),
            most: VirtualRuntime::default(),
        }
    }

    /// Adds a member that was away; returns the virtual runtime that it has from now on.
    pub(crate) fn join(&mut self, member: M, before: VirtualRuntime) -> VirtualRuntime {
        let virtual_runtime = before.max(self.level);
        self.put_back(member, virtual_runtime, false);
        virtual_runtime
    }

    /// Puts back a member after its turn, which was free or charged.
    pub(crate) fn put_back(&mut self, member: M, virtual_runtime: VirtualRuntime, was_free: bool) {
        self.most = self.most.max(virtual_runtime);
        self.arrivals += 1;
        self.waiting
            .push(Reverse((virtual_runtime, was_free, self.arrivals, member)));
    }

    /// Takes note of a member that goes away after its turn.
    pub(crate) fn leave(&mut self, virtual_runtime: VirtualRuntime) {
        self.most = self.most.max(virtual_runtime);
        if let Some(Reverse((least, ..))) = self.waiting.peek() {
            self.level = self.level.max(virtual_runtime.min(*least));
        }
    }

    /// Whether a member that comes with `before` would have to wait for the others to catch up.
    pub(crate) fn is_ahead(&self, before: VirtualRuntime) -> bool {
        before > self.level
    }

    /// No member is runnable: from here on all start level.
    pub(crate) fn settle_up(&mut self) {
        debug_assert!(self.is_empty(), "waiting members are owed their turns");
        self.level = self.most;
    }

    /// Takes the member whose turn it is.
    pub(crate) fn take(&mut self) -> Option<M> {
        let Reverse((virtual_runtime, .., member)) = self.waiting.pop()?;
        self.level = self.level.max(virtual_runtime);
        Some(member)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
