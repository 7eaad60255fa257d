//! The wheel proper: the order of the records, and how the cursor moves through it.
//!
//! ```text
//!            arm, deadline in a later tick                arm, deadline in this tick or the past
//!                      │                                                 │
//!                      ▼                                                 ▼
//!    ┌──────────────────────────────────────┐   cursor arrives   ┌─────┐ ┌──────┐
//!    │ levels 9 ▸ ... ▸ 2 ▸ 1 ▸ 0           │ ─────────────────▶ │ run │ │ heap │
//!    └──────────────────────────────────────┘   gather, sort     └──┬──┘ └──┬───┘
//!       refine: the next slot of each level                         └───┬───┘
//!       moves down ahead of the cursor                    the smaller head fires, if due
//! ```
//!
//! The cursor is the tick up to which all lists are empty. A poll fires what is due in run and heap,
//! then moves the cursor to the next occupied slot, wherever that is: empty time costs nothing. A slot of a
//! coarse level is moved down *before* the cursor enters it, with the cursor standing one tick short
//! of it; level 0 is gathered the same way. So the invariants hold at every moment, a poll may stop in
//! the middle of any slot, and a timer armed meanwhile for an earlier moment still goes first.
//!
//! Invariants: no listed record has a tick at or before the cursor; the run holds timers of the cursor's tick
//! or, while that slot is still being gathered, of the next one, and then does not fire; the
//! heap holds timers of the cursor's tick or earlier ones, and of slots overtaken after a stall, which
//! fire when the cursor comes to their ticks; no timer is due before `idle_before_ns`.
//!
//! Costs: arm and cancel O(1) (O(log n) in the timers of the current tick); a poll at most
//! `budget` timers fired plus [`MOVES_PER_POLL`] records moved or gathered; the next expiry one slot
//! per occupied level, and cached.

use super::entry::{Link, NIL, State, TimerHandle};
use super::epoch::NEVER;
use super::level::{Levels, Position, TICK_BITS, tick_of};
use super::pace::{Pace, begin_ns};
use super::records::Records;
use super::slab::Slab;
use super::tick::CurrentTick;

/// Records that one poll may move or gather, besides those it fires.
pub(super) const MOVES_PER_POLL: usize = 512;

/// The order of the timers in a [`Slab`]'s records.
#[derive(Debug)]
pub(super) struct Wheel<const ROW: usize, const WIDE: usize, const ROWS: usize> {
    /// All ticks up to this one have left the levels.
    cursor: u64,
    pace: Pace,
    /// The last tick before the next slot of level 1, if a refinement has left nothing to be done before
    /// it: what is armed meanwhile falls into no slot that is next.
    refined_until: u64,
    /// A poll before this has nothing to do.
    idle_before_ns: u64,
    /// What `next_ns` returns, or [`UNKNOWN`].
    next_ns: u64,
    levels: Levels<ROW, WIDE, ROWS>,
    tick: CurrentTick,
    moves_per_poll: usize,
}

/// What a look at the queue found.
enum Due {
    Timer,
    Nothing,
    /// The poll's moves are spent before the next timer in order was found.
    Unfinished,
}

impl<const ROW: usize, const WIDE: usize, const ROWS: usize> Wheel<ROW, WIDE, ROWS> {
    /// An empty wheel at the tick of `now_ns`.
    pub(super) fn new(now_ns: u64) -> Self {
        let cursor = tick_of(now_ns);
        Wheel {
            cursor,
            pace: Pace::new(cursor),
            refined_until: 0,
            idle_before_ns: 0,
            next_ns: UNKNOWN,
            levels: Levels::new(),
            tick: CurrentTick::new(),
            moves_per_poll: MOVES_PER_POLL,
        }
    }

    /// Arms a timer.
    #[inline(always)]
    pub(super) fn insert<T>(
        &mut self,
        records: &mut Records<T>,
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
        let tick = tick_of(deadline_ns);
        if tick <= self.cursor || deadline_ns == NEVER {
            return self.insert_unlisted(records, deadline_ns, seq, payload);
        }
        let at = Levels::<ROW, WIDE, ROWS>::position(self.cursor, tick);
        let (place, tail) = self.levels.tail(at);
        let link = Link {
            deadline_ns,
            next: NIL,
            prev: tail,
        };
        let handle = records.take(seq, payload, place, State::Listed, link);
        self.levels
            .attach(records, handle.index, (place, tail), deadline_ns);
        handle
    }

