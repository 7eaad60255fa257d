//! The wheel proper: the order of the records, and the cursor that moves through it
//! (`hierarchy/cursor.rs`).
//!
//! ```text
//!            arm, deadline in a later tick                arm, deadline in this tick or the past
//!                      │                                                 │
//!                      ▼                                                 ▼
//!    ┌──────────────────────────────────────┐   cursor arrives   ┌─────┐ ┌──────┐
//!    │ levels 8 ▸ ... ▸ 2 ▸ 1 ▸ 0           │ ─────────────────▶ │ run │ │ heap │
//!    └──────────────────────────────────────┘   gather, sort     └──┬──┘ └──┬───┘
//!       cascade: the next slot of each level                        └───┬───┘
//!       moves down ahead of the cursor                    the smaller head fires, if due
//! ```
//!
//! The cursor is the tick up to which all lists are empty. A poll fires what is due in run and
//! heap, then moves the cursor to the next occupied slot, wherever that is: empty time costs
//! nothing. A slot of a coarse level is moved down *before* the cursor enters it, with the cursor
//! standing one tick short of it; the next slot of level 0 is gathered the same way, and so are few
//! timers of any slot, and all that are due. So the invariants hold at every moment, a poll may stop
//! in the middle of any slot, and a timer armed meanwhile for an earlier moment still goes first.
//!
//! A burst is brought down even earlier, while the executor is idle (`hierarchy/presort.rs`).
//!
//! Invariants: no listed record has a tick at or before the cursor; the run holds timers of the
//! cursor's tick and of slots that were gathered when it came to them or before, in part or as a
//! whole; the heap holds timers of the cursor's tick or earlier ones; what the run holds of later ticks
//! fires when the cursor comes to these; no timer is due before `idle_before_ns`.
//!
//! Costs: arm and cancel O(1) (O(log n) in the timers of the current tick); a poll at most
//! `budget` timers fired plus [`MOVES_PER_POLL`] records moved or gathered; the next expiry one slot
//! per occupied level, and cached; a scan for bursts a few slots per occupied level, once a tick and
//! before each sleep.

mod cascade;
mod cursor;
mod presort;
#[cfg(any(test, fuzzing))]
mod tests;

use super::current_tick::CurrentTick;
use super::entry::{FiredRecord, Link, NIL, RecordState, TimerHandle};
use super::level::{Levels, Position};
use super::pace::{Cascade, Pace};
use super::slab::Slab;
use super::tick::{TICK_BITS, Tick};
use crate::epoch::NEVER;

/// What a look at the queue found.
enum Due {
    /// One in run or heap.
    Timer,
    Nothing,
    /// The poll's moves are spent before the next timer in order was found.
    Unfinished,
}

/// Records that one poll may move or gather, besides those it fires.
pub(crate) const MOVES_PER_POLL: usize = 512;

/// Moves of timers that are not due, in a poll while others may be soon: they take a few microseconds.
const MOVES_BUSY: usize = 64;

/// The order of the timers in a [`Slab`]'s records.
#[derive(Debug)]
pub(super) struct Wheel {
    /// All ticks up to this one have left the levels.
    cursor: Tick,
    pace: Pace,
    /// The last tick before the next slot of level 1, if a cascade has left nothing to be done
    /// before it: what is armed meanwhile falls into no slot that is next.
    cascaded_until: Tick,
    cascade: Cascade,
    /// A poll before this has nothing to do.
    idle_before_ns: u64,
    /// A poll before this looks for no burst to make ready.
    presort_ns: u64,
    /// A poll before this has no cascade to make.
    cascade_ns: u64,
    /// A poll before this makes no burst ready, although it is time to.
    presorts_from_ns: u64,
    /// All that is due until then is made ready, a burst being part of it.
    ready_until_ns: u64,
    /// A tick after the last poll that fired.
    fires_until_ns: u64,
    /// What `next_ns` returns, or [`UNKNOWN`].
    next_ns: u64,
    levels: Levels,
    tick: CurrentTick,
    moves_per_poll: usize,
    #[cfg(test)]
    moves_of_last_poll: usize,
}

impl Wheel {
    /// An empty wheel at the tick of `now_ns`.
    pub(super) fn new(now_ns: u64) -> Self {
        let cursor = Tick::of(now_ns);
        Wheel {
            cursor,
            pace: Pace::new(cursor),
            cascaded_until: Tick::FIRST,
            cascade: Cascade::default(),
            idle_before_ns: 0,
            presort_ns: 0,
            cascade_ns: 0,
            presorts_from_ns: 0,
            ready_until_ns: 0,
            fires_until_ns: 0,
            next_ns: UNKNOWN,
            levels: Levels::new(),
            tick: CurrentTick::new(),
            moves_per_poll: MOVES_PER_POLL,
            #[cfg(test)]
            moves_of_last_poll: 0,
        }
    }

