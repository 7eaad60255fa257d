//! The timers that are in no list any more: the run, which was sorted when a slot was gathered, and a heap of those that
//! came to be near while there was a run, or were armed for the past.
//!
//! ```text
//!   run    │ 9 │ 7 │ 7 │ 4 │ ◀── the smaller head fires ──▶ │ 5 │ 6 │ 8 │  heap
//! ```
//!
//! Both hold keys: deadline, arming count and index. The key of a timer that is cancelled or re-armed stays, and is dropped
//! for a move when it comes to the head. A task that arms and cancels timers of the past and never lets the reactor poll
//! must not grow the heap without bound: once the dead keys outnumber the others twice, the heap is rebuilt without them.
//!
//! Invariants: the run is in descending order; every record in state `InRun` or `InHeap` has exactly one key there that
//! matches its arming count. Costs: a share of a sort of at most `MOVES_PER_POLL` keys in the
//! run, O(log n) in the heap, and O(1) for the rebuilding, amortised.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::tuning::FEW;
use super::entry::{FiredRecord, Key, Order, RecordState};
use super::slab::Slab;
use crate::epoch::NEVER;
use crate::peak::Peak;

#[derive(Debug)]
pub(super) struct Near {
    run: Vec<Key>,
    /// Keys of the run whose timers still stand.
    run_live: usize,
    heap: BinaryHeap<Reverse<Key>>,
    /// Keys of the heap whose timers have left.
    heap_dead: usize,
    heap_peak: Peak,
}

impl Near {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Near {
            run: Vec::new(),
            run_live: 0,
            heap: BinaryHeap::new(),
            heap_dead: 0,
            heap_peak: Peak::default(),
        }
    }

    /// Drops the keys of cancelled timers in front.
    #[inline]
    pub(super) fn clean<T>(&mut self, slab: &Slab<T>) {
        while let Some((key, state)) = self.first()
            && !slab.is_current(key, state)
        {
            self.drop_dead(state);
        }
    }

    /// No timer in here is due before; [`NEVER`] if there is none.
    #[inline]
    pub(super) fn bound_ns(&self) -> u64 {
        self.first().map_or(NEVER, |(key, _)| key.deadline_ns)
    }

    /// Releases up to `budget` timers in order that come before `end`, and hands them out. Returns how many, and whether more
    /// may follow: the moves may be spent on keys of cancelled ones.
    pub(super) fn fire<T>(
        &mut self,
        slab: &mut Slab<T>,
        end: Order,
        budget: usize,
        moves_left: &mut usize,
        hand_out: &mut impl FnMut(FiredRecord<T>),
    ) -> (usize, bool) {
        let mut fired = 0;
        while let Some((key, state)) = self.first()
            && key.order() < end
        {
            if !slab.is_current(key, state) {
                let Some(left) = moves_left.checked_sub(1) else {
                    return (fired, true);
                };
                *moves_left = left;
                self.drop_dead(state);
                continue;
            }
            if fired == budget {
                return (fired, true);
            }
            if state == RecordState::InRun {
                self.run.pop();
                self.leave_run();
            } else {
                self.heap.pop();
            }
            hand_out(slab.fire(key.index, key.deadline_ns));
            fired += 1;
        }
        (fired, false)
    }

    /// Enters a timer into the heap.
    #[inline]
    pub(super) fn push<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let key = slab.key(index, RecordState::InHeap);
        self.heap.push(Reverse(key));
        self.heap_peak.note(self.heap.len());
    }

    /// Whether there is a run.
    #[inline]
    pub(super) fn has_run(&self) -> bool {
        self.run_live > 0
    }

    /// Enters a timer into the run, which is [`sort`](Self::sort)ed when the last has come.
    #[inline]
    pub(super) fn push_to_run<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        self.run.push(slab.key(index, RecordState::InRun));
        self.run_live += 1;
    }

    pub(super) fn sort(&mut self) {
        self.run.sort_unstable_by_key(|key| Reverse(key.rank()));
    }

    /// A record with a key in here, which was in `state`, was cancelled or is about to be re-armed, and shows it.
    #[inline]
    pub(super) fn forget<T>(&mut self, slab: &Slab<T>, state: RecordState) {
        if state == RecordState::InRun {
            return self.leave_run();
        }
        self.heap_dead += 1;
        if self.heap_dead > 2 * (self.heap.len() - self.heap_dead) + FEW {
            self.heap
                .retain(|&Reverse(key)| slab.is_current(key, RecordState::InHeap));
            self.heap_dead = 0;
        }
    }

    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        self.heap.capacity() > 2 * (self.heap.len() + FEW)
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        let keep = self.heap_peak.roll(self.heap.len());
        if self.heap.capacity() > 2 * (keep + FEW) {
            self.heap.shrink_to(keep + FEW);
        }
    }

    /// The first key, and the state of its record while the timer stands.
    #[inline]
    fn first(&self) -> Option<(Key, RecordState)> {
        let run = self.run.last().map(|&key| (key, RecordState::InRun));
        let Some(&Reverse(key)) = self.heap.peek() else {
            return run;
        };
        run.filter(|&(it, _)| it.rank() < key.rank())
            .or(Some((key, RecordState::InHeap)))
    }

    #[inline]
    fn leave_run(&mut self) {
        self.run_live -= 1;
        if self.run_live == 0 {
            self.run.clear();
        }
    }

    #[inline]
    fn drop_dead(&mut self, state: RecordState) {
        if state == RecordState::InRun {
            self.run.pop();
        } else {
            self.heap.pop();
            self.heap_dead -= 1;
        }
    }

    /// Keys of timers that were cancelled or re-armed.
    #[cfg(any(test, fuzzing))]
    pub(super) fn dead_keys(&self) -> usize {
        self.run.len() - self.run_live + self.heap_dead
    }

    /// Asserts the invariants and returns how many timers are in here.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(&self, slab: &Slab<T>) -> usize {
        assert!(self.run.is_sorted_by(|a, b| a > b));
        let run = self.run.iter().map(|&key| (key, RecordState::InRun));
        let heap = (self.heap.iter()).map(|&Reverse(key)| (key, RecordState::InHeap));
        let keys: Vec<_> = run.chain(heap).collect();
        let mut live = Vec::new();
        for &(key, state) in &keys {
            if slab.is_current(key, state) {
                assert_eq!(slab.link(key.index).deadline_ns, key.deadline_ns);
                live.push(key.index);
            }
        }
        assert_eq!(keys.len() - live.len(), self.dead_keys());
        assert!(self.run_live > 0 || self.run.is_empty());
        live.sort_unstable();
        assert!(
            live.windows(2).all(|pair| pair[0] != pair[1]),
            "two keys for a record"
        );
        live.len()
    }
}
