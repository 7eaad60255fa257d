//! The wheel proper: the order of the records, and the cursor that moves through it.
//!
//! ```text
//!            arm                                                arm, deadline in the past
//!             │                                                          │
//!             ▼                                                          ▼
//!    ┌──────────────────────────────────────┐                    ┌─────┐ ┌──────┐
//!    │ levels 10 ▸ ... ▸ 2 ▸ 1 ▸ 0          │ ─────────────────▶ │ run │ │ heap │
//!    └──────────────────┬───────────────────┘  few timers: sort  └──┬──┘ └──┬───┘
//!      many: cascade    │                                           └───┬───┘
//!                       ▼ a list in order                               ▼
//!                    fires as it is                          the smaller head fires
//! ```
//!
//! A poll looks at the slot whose earliest deadline comes first, wherever that is: empty time costs nothing. A list that is
//! in the order of firing, as those of timers with one duration are, fires as it is. Of one that is in no order the timers
//! are sorted into the run if they are few, and moved down a level if they are many, a *burst*: each of the slots there
//! has a share of them. So what is to be sorted is always short enough for one poll, and a timer whose list is short does
//! not pass through the levels below.
//!
//! Three things keep polls short where there are many bursts: each poll that fires moves some of the next burst of each level
//! ahead of time; an executor that sleeps is woken ahead of one; and if the moves of a poll are spent before it has fired, the
//! first timers that are due are found among the rest (`hierarchy/overdue.rs`).
//!
//! Invariants: no timer in a list comes before `listed_from`, and no slot of one ends before the cursor, which is no later;
//! nothing is due before `idle_before_ns`.
//!
//! Costs: arm and cancel O(1) (O(log n) for what is armed for the past); a poll at most
//! `budget` timers fired plus [`MOVES_PER_POLL`] records moved or sorted; the next expiry one
//! slot per occupied level, and cached.

mod overdue;

use super::super::tuning::{FEW, MOVES_PER_POLL, MOVES_PER_TIMER, NS_PER_POLL};
use super::entry::{FiredRecord, Link, NIL, Order, RecordState, TimerHandle};
use super::level::{First, Levels, Position};
use super::near::Near;
use super::reclaim::ReclaimingSlab;
use super::slab::Slab;

use crate::epoch::NEVER;

/// What a poll has left to do its work.
struct Poll {
    /// What is due comes before this.
    due: Order,
    moves_left: usize,
    may_scan_pages: bool,
}

/// The order of the timers in a [`ReclaimingSlab`]'s records.
#[derive(Debug)]
pub(super) struct Wheel {
    /// Where the slots are counted from.
    cursor_ns: u64,
    /// Timers before this have left the lists, wherever the cursor is. What is armed for a time before it goes to the heap.
    listed_from: Order,
    /// A poll before this has nothing to do.
    idle_before_ns: u64,
    /// What `next_ns` returns, or [`UNKNOWN`].
    next_ns: u64,
    levels: Levels,
    near: Near,
}

/// A cached time that is to be found again. Below every deadline, so that no minimum replaces it.
const UNKNOWN: u64 = 0;

