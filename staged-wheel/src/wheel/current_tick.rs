//! What is near: the run of what the cursor found in its slots, the heap of what came too late for
//! a slot, and which of their heads fires first.

use super::entry::{FiredRecord, Key, RecordState};
use super::heap::NearHeap;
use super::run::Run;
use super::slab::Slab;
use crate::epoch::NEVER;

/// Timers that are due by now or soon, in no list any more.
#[derive(Debug)]
pub(super) struct CurrentTick {
    pub(super) run: Run,
    heap: NearHeap,
}

impl CurrentTick {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        CurrentTick {
            run: Run::default(),
            heap: NearHeap::new(),
        }
    }

    /// Whether there is no timer in here, and no key that [`clean`](Self::clean) would have to drop.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.run.live() == 0 && self.heap.is_empty()
    }

    /// Drops the keys of cancelled timers in front, each for a move, so that
    /// [`next_ns`](Self::next_ns) is that of a timer. False if the moves are spent before that.
    #[inline]
    pub(super) fn clean<T>(&mut self, slab: &Slab<T>, moves_left: &mut usize) -> bool {
        self.run.clean(slab, moves_left) && self.heap.clean(slab, moves_left)
    }

    /// The first deadline, or that of a cancelled timer before it; [`NEVER`] if there is none.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.first().map_or(NEVER, |key| key.deadline_ns)
    }

    /// The first timer in here, or a cancelled one before it.
    #[inline]
    pub(super) fn first(&self) -> Option<Key> {
        let (run, heap) = (self.run.peek(), self.heap.peek());
        run.into_iter().chain(heap).min()
    }

    /// Releases up to `budget` timers in order, as far as `last`, and hands them out. Returns how many.
    /// Stops when the moves are spent on keys of cancelled ones.
    pub(super) fn fire<T>(
        &mut self,
        slab: &mut Slab<T>,
        last: Key,
        budget: usize,
        moves_left: &mut usize,
        hand_out: &mut impl FnMut(FiredRecord<T>),
    ) -> usize {
        let mut fired = 0;
        loop {
            let near = if self.heap.clean(slab, moves_left) {
                self.heap.peek().filter(|near| *near <= last)
            } else {
                // What it holds may come before what is in the run.
                return fired;
            };
            let left = budget - fired;
            let run_last = near.unwrap_or(last);
            fired += self.run.fire(slab, run_last, left, moves_left, hand_out);
            // What the run still holds is behind the heap's head, or `last`, or beyond budget or
            // moves.
            let Some(near) = near else {
                return fired;
            };
            let is_behind = self.run.peek().is_some_and(|key| key < near);
            if fired == budget || is_behind {
                return fired;
            }
            self.heap.pop();
            hand_out(slab.fire(near.index, near.deadline_ns));
            fired += 1;
        }
    }

    /// Enters a timer of the cursor's tick or an earlier one.
    #[inline]
    pub(super) fn push<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        self.heap.push(slab, index);
    }

    /// The record at `index`, which was in `state`, has left and shows it.
    #[inline]
    pub(super) fn forget<T>(&mut self, slab: &Slab<T>, index: u32, state: RecordState) {
        match state {
            RecordState::InRun => self.run.forget(slab, index),
            RecordState::InHeap => self.heap.forget(slab),
            state => unreachable!("a timer of the current tick is not {state:?}"),
        }
    }

    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.run.has_excess() || self.heap.has_excess()
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        self.run.shrink();
        self.heap.shrink();
    }

    /// Keys of timers that were cancelled or re-armed.
    #[cfg(any(test, fuzzing))]
    pub(super) fn dead_keys(&self) -> usize {
        self.run.dead_keys() + self.heap.dead_keys()
    }

    /// Asserts the invariants and returns how many timers are in here.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(&self, slab: &Slab<T>) -> usize {
        self.run.check_invariants(slab) + self.heap.check_invariants(slab)
    }
}
