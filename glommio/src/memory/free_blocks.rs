//! Which blocks of a region are free: buddies (Knowlton, CACM 1965) over block numbers. Knows no
//! memory and no addresses.
//!
//! Free blocks form runs of a power of two of them, each at a multiple of its length; a run and the
//! one of the same length beside it, its buddy, are never both free, for they would be one run of
//! twice the length. So the runs follow from the set of free blocks alone, whatever came before.
//!
//! A request takes the front of the shortest run that can hold it rounded up to a power of two, and
//! returns the rest: only alignment is lost to the rounding, not memory. What is given back is cut
//! into runs, and each joins its buddy as long as that is free.
//!
//! What was given back last is not cut up before something else is given back or asked for:
//! otherwise taking one buffer after the other would split and join the same run each time.
//!
//! Cost: 9 bytes for a block; a request looks at one bit mask, and touches at most two runs for
//! each power of two; none if it is like the last that was given back.

#![forbid(unsafe_code)]

/// The free blocks of one region.
#[derive(Debug)]
pub(super) struct FreeBlocks {
    /// By block: one more than the order of the free run that begins there, 0 if none does.
    heads: Vec<u8>,
    /// By block at which a free run begins: its neighbours in the list of its order. Meaningless
    /// elsewhere, and so not touched before there is a run.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// By order: the run that was freed last, which is likeliest to be in the cache.
    first: [u32; ORDERS],
    /// Bit `k` is set if a run of order `k` is free.
    orders: u32,
    /// What was given back last, first block and count: free, but in no run yet.
    last: Option<(u32, u32)>,
}

/// Runs have 2 to the power of 0 to 31 blocks.
const ORDERS: usize = 32;

/// No block has this number: of `u32::MAX` blocks, the last has one less.
const NONE: u32 = u32::MAX;

impl FreeBlocks {
    /// All of `count` blocks are free.
    pub(super) fn new(count: u32) -> Self {
        let mut blocks = FreeBlocks {
            heads: vec![0; count as usize],
            next: vec![0; count as usize],
            previous: vec![0; count as usize],
            first: [NONE; ORDERS],
            orders: 0,
            last: None,
        };
        blocks.free(0, count);
        blocks
    }

    /// Takes `count` blocks in a row, at least one, and returns the first; it is a multiple of
    /// `count` rounded up to a power of two. `None` if there is no such place.
    pub(super) fn take(&mut self, count: u32) -> Option<u32> {
        debug_assert!(count > 0);
        match self.last.take() {
            Some((start, free)) if free == count => return Some(start),
            Some((start, free)) => self.free(start, free),
            None => {}
        }
        let wanted = count.checked_next_power_of_two()?.trailing_zeros();
        let large_enough = self.orders & (u32::MAX << wanted);
        if large_enough == 0 {
            return None;
        }
        let order = large_enough.trailing_zeros();
        let start = self.first[order as usize];
        self.unlink(start, order);
        self.free(start + count, (1 << order) - count);
        Some(start)
    }

    /// Frees `count` blocks from `start` on, which were taken together.
    pub(super) fn give_back(&mut self, start: u32, count: u32) {
        if let Some((start, count)) = self.last.replace((start, count)) {
            self.free(start, count);
        }
    }

    /// Frees blocks by runs.
    fn free(&mut self, mut start: u32, mut count: u32) {
        debug_assert!(start as usize + count as usize <= self.heads.len());
        while count > 0 {
            let order = start.trailing_zeros().min(count.ilog2());
            self.join(start, order);
            start += 1 << order;
            count -= 1 << order;
        }
    }

    /// Frees one run, and joins it with its buddies.
    fn join(&mut self, mut start: u32, mut order: u32) {
        debug_assert_eq!(self.heads[start as usize], 0, "freed twice");
        loop {
            let buddy = start ^ (1 << order);
            // There may be no block of that number: a region need not have a power of two of them.
            // A run of the last order has no buddy that is free, as blocks are numbered
            // in 32 bits.
            let is_free = self.heads.get(buddy as usize) == Some(&head(order));
            if !is_free {
                break;
            }
            self.unlink(buddy, order);
            start = start.min(buddy);
            order += 1;
        }
        self.link(start, order);
    }

    fn link(&mut self, start: u32, order: u32) {
        let second = std::mem::replace(&mut self.first[order as usize], start);
        self.heads[start as usize] = head(order);
        self.next[start as usize] = second;
        self.previous[start as usize] = NONE;
        if second != NONE {
            self.previous[second as usize] = start;
        }
        self.orders |= 1 << order;
    }

    fn unlink(&mut self, start: u32, order: u32) {
        debug_assert_eq!(self.heads[start as usize], head(order));
        self.heads[start as usize] = 0;
        let next = self.next[start as usize];
        let previous = self.previous[start as usize];
        if next != NONE {
            self.previous[next as usize] = previous;
        }
        if previous != NONE {
            self.next[previous as usize] = next;
        } else {
            self.first[order as usize] = next;
            if next == NONE {
                self.orders &= !(1 << order);
            }
        }
    }

    /// The free runs as `(first block, order)`, by block, with the last one in its place. Checks
    /// the lists on the way.
    #[cfg(test)]
    pub(super) fn runs(&mut self) -> Vec<(u32, u32)> {
        if let Some((start, count)) = self.last.take() {
            self.free(start, count);
        }
        let mut listed = Vec::new();
        for order in 0..ORDERS as u32 {
            let mut previous = NONE;
            let mut start = self.first[order as usize];
            assert_eq!(start != NONE, self.orders & (1 << order) != 0);
            while start != NONE {
                assert_eq!(self.previous[start as usize], previous);
                assert_eq!(self.heads[start as usize], head(order));
                listed.push((start, order));
                previous = start;
                start = self.next[start as usize];
            }
        }
        let heads = self.heads.iter().filter(|&&head| head != 0).count();
        assert_eq!(heads, listed.len(), "a run is in no list");
        listed.sort_unstable();
        listed
    }
}

/// What `heads` says of a run of this order.
fn head(order: u32) -> u8 {
    // An order is at most 31.
    order as u8 + 1
}
