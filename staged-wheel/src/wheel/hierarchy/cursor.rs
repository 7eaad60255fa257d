//! How the cursor of a [`Wheel`] moves: to the next occupied slot, with what comes down ahead of
//! it.
//!
//! All of it is paid for in moves, of which a poll has a number; it stops between any two and the
//! next goes on from there. See the parent for the picture and the invariants.

use super::{Due, Wheel};
use crate::wheel::current_tick::CurrentTick;
use crate::wheel::entry::{NIL, Order};
use crate::wheel::level::{Levels, Position};
use crate::wheel::look::Look;
use crate::wheel::run::List;
use crate::wheel::slab::Slab;
use crate::wheel::tick::Tick;

/// How far the cursor has come.
enum Advance {
    /// As far as it can.
    Done,
    /// The poll's moves are spent.
    Unfinished,
}

impl<const ROW: usize, const WIDE: usize, const ROWS: usize> Wheel<ROW, WIDE, ROWS> {
    /// Looks for the next timer in order, if it is due. Moves the cursor on as long as there is
    /// none.
    #[inline]
    pub(super) fn next_due<T>(
        &mut self,
        slab: &mut Slab<T>,
        now_ns: u64,
        moves_left: &mut usize,
    ) -> Due {
        loop {
            if !self.tick.is_empty() {
                let last = self.last_ready(now_ns);
                let is_due = |tick: &CurrentTick| tick.first().is_some_and(|first| first <= last);
                // A bucket is sorted when its first may be due: more may come to it.
                let waits = self.tick.begins_with_bucket() && !is_due(&self.tick);
                if !waits && !self.tick.clean(slab, moves_left) {
                    return Due::Unfinished;
                }
                if is_due(&self.tick) {
                    return Due::Timer;
                }
            }
            // From here on nothing up to the cursor is due, or the cursor is past `now_ns`.
            let to = Tick::of(now_ns);
            if to <= self.cursor {
                return Due::Nothing;
            }
            if to.since(self.cursor) == 1 && self.waits_in_order(now_ns) {
                return Due::Nothing;
            }
            match self.advance(slab, now_ns, moves_left) {
                Advance::Done => {}
                Advance::Unfinished => return Due::Unfinished,
            }
        }
    }

    /// Everything in the lists comes after this.
    #[inline]
    pub(super) fn listed_after(&self) -> Order {
        Order::last_at(self.cursor.last_ns()).max(self.selected)
    }

    /// How far in order timers may fire at `now_ns`: what is in the lists comes after.
    #[inline]
    pub(super) fn last_ready(&self, now_ns: u64) -> Order {
        self.listed_after().min(Order::last_at(now_ns))
    }

    #[inline]
    fn go_to(&mut self, tick: Tick) {
        self.cursor = tick;
        self.near_until_ns = self.near_until_ns.max(tick.last_ns());
    }

    /// Moves the cursor to the tick of `now_ns`, or to one before it up to which there are timers near,
    /// and gathers those. If the moves are spent first, the next call goes on from there.
    fn advance<T>(&mut self, slab: &mut Slab<T>, now_ns: u64, moves_left: &mut usize) -> Advance {
        let to = Tick::of(now_ns);
        loop {
            let first = self.first_slot();
            let Some((at, start)) = first.filter(|&(_, start)| start <= to) else {
                self.go_to(to);
                return Advance::Done;
            };
            // Nothing lies between, and from one tick short of the slot its records can move.
            self.go_to(start.previous());
            let is_past = Levels::<ROW, WIDE, ROWS>::last(at) < to;
            if Tick::of(self.tick.next_ns()) <= self.cursor {
                // Small slots of the past are taken along.
                let is_small = self.levels.slot(at).len() as usize <= *moves_left
                    && self.tick.gathered() < EXTEND_MAX;
                if !is_past || !is_small {
                    return Advance::Done;
                }
            }
            let slot = self.levels.slot(at);
            let min_ns = slot.min_ns();
            let is_due_in_order = slot.is_in_order() && min_ns <= now_ns;
            let is_crowd = slot.len() as usize > self.moves_per_poll;
            if is_due_in_order && is_crowd && self.open_crowd(slab, at) {
                return Advance::Done;
            }
            if at.level == 0 || is_past || is_due_in_order {
                // After a stall few timers come from far up, and would else go through all levels,
                // each nearly alone in its slots. What is in order needs no levels either.
                self.gather(slab, at, moves_left);
            } else {
                if is_crowd {
                    self.ready_until_ns = self.ready_until_ns.max(min_ns);
                }
                self.move_down(slab, at, moves_left, usize::MAX);
            }
            if !self.levels.slot(at).is_empty() {
                let is_open = self.levels.slot(at).is_in_order() && self.open_crowd(slab, at);
                return if is_open {
                    Advance::Done
                } else {
                    Advance::Unfinished
                };
            }
            if at.level == 0 {
                self.go_to(start);
                self.gather_more(slab, to, moves_left);
            }
        }
    }

    /// Whether nothing up to `now_ns` is in the lists though the cursor is behind, for what begins
    /// first is a crowd that has come in part.
    #[inline]
    fn waits_in_order(&self, now_ns: u64) -> bool {
        self.selected >= Order::last_at(now_ns)
            && self.first_slot().is_some_and(|(at, _)| {
                let slot = self.levels.slot(at);
                slot.is_in_order() && slot.min_ns() > now_ns
            })
            // A crowd whose first has left would keep the next expiry at that one until it has moved.
            && self.levels.first_slots(self.cursor).all(|at| self.levels.slot(at).min_ns() > now_ns)
    }

