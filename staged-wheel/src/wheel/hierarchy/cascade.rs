//! How a [`Wheel`] moves the next slot of each level down before the cursor comes to it.
//!
//! Each step of the [pace](crate::wheel::pace) asks for a share of each of them. A poll moves a few of
//! these, for timers may come due meanwhile, and asks for another poll at once, which goes on from there.

use super::{MOVES_BUSY, Wheel};
use crate::wheel::level::{Levels, Position};
use crate::wheel::pace::{AHEAD_MIN, Cascade, FEW, PUT_OFF_NS};
use crate::wheel::slab::Slab;

impl Wheel {
    /// Moves a share of each level's next slot down, or a part of that, in a poll that has fired so many.
    pub(super) fn cascade<T>(
        &mut self,
        slab: &mut Slab<T>,
        now_ns: u64,
        fired: usize,
        moves_left: &mut usize,
    ) {
        let steps = self.pace.steps_behind(self.cursor, now_ns);
        if steps > 0 {
            let next = self.cascade_of_step();
            let was_asleep = steps > 1 && !self.cascades();
            let since_ns = self.cascade.put_off_since_ns;
            let since_ns = since_ns.or(was_asleep.then_some(now_ns));
            let may_wait = since_ns.is_some_and(|ns| now_ns.saturating_sub(ns) < PUT_OFF_NS);
            if fired > 0 && next.levels != 0 && may_wait {
                // The tasks of what has fired go first, of those too that come due while they run.
                self.cascade.put_off_since_ns = since_ns;
                return;
            }
            self.pace.advance(self.cursor, now_ns);
            self.cascade = next;
        } else if self.cascade.levels == 0 {
            self.cascade.put_off_since_ns = None;
            return;
        }
        let most = MOVES_BUSY.max(MOVES_PER_FIRED * fired).min(*moves_left);
        *moves_left -= most;
        let mut most_left = most;
        // Upwards, so that what moves down a level does not move twice.
        while self.cascade.levels != 0 && self.cascade_level(slab, &mut most_left) {
            self.cascade.levels &= self.cascade.levels - 1;
            self.cascade.share_left = None;
        }
        *moves_left += most_left;
        if self.cascade.levels == 0 && self.cascade.is_whole {
            self.cascaded_until = self.last_before_coarse();
        }
    }

    fn cascade_of_step(&self) -> Cascade {
        let coarse = match self.is_cascaded() {
            true => 0,
            false => self.levels.active & !1,
        };
        Cascade {
            put_off_since_ns: None,
            levels: coarse | u64::from(self.gathered_ahead().is_some()),
            share_left: None,
            is_whole: true,
        }
    }

    /// Whether another poll should come as soon as the timers of the last one are served.
    #[inline]
    pub(in crate::wheel) fn cascades(&self) -> bool {
        self.cascade.put_off_since_ns.is_some() || self.cascade.levels != 0
    }

    /// When there is something to cascade, the cursor being where it will be until then.
    pub(super) fn cascade_at(&self) -> u64 {
        if self.cascades() {
            0
        } else if self.is_cascaded() && self.gathered_ahead().is_none() {
            self.last_before_coarse().end_ns()
        } else {
            self.pace.next_ns()
        }
    }

    /// The lowest level's share. False if the moves are spent first.
    fn cascade_level<T>(&mut self, slab: &mut Slab<T>, moves_left: &mut usize) -> bool {
        let level = self.cascade.levels.trailing_zeros() as u8;
        let Some(at) = self.cascaded_slot(level) else {
            return true;
        };
        let len = self.levels.slot(at).len;
        let share = self.cascade.share_left.unwrap_or_else(|| {
            let start = Levels::start(at);
            self.pace.share(len, start)
        });
        let share = share.min(len as usize);
        let mut share_left = share.min(*moves_left);
        let moves = share_left;
        if level == 0 {
            self.gather(slab, at, &mut share_left);
        } else {
            self.move_down(slab, at, &mut share_left);
        }
        let moved = moves - share_left;
        *moves_left -= moved;
        self.cascade.share_left = Some(share - moved);
        if moved < share {
            return false;
        }
        self.cascade.is_whole &= level == 0 || self.levels.slot(at).is_empty();
        true
    }

    /// The slot of a level that is to be made ready.
    #[inline]
    fn cascaded_slot(&self, level: u8) -> Option<Position> {
        if level == 0 {
            return self.gathered_ahead();
        }
        if self.levels.active >> level & 1 == 0 {
            return None;
        }
        let at = self.levels.first_slot(level, self.cursor);
        let is_left = self.pace.is_rare() && self.levels.slot(at).len <= FEW;
        (Levels::is_next(at, self.cursor) && !is_left).then_some(at)
    }

    /// The next tick's slot, if it has so many timers that it is worth the while, and not so many that
    /// [`presort`](Self::presort) sees to them.
    #[inline]
    pub(super) fn gathered_ahead(&self) -> Option<Position> {
        if self.levels.active & 1 == 0 {
            return None;
        }
        let at = self.levels.first_slot(0, self.cursor);
        let slot = self.levels.slot(at);
        let (begin_ns, _) = Levels::interval(at);
        let is_worth_it = slot.len >= AHEAD_MIN || self.tick.run.is_open(begin_ns);
        let is_wanted = Levels::is_next(at, self.cursor)
            && is_worth_it
            && slot.len as usize <= self.moves_per_poll;
        is_wanted.then_some(at)
    }

    /// Whether there is nothing to cascade before the cursor reaches the next slot of level 1.
    #[inline]
    pub(super) fn is_cascaded(&self) -> bool {
        self.cascaded_until == self.last_before_coarse()
    }
}

/// A poll that fires more than a few moves so many for each: on average there is one a level.
const MOVES_PER_FIRED: usize = 4;
