//! How the cursor of a [`Wheel`] moves: to the next occupied slot, with what comes down ahead of
//! it.
//!
//! All of it is paid for in moves, of which a poll has a number; it stops between any two and the
//! next goes on from there. See the parent for the picture and the invariants.

use super::{Due, Wheel};
use crate::wheel::current_tick::CurrentTick;
use crate::wheel::entry::{Key, NIL};
use crate::wheel::level::{Levels, Position, RATIO_BITS};
use crate::wheel::pace::FEW;
use crate::wheel::slab::Slab;
use crate::wheel::tick::Tick;

impl Wheel {
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
                let waits = self.tick.run.begins_with_bucket() && !is_due(&self.tick);
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
            if !self.advance(slab, now_ns, moves_left) {
                return Due::Unfinished;
            }
        }
    }

    /// How far in order timers may fire at `now_ns`: what is in the lists comes after.
    #[inline]
    pub(super) fn last_ready(&self, now_ns: u64) -> Key {
        Key::last_at(now_ns.min(self.cursor.last_ns()))
    }

    /// Moves the cursor to the tick of `now_ns`, or to one before it up to which there are timers near,
    /// and gathers what is due. False if the moves are spent first: the next call goes on from there.
    fn advance<T>(&mut self, slab: &mut Slab<T>, now_ns: u64, moves_left: &mut usize) -> bool {
        let to = Tick::of(now_ns);
        let (mut few_ns, mut few_left) = (0, 0);
        while let Some((at, start)) = self.first_slot().filter(|&(_, start)| start <= to) {
            // Nothing lies between, and from one tick short of the slot its records can move.
            self.cursor = start.previous();
            let slot = *self.levels.slot(at);
            let is_few = slot.len <= FEW;
            if !is_few && Tick::of(self.tick.next_ns()) <= self.cursor {
                return true;
            }
            let (begin_ns, last_ns) = Levels::interval(at);
            let is_late = now_ns - begin_ns > (last_ns - begin_ns) / 8;
            if is_few {
                // So few of several slots are one bucket.
                if few_left < slot.len {
                    (few_ns, few_left) = (begin_ns, FEW);
                }
                few_left -= slot.len;
                self.gather_within(slab, at, (few_ns, last_ns), moves_left);
            } else if at.level == 0 {
                self.gather_within(slab, at, (begin_ns, last_ns), moves_left);
            } else if is_late && slot.min_ns <= now_ns {
                // What is due skips the levels below.
                let interval = (slot.min_ns, last_ns.min(to.last_ns()));
                self.gather_within(slab, at, interval, moves_left);
            } else {
                if slot.len as usize > self.moves_per_poll {
                    self.ready_until_ns = self.ready_until_ns.max(slot.min_ns);
                }
                self.move_down(slab, at, moves_left);
            }
            if !self.levels.slot(at).is_empty() {
                return false;
            }
            if at.level == 0 {
                self.cursor = start;
            }
        }
        self.cursor = to;
        true
    }

    /// The slot that begins first, the coarsest if several do at once, and the tick it begins with.
    #[inline]
    pub(super) fn first_slot(&self) -> Option<(Position, Tick)> {
        if self.levels.active & 1 == 1 {
            // No other level's slot begins before the next one of level 1 does.
            let at = self.levels.first_slot(0, self.cursor);
            let tick = Tick::new(at.number);
            if tick <= self.last_before_coarse() {
                return Some((at, tick));
            }
        }
        let slots = self.levels.first_slots(self.cursor);
        let slots = slots.map(|at| (at, Levels::start(at)));
        slots.min_by_key(|&(_, start)| start)
    }

    /// Moves records of the next slot of a coarse level to where they belong now.
    pub(super) fn move_down<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        moves_left: &mut usize,
    ) {
        let slot = self.levels.slot(at);
        let count = (*moves_left).min(slot.len as usize);
        if count == 0 {
            return;
        }
        // From both ends: each step waits for the link before it, which no cache may hold, and two
        // chains wait at the same time.
        let from_back = count / 2;
        let (mut head, mut tail) = (slot.head, slot.tail);
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
        self.levels.cut(slab, at, count as u32, (head, tail));
        *moves_left -= count;
    }

    /// Takes as much of a slot, which may lie in the past as a whole, into the run as the moves allow.
    pub(super) fn gather<T>(&mut self, slab: &mut Slab<T>, at: Position, moves_left: &mut usize) {
        self.gather_within(slab, at, Levels::interval(at), moves_left);
        if self.levels.slot(at).is_empty() {
            // What is to fire first is sorted.
            self.tick.run.clean(slab, moves_left);
        }
    }

    /// The same with those due in `interval`, before which none is. The others move down.
    pub(super) fn gather_within<T>(
        &mut self,
        slab: &mut Slab<T>,
        at: Position,
        interval: (u64, u64),
        moves_left: &mut usize,
    ) {
        if *moves_left > 0 {
            let slot = self.levels.slot(at);
            let (ends, len) = ((slot.head, slot.tail), slot.len as usize);
            let gathered = self.tick.run.gather(slab, interval, ends, len, moves_left);
            self.levels
                .cut(slab, at, gathered.visited as u32, gathered.rest);
            let mut stray = gathered.strays;
            while stray != NIL {
                let next = slab.link(stray).next;
                self.levels.link(slab, stray, self.cursor);
                stray = next;
            }
        }
    }

    /// The last tick before any that a slot of level 1 or above may begin with.
    #[inline]
    pub(super) fn last_before_coarse(&self) -> Tick {
        self.cursor.last_of_slot(RATIO_BITS)
    }

    /// The time before which a poll has nothing to do, given that nothing is due.
    pub(super) fn idle_until(&self) -> u64 {
        let gather_ns = match self.levels.active & 1 {
            0 => u64::MAX,
            _ => Tick::new(self.levels.first_slot(0, self.cursor).number).begin_ns(),
        };
        // Also of what is ahead of the cursor, should this poll be earlier than the one that left
        // it there.
        let near_ns = self.tick.next_ns();
        let idle_ns = gather_ns.min(near_ns);
        idle_ns.min(self.cascade_ns).min(self.presort_ns)
    }
}
