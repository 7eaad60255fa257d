//! How a [`Wheel`] makes a crowd ready before it is due.
//!
//! A slot with more timers than a poll may move keeps its first timer waiting for as many polls as
//! it takes to move them all. An executor that is awake moves them down at the pace of `pace.rs`.
//! One that sleeps is asked to wake ahead of the first of them, early enough that a poll a tick
//! brings the crowd down all levels and sorts it in time; idle as it is, it polls far more often,
//! and sleeps again until the first is due:
//!
//! ```text
//!            begin                              due
//!   ───────────┤·········································├───────▶ time
//!     asleep    ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪      asleep              fires in the first poll
//!               512 moves a poll
//! ```
//!
//! Only what is near is touched: a crowd that is cancelled before, as timeouts are, is never moved,
//! and what is far off costs an idle executor one such wake a level at most, for moves that are to
//! be made anyway. Once begun, a crowd is followed down to the run, level by level, with all that
//! is due before it.

use super::{MOVES_BUSY, Wheel};
use crate::epoch::NEVER;
use crate::wheel::level::{Levels, Position};
use crate::wheel::look::Look;
use crate::wheel::slab::Slab;
use crate::wheel::tick::{TICK_BITS, Tick};

impl<const ROW: usize, const WIDE: usize, const ROWS: usize> Wheel<ROW, WIDE, ROWS> {
    /// Brings down what it is time to make ready, in a poll that has fired so many and before which `arms` were
    /// armed. To be called when nothing that is due at `now_ns` is left in the lists.
    pub(super) fn prepare<T>(
        &mut self,
        slab: &mut Slab<T>,
        now_ns: u64,
        arms: u64,
        fired: usize,
        moves_left: &mut usize,
    ) {
        let next_ns = self.next_ns_if_cheap(slab);
        if now_ns >= self.crowds.begin_ns || !self.crowds.holds(arms, next_ns) {
            self.make_ready(slab, now_ns, arms, fired, moves_left);
        }
        // What is armed from now on is looked at in the next tick.
        self.prepare_ns = self.crowds.begin_ns.min(Tick::of(now_ns).end_ns());
    }

    fn make_ready<T>(
        &mut self,
        slab: &mut Slab<T>,
        now_ns: u64,
        arms: u64,
        fired: usize,
        moves_left: &mut usize,
    ) {
        let mut most = *moves_left;
        if fired > 0 {
            // Others come due soon, and would wait for a crowd that is not due yet.
            let part = self.pace.part_of_tick(self.moves_per_poll);
            most = most.min(part.max(MOVES_BUSY));
        }
        *moves_left -= most;
        while let Some(at) = self.look_for_crowds(arms)
            && self.crowds.begin_ns <= now_ns
            && most > 0
        {
            self.ready_until_ns = self.ready_until_ns.max(self.levels.slot(at).min_ns());
            if at.level == 0 {
                self.gather(slab, at, &mut most);
            } else if let Some(interval) = self.burst(slab, at) {
                self.gather_within(slab, at, interval, &mut most);
            } else {
                self.move_down(slab, at, &mut most);
            }
        }
        *moves_left += most;
    }

    /// When the timers of a slot of a coarse level are due, if they are a crowd that seems to be due within a few
    /// ticks, or what is left of one: then there is nothing that the levels below could part.
    fn burst<T>(&self, slab: &Slab<T>, at: Position) -> Option<(u64, u64)> {
        let slot = self.levels.slot(at);
        let (begin_ns, len) = (slot.min_ns(), slot.len() as usize);
        let is_crowd = len > self.moves_per_poll || self.tick.is_open(begin_ns);
        if !is_crowd {
            return None;
        }
        let (mut head, mut tail) = (slot.head(), slot.tail());
        let mut last_ns = begin_ns;
        for _ in 0..len.min(SAMPLED) {
            let (first, last) = (slab.link(head), slab.link(tail));
            last_ns = last_ns.max(first.deadline_ns).max(last.deadline_ns);
            (head, tail) = (first.next, last.prev);
        }
        let span_ns = last_ns - begin_ns;
        // Some may be due a little later than all that were looked at.
        (span_ns < BURST_TICKS << TICK_BITS)
            .then_some((begin_ns, last_ns.saturating_add(span_ns / 8)))
    }

    /// When to poll for the sake of a crowd, so many timers having been armed; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_crowd_ns(&mut self, arms: u64) -> u64 {
        let Look {
            first, begin_ns, ..
        } = self.crowds;
        let is_known = self.crowds.holds(arms, self.next_ns)
            && first.is_none_or(|first| self.begin_ns(first) == begin_ns);
        if !is_known {
            self.look_for_crowds(arms);
            let begin_ns = self.crowds.begin_ns;
            self.prepare_ns = self.prepare_ns.min(begin_ns);
            self.wants_poll_at(begin_ns);
        }
        self.crowds.begin_ns
    }

    /// Finds the crowd to begin with first.
    fn look_for_crowds(&mut self, arms: u64) -> Option<Position> {
        let mut first = None;
        let (mut first_ns, mut until_ns) = (NEVER, NEVER);
        let mut levels = self.levels.active();
        while levels != 0 {
            let level = levels.trailing_zeros() as u8;
            levels &= levels - 1;
            // A coarse slot further behind is seen in time from the one before it. Those of level 0
            // follow each other too fast.
            let behind = if level == 0 { TICKS_SEEN } else { 1 };
            let mut end = NEVER;
            for at in self.levels.slots(level, self.cursor) {
                end = end.min(at.number + behind);
                if at.number > end {
                    let number = at.number - behind;
                    let start = Levels::<ROW, WIDE, ROWS>::start(Position { level, number });
                    until_ns = until_ns.min(start.begin_ns());
                    break;
                }
                let begin_ns = self.begin_ns(at);
                if begin_ns < first_ns {
                    (first, first_ns) = (Some(at), begin_ns);
                }
            }
        }
        self.crowds = Look {
            first,
            begin_ns: first_ns,
            until_ns,
            arms,
        };
        first
    }

    /// When to begin with a slot; [`NEVER`] if a poll can do it all when the first of its timers is
    /// due.
    #[inline]
    fn begin_ns(&self, at: Position) -> u64 {
        let slot = self.levels.slot(at);
        let (moves, len) = (self.moves_per_poll as u64, u64::from(slot.len()));
        let wanted_ns = if slot.min_ns() <= self.ready_until_ns {
            0
        } else if len > moves {
            // On its own level and on those below; dealing them out takes a quarter more.
            let polls = (len / moves + 1) * (u64::from(at.level) + 1) + len / (4 * moves);
            slot.min_ns().saturating_sub(polls << TICK_BITS)
        } else {
            return NEVER;
        };
        if at.level > 0 {
            // It fits the level below from when the cursor is in the slot before,
            let before = Position {
                number: at.number - 1,
                ..at
            };
            // where an open crowd may hold the cursor back for a tick.
            wanted_ns.max(Levels::<ROW, WIDE, ROWS>::start(before).end_ns())
        } else {
            wanted_ns
        }
    }
}

/// Slots of level 0 behind the first one that are looked at.
const TICKS_SEEN: u64 = 16;

/// Timers at either end of a slot that tell when the others may be due.
const SAMPLED: usize = 16;
/// A crowd due within so many ticks skips the levels: cut into buckets as a whole, each tick has many.
const BURST_TICKS: u64 = 4;
