//! How a [`Wheel`] makes a burst ready before it is due.
//!
//! A slot with more timers than a poll may move keeps its first timer waiting for as many polls as
//! it takes to move them all. An executor that is awake moves them down at the pace of `cascade.rs`.
//! One that sleeps is asked to wake ahead of the first of them, early enough that a poll a tick
//! brings the burst down all levels and sorts it in time; idle as it is, it polls far more often,
//! and sleeps again until the first is due:
//!
//! ```text
//!            begin                              due
//!   ───────────┤·········································├───────▶ time
//!     asleep    ▪▪▪▪▪▪▪▪▪▪▪▪▪▪▪      asleep              fires in the first poll
//!               512 moves a poll
//! ```
//!
//! While other timers fire, there are moves for it in one poll a step of the pace, and few: as many a tick as it was
//! begun for.
//!
//! Only what is near is touched: a burst that is cancelled before, as timeouts are, is never moved,
//! and what is far off costs an idle executor one such wake a level at most, for moves that are to
//! be made anyway. Once begun, a burst is followed down to the run, level by level, with all that
//! is due before it.

use super::{MOVES_BUSY, Wheel};
use crate::epoch::NEVER;
use crate::wheel::level::{LEVELS, Levels, Position};
use crate::wheel::pace::step_end_ns;
use crate::wheel::slab::Slab;
use crate::wheel::tick::{TICK_BITS, Tick};

impl Wheel {
    /// Brings down what it is time to make ready. To be called when nothing that is due at `now_ns` is left in the
    /// lists.
    pub(super) fn presort<T>(&mut self, slab: &mut Slab<T>, now_ns: u64, moves_left: &mut usize) {
        let mut most = *moves_left;
        let others_fire = now_ns < self.fires_until_ns;
        if others_fire {
            // They would wait for a burst that is not due yet.
            let part = self.pace.part_of_tick(self.moves_per_poll);
            most = most.min(part.max(MOVES_BUSY));
        }
        *moves_left -= most;
        let mut burst = self.scan();
        while let Some((at, begin_ns)) = burst
            && begin_ns <= now_ns
            && most > 0
        {
            self.ready_until_ns = self.ready_until_ns.max(self.levels.slot(at).min_ns);
            if at.level == 0 {
                self.gather(slab, at, &mut most);
            } else if let Some(interval) = self.dense_interval(slab, at) {
                self.gather_within(slab, at, interval, &mut most);
            } else {
                self.move_down(slab, at, &mut most);
            }
            burst = self.scan();
        }
        if others_fire && most == 0 {
            // Their polls may be many: one a step is for the burst.
            self.presorts_from_ns = step_end_ns(now_ns);
            burst = self.scan();
        }
        *moves_left += most;
        // What is armed from now on is looked at in the next tick.
        let begin_ns = burst.map_or(NEVER, |(_, begin_ns)| begin_ns);
        self.presort_ns = begin_ns.min(Tick::of(now_ns).end_ns());
    }

    /// When the timers of a slot of a coarse level are due, if they are a burst that seems to be due within a few
    /// ticks, or what is left of one: then there is nothing that the levels below could part.
    fn dense_interval<T>(&self, slab: &Slab<T>, at: Position) -> Option<(u64, u64)> {
        let slot = self.levels.slot(at);
        let (begin_ns, len) = (slot.min_ns, slot.len as usize);
        let is_burst = len > self.moves_per_poll || self.tick.run.is_open(begin_ns);
        if !is_burst {
            return None;
        }
        let (mut head, mut tail) = (slot.head, slot.tail);
        let mut last_ns = begin_ns;
        for _ in 0..len.min(SAMPLED) {
            let (first, last) = (slab.link(head), slab.link(tail));
            last_ns = last_ns.max(first.deadline_ns).max(last.deadline_ns);
            (head, tail) = (first.next, last.prev);
        }
        let span_ns = last_ns - begin_ns;
        // Some may be due a little later than all that were looked at.
        (span_ns < DENSE_TICKS << TICK_BITS)
            .then_some((begin_ns, last_ns.saturating_add(span_ns / 8)))
    }

    /// When to poll for the sake of a burst; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_burst_ns(&mut self) -> u64 {
        let burst = self.scan();
        let begin_ns = burst.map_or(NEVER, |(_, begin_ns)| begin_ns);
        self.presort_ns = self.presort_ns.min(begin_ns);
        self.wants_poll_at(begin_ns);
        begin_ns
    }

    /// The burst to begin with first, and when.
    fn scan(&self) -> Option<(Position, u64)> {
        let active = self.levels.active;
        let levels = (0..LEVELS as u8).filter(|it| active >> it & 1 == 1);
        let slots = levels.flat_map(|level| {
            // A coarse slot further behind is seen in time from the one before it. Those of level 0
            // follow each other too fast.
            let behind = if level == 0 { TICKS_SEEN } else { 1 };
            let last = self.levels.first_slot(level, self.cursor).number + behind;
            let slots = self.levels.slots(level, self.cursor);
            slots.take_while(move |at| at.number <= last)
        });
        let bursts = slots.map(|at| (at, self.begin_ns(at)));
        bursts
            .filter(|&(_, begin_ns)| begin_ns != NEVER)
            .min_by_key(|&(_, begin_ns)| begin_ns)
            .map(|(at, begin_ns)| (at, begin_ns.max(self.presorts_from_ns)))
    }

    /// When to begin with a slot; [`NEVER`] if a poll can do it all when the first of its timers is
    /// due.
    #[inline]
    fn begin_ns(&self, at: Position) -> u64 {
        let slot = self.levels.slot(at);
        let (moves, len) = (self.moves_per_poll as u64, u64::from(slot.len));
        let wanted_ns = if slot.min_ns <= self.ready_until_ns {
            0
        } else if len > moves {
            // On its own level and on those below; dealing them out takes a quarter more.
            let polls = (len / moves + 1) * (u64::from(at.level) + 1) + len / (4 * moves);
            slot.min_ns.saturating_sub(polls << TICK_BITS)
        } else {
            return NEVER;
        };
        if at.level > 0 {
            // It fits the level below from when the cursor is in the slot before,
            let before = Position {
                number: at.number - 1,
                ..at
            };
            // where an open burst may hold the cursor back for a tick.
            wanted_ns.max(Levels::start(before).end_ns())
        } else {
            wanted_ns
        }
    }
}

/// Slots of level 0 behind the first one that are looked at.
const TICKS_SEEN: u64 = 16;

/// Timers at either end of a slot that tell when the others may be due.
const SAMPLED: usize = 16;
/// A burst due within so many ticks skips the levels: cut into buckets as a whole, each tick has many.
const DENSE_TICKS: u64 = 4;