    /// Arms a timer.
    #[inline(always)]
    pub(super) fn insert<T>(
        &mut self,
        slab: &mut Slab<T>,
        deadline_ns: u64,
        seq: u64,
        payload: T,
    ) -> TimerHandle {
        if deadline_ns < self.next_ns {
            self.next_ns = deadline_ns;
        }
        if deadline_ns < self.idle_before_ns {
            self.idle_before_ns = deadline_ns;
        }
        if self.is_near(deadline_ns) || deadline_ns == NEVER {
            return self.insert_unlisted(slab, deadline_ns, seq, payload);
        }
        let at = Levels::position(self.cursor, Tick::of(deadline_ns));
        let (place, tail) = self.levels.tail(at);
        let link = Link {
            deadline_ns,
            next: NIL,
            prev: tail,
        };
        let handle = slab.take(seq, payload, place, RecordState::Listed, link);
        self.levels
            .attach(slab, handle.index, (place, tail), deadline_ns);
        handle
    }

    /// Enters a record that is nowhere.
    pub(super) fn adopt<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let deadline_ns = slab.link(index).deadline_ns;
        self.next_ns = self.next_ns.min(deadline_ns);
        self.wants_poll_at(deadline_ns);
        self.place(slab, index);
    }

    /// Takes a record out; the caller releases it.
    #[inline(always)]
    pub(super) fn remove<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let deadline_ns = slab.link(index).deadline_ns;
        if self.next_ns == deadline_ns {
            self.next_ns = UNKNOWN;
        }
        self.displace(slab, index);
    }

    /// Moves the record to another deadline, as if armed anew with count `seq`.
    #[inline]
    pub(super) fn rearm<T>(&mut self, slab: &mut Slab<T>, index: u32, deadline_ns: u64, seq: u64) {
        self.wants_poll_at(deadline_ns);
        let old_ns = slab.link(index).deadline_ns;
        let record = slab.at_mut(index);
        let place = record.place;
        record.seq = seq;
        let can_keep = record.state == RecordState::Listed
            && !self.is_near(deadline_ns)
            && self
                .levels
                .can_keep(place, self.cursor, old_ns, deadline_ns);
        if can_keep {
            // A timeout pushed back time and again: its neighbours are left alone, the slot sorts
            // it out.
            slab.link_mut(index).deadline_ns = deadline_ns;
        } else {
            self.displace(slab, index);
            slab.link_mut(index).deadline_ns = deadline_ns;
            self.place(slab, index);
        }
        if self.next_ns == old_ns {
            self.next_ns = UNKNOWN;
        }
        self.next_ns = self.next_ns.min(deadline_ns);
    }

    /// Whether a poll at `now_ns` would find nothing due and nothing to move.
    #[inline]
    pub(super) fn is_idle_at(&self, now_ns: u64) -> bool {
        now_ns < self.idle_before_ns
    }

    /// Fires up to `budget` timers due at `now_ns` in order: releases each record, then hands it out. True if more
    /// are due, or if the poll ran out of moves before it could tell.
    pub(super) fn expire<T>(
        &mut self,
        slab: &mut Slab<T>,
        now_ns: u64,
        budget: usize,
        mut hand_out: impl FnMut(FiredRecord<T>),
    ) -> bool {
        let mut moves_left = self.moves_per_poll;
        let mut fired = 0;
        let has_more = loop {
            if !self.tick.is_empty() {
                let (last, left) = (self.last_ready(now_ns), budget - fired);
                fired += self
                    .tick
                    .fire(slab, last, left, &mut moves_left, &mut hand_out);
            }
            match self.next_due(slab, now_ns, &mut moves_left) {
                Due::Timer if fired == budget => break true,
                Due::Timer => {}
                Due::Nothing => break false,
                Due::Unfinished => break true,
            }
        };
        if fired > 0 {
            self.next_ns = UNKNOWN;
            self.fires_until_ns = now_ns.saturating_add(1 << TICK_BITS);
        }
        if !has_more {
            // Nothing that is not due is moved before all that is due has fired.
            self.cascade(slab, now_ns, fired, &mut moves_left);
        }
        if !has_more && now_ns >= self.presort_ns {
            self.presort(slab, now_ns, &mut moves_left);
        }
        #[cfg(test)]
        {
            self.moves_of_last_poll = self.moves_per_poll - moves_left;
        }
        self.cascade_ns = if has_more { 0 } else { self.cascade_at() };
        self.idle_before_ns = self.idle_until();
        has_more
    }

    /// A poll at `now_ns` or later has something to do for others.
    #[inline]
    pub(super) fn wants_poll_at(&mut self, now_ns: u64) {
        self.idle_before_ns = self.idle_before_ns.min(now_ns);
    }

    /// The earliest deadline or a lower bound of it; [`NEVER`] if there is none.
    ///
    /// It is a bound and not exact only where the earliest timer of a slot with more than
    /// [`SHORT_SLOT`] others was cancelled or re-armed, or where the first of as many is in a bucket that
    /// is not sorted yet. A poll at that bound empties the slot, or sorts the bucket.
    #[inline]
    pub(super) fn next_ns<T>(&mut self, slab: &mut Slab<T>) -> u64 {
        if self.next_ns != UNKNOWN {
            return self.next_ns;
        }
        let (next_ns, is_exact) = self.find_next(slab);
        if is_exact {
            // A bound is not kept: the slot may become short enough to tell.
            self.next_ns = next_ns;
        }
        next_ns
    }

    /// Gives back buffers that two windows have not used.
    pub(super) fn shrink(&mut self) {
        self.tick.shrink();
    }

    /// Whether [`shrink`](Self::shrink) would give something back, were all as it is for two
    /// windows.
    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.tick.has_excess()
    }

    /// Puts a record that is nowhere to where its deadline belongs.
    #[inline]
    fn place<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let deadline_ns = slab.link(index).deadline_ns;
        if deadline_ns == NEVER {
            slab.at_mut(index).state = RecordState::Parked;
        } else if self.is_near(deadline_ns) {
            self.tick.push(slab, index);
        } else {
            self.levels.link(slab, index, self.cursor);
        }
    }

    /// Whether no list is for that time any more.
    #[inline(always)]
    fn is_near(&self, deadline_ns: u64) -> bool {
        Tick::of(deadline_ns) <= self.cursor
    }

    /// Takes a record away from where it is.
    #[inline(always)]
    fn displace<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let record = slab.at(index);
        if record.state == RecordState::Listed {
            let place = record.place;
            self.levels.unlink(slab, index, place);
        } else {
            self.displace_unlisted(slab, index);
        }
    }

    #[cold]
    fn insert_unlisted<T>(
        &mut self,
        slab: &mut Slab<T>,
        deadline_ns: u64,
        seq: u64,
        payload: T,
    ) -> TimerHandle {
        let link = Link::alone(deadline_ns);
        let handle = slab.take(seq, payload, 0, RecordState::Parked, link);
        self.place(slab, handle.index);
        handle
    }

    #[cold]
    fn displace_unlisted<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let record = slab.at_mut(index);
        let state = std::mem::replace(&mut record.state, RecordState::Parked);
        if state != RecordState::Parked {
            self.tick.forget(slab, index, state);
        }
    }

    /// The earliest deadline or a bound, and whether it is exact.
    fn find_next<T>(&mut self, slab: &mut Slab<T>) -> (u64, bool) {
        // Cancelled timers in front are a bound as good as another: a poll then drops them. So is the
        // begin of a bucket, to which more may come, while there are many.
        let is_bound =
            self.tick.run.begins_with_bucket() && self.tick.run.live() > SHORT_SLOT as usize;
        let is_few = slab.live() <= SHORT_SLOT as usize;
        let mut keys_left = if is_few { usize::MAX } else { SEARCHED_KEYS };
        let mut is_exact = !is_bound && self.tick.clean(slab, &mut keys_left);
        let mut next_ns = self.tick.next_ns();
        if Tick::of(next_ns) <= self.cursor {
            // What is in a list is of a later tick.
            return (next_ns, is_exact);
        }
        let mut levels = self.levels.active;
        while levels != 0 {
            let level = levels.trailing_zeros() as u8;
            levels &= levels - 1;
            while self.levels.active >> level & 1 == 1 {
                let at = self.levels.first_slot(level, self.cursor);
                let slot = self.levels.slot(at);
                if slot.is_stale && slot.len <= SHORT_SLOT {
                    let sent_ns = self.freshen(slab, at);
                    if sent_ns < next_ns {
                        (next_ns, is_exact) = (sent_ns, true);
                    }
                    if self.levels.slot(at).is_empty() {
                        continue;
                    }
                }
                let slot = self.levels.slot(at);
                if slot.min_ns < next_ns {
                    (next_ns, is_exact) = (slot.min_ns, !slot.is_stale);
                }
                if level == 0 && Tick::new(at.number) <= self.last_before_coarse() {
                    return (next_ns, is_exact);
                }
                break;
            }
        }
        (next_ns, is_exact)
    }

    /// Finds the earliest deadline of a short slot again and sends away what was re-armed to a
    /// later one. Returns the earliest of those, for their new slots may have been looked at
    /// already.
    fn freshen<T>(&mut self, slab: &mut Slab<T>, at: Position) -> u64 {
        let mut min_ns = NEVER;
        let mut sent_ns = NEVER;
        let mut index = self.levels.slot(at).head;
        while index != NIL {
            let Link {
                deadline_ns, next, ..
            } = *slab.link(index);
            if Levels::covers(at, deadline_ns) {
                min_ns = min_ns.min(deadline_ns);
            } else {
                self.displace(slab, index);
                self.levels.link(slab, index, self.cursor);
                sent_ns = sent_ns.min(deadline_ns);
            }
            index = next;
        }
        if !self.levels.slot(at).is_empty() {
            self.levels.set_min(at, min_ns);
        }
        sent_ns
    }
}

/// A cached next expiry that is to be found again. Below every deadline, so that no minimum
/// replaces it.
const UNKNOWN: u64 = 0;

/// Keys of cancelled timers that are dropped in search of the next expiry. With few timers it is all that are in
/// front: they may be from when there were more.
const SEARCHED_KEYS: usize = 64;

/// A slot with so few timers is searched when its earliest one has left; with so few in all, the next expiry is exact.
const SHORT_SLOT: u32 = 8;
