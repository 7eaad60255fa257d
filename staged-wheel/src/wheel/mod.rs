//! The reactor's queue: an inline stage for a few timers, the wheel for many.
//!
//! ```text
//!                      the 256th live timer
//!            ┌───────────────────────────────────────┐
//!            │                                       ▼
//!   ┌────────────────┐                      ┌─────────────────┐
//!   │ inline, dense  │                      │ wheel, tables   │      same slab, same records,
//!   │ arrays (3 KiB) │                      │ of 14 KiB       │      same handles in both
//!   └────────────────┘                      └─────────────────┘
//!            ▲                                       │
//!            └───────────────────────────────────────┘
//!                  the queue has long been empty
//! ```
//!
//! Promotion gives every record a place in the wheel and renumbers nothing: handles stay good and
//! the order is that of deadlines and arming counts, as before. The way back is that of all memory
//! that is no longer used: it is taken when none is armed, and none was for a whole window of the
//! slab. Nothing is lost by waiting: arming a hundred timers in the wheel is as cheap as a push.
//! What the stage buys is 11 KiB less for the many executors that never hold 256 timers, and an
//! exact next expiry for them.
//!
//! The tables of a stage are allocated by the arm that begins it, and never by a poll or a cancel.
//! Before the first arm nothing at all is allocated.

mod current_tick;
mod entry;
mod heap;
mod hierarchy;
mod inline;
mod level;
mod pace;
mod page_table;
mod reclaim;
mod run;
mod slab;
#[cfg(any(test, fuzzing))]
mod tests;
mod tick;

use std::num::NonZeroU32;
use std::time::Instant;

#[cfg(all(test, not(small_wheel)))]
pub(super) use self::entry::PAGE;
pub use self::entry::TimerHandle;
use self::entry::{FiredRecord, Link, RecordState};
use self::hierarchy::Wheel;
use self::inline::Dense;
pub(super) use self::inline::INLINE_MAX;
use self::reclaim::ReclaimingSlab;
#[cfg(any(test, fuzzing))]
pub(super) use self::{hierarchy::MOVES_PER_POLL, level::LEVELS, tick::TICK_BITS};
use super::epoch::{Epoch, NEVER};
use crate::fired::Fired;

/// A timer queue that fires in exact order and never early; arm and cancel cost the same for ten
/// timers and for a million.
#[derive(Debug)]
pub struct StagedWheel<T> {
    epoch: Epoch,
    /// Arms so far, and at the end of the last window, with the timers there were.
    seq: u64,
    window_seq: u64,
    window_len: usize,
    /// Windows in a row in which nothing has happened.
    quiet_windows: u32,
    /// The latest poll.
    now_ns: u64,
    memory: ReclaimingSlab<T>,
    stage: Stage,
    /// With so many timers the inline stage is full.
    inline_max: usize,
}

#[derive(Debug)]
enum Stage {
    /// No timer is armed: none ever was, or the wheel has gone back.
    Unused,
    Inline(Box<Dense>),
    Wheel(Box<Wheel>),
}

impl<T> StagedWheel<T> {
    /// An empty queue. Deadlines before `epoch` count as `epoch`.
    pub fn new(epoch: Instant) -> Self {
        Self::with_inline_max(epoch, INLINE_MAX)
    }

    /// The same with room for so many timers before the wheel begins.
    pub(super) fn with_inline_max(epoch: Instant, inline_max: usize) -> Self {
        debug_assert!(inline_max <= INLINE_MAX);
        StagedWheel {
            epoch: Epoch::new(epoch),
            seq: 0,
            window_seq: 0,
            window_len: 0,
            quiet_windows: 0,
            now_ns: 0,
            memory: ReclaimingSlab::new(),
            stage: Stage::Unused,
            inline_max,
        }
    }

    /// Arms a timer.
    #[inline]
    pub fn insert(&mut self, deadline: Instant, payload: T) -> TimerHandle {
        let deadline_ns = self.epoch.deadline_ns(deadline);
        let seq = self.seq;
        self.seq += 1;
        self.enter(deadline_ns, seq, payload)
    }

    /// Disarms a timer and returns its payload; `None` if it has fired or was cancelled.
    #[inline]
    pub fn cancel(&mut self, handle: TimerHandle) -> Option<T> {
        let index = self.memory.slab.find(handle)?;
        self.leave(index);
        Some(self.memory.slab.release(index))
    }

    /// Gives an armed timer another deadline in place. Among equal deadlines it counts as armed
    /// now. False if it has fired or was cancelled.
    #[inline]
    pub fn rearm(&mut self, handle: TimerHandle, deadline: Instant) -> bool {
        let Some(index) = self.memory.slab.find(handle) else {
            return false;
        };
        let deadline_ns = self.epoch.deadline_ns(deadline);
        let seq = self.seq;
        self.seq += 1;
        let slab = &mut self.memory.slab;
        match &mut self.stage {
            Stage::Wheel(wheel) => wheel.rearm(slab, index, deadline_ns, seq),
            Stage::Inline(dense) => dense.rearm(slab, index, deadline_ns, seq),
            Stage::Unused => unreachable!("a live timer is in a stage"),
        }
        true
    }

