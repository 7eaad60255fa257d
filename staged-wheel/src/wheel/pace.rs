//! The pace at which coarse slots are moved down before the cursor comes to them.
//!
//! A slot that is next is moved down piece by piece, in each poll twice the share that even
//! progress asks for, so that it is empty when the cursor enters it. Without this the poll that
//! does so pays for all of the slot. The progress is told in sixteenths of a tick, for where polls
//! come that often the first of each tick would else pay for all of the tick's share.
//!
//! It is that of the slower of the last two polls: one that comes late, after a stall, need not
//! make up for the time it was away.

use super::tick::{TICK_BITS, Tick, begin_ns};

#[derive(Debug)]
pub(super) struct Pace {
    /// When the last cascade was, in steps.
    cascaded_at: u64,
    /// By how many steps it was behind the one before.
    advanced: u64,
    /// By how many steps this one counts.
    steps: u64,
}

/// What a step asks for and was not moved yet.
#[derive(Debug, Default)]
pub(super) struct Cascade {
    /// When the first of the polls came that left a step to the next one, if it was not begun since.
    pub(super) put_off_since_ns: Option<u64>,
    /// The levels that it is still to come to, a bit each.
    pub(super) levels: u64,
    /// Of the lowest of them, once that was begun.
    pub(super) share_left: Option<usize>,
    /// The next slots of those that it is done with are empty.
    pub(super) is_whole: bool,
}

impl Pace {
    pub(super) fn new(cursor: Tick) -> Self {
        Pace {
            cascaded_at: first_step(cursor),
            advanced: 0,
            steps: 0,
        }
    }

    /// By how many steps `now_ns` is ahead, the cursor having come as far as it will.
    #[inline]
    pub(super) fn steps_behind(&self, cursor: Tick, now_ns: u64) -> u64 {
        step(cursor, now_ns).saturating_sub(self.cascaded_at)
    }

    /// Goes on by that many.
    pub(super) fn advance(&mut self, cursor: Tick, now_ns: u64) {
        let step = step(cursor, now_ns);
        let advanced = step - self.cascaded_at;
        self.cascaded_at = step;
        self.steps = advanced.min(std::mem::replace(&mut self.advanced, advanced));
    }

    /// How many of `count` timers move now if all are to have moved when the tick `start` comes.
    pub(super) fn share(&self, count: u32, start: Tick) -> usize {
        let steps_left = first_step(start) - self.cascaded_at;
        let share = (2 * u64::from(count)).saturating_mul(self.steps) / steps_left;
        usize::try_from(share).unwrap_or(usize::MAX).max(MOVES_MIN)
    }

    /// How many of `moves` a poll may make for a burst if a tick's polls are to make that many.
    pub(super) fn part_of_tick(&self, moves: usize) -> usize {
        let steps = self.advanced.min(1 << STEPS_BITS) as usize;
        moves.saturating_mul(steps) >> STEPS_BITS
    }

    /// Whether polls come less than once a tick.
    pub(super) fn is_rare(&self) -> bool {
        self.steps > 1 << STEPS_BITS
    }

    /// When the next step begins.
    pub(super) fn next_ns(&self) -> u64 {
        begin_ns(self.cascaded_at + 1, STEP_BITS)
    }
}

/// The step of a time, or that of the cursor's tick which is next to it.
#[inline]
fn step(cursor: Tick, now_ns: u64) -> u64 {
    let first = first_step(cursor);
    (now_ns >> STEP_BITS).clamp(first, first | ((1 << STEPS_BITS) - 1))
}

/// The first step of a tick.
fn first_step(tick: Tick) -> u64 {
    tick.begin_ns() >> STEP_BITS
}

/// The end of the step of a time.
pub(super) fn step_end_ns(now_ns: u64) -> u64 {
    begin_ns((now_ns >> STEP_BITS) + 1, STEP_BITS)
}

/// A tick has 2^4 steps.
const STEPS_BITS: u32 = 4;
const STEP_BITS: u32 = TICK_BITS - STEPS_BITS;

/// For how long after a sleep polls that fire timers leave a step to the next one: a quarter of a tick.
pub(super) const PUT_OFF_NS: u64 = 4 << STEP_BITS;

/// Fewer timers are gathered when their tick begins.
pub(super) const AHEAD_MIN: u32 = if cfg!(any(test, fuzzing)) { 2 } else { 16 };

/// So few timers of a slot leave it all at once.
pub(super) const FEW: u32 = if cfg!(any(test, fuzzing)) { 4 } else { 128 };

/// Fewer are not worth the look.
const MOVES_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_of_a_tick_share_its_moves() {
        let mut pace = Pace::new(Tick::FIRST);
        let step_ns = 1 << STEP_BITS;
        for step in [1, 2] {
            assert_eq!(pace.steps_behind(Tick::FIRST, step * step_ns), 1);
            pace.advance(Tick::FIRST, step * step_ns);
            let last_ns = (step + 1) * step_ns - 1;
            assert_eq!(pace.steps_behind(Tick::FIRST, last_ns), 0);
        }
        assert_eq!(pace.part_of_tick(512), 32);
        for tick in [2, 3] {
            pace.advance(Tick::new(tick), Tick::new(tick).begin_ns());
        }
        assert_eq!(pace.part_of_tick(512), 512);
        assert!(pace.part_of_tick(usize::MAX) > usize::MAX >> 5);
    }
}
