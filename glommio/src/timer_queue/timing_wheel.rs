//! The wheel as a queue: slab and order, without the inline stage.

use std::time::Instant;

use super::entry::TimerHandle;
use super::epoch::Epoch;
use super::slab::Slab;
use super::wheel::Wheel;

/// A hierarchical timing wheel that fires in exact order and never early.
///
/// It allocates its tables at once. The reactor's choice is [`StagedWheel`](super::StagedWheel), which
/// puts a smaller stage in front; this one is there to be measured beside it.
#[derive(Debug)]
pub struct TimingWheel<T, const ROW: usize = 32, const WIDE: usize = 8, const ROWS: usize = 24> {
    epoch: Epoch,
    /// Arms so far.
    seq: u64,
    slab: Slab<T>,
    wheel: Box<Wheel<ROW, WIDE, ROWS>>,
}

impl<T> TimingWheel<T> {
    /// An empty queue. Deadlines before `epoch` count as `epoch`.
    pub fn new(epoch: Instant) -> Self {
        Self::with_geometry(epoch)
    }
}

impl<T, const ROW: usize, const WIDE: usize, const ROWS: usize> TimingWheel<T, ROW, WIDE, ROWS> {
    pub(super) fn with_geometry(epoch: Instant) -> Self {
        TimingWheel {
            epoch: Epoch::new(epoch),
            seq: 0,
            slab: Slab::new(),
            wheel: Box::new(Wheel::new(0)),
        }
    }

    /// Arms a timer.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, waker: T) -> TimerHandle {
        let deadline_ns = self.epoch.deadline_ns(deadline);
        let seq = self.seq;
        self.seq += 1;
        self.wheel
            .insert(&mut self.slab.records, deadline_ns, seq, waker)
    }

    /// Disarms a timer and returns its payload; `None` if it has fired or was cancelled.
    #[inline]
    pub fn cancel(&mut self, handle: TimerHandle) -> Option<T> {
        let index = self.slab.records.find(handle)?;
        self.wheel.remove(&mut self.slab.records, index);
        let waker = self.slab.records.release(index);
        if self.slab.records.live() == 0 {
            self.wheel.reset();
        }
        Some(waker)
    }

    /// Gives an armed timer another deadline in place. Among equal deadlines it counts as armed now.
    /// False if it has fired or was cancelled.
    #[inline]
    pub fn rearm(&mut self, handle: TimerHandle, deadline: Instant) -> bool {
        let Some(index) = self.slab.records.find(handle) else {
            return false;
        };
        let deadline_ns = self.epoch.deadline_ns(deadline);
        let seq = self.seq;
        self.seq += 1;
        self.wheel
            .rearm(&mut self.slab.records, index, deadline_ns, seq);
        true
    }

    /// The payload of an armed timer.
    #[inline]
    pub fn get_mut(&mut self, handle: TimerHandle) -> Option<&mut T> {
        let index = self.slab.records.find(handle)?;
        self.slab.records.at_mut(index).payload.as_mut()
    }

    /// Moves the payloads of up to `budget` timers due at `now` to `expired`, in order of deadline and
    /// then of arming. True if more are due.
    pub fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<T>) -> bool {
        let now_ns = self.epoch.now_ns(now);
        if self.wheel.is_idle_at(now_ns) {
            return false;
        }
        let has_more = self.wheel.expire(&mut self.slab, now_ns, budget, expired);
        if self.slab.review(now_ns) {
            self.wheel.shrink();
        }
        self.wheel.wants_poll_at(self.slab.next_review_ns());
        has_more
    }

    /// When to poll next: the earliest deadline, or a bound before it. `None` if nothing will be due.
    #[inline]
    pub fn next_expiry(&mut self) -> Option<Instant> {
        let next_ns = self.wheel.next_ns(&mut self.slab.records);
        self.epoch.instant(next_ns)
    }

    /// Armed timers.
    #[inline]
    pub fn len(&self) -> usize {
        self.slab.records.live()
    }

    /// Whether no timer is armed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn set_moves_per_poll(&mut self, moves: usize) {
        self.wheel.set_moves_per_poll(moves);
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn dead_keys(&self) -> usize {
        self.wheel.dead_keys()
    }

    /// Brings the free records up to `generation`, and those to come on their pages.
    #[cfg(any(test, fuzzing))]
    pub(super) fn age(&mut self, generation: u32) {
        self.slab.age(generation);
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        self.slab.records.check_invariants();
        self.wheel.check_invariants(&self.slab.records);
    }
}