    /// Lets an armed timer move to where others are, after a peak, so that its page may go back.
    /// The handle to use from then on, if it has moved: the old one names nothing any more.
    /// Deadline and order stay.
    ///
    /// To be called with each [`rearm`](Self::rearm): timers that are re-armed time and again would
    /// else hold their pages forever.
    #[inline]
    pub fn compact(&mut self, handle: TimerHandle) -> Option<TimerHandle> {
        if self.memory.slab.is_draining() {
            self.move_to_front(handle)
        } else {
            None
        }
    }

    /// The payload of an armed timer.
    #[inline]
    pub fn get_mut(&mut self, handle: TimerHandle) -> Option<&mut T> {
        let index = self.memory.slab.find(handle)?;
        self.memory.slab.at_mut(index).payload.as_mut()
    }

    /// When an armed timer is due; the epoch if that was before it, and `None` if it is never or no timer.
    #[inline]
    pub fn deadline(&self, handle: TimerHandle) -> Option<Instant> {
        let index = self.memory.slab.find(handle)?;
        self.epoch.instant(self.memory.slab.link(index).deadline_ns)
    }

    /// Moves the payloads of up to `budget` timers due at `now` to `expired`, in order of deadline
    /// and then of arming. True if more are due or may be: poll again, at the same time or later.
    ///
    /// A poll moves at most 512 timers besides those that fire. So it may return true with fewer than
    /// `budget` of them, even with none.
    pub fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<T>) -> bool {
        self.expire_each(now, budget, |_, fired| expired.push(fired.payload))
    }

    /// As [`expire`](Self::expire), with the handle and the deadline of each timer.
    pub fn expire_fired(
        &mut self,
        now: Instant,
        budget: usize,
        expired: &mut Vec<Fired<TimerHandle, T>>,
    ) -> bool {
        self.expire_each(now, budget, |epoch, fired| {
            let generation = NonZeroU32::new(fired.generation).expect("it was armed");
            expired.push(Fired {
                handle: TimerHandle {
                    index: fired.index,
                    generation,
                },
                deadline: epoch.fired_at(fired.deadline_ns),
                payload: fired.payload,
            });
        })
    }

    /// `hand_out` must not panic: the queue is in the middle of a poll.
    #[inline(always)]
    fn expire_each(
        &mut self,
        now: Instant,
        budget: usize,
        mut hand_out: impl FnMut(&Epoch, FiredRecord<T>),
    ) -> bool {
        let now_ns = self.epoch.now_ns(now);
        self.now_ns = self.now_ns.max(now_ns);
        if self.is_idle_at(now_ns) {
            return false;
        }
        let epoch = self.epoch;
        self.poll(now_ns, budget, |fired| hand_out(&epoch, fired))
    }

    /// Whether a poll at `now_ns` has nothing to do, as far as a glance tells.
    #[inline(always)]
    fn is_idle_at(&self, now_ns: u64) -> bool {
        match &self.stage {
            // It knows of the reviews.
            Stage::Wheel(wheel) => wheel.is_idle_at(now_ns),
            Stage::Inline(dense) if !dense.is_idle_at(now_ns) => false,
            Stage::Inline(_) | Stage::Unused => now_ns < self.memory.next_review_ns(),
        }
    }

    // A poll with nothing to do is to be short: this is a call of its own.
    #[inline(never)]
    fn poll(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut hand_out: impl FnMut(FiredRecord<T>),
    ) -> bool {
        let memory = &mut self.memory;
        let has_more = match &mut self.stage {
            Stage::Wheel(wheel) => wheel.expire(&mut memory.slab, now_ns, budget, &mut hand_out),
            Stage::Inline(dense) => {
                !dense.is_idle_at(now_ns) && dense.expire(memory, now_ns, budget, &mut hand_out)
            }
            Stage::Unused => false,
        };
        if now_ns >= memory.next_review_ns() && memory.review(now_ns) {
            self.shrink();
        }
        if let Stage::Wheel(wheel) = &mut self.stage {
            wheel.wants_poll_at(self.memory.next_review_ns());
        }
        has_more
    }

    /// The earliest deadline, or a bound before it. `None` if nothing will be due.
    #[inline]
    pub fn next_expiry(&mut self) -> Option<Instant> {
        let next_ns = match &mut self.stage {
            Stage::Inline(dense) => dense.next_ns(),
            Stage::Wheel(wheel) => wheel.next_ns(&mut self.memory.slab),
            Stage::Unused => return None,
        };
        self.epoch.instant(next_ns)
    }

    /// When to poll even if nothing is due: a poll has left something to be done after what it fired, a
    /// burst is to be made ready before it is due, or memory is to go back that a peak has left. `None` if there is no need to; an owner who sleeps may
    /// then sleep on.
    #[inline]
    pub fn next_upkeep(&mut self) -> Option<Instant> {
        let (burst_ns, has_excess) = match &mut self.stage {
            Stage::Wheel(wheel) if wheel.cascades() => (self.now_ns, false),
            Stage::Wheel(wheel) => (wheel.next_burst_ns(), wheel.has_excess()),
            Stage::Inline(_) | Stage::Unused => (NEVER, false),
        };
        let is_wheel_unused = !self.is_inline() && self.is_empty();
        let shrink_ns = if self.memory.has_excess() || has_excess || is_wheel_unused {
            self.next_shrink_ns()
        } else {
            NEVER
        };
        self.epoch.instant(burst_ns.min(shrink_ns))
    }

    /// Armed timers.
    #[inline]
    pub fn len(&self) -> usize {
        self.memory.slab.live()
    }

    /// Whether no timer is armed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Disarms all timers and returns their payloads, in no particular order: cheaper than to cancel
    /// each.
    pub fn disarm_all(&mut self) -> Vec<T> {
        self.stage = Stage::Unused;
        self.memory.slab.release_all()
    }

    pub(super) fn is_inline(&self) -> bool {
        !matches!(self.stage, Stage::Wheel(_))
    }

    /// Arms a timer with the arming count `seq`.
    #[inline(always)]
    fn enter(&mut self, deadline_ns: u64, seq: u64, payload: T) -> TimerHandle {
        if let Stage::Wheel(wheel) = &mut self.stage {
            return wheel.insert(&mut self.memory.slab, deadline_ns, seq, payload);
        }
        self.insert_inline(deadline_ns, seq, payload)
    }

    /// Takes a record out of its stage.
    #[inline(always)]
    fn leave(&mut self, index: u32) {
        let slab = &mut self.memory.slab;
        match &mut self.stage {
            Stage::Wheel(wheel) => wheel.remove(slab, index),
            Stage::Inline(dense) => dense.remove(slab, index),
            Stage::Unused => unreachable!("a live timer is in a stage"),
        }
    }

    #[cold]
    fn move_to_front(&mut self, handle: TimerHandle) -> Option<TimerHandle> {
        let index = self.memory.slab.find(handle)?;
        if !self.memory.slab.should_move(index) {
            return None;
        }
        let deadline_ns = self.memory.slab.link(index).deadline_ns;
        let seq = self.memory.slab.at(index).seq;
        self.leave(index);
        let payload = self.memory.slab.release_fired(index);
        Some(self.enter(deadline_ns, seq, payload))
    }

    #[inline(never)]
    fn insert_inline(&mut self, deadline_ns: u64, seq: u64, payload: T) -> TimerHandle {
        if let Stage::Unused = self.stage {
            self.stage = Stage::Inline(Box::new(Dense::new()));
        }
        let (place, state) = match &self.stage {
            Stage::Inline(dense) if dense.len() < self.inline_max => {
                (dense.tail(), RecordState::Dense)
            }
            _ => (0, RecordState::Parked),
        };
        let slab = &mut self.memory.slab;
        let handle = slab.take(seq, payload, place, state, Link::alone(deadline_ns));
        match &mut self.stage {
            Stage::Inline(dense) if state == RecordState::Dense => {
                dense.insert(handle.index, deadline_ns);
            }
            _ => self.promote(handle.index),
        }
        handle
    }

    /// Moves all timers to the wheel, and the one at `index` with them.
    #[cold]
    fn promote(&mut self, index: u32) {
        let mut wheel = Box::new(Wheel::new(self.now_ns));
        let Stage::Inline(mut dense) = std::mem::replace(&mut self.stage, Stage::Unused) else {
            unreachable!("only a full inline stage is promoted");
        };
        for index in dense.drain() {
            wheel.adopt(&mut self.memory.slab, index);
        }
        wheel.adopt(&mut self.memory.slab, index);
        self.stage = Stage::Wheel(wheel);
    }

    /// When the memory of a peak can go back, the queue being left alone; [`NEVER`] if what can go
    /// has gone.
    #[cold]
    fn next_shrink_ns(&self) -> u64 {
        let is_settled = self.quiet_windows >= QUIET_WINDOWS && !self.was_used();
        if is_settled && !self.memory.is_sweeping() {
            NEVER
        } else {
            self.memory.next_review_ns()
        }
    }

    /// Whether anything was armed, or has left, since the last window.
    fn was_used(&self) -> bool {
        self.window_seq != self.seq || self.window_len != self.len()
    }

    /// Gives back what has not been used for long.
    #[cold]
    fn shrink(&mut self) {
        let was_used = self.was_used();
        self.quiet_windows = if was_used { 0 } else { self.quiet_windows + 1 };
        self.window_seq = self.seq;
        self.window_len = self.len();
        let is_empty = self.is_empty();
        match &mut self.stage {
            Stage::Wheel(_) if is_empty && !was_used => self.stage = Stage::Unused,
            Stage::Wheel(wheel) => wheel.shrink(),
            _ => {}
        }
    }
}

/// After so many windows without use all that can go back has gone: peaks are remembered for two.
const QUIET_WINDOWS: u32 = 3;

const _: () = assert!(
    size_of::<Wheel>() <= 16_384 - 32 && size_of::<Dense>() <= 4_000,
    "the fixed tables of a stage stay under 16 KiB, allocator's share included",
);
