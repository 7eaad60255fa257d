//! The current tick: the run of what the cursor found in its slot, the heap of what came too late for
//! a slot, and which of their heads fires first.

use super::entry::{Key, State};
use super::epoch::NEVER;
use super::heap::NearHeap;
use super::level::tick_of;
use super::records::Records;
use super::run::{Gathered, Run};

/// Timers that are due by now or within the tick.
#[derive(Debug)]
pub(super) struct CurrentTick {
    run: Run,
    heap: NearHeap,
}

impl CurrentTick {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        CurrentTick {
            run: Run::new(),
            heap: NearHeap::new(),
        }
    }

    /// The deadline of the first timer in order, given where the cursor stands; [`NEVER`] if there is
    /// none.
    #[inline]
    pub(super) fn peek_ns<T>(&mut self, records: &Records<T>, cursor: u64) -> u64 {
        // A run that is still being gathered is of the tick ahead of the cursor and incomplete.
        let run_ns = if self.run.tick() <= cursor {
            ns(self.run.peek(records))
        } else {
            NEVER
        };
        let heap = self.heap.peek(records);
        run_ns.min(ns(heap.filter(|key| tick_of(key.deadline_ns) <= cursor)))
    }

    /// The tick of the heap's first timer, if the cursor has not come to it.
    #[inline]
    pub(super) fn first_overtaken<T>(&mut self, records: &Records<T>, cursor: u64) -> Option<u64> {
        let tick = tick_of(self.heap.peek(records)?.deadline_ns);
        (tick > cursor).then_some(tick)
    }

    /// Releases up to `budget` timers due at `now_ns` in order and pushes their payloads. Returns how
    /// many.
    pub(super) fn fire<T>(
        &mut self,
        records: &mut Records<T>,
        cursor: u64,
        now_ns: u64,
        budget: usize,
        expired: &mut Vec<T>,
    ) -> usize {
        let mut fired = 0;
        loop {
            let near = self.heap.peek(records);
            if self.run.tick() <= cursor {
                let left = budget - fired;
                fired += self.run.fire(records, near, now_ns, left, expired);
            }
            // What the run still holds is behind the heap's head, or not due, or beyond the budget.
            let is_due =
                |key: &Key| key.deadline_ns <= now_ns && tick_of(key.deadline_ns) <= cursor;
            let Some(near) = near.filter(is_due) else {
                return fired;
            };
            if fired == budget {
                return fired;
            }
            self.heap.pop();
            expired.push(records.release_fired(near.index));
            fired += 1;
        }
    }

    /// The earliest deadline, also among what is still being gathered; [`NEVER`] if there is none.
    pub(super) fn next_ns<T>(&mut self, records: &Records<T>) -> u64 {
        ns(self.run.peek(records)).min(ns(self.heap.peek(records)))
    }

    /// Enters a timer of this tick or an earlier one.
    #[inline]
    pub(super) fn push<T>(&mut self, records: &mut Records<T>, index: u32) {
        self.heap.push(records, index);
    }

    /// Enters a slot's list, or the first `limit` of it.
    pub(super) fn gather<T>(
        &mut self,
        records: &mut Records<T>,
        tick: u64,
        head: u32,
        limit: usize,
    ) -> Gathered {
        self.run.gather(records, tick, head, limit)
    }

    /// Whether the timers of one more tick can be entered together with those just gathered.
    #[inline]
    pub(super) fn can_extend<T>(&mut self, records: &Records<T>) -> bool {
        self.run.can_extend() && self.heap.peek(records).is_none()
    }

    /// Enters the whole list of a slot behind what was just gathered.
    pub(super) fn extend<T>(
        &mut self,
        records: &mut Records<T>,
        tick: u64,
        head: u32,
        len: usize,
    ) -> Gathered {
        self.run.extend(records, tick, head, len)
    }

    /// The tick ahead of the cursor for which timers were gathered, but not all.
    #[inline]
    pub(super) fn gathering(&self, cursor: u64) -> Option<u64> {
        let tick = self.run.tick();
        (self.run.live() > 0 && tick > cursor).then_some(tick)
    }

    /// A record that was in `state` has left, and shows it.
    #[inline]
    pub(super) fn forget<T>(&mut self, records: &Records<T>, state: State) {
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
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(&self, records: &Records<T>, cursor: u64) -> usize {
        let in_run = self.run.check_invariants(records);
        let in_heap = self.heap.check_invariants(records);
        assert!(in_run == 0 || self.run.tick() <= cursor + 1);
        in_run + in_heap
    }
}

#[inline]
fn ns(key: Option<Key>) -> u64 {
    key.map_or(NEVER, |key| key.deadline_ns)
}
