//! The current tick: the run of what the cursor found in its slot, the heap of what came too late for
//! a slot, and which of their heads fires first.

use super::entry::{Key, State};
use super::epoch::NEVER;
use super::heap::NearHeap;
use super::records::Records;
use super::run::{Gathered, Run};

/// Timers that are due by now or within the tick.
#[derive(Debug)]
pub(super) struct CurrentTick {
    run: Run,
    heap: NearHeap,
}

/// Whose head a key is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Run,
    Heap,
}

impl CurrentTick {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        CurrentTick {
            run: Run::new(),
            heap: NearHeap::new(),
        }
    }

    /// The first timer in order, given where the cursor stands.
    #[inline]
    pub(super) fn peek(&mut self, records: &Records, cursor: u64) -> Option<(Key, Source)> {
        let heap = self.heap.peek(records).map(|key| (key, Source::Heap));
        // A run that is still being gathered is of the tick ahead of the cursor and incomplete.
        let run = if self.run.tick() <= cursor {
            self.run.peek(records).map(|key| (key, Source::Run))
        } else {
            None
        };
        match (run, heap) {
            (Some(run), Some(heap)) => Some(if run.0 < heap.0 { run } else { heap }),
            (run, heap) => run.or(heap),
        }
    }

    /// Consumes the key that [`peek`](Self::peek) has returned.
    #[inline]
    pub(super) fn pop(&mut self, source: Source) {
        match source {
            Source::Run => self.run.pop(),
            Source::Heap => self.heap.pop(),
        }
    }

    /// The earliest deadline, also among what is still being gathered; [`NEVER`] if there is none.
    pub(super) fn next_ns(&mut self, records: &Records) -> u64 {
        let run = self.run.peek(records);
        let heap = self.heap.peek(records);
        let ns = |key: Option<Key>| key.map_or(NEVER, |key| key.deadline_ns);
        ns(run).min(ns(heap))
    }

    /// Enters a timer of this tick or an earlier one.
    #[inline]
    pub(super) fn push(&mut self, records: &mut Records, index: u32) {
        self.heap.push(records, index);
    }

    /// Enters a slot's list, or the first `limit` of it.
    pub(super) fn gather(
        &mut self,
        records: &mut Records,
        tick: u64,
        head: u32,
        limit: usize,
    ) -> Gathered {
        self.run.gather(records, tick, head, limit)
    }

    /// The tick ahead of the cursor for which timers were gathered, but not all.
    #[inline]
    pub(super) fn gathering(&self, cursor: u64) -> Option<u64> {
        let tick = self.run.tick();
        (self.run.live() > 0 && tick > cursor).then_some(tick)
    }

    /// A record that was in `state` has left, and shows it.
    #[inline]
    pub(super) fn forget(&mut self, records: &Records, state: State) {
        match state {
            State::InRun => self.run.forget(),
            State::InHeap => self.heap.forget(records),
            state => unreachable!("a timer of the current tick is not {state:?}"),
        }
    }

    /// Drops the keys of timers long gone, once no timer is left, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.run.clear();
        self.heap.clear();
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        self.run.shrink();
        self.heap.shrink();
    }

    #[cfg(test)]
    pub(super) fn heap_keys(&self) -> usize {
        self.heap.keys_held()
    }

    /// Asserts the invariants and returns how many timers are in here.
    #[cfg(test)]
    pub(super) fn check_invariants(&self, records: &Records, cursor: u64) -> usize {
        let in_run = self.run.check_invariants(records);
        let in_heap = self.heap.check_invariants(records);
        assert!(in_run == 0 || self.run.tick() <= cursor + 1);
        in_run + in_heap
    }
}
