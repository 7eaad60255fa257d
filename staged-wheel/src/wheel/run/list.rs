//! The list of a slot as a [`Run`](super::Run) gathers from it.

use crate::wheel::slab::Slab;

/// A list to gather from.
#[derive(Clone, Copy, Debug)]
pub(in crate::wheel) struct List {
    pub(in crate::wheel) head: u32,
    pub(in crate::wheel) tail: u32,
    pub(in crate::wheel) len: usize,
}

impl List {
    /// Whether its timers are best dealt into [buckets](super::Buckets).
    #[inline]
    pub(super) fn is_crowd(self) -> bool {
        self.len > CROWD
    }

    /// Takes up to `limit` timers, and but one more once `take` is false. It may change the link of the one
    /// that it is given. Returns how many, and the first and the last of those left.
    #[inline]
    pub(super) fn walk<T>(
        self,
        slab: &mut Slab<T>,
        limit: usize,
        mut take: impl FnMut(&mut Slab<T>, u32) -> bool,
    ) -> (usize, (u32, u32)) {
        let List {
            mut head, mut tail, ..
        } = self;
        let mut visited = 0;
        let mut goes_on = true;
        while goes_on && visited < limit {
            // Each step waits for the link before it, which no cache may hold: two chains wait at the
            // same time.
            if limit - visited > 1 {
                let previous = slab.link(tail).prev;
                goes_on = take(slab, tail);
                tail = previous;
                visited += 1;
            }
            let next = slab.link(head).next;
            goes_on &= take(slab, head);
            head = next;
            visited += 1;
        }
        (visited, (head, tail))
    }
}

/// What became of a part of a list.
pub(in crate::wheel) struct Gathered {
    pub(in crate::wheel) visited: usize,
    /// What it took, in moves.
    pub(in crate::wheel) moves: usize,
    /// The first and the last record that were left.
    pub(in crate::wheel) rest: (u32, u32),
    /// Records that belong to a later slot, linked by `next`.
    pub(in crate::wheel) strays: u32,
    /// Records for the heap, linked by `next`.
    pub(in crate::wheel) misfits: u32,
}

/// Of a list with more timers, which is in no order, they are dealt into buckets.
pub(super) const CROWD: usize = if cfg!(any(test, fuzzing)) { 256 } else { 2048 };
