//! The keys of a run, and how one chunk of them is sorted.
//!
//! The keys are 16 bytes, but what orders them is mostly one number of few bits: how far
//! into the run the deadline lies. So the sort works on `offset << 32 | position`, eight bytes each,
//! and then permutes the keys once. Small chunks are sorted by comparing; large ones by radix, 11 bits a
//! pass, least significant first. Both leave equal offsets as they stood in the list, which is
//! nearly always the order of arming; where it is not, the group is sorted by itself.

use super::level::TICK_BITS;

/// Nanoseconds into the run (32 bits), arming count (64), index (32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKey(u128);

const _: () = assert!(
    TICK_BITS <= 32,
    "an offset into a tick fits its part of the key"
);

impl RunKey {
    #[inline]
    pub(super) fn new(offset_ns: u32, seq: u64, index: u32) -> Self {
        RunKey(u128::from(offset_ns) << 96 | u128::from(seq) << 32 | u128::from(index))
    }

    /// Behind every key of that offset and the earlier ones.
    #[inline]
    pub(super) fn after(offset_ns: u32) -> Self {
        RunKey::new(offset_ns + 1, 0, 0)
    }

    #[inline]
    pub(super) fn offset_ns(self) -> u32 {
        (self.0 >> 96) as u32
    }

    #[inline]
    pub(super) fn seq(self) -> u64 {
        (self.0 >> 32) as u64
    }

    #[inline]
    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }
}

/// The buffers, kept for the next chunk.
#[derive(Debug, Default)]
pub(super) struct Sorter {
    order: Vec<u64>,
    scattered: Vec<u64>,
    permuted: Vec<RunKey>,
}

impl Sorter {
    /// Puts the keys in ascending order. They exchange their buffer with one of the sorter's.
    pub(super) fn sort(&mut self, keys: &mut Vec<RunKey>) {
        if keys.len() < INDIRECT_MIN {
            keys.sort_unstable();
            return;
        }
        let positions = 0u64..;
        self.order.clear();
        self.order.extend(
            keys.iter()
                .zip(positions)
                .map(|(key, position)| u64::from(key.offset_ns()) << 32 | position),
        );
        if keys.len() < RADIX_MIN {
            self.order.sort_unstable();
        } else {
            self.radix_sort();
        }
        self.permuted.clear();
        self.permuted
            .extend(self.order.iter().map(|&entry| keys[entry as u32 as usize]));
        std::mem::swap(keys, &mut self.permuted);
        for equals in keys.chunk_by_mut(|a, b| a.offset_ns() == b.offset_ns()) {
            if !equals.is_sorted() {
                equals.sort_unstable();
            }
        }
    }

    pub(super) fn shrink_to(&mut self, keys: usize) {
        self.order.clear();
        self.order.shrink_to(keys);
        self.scattered.clear();
        self.scattered.shrink_to(keys);
        self.permuted.clear();
        self.permuted.shrink_to(keys);
    }

    /// Sorts `order` by its upper halves and keeps equal ones as they stand.
    fn radix_sort(&mut self) {
        let spread = self.order.iter().fold(0, |bits, entry| bits | entry >> 32);
        self.scattered.clear();
        self.scattered.resize(self.order.len(), 0);
        let mut shift = 0;
        while spread >> shift != 0 {
            let digit = |entry: u64| (entry >> (32 + shift)) as usize & (BUCKETS - 1);
            let mut starts = [0u32; BUCKETS];
            for &entry in &self.order {
                starts[digit(entry)] += 1;
            }
            let mut start = 0;
            for count in &mut starts {
                start += std::mem::replace(count, start);
            }
            for &entry in &self.order {
                let to = &mut starts[digit(entry)];
                self.scattered[*to as usize] = entry;
                *to += 1;
            }
            std::mem::swap(&mut self.order, &mut self.scattered);
            shift += DIGIT_BITS;
        }
    }
}

const DIGIT_BITS: u32 = 11;
const BUCKETS: usize = 1 << DIGIT_BITS;
/// Below this, sorting the keys themselves is as quick.
const INDIRECT_MIN: usize = 24;
/// From here on two passes over the entries are cheaper than comparing them.
const RADIX_MIN: usize = 768;