    /// Lets what was taken from the slot, which begins first and is in order, fire before the rest of
    /// it is. False if that is nothing new.
    fn open_crowd<T>(&mut self, slab: &Slab<T>, at: Position) -> bool {
        let before = self.levels.before(slab, at, self.cursor);
        if before <= self.listed_after() {
            return false;
        }
        self.selected = before;
        // What is armed for the tick from now on would disturb the order of the list.
        let near_ns = match at.level {
            0 => Tick::new(at.number).last_ns(),
            _ => before.deadline_ns,
        };
        self.near_until_ns = self.near_until_ns.max(near_ns);
        true
    }

    /// The slot that begins first, the coarsest if several do at once, and the tick it begins with.
    #[inline]
    pub(super) fn first_slot(&self) -> Option<(Position, Tick)> {
        if self.levels.active() & 1 == 1 {
            // No other level's slot begins before the next one of level 1 does.
            let at = self.levels.first_slot(0, self.cursor);
            let tick = Tick::new(at.number);
            if tick <= self.last_before_coarse() {
                return Some((at, tick));
            }
        }
        let mut first: Option<(Position, Tick)> = None;
        for at in self.levels.first_slots(self.cursor) {
            let start = Levels::<ROW, WIDE, ROWS>::start(at);
            if first.is_none_or(|(_, first_start)| start < first_start) {
                first = Some((at, start));
            }
        }
        first
    }

    /// Moves up to `limit` records of the next slot of a coarse level to where they belong now.
    pub(super) fn move_down<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        moves_left: &mut usize,
        limit: usize,
    ) {
        let slot = self.levels.slot(at);
        let count = limit.min(*moves_left).min(slot.len() as usize);
        if count == 0 {
            return;
        }
        // From both ends, unless their order is of use: each step waits for the link before it, which
        // no cache may hold, and two chains wait at the same time.
        let from_back = if slot.is_in_order() { 0 } else { count / 2 };
        let (mut head, mut tail) = (slot.head(), slot.tail());
        for step in 0..count - from_back {
            let next = slab.link(head).next;
            if step < from_back {
                let previous = slab.link(tail).prev;
                self.levels.link(slab, tail, self.cursor);
                tail = previous;
            }
            // Never back into this slot: what it covers is in reach of the level below.
            self.levels.link(slab, head, self.cursor);
            head = next;
        }
        self.crowds = Look::NONE;
        self.levels.cut(slab, at, count as u32, (head, tail));
        *moves_left -= count;
    }

    /// Takes as much of a slot, which may lie in the past as a whole, into the run as the moves allow.
    pub(super) fn gather<T>(&mut self, slab: &mut Slab<T>, at: Position, moves_left: &mut usize) {
        let interval = Levels::<ROW, WIDE, ROWS>::interval(at);
        self.gather_within(slab, at, interval, moves_left);
    }

    /// The same with those due in `interval`, before which none is. The others move down.
    pub(super) fn gather_within<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        interval: (u64, u64),
        moves_left: &mut usize,
    ) {
        while *moves_left > 0 && !self.levels.slot(at).is_empty() {
            let slot = self.levels.slot(at);
            let count = (*moves_left).min(slot.len() as usize);
            let list = List {
                head: slot.head(),
                tail: slot.tail(),
                len: slot.len() as usize,
                has_two_ends: !slot.is_in_order(),
            };
            let gathered = self.tick.gather(slab, interval, list, count);
            self.levels
                .cut(slab, at, gathered.visited as u32, gathered.rest);
            *moves_left = moves_left.saturating_sub(gathered.moves);
            self.link_all(slab, gathered.strays);
        }
        if self.levels.slot(at).is_empty() {
            self.tick.end_list(slab);
        }
    }

    /// Takes the small slots of level 0 that follow along: the most frequent ones, found with less
    /// ado.
    fn gather_more<T>(&mut self, slab: &mut Slab<T>, to: Tick, moves_left: &mut usize) {
        while self.levels.active() & 1 == 1 && self.tick.gathered() < EXTEND_MAX {
            let at = self.levels.first_slot(0, self.cursor);
            let tick = Tick::new(at.number);
            let len = self.levels.slot(at).len() as usize;
            let is_first = tick <= self.last_before_coarse() && tick < to;
            if !is_first || len > *moves_left {
                return;
            }
            self.gather(slab, at, moves_left);
            if !self.levels.slot(at).is_empty() {
                return;
            }
            self.go_to(tick);
        }
    }

    /// The last tick before any that a slot of level 1 or above may begin with.
    #[inline]
    pub(super) fn last_before_coarse(&self) -> Tick {
        self.cursor
            .last_of_slot(Levels::<ROW, WIDE, ROWS>::COARSE_BITS)
    }

    /// Links records, of which each names the next, to where they belong.
    fn link_all<T>(&mut self, slab: &mut Slab<T>, mut index: u32) {
        if index != NIL {
            self.crowds = Look::NONE;
        }
        while index != NIL {
            let next = slab.link(index).next;
            self.levels.link(slab, index, self.cursor);
            index = next;
        }
    }

    /// The time before which a poll has nothing to do, given that nothing is due.
    pub(super) fn idle_until(&self) -> u64 {
        let gather_ns = match self.levels.active() & 1 {
            0 => u64::MAX,
            _ => Tick::new(self.levels.first_slot(0, self.cursor).number).begin_ns(),
        };
        // Also of what is ahead of the cursor, should this poll be earlier than the one that left
        // it there.
        let near_ns = self.tick.next_ns();
        let idle_ns = gather_ns.min(near_ns);
        idle_ns.min(self.refine_ns).min(self.prepare_ns)
    }
}

/// With so many timers in the run no further slots are gathered: as many as the reactor fires at
/// once.
const EXTEND_MAX: usize = 256;
