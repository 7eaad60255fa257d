//! The inline stage: up to 255 timers in two dense arrays.
//!
//! ```text
//!   deadline_ns  │ 70 │ 12 │ 55 │ 31 │MAX │MAX │MAX │MAX │ ...     in no order
//!   record       │  4 │  0 │  9 │  2 │    │    │    │    │
//!                                      ▲ len
//! ```
//!
//! Most executors hold a handful of timers, for which looking at all of them is quicker than any
//! index. Arming appends, cancelling fills the hole with the last entry, and the earliest deadline
//! is searched only when it is asked for and the old one has left: eight independent minima over at
//! most 32 cache lines.
//!
//! Invariants: the record at `indices[p]` is in state `Dense` and has `place == p`; `deadline_ns`
//! from `len` on is `MAX`; `min_ns` is a lower bound, and the earliest deadline unless `is_stale`.

#[cfg(any(test, fuzzing))]
mod tests;

use super::entry::FiredRecord;
use super::reclaim::ReclaimingSlab;
use super::slab::Slab;

/// Timers that the stage holds; one more and the wheel takes over.
pub(crate) const INLINE_MAX: usize = 255;

#[derive(Debug)]
pub(super) struct Dense {
    deadline_ns: [u64; INLINE_MAX + 1],
    indices: [u32; INLINE_MAX + 1],
    len: usize,
    min_ns: u64,
    is_stale: bool,
}

impl Dense {
    pub(super) fn new() -> Self {
        Dense {
            deadline_ns: [u64::MAX; INLINE_MAX + 1],
            indices: [0; INLINE_MAX + 1],
            len: 0,
            min_ns: u64::MAX,
            is_stale: false,
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where the next record goes.
    #[inline]
    pub(super) fn tail(&self) -> u16 {
        debug_assert!(self.len < INLINE_MAX);
        (self.len & INLINE_MAX) as u16
    }

    /// Enters the record that was written with the place [`tail`](Self::tail).
    #[inline]
    pub(super) fn insert(&mut self, index: u32, deadline_ns: u64) {
        let position = self.len & INLINE_MAX;
        self.deadline_ns[position] = deadline_ns;
        self.indices[position] = index;
        self.len += 1;
        self.tighten(deadline_ns);
    }

    /// Takes a record out; the caller releases it.
    #[inline]
    pub(super) fn remove<T>(&mut self, slab: &mut Slab<T>, index: u32) {
        let position = slab.at(index).place as usize & INLINE_MAX;
        debug_assert_eq!(self.indices[position], index);
        self.fill(slab, position);
    }

    /// Moves the record to another deadline, as if armed anew with count `seq`.
    #[inline]
    pub(super) fn rearm<T>(&mut self, slab: &mut Slab<T>, index: u32, deadline_ns: u64, seq: u64) {
        let record = slab.at_mut(index);
        let position = record.place as usize & INLINE_MAX;
        debug_assert_eq!(self.indices[position], index);
        record.seq = seq;
        slab.link_mut(index).deadline_ns = deadline_ns;
        let old_ns = std::mem::replace(&mut self.deadline_ns[position], deadline_ns);
        if old_ns == self.min_ns {
            self.is_stale = true;
        }
        self.tighten(deadline_ns);
    }

    /// Whether nothing is due at `now_ns`, as far as a glance tells.
    #[inline]
    pub(super) fn is_idle_at(&self, now_ns: u64) -> bool {
        now_ns < self.min_ns
    }

    /// Fires up to `budget` timers due at `now_ns` in order: releases each record, then hands it out. True
    /// if more are due.
    pub(super) fn expire<T>(
        &mut self,
        memory: &mut ReclaimingSlab<T>,
        now_ns: u64,
        budget: usize,
        hand_out: &mut impl FnMut(FiredRecord<T>),
    ) -> bool {
        if now_ns < self.next_ns() {
            return false;
        }
        let mut positions = [0; INLINE_MAX + 1];
        let mut count = 0;
        for (&deadline_ns, position) in self.deadline_ns[..self.len].iter().zip(0u8..) {
            positions[count] = position;
            count += usize::from(deadline_ns <= now_ns);
        }
        let due = &mut positions[..count];
        due.sort_unstable_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            self.deadline_ns[a].cmp(&self.deadline_ns[b]).then_with(|| {
                let seq = |position| memory.slab.at(self.indices[position]).seq;
                seq(a).cmp(&seq(b))
            })
        });
        let fired = &mut due[..count.min(budget)];
        for &position in &*fired {
            let position = usize::from(position);
            let fired = memory
                .slab
                .fire(self.indices[position], self.deadline_ns[position]);
            hand_out(fired);
        }
        // From the back, so that no hole is filled with one that is to go as well.
        fired.sort_unstable();
        for &position in fired.iter().rev() {
            self.fill(&mut memory.slab, position as usize);
        }
        count > budget
    }

    /// The earliest deadline; [`NEVER`](crate::epoch::NEVER) if there is none.
    #[inline]
    pub(super) fn next_ns(&mut self) -> u64 {
        if self.is_stale {
            self.min_ns = self.find_min();
            self.is_stale = false;
        }
        self.min_ns
    }

    /// Empties the stage and names its records.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = u32> + '_ {
        let len = std::mem::take(&mut self.len);
        self.deadline_ns[..len].fill(u64::MAX);
        self.min_ns = u64::MAX;
        self.is_stale = false;
        self.indices[..len].iter().copied()
    }

    #[inline]
    fn tighten(&mut self, deadline_ns: u64) {
        if deadline_ns <= self.min_ns {
            self.min_ns = deadline_ns;
            self.is_stale = false;
        }
    }

    /// Takes the entry at `position` out and puts the last one there.
    #[inline]
    fn fill<T>(&mut self, slab: &mut Slab<T>, position: usize) {
        self.len -= 1;
        let last = self.len & INLINE_MAX;
        let deadline_ns = self.deadline_ns[position];
        if position != last {
            let moved = self.indices[last];
            self.deadline_ns[position] = self.deadline_ns[last];
            self.indices[position] = moved;
            slab.at_mut(moved).place = position as u16;
        }
        self.deadline_ns[last] = u64::MAX;
        if deadline_ns == self.min_ns {
            self.is_stale = true;
        }
    }

    fn find_min(&self) -> u64 {
        let used = &self.deadline_ns[..self.len.next_multiple_of(LANES)];
        let (chunks, _) = used.as_chunks::<LANES>();
        let mut minima = [u64::MAX; LANES];
        for chunk in chunks {
            for lane in 0..LANES {
                minima[lane] = minima[lane].min(chunk[lane]);
            }
        }
        minima.into_iter().fold(u64::MAX, u64::min)
    }
}

/// Minima kept apart, so that the search is not one long chain of comparisons.
const LANES: usize = 8;

const _: () = assert!(INLINE_MAX <= u8::MAX as usize, "positions are bytes");