impl Wheel {
    /// An empty wheel at `now_ns`.
    pub(super) fn new(now_ns: u64) -> Self {
        Wheel {
            cursor_ns: now_ns,
            listed_from: Order::first_at(now_ns),
            idle_before_ns: 0,
            next_ns: UNKNOWN,
            levels: Levels::new(),
            near: Near::new(),
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
        self.wants_poll_at(deadline_ns);
        if deadline_ns < self.listed_from.deadline_ns || deadline_ns == NEVER {
            return self.insert_unlisted(slab, deadline_ns, seq, payload);
        }
        let at = Levels::position(self.cursor_ns, deadline_ns);
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

    /// The record at `index` has been entered behind others that were armed after it.
    pub(super) fn is_behind_later_ones<T>(&mut self, slab: &Slab<T>, index: u32) {
        let record = slab.at(index);
        if record.state == RecordState::Listed {
            self.levels.mark_unordered(record.place);
        }
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
            && deadline_ns >= self.listed_from.deadline_ns
            && (self.levels).can_keep(place, self.cursor_ns, old_ns, deadline_ns);
        if can_keep {
            // A timeout pushed back time and again: its neighbours are left alone, the slot sorts
            // it out.
            slab.set_deadline(index, deadline_ns);
            self.levels.mark_unordered(place);
        } else {
            self.displace(slab, index);
            slab.set_deadline(index, deadline_ns);
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

    /// Fires up to `budget` timers due at `now_ns` in order: releases each record, then hands it out. True if more are
    /// due, or if the poll ran out of moves before it could tell.
    pub(super) fn expire<T>(
        &mut self,
        memory: &mut ReclaimingSlab<T>,
        now_ns: u64,
        budget: usize,
        mut hand_out: impl FnMut(FiredRecord<T>),
    ) -> bool {
        let slab = &mut memory.slab;
        let mut poll = Poll {
            due: Order::first_at(now_ns + 1),
            moves_left: MOVES_PER_POLL,
            may_scan_pages: true,
        };
        let mut fired = 0;
        let (has_more, first) = loop {
            let first = self.levels.first(self.cursor_ns);
            let listed_from = self.listed_from.max(Order::first_at(first.min_ns));
            let left = budget - fired;
            let end = poll.due.min(listed_from);
            let (count, has_more) =
                (self.near).fire(slab, end, left, &mut poll.moves_left, &mut hand_out);
            fired += count;
            let (at, min_ns) = (first.at, first.min_ns);
            if has_more || min_ns > now_ns {
                break (has_more, first);
            }
            self.pass(min_ns);
            let slot = *self.levels.slot(at);
            if slot.is_in_order() {
                let end_ns = first
                    .other_ns
                    .min(self.near.bound_ns())
                    .min(poll.due.deadline_ns);
                let count = self.fire_listed(slab, at, end_ns, budget - fired, &mut hand_out);
                fired += count;
                if count > 0 {
                    continue;
                }
                if fired == budget && slab.link(slot.head).deadline_ns <= now_ns {
                    break (true, first);
                }
            }
            if poll.moves_left == 0 {
                if fired == 0 && self.take_overdue(slab, &mut poll) {
                    continue;
                }
                break (true, first);
            }
            if slot.is_in_order() && slab.link(slot.head).deadline_ns > min_ns {
                // Its first one has left.
                self.levels.set_min(at, slab.link(slot.head).deadline_ns);
                poll.moves_left -= 1;
            } else if self.cascades(at) {
                self.move_down(slab, at, &mut poll.moves_left);
            } else {
                self.gather(slab, at, &mut poll.moves_left);
            }
        };
        if fired > 0 {
            self.next_ns = UNKNOWN;
        }
        let mut most = (2 * FEW).max(MOVES_PER_TIMER * fired);
        self.idle_before_ns = 0;
        if !has_more {
            self.pass(now_ns + 1);
            let ahead_ns = self.ahead_ns(first);
            if ahead_ns <= now_ns {
                most = MOVES_PER_POLL;
            } else {
                self.idle_before_ns = first.min_ns.min(self.near.bound_ns()).min(ahead_ns);
            }
        }
        self.cascade_ahead(slab, poll.moves_left.min(most));
        has_more
    }

    /// A poll at `now_ns` or later has something to do for others.
    #[inline]
    pub(super) fn wants_poll_at(&mut self, now_ns: u64) {
        if now_ns < self.idle_before_ns {
            self.idle_before_ns = now_ns;
        }
    }

    /// The earliest deadline or a lower bound of it; [`NEVER`] if there is none.
    ///
    /// It is a bound and not exact only where the earliest timer of a slot with more than
    /// [`FEW`] others was cancelled or re-armed. A poll at that bound empties the slot.
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
        self.near.shrink();
    }

    /// Whether [`shrink`](Self::shrink) would give something back, were all as it is for two
    /// windows.
    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.near.has_excess()
    }

    /// Puts a record that is nowhere to where its deadline belongs.
    #[inline]
    fn place<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let deadline_ns = slab.link(index).deadline_ns;
        if deadline_ns == NEVER {
            slab.at_mut(index).state = RecordState::Parked;
        } else if deadline_ns >= self.listed_from.deadline_ns {
            self.levels.link(slab, index, self.cursor_ns);
        } else {
            self.near.push(slab, index);
        }
    }

    /// All timers that are listed are due at `ns` or later.
    #[inline]
    fn pass(&mut self, ns: u64) {
        self.cursor_ns = self.cursor_ns.max(ns);
        self.listed_from = self.listed_from.max(Order::first_at(ns));
    }

    /// Fires up to `budget` timers that are due before `end_ns` from the front of a list in order, while all others come
    /// later. Returns how many.
    #[inline]
    fn fire_listed<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        end_ns: u64,
        budget: usize,
        hand_out: &mut impl FnMut(FiredRecord<T>),
    ) -> usize {
        let mut head = self.levels.slot(at).head;
        let mut fired = 0;
        while head != NIL && fired < budget {
            let Link {
                deadline_ns, next, ..
            } = *slab.link(head);
            if deadline_ns >= end_ns {
                break;
            }
            hand_out(slab.fire(head, deadline_ns));
            fired += 1;
            head = next;
        }
        if fired > 0 {
            self.levels.cut(slab, at, fired, head);
        }
        fired
    }

    /// Takes as many timers of a slot as the moves allow out of its list: into the run, if there is none yet.
    fn gather<T>(&mut self, slab: &mut Slab<T>, at: Position, moves_left: &mut usize) {
        let (_, last_ns) = Levels::interval(at);
        let has_run = self.near.has_run();
        self.take(slab, at, moves_left, |wheel, slab, index| {
            if slab.link(index).deadline_ns > last_ns {
                // It was re-armed where it is.
                wheel.levels.link(slab, index, wheel.cursor_ns);
            } else if has_run {
                wheel.near.push(slab, index);
            } else {
                wheel.near.push_to_run(slab, index);
            }
        });
        if !has_run {
            self.near.sort();
        }
    }