    /// Enters a record that is nowhere.
    pub(super) fn adopt<T>(&mut self, records: &mut Records<T>, index: u32) {
        let deadline_ns = records.link(index).deadline_ns;
        self.next_ns = self.next_ns.min(deadline_ns);
        self.wants_poll_at(deadline_ns);
        self.place(records, index);
    }

    /// Takes a record out; the caller releases it.
    #[inline(always)]
    pub(super) fn remove<T>(&mut self, records: &mut Records<T>, index: u32) {
        let deadline_ns = records.link(index).deadline_ns;
        if self.next_ns == deadline_ns {
            self.next_ns = UNKNOWN;
        }
        self.displace(records, index);
    }

    /// Moves the record to another deadline, as if armed anew with count `seq`.
    #[inline]
    pub(super) fn rearm<T>(
        &mut self,
        records: &mut Records<T>,
        index: u32,
        deadline_ns: u64,
        seq: u64,
    ) {
        self.wants_poll_at(deadline_ns);
        let old_ns = records.link(index).deadline_ns;
        let record = records.at_mut(index);
        let place = record.place;
        record.seq = seq;
        let can_keep = record.state == State::Listed
            && self
                .levels
                .can_keep(place, self.cursor, old_ns, deadline_ns);
        if can_keep {
            // A timeout pushed back time and again: its neighbours are left alone, the slot sorts it out.
            records.link_mut(index).deadline_ns = deadline_ns;
        } else {
            self.displace(records, index);
            records.link_mut(index).deadline_ns = deadline_ns;
            self.place(records, index);
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

    /// Fires up to `budget` timers due at `now_ns` in order: releases each record, then pushes its
    /// payload. True if more are due, or if the poll ran out of moves before it could tell.
    pub(super) fn expire<T>(
        &mut self,
        slab: &mut Slab<T>,
        now_ns: u64,
        budget: usize,
        expired: &mut Vec<T>,
    ) -> bool {
        let records = &mut slab.records;
        let mut moves_left = self.moves_per_poll;
        let mut fired = 0;
        let has_more = loop {
            let left = budget - fired;
            fired += self.tick.fire(records, self.cursor, now_ns, left, expired);
            match self.next_due(records, now_ns, &mut moves_left) {
                Due::Timer if fired == budget => break true,
                Due::Timer => {}
                Due::Nothing => break false,
                Due::Unfinished => break true,
            }
        };
        self.refine(records, now_ns, &mut moves_left);
        if fired > 0 {
            self.next_ns = UNKNOWN;
        }
        self.idle_before_ns = if has_more {
            0
        } else {
            self.idle_until(records)
        };
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
    /// [`SHORT_SLOT`] others was cancelled or re-armed. A poll at that bound empties the slot.
    #[inline]
    pub(super) fn next_ns<T>(&mut self, records: &mut Records<T>) -> u64 {
        if self.next_ns != UNKNOWN {
            return self.next_ns;
        }
        let (next_ns, is_exact) = self.find_next(records);
        if is_exact {
            // A bound is not kept: the slot may become short enough to tell.
            self.next_ns = next_ns;
        }
        next_ns
    }

    /// Forgets the keys of timers long gone, once no timer is left.
    pub(super) fn reset(&mut self) {
        debug_assert!(self.levels.is_empty());
        self.tick.clear();
        self.next_ns = UNKNOWN;
    }

    /// Moves the cursor of an empty wheel to the tick of `now_ns`, unless it is already past it.
    pub(super) fn catch_up(&mut self, now_ns: u64) {
        debug_assert!(self.levels.is_empty());
        self.cursor = self.cursor.max(tick_of(now_ns));
        self.pace = Pace::new(self.cursor);
    }

    /// Gives back buffers that two windows have not used.
    pub(super) fn shrink(&mut self) {
        self.tick.shrink();
    }

    /// Puts a record that is nowhere to where its deadline belongs.
    #[inline]
    fn place<T>(&mut self, records: &mut Records<T>, index: u32) {
        let deadline_ns = records.link(index).deadline_ns;
        if deadline_ns == NEVER {
            records.at_mut(index).state = State::Parked;
        } else if tick_of(deadline_ns) > self.cursor {
            self.levels.link(records, index, self.cursor);
        } else {
            self.tick.push(records, index);
        }
    }

    /// Takes a record away from where it is.
    #[inline(always)]
    fn displace<T>(&mut self, records: &mut Records<T>, index: u32) {
        let record = records.at(index);
        if record.state == State::Listed {
            let place = record.place;
            self.levels.unlink(records, index, place);
        } else {
            self.displace_unlisted(records, index);
        }
    }

    #[cold]
    fn insert_unlisted<T>(
        &mut self,
        records: &mut Records<T>,
        deadline_ns: u64,
        seq: u64,
        payload: T,
    ) -> TimerHandle {
        let link = Link {
            deadline_ns,
            next: NIL,
            prev: NIL,
        };
        let handle = records.take(seq, payload, 0, State::Parked, link);
        self.place(records, handle.index);
        handle
    }

    #[cold]
    fn displace_unlisted<T>(&mut self, records: &mut Records<T>, index: u32) {
        let record = records.at_mut(index);
        let state = std::mem::replace(&mut record.state, State::Parked);
        if state != State::Parked {
            self.tick.forget(records, state);
        }
    }

    /// Looks for the next timer in order, if it is due. Moves the cursor on as long as there is none.
    #[inline]
    fn next_due<T>(
        &mut self,
        records: &mut Records<T>,
        now_ns: u64,
        moves_left: &mut usize,
    ) -> Due {
        loop {
            if self.tick.peek_ns(records, self.cursor) <= now_ns {
                return Due::Timer;
            }
            // From here on nothing up to the cursor is due, or the cursor is past `now_ns`.
            let to = tick_of(now_ns);
            if to <= self.cursor {
                return Due::Nothing;
            }
            if !self.advance(records, to, moves_left) {
                return Due::Unfinished;
            }
        }
    }

    /// Moves the cursor to `to`, or to the first tick before it that has timers, and gathers those.
    /// False if the moves are spent first; the next call goes on from there.
    fn advance<T>(&mut self, records: &mut Records<T>, to: u64, moves_left: &mut usize) -> bool {
        loop {
            let first = self.first_slot();
            let is_first = |tick: u64| first.is_none_or(|(_, start)| start > tick);
            let overtaken = self.tick.first_overtaken(records, self.cursor);
            // The run may be complete by now, what it still missed having been cancelled.
            if let Some(tick) = self.tick.gathering(self.cursor)
                && is_first(tick)
                && overtaken.is_none_or(|overtaken| overtaken >= tick)
            {
                self.cursor = tick;
                return true;
            }
            if let Some(tick) = overtaken
                && is_first(tick)
                && tick <= to
            {
                self.cursor = tick;
                return true;
            }
            let Some((at, start)) = first.filter(|&(_, start)| start <= to) else {
                self.cursor = to;
                return true;
            };
            // Nothing lies between, and from one tick short of the slot its records can move.
            self.cursor = start - 1;
            if at.level == 0 {
                self.gather(records, at, moves_left);
            } else if Levels::<ROW, WIDE, ROWS>::end(at) <= to
                && self.levels.slot(at).len() <= OVERTAKE_MAX
            {
                self.overtake(records, at, moves_left);
            } else {
                self.move_down(records, at, moves_left, usize::MAX);
            }
            let is_emptied = self.levels.slot(at).is_empty();
            if !is_emptied {
                return false;
            }
            if at.level == 0 {
                self.cursor = start;
                self.gather_more(records, to, moves_left);
                return true;
            }
        }
    }

    /// The slot that begins first, the coarsest if several do at once, and the tick it begins with.
    #[inline]
    fn first_slot(&self) -> Option<(Position, u64)> {
        if self.levels.active() & 1 == 1 {
            // No other level's slot begins before the next one of level 1 does.
            let at = self.levels.first_slot(0, self.cursor);
            if at.number <= self.last_before_coarse() {
                return Some((at, at.number));
            }
        }
        let mut first: Option<(Position, u64)> = None;
        for at in self.levels.first_slots(self.cursor) {
            let start = Levels::<ROW, WIDE, ROWS>::start(at);
            if first.is_none_or(|(_, first_start)| start < first_start) {
                first = Some((at, start));
            }
        }
        first
    }

    /// Moves up to `limit` records of the next slot of a coarse level to where they belong now.
    fn move_down<T>(
        &mut self,
        records: &mut Records<T>,
        at: Position,
        moves_left: &mut usize,
        limit: usize,
    ) {
        let slot = self.levels.slot(at);
        let count = limit.min(*moves_left).min(slot.len() as usize);
        if count == 0 {
            return;
        }
        let mut index = slot.head();
        for _ in 0..count {
            let next = records.link(index).next;
            // Never back into this slot: what it covers is in reach of the level below.
            self.levels.link(records, index, self.cursor);
            index = next;
        }
        self.levels.cut(records, at, count as u32, index);
        *moves_left -= count;
    }

    /// Takes as much of the next slot of level 0 into the run as the moves allow.
    fn gather<T>(&mut self, records: &mut Records<T>, at: Position, moves_left: &mut usize) {
        if *moves_left == 0 {
            return;
        }
        let slot = self.levels.slot(at);
        let count = (*moves_left).min(slot.len() as usize);
        let gathered = self.tick.gather(records, at.number, slot.head(), count);
        self.levels
            .cut(records, at, gathered.visited as u32, gathered.rest);
        *moves_left -= gathered.visited;
        self.link_all(records, gathered.strays);
    }

    /// Takes the small slots that follow along, as far as they lie in the past as a whole.
    fn gather_more<T>(&mut self, records: &mut Records<T>, to: u64, moves_left: &mut usize) {
        while self.levels.active() & 1 == 1 && self.tick.can_extend(records) {
            let at = self.levels.first_slot(0, self.cursor);
            let slot = self.levels.slot(at);
            let (head, len) = (slot.head(), slot.len());
            let is_first = at.number <= self.last_before_coarse() && at.number < to;
            if !is_first || len > EXTEND_MAX || (*moves_left as u64) < u64::from(len) {
                return;
            }
            let gathered = self.tick.extend(records, at.number, head, len as usize);
            self.levels.cut(records, at, len, NIL);
            *moves_left -= len as usize;
            self.cursor = at.number;
            self.link_all(records, gathered.strays);
        }
    }

    /// The last tick before any that a slot of level 1 or above may begin with.
    #[inline]
    fn last_before_coarse(&self) -> u64 {
        self.cursor | ((1 << Levels::<ROW, WIDE, ROWS>::COARSE_BITS) - 1)
    }

    /// Takes a slot that lies in the past as a whole straight to the heap. After a stall few timers
    /// come from far up, and would else go through all levels, each nearly alone in its slots.
    fn overtake<T>(&mut self, records: &mut Records<T>, at: Position, moves_left: &mut usize) {
        let slot = self.levels.slot(at);
        let count = (*moves_left).min(slot.len() as usize);
        if count == 0 {
            return;
        }
        let mut index = slot.head();
        let mut strays = NIL;
        for _ in 0..count {
            let Link {
                deadline_ns, next, ..
            } = *records.link(index);
            if Levels::<ROW, WIDE, ROWS>::covers(at, deadline_ns) {
                self.tick.push(records, index);
            } else {
                records.link_mut(index).next = strays;
                strays = index;
            }
            index = next;
        }
        self.levels.cut(records, at, count as u32, index);
        *moves_left -= count;
        self.link_all(records, strays);
    }

    /// Links records, of which each names the next, to where they belong.
    fn link_all<T>(&mut self, records: &mut Records<T>, mut index: u32) {
        while index != NIL {
            let next = records.link(index).next;
            self.levels.link(records, index, self.cursor);
            index = next;
        }
    }

    /// Moves a share of each level's next slot down.
    fn refine<T>(&mut self, records: &mut Records<T>, now_ns: u64, moves_left: &mut usize) {
        let is_same_step = !self.pace.advance(self.cursor, now_ns);
        if is_same_step || self.is_refined() {
            return;
        }
        let mut is_refined = true;
        // Upwards, so that what moves down a level does not move twice.
        let mut levels = self.levels.active() & !1;
        while levels != 0 {
            let level = levels.trailing_zeros() as u8;
            levels &= levels - 1;
            let at = self.levels.first_slot(level, self.cursor);
            let start = Levels::<ROW, WIDE, ROWS>::start(at);
            if !Levels::<ROW, WIDE, ROWS>::is_next(at, self.cursor) {
                continue;
            }
            let share = self.pace.share(self.levels.slot(at).len(), start);
            self.move_down(records, at, moves_left, share);
            is_refined &= self.levels.slot(at).is_empty();
        }
        if is_refined {
            self.refined_until = self.last_before_coarse();
        }
    }

    /// Whether there is nothing to refine before the cursor reaches the next slot of level 1.
    #[inline]
    fn is_refined(&self) -> bool {
        self.refined_until == self.last_before_coarse()
    }

    /// The time before which a poll has nothing to do, given that nothing is due.
    fn idle_until<T>(&mut self, records: &Records<T>) -> u64 {
        let refine_ns = if self.is_refined() {
            begin_ns(self.last_before_coarse() + 1, TICK_BITS)
        } else {
            self.pace.next_ns()
        };
        let gather_ns = match self.levels.active() & 1 {
            0 => u64::MAX,
            _ => self.levels.first_slot(0, self.cursor).number << TICK_BITS,
        };
        let near_ns = self.tick.peek_ns(records, self.cursor);
        refine_ns.min(gather_ns).min(near_ns)
    }

    /// The earliest deadline or a bound, and whether it is exact.
    fn find_next<T>(&mut self, records: &mut Records<T>) -> (u64, bool) {
        let mut next_ns = self.tick.next_ns(records);
        let mut is_exact = true;
        if tick_of(next_ns) <= self.cursor {
            // What is in a list is of a later tick.
            return (next_ns, is_exact);
        }
        let mut levels = self.levels.active();
        while levels != 0 {
            let level = levels.trailing_zeros() as u8;
            levels &= levels - 1;
            while self.levels.active() >> level & 1 == 1 {
                let at = self.levels.first_slot(level, self.cursor);
                let slot = self.levels.slot(at);
                if slot.is_stale() && slot.len() <= SHORT_SLOT {
                    let sent_ns = self.freshen(records, at);
                    if sent_ns < next_ns {
                        (next_ns, is_exact) = (sent_ns, true);
                    }
                    if self.levels.slot(at).is_empty() {
                        continue;
                    }
                }
                let slot = self.levels.slot(at);
                if slot.min_ns() < next_ns {
                    (next_ns, is_exact) = (slot.min_ns(), !slot.is_stale());
                }
                if level == 0 && at.number <= self.last_before_coarse() {
                    return (next_ns, is_exact);
                }
                break;
            }
        }
        (next_ns, is_exact)
    }

    /// Finds the earliest deadline of a short slot again and sends away what was re-armed to a later
    /// one. Returns the earliest of those, for their new slots may have been looked at already.
    fn freshen<T>(&mut self, records: &mut Records<T>, at: Position) -> u64 {
        let mut min_ns = NEVER;
        let mut sent_ns = NEVER;
        let mut index = self.levels.slot(at).head();
        while index != NIL {
            let Link {
                deadline_ns, next, ..
            } = *records.link(index);
            if Levels::<ROW, WIDE, ROWS>::covers(at, deadline_ns) {
                min_ns = min_ns.min(deadline_ns);
            } else {
                self.displace(records, index);
                self.levels.link(records, index, self.cursor);
                sent_ns = sent_ns.min(deadline_ns);
            }
            index = next;
        }
        if !self.levels.slot(at).is_empty() {
            self.levels.set_min(at, min_ns);
        }
        sent_ns
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn set_moves_per_poll(&mut self, moves: usize) {
        self.moves_per_poll = moves;
    }

    #[cfg(test)]
    pub(super) fn heap_keys(&self) -> usize {
        self.tick.heap_keys()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(&self, records: &Records<T>) {
        let listed = self.levels.check_invariants(records, self.cursor);
        let near = self.tick.check_invariants(records, self.cursor);
        assert_eq!(listed + near + records.count(State::Parked), records.live());
    }
}

/// A cached next expiry that is to be found again. Below every deadline, so that no minimum replaces it.
const UNKNOWN: u64 = 0;

/// A slot with so few timers is gathered together with those before it.
const EXTEND_MAX: u32 = 64;
/// A slot with so few timers is taken to the heap when its time has passed; more are sorted more cheaply
/// on their way down.
const OVERTAKE_MAX: u32 = 64;
/// A slot with so few timers is searched when its earliest one has left.
const SHORT_SLOT: u32 = 8;
