//! The few timers armed for the current tick or the past.
//!
//! Their slot is behind them, so they queue in a small binary heap beside the run. Like the run's,
//! the keys of cancelled timers stay behind, without payload. A task that arms and cancels such
//! timers and never lets the reactor poll must not grow the heap without bound: once the dead
//! outnumber the living twice, the heap is rebuilt without them.
//!
//! Invariant: every record in state `InHeap` has exactly one key here that matches its arming
//! count. Costs: O(log n) in the timers of the *current tick*, and O(1) for the rebuilding,
//! amortised.

#[cfg(any(test, fuzzing))]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::entry::{Key, RecordState};
use super::slab::Slab;
use crate::peak::Peak;

#[derive(Debug)]
pub(super) struct NearHeap {
    keys: BinaryHeap<Reverse<Key>>,
    stale: usize,
    peak: Peak,
}

impl NearHeap {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        NearHeap {
            keys: BinaryHeap::new(),
            stale: 0,
            peak: Peak::default(),
        }
    }

    pub(super) fn live(&self) -> usize {
        self.keys.len() - self.stale
    }

    /// Whether there are no keys, not even of cancelled timers.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Enters the record.
    #[inline]
    pub(super) fn push<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let record = slab.at_mut(index);
        record.state = RecordState::InHeap;
        let seq = record.seq;
        self.keys.push(Reverse(Key {
            deadline_ns: slab.link(index).deadline_ns,
            seq,
            index,
        }));
        self.peak.note(self.keys.len());
    }

    /// Drops the keys of cancelled timers in front of the first one that stands, each for a move.
    /// False if the moves are spent before that.
    #[inline]
    pub(super) fn clean<T>(&mut self, slab: &Slab<T>, moves_left: &mut usize) -> bool {
        while let Some(&Reverse(key)) = self.keys.peek() {
            if slab.is_current(key.index, key.seq, RecordState::InHeap) {
                return true;
            }
            if *moves_left == 0 {
                return false;
            }
            *moves_left -= 1;
            self.keys.pop();
            self.stale -= 1;
        }
        true
    }

    /// The first key; its timer still stands if [`clean`](Self::clean) says so.
    #[inline]
    pub(super) fn peek(&self) -> Option<Key> {
        self.keys.peek().map(|&Reverse(key)| key)
    }

    /// Consumes the key that [`peek`](Self::peek) has returned.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.keys.pop();
    }

    /// A record with a key in here was cancelled or re-armed, and shows it.
    #[inline]
    pub(super) fn forget<T>(&mut self, slab: &Slab<T>) {
        self.stale += 1;
        if self.stale > 2 * self.live() + STALE_FREE {
            self.keys
                .retain(|&Reverse(key)| slab.is_current(key.index, key.seq, RecordState::InHeap));
            self.stale = 0;
        }
    }

    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.keys.capacity() > 2 * self.keys.len() + SPARE_KEYS
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        let keep = self.peak.roll(self.keys.len());
        if self.keys.capacity() > 2 * keep + SPARE_KEYS {
            self.keys.shrink_to(keep + SPARE_KEYS / 2);
        }
    }
}

/// So many dead keys are not worth a rebuilding.
const STALE_FREE: usize = 64;
/// Memory that is not worth giving back.
const SPARE_KEYS: usize = 128;