    /// Moves as many timers of a slot that is near as the moves allow to where they belong now.
    fn move_down<T>(&mut self, slab: &mut Slab<T>, at: Position, moves_left: &mut usize) {
        debug_assert!(Levels::is_near(at, self.cursor_ns));
        // Never back into this slot: what it covers is in reach of the level below.
        self.take(slab, at, moves_left, |wheel, slab, index| {
            wheel.levels.link(slab, index, wheel.cursor_ns);
        });
    }

    /// Takes records from the front of a slot's list, for a move each.
    #[inline]
    fn take<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        moves_left: &mut usize,
        mut put: impl FnMut(&mut Self, &mut Slab<T>, u32),
    ) {
        let slot = *self.levels.slot(at);
        let count = slot.len().min(*moves_left);
        let mut head = slot.head;
        for _ in 0..count {
            let next = slab.link(head).next;
            put(self, slab, head);
            head = next;
        }
        self.levels.cut(slab, at, count, head);
        *moves_left -= count;
    }

    /// When to poll for the sake of a burst that is due next; [`NEVER`] if there is none.
    pub(super) fn next_ahead_ns(&mut self) -> u64 {
        let ahead_ns = self.ahead_ns(self.levels.first(self.cursor_ns));
        self.wants_poll_at(ahead_ns);
        ahead_ns
    }

    /// When to begin with the slot that is first, no earlier than the level below reaches all of it: so early that an idle
    /// executor has the time to move all of it.
    #[inline]
    fn ahead_ns(&self, first: First) -> u64 {
        let First { at, min_ns, .. } = first;
        let len = self.levels.slot(at).len();
        if min_ns == NEVER || len <= MOVES_PER_POLL || !self.cascades(at) {
            return NEVER;
        }
        let lead_ns = (len / MOVES_PER_POLL + 1) as u64 * NS_PER_POLL;
        let (near_ns, _) = Levels::interval(Position {
            number: at.number.saturating_sub(1),
            ..at
        });
        min_ns.saturating_sub(lead_ns).max(near_ns)
    }

    /// Whether the timers of a slot are to be moved down before they fire.
    #[inline]
    fn cascades(&self, at: Position) -> bool {
        let slot = self.levels.slot(at);
        at.level > 0 && slot.len() > FEW && !slot.is_in_order()
    }

    /// Moves a part of the next burst of each level down, so that the poll in which it is due has less to do.
    fn cascade_ahead<T>(&mut self, slab: &mut Slab<T>, mut moves_left: usize) {
        // Upwards, so that what moves down a level does not move twice.
        for level in self.levels.levels() {
            for at in Levels::near(level, self.cursor_ns) {
                if self.cascades(at) {
                    self.move_down(slab, at, &mut moves_left);
                }
            }
        }
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
        let link = Link {
            deadline_ns,
            next: NIL,
            prev: NIL,
        };
        let handle = slab.take(seq, payload, 0, RecordState::Parked, link);
        self.place(slab, handle.index);
        handle
    }

    #[cold]
    fn displace_unlisted<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let record = slab.at_mut(index);
        let state = std::mem::replace(&mut record.state, RecordState::Parked);
        if state != RecordState::Parked {
            self.near.forget(slab, state);
        }
    }

    /// The earliest deadline or a bound, and whether it is exact.
    fn find_next<T>(&mut self, slab: &mut Slab<T>) -> (u64, bool) {
        self.near.clean(slab);
        let near_ns = self.near.bound_ns();
        loop {
            let first = self.levels.first(self.cursor_ns);
            if first.min_ns >= near_ns {
                return (near_ns, true);
            }
            let slot = self.levels.slot(first.at);
            if !slot.is_stale() || slot.len() > FEW {
                return (first.min_ns, !slot.is_stale());
            }
            self.freshen(slab, first.at);
        }
    }

    /// Finds the earliest deadline of a short slot again and sends away what was re-armed to a
    /// later one.
    fn freshen<T>(&mut self, slab: &mut Slab<T>, at: Position) {
        let (_, last_ns) = Levels::interval(at);
        let mut min_ns = NEVER;
        let mut index = self.levels.slot(at).head;
        while index != NIL {
            let Link {
                deadline_ns, next, ..
            } = *slab.link(index);
            if deadline_ns <= last_ns {
                min_ns = min_ns.min(deadline_ns);
            } else {
                self.displace(slab, index);
                self.levels.link(slab, index, self.cursor_ns);
            }
            index = next;
        }
        if min_ns != NEVER {
            self.levels.set_min(at, min_ns);
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn dead_keys(&self) -> usize {
        self.near.dead_keys()
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(&self, slab: &Slab<T>) {
        assert!(self.listed_from.deadline_ns >= self.cursor_ns);
        let listed = (self.levels).check_invariants(slab, self.cursor_ns, self.listed_from);
        let near = self.near.check_invariants(slab);
        assert_eq!(listed + near + slab.count(RecordState::Parked), slab.live());
    }
}
