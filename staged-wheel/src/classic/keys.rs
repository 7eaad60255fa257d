//! The hash map of the classic queue: where in the tree a handle's timer is.
//!
//! A hash map grows by copying all it holds, which takes milliseconds for 100,000 timers, and never
//! shrinks. So it is split into parts: each grows by itself and is a small share of the whole.
//! Peaks are tracked over windows of some four seconds; parts of which two windows in a row have
//! used less than half are shrunk, one a poll.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::epoch::NEVER;
use crate::peak::Peak;

/// Names one armed timer of the queue that handed it out, and nothing once that timer has fired or
/// was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClassicHandle(pub(super) u64);

/// The order of firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) deadline_ns: u64,
    pub(super) seq: u64,
}

#[derive(Debug)]
pub(super) struct Keys {
    /// None before the first timer, [`PARTS`] from then on.
    parts: Vec<Part>,
    len: usize,
    peak: Peak,
    /// The most there were since the parts were last shrunk: their capacity.
    capacity: usize,
    /// End of the current window.
    review_ns: u64,
    /// The parts below this one are still to be shrunk, to so many keys.
    unshrunk: usize,
    part_len: usize,
}

type Part = HashMap<ClassicHandle, Key, BuildHasherDefault<CountHasher>>;

impl Keys {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Keys {
            parts: Vec::new(),
            len: 0,
            peak: Peak::default(),
            capacity: 0,
            review_ns: 0,
            unshrunk: 0,
            part_len: 0,
        }
    }

    pub(super) fn insert(&mut self, handle: ClassicHandle, key: Key) {
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, Part::default);
        }
        self.parts[part(handle)].insert(handle, key);
        self.len += 1;
        self.capacity = self.capacity.max(self.len);
        self.peak.note(self.len);
    }

    pub(super) fn remove(&mut self, handle: ClassicHandle) -> Option<Key> {
        let key = self.parts.get_mut(part(handle))?.remove(&handle)?;
        self.len -= 1;
        Some(key)
    }

    pub(super) fn get(&self, handle: ClassicHandle) -> Option<&Key> {
        self.parts.get(part(handle))?.get(&handle)
    }

    pub(super) fn get_mut(&mut self, handle: ClassicHandle) -> Option<&mut Key> {
        self.parts.get_mut(part(handle))?.get_mut(&handle)
    }

    /// When [`review`](Self::review) has something to do again.
    #[inline]
    pub(super) fn next_review_ns(&self) -> u64 {
        if self.unshrunk > 0 { 0 } else { self.review_ns }
    }

    /// When the memory of a peak can go back, the map being left alone; [`NEVER`] if what can go
    /// has gone.
    pub(super) fn next_shrink_ns(&self) -> u64 {
        if self.unshrunk > 0 || has_excess(self.capacity, self.len) {
            self.next_review_ns()
        } else {
            NEVER
        }
    }

    /// Gives memory back, a part at a time.
    #[cold]
    pub(super) fn review(&mut self, now_ns: u64) {
        if now_ns >= self.review_ns {
            self.review_ns = now_ns.saturating_add(WINDOW_NS);
            let peak = self.peak.roll(self.len);
            if has_excess(self.capacity, peak) {
                self.unshrunk = self.parts.len();
                self.part_len = 2 * peak / PARTS;
                self.capacity = 2 * peak;
            }
        }
        if self.unshrunk > 0 {
            self.unshrunk -= 1;
            self.parts[self.unshrunk].shrink_to(self.part_len);
            if self.unshrunk == 0 && self.len == 0 && self.part_len == 0 {
                self.parts = Vec::new();
            }
        }
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn count(&self) -> usize {
        let count = self.parts.iter().map(Part::len).sum();
        assert_eq!(self.len, count);
        count
    }
}

/// Whether capacity for so many keys is too much if there are `len` at most.
fn has_excess(capacity: usize, len: usize) -> bool {
    capacity > 2 * len + SPARE_KEYS
}

/// The part that a handle belongs to, by the bits of its hash that the part makes no use of.
#[inline]
fn part(handle: ClassicHandle) -> usize {
    (spread(handle.0) >> (u64::BITS - PARTS.ilog2())) as usize
}

/// Multiplicative hashing (Knuth, TAOCP 6.4): 2^64 divided by the golden ratio.
#[inline]
fn spread(count: u64) -> u64 {
    count.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Spreads handles, which are counted and not chosen by callers, so that no keyed hash is needed.
#[derive(Debug, Default)]
struct CountHasher(u64);

impl Hasher for CountHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, count: u64) {
        self.0 = spread(count);
    }

    fn finish(&self) -> u64 {
        // The map takes its buckets from the low bits, which a product mixes least.
        self.0.rotate_left(32)
    }
}

const PARTS: usize = 64;
/// How long memory must have stayed unused, at least.
const WINDOW_NS: u64 = 1 << 32;
/// The smallest capacity of all parts together, and not worth giving back.
const SPARE_KEYS: usize = 16 * PARTS;
