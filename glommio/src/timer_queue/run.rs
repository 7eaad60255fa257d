//! The run: what became due with the current tick, in firing order.
//!
//! When the cursor arrives at a slot of level 0, the keys of its records are gathered into the run and
//! sorted once. A slot may hold any number of timers while a poll may not; so a large slot is gathered
//! over several polls, one sorted chunk each, and consumed by merging the chunks as it fires:
//!
//! ```text
//!   chunk 0   · · · · ▪ ▪ ▪ ▪ ▪      · consumed
//!   chunk 1   · · ▪ ▪ ▪ ▪            ▪ waiting, ascending
//!   chunk 2   · · · ▪ ▪ ▪ ▪ ▪ ▪
//!                     the smallest head fires next
//! ```
//!
//! Small slots that have come due together, after a poll that was a few ticks late, follow each other in
//! one chunk.
//!
//! A key is 16 bytes: how far behind the start of the run the deadline lies, the record's arming count, its index.
//! That is the exact order of firing, and since no two arms share a count, it also tells whether the
//! record is still the one the key was made for. A cancelled timer leaves its key behind (its payload
//! is gone) and the key is dropped when it surfaces.
//!
//! Invariants: each chunk ascends; the front chunk's head is no larger than the others' once
//! [`peek`](Run::peek) has returned; every record in state `InRun` has exactly one key ahead of its
//! chunk's cursor. Costs: appending is the sort's share, popping is O(1) inside a chunk and
//! O(log chunks) when another chunk takes over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::entry::{Key, Link, NIL, State};
use super::level::{TICK_BITS, tick_of};
use super::peak::Peak;
use super::records::Records;
use super::sort::{RunKey, Sorter};

#[derive(Debug)]
pub(super) struct Run {
    /// What offsets are counted from: the start of the first tick whose timers these are.
    start_ns: u64,
    /// The last of those ticks.
    tick: u64,
    /// Chunks beyond `used` are spare memory.
    chunks: Vec<Chunk>,
    used: usize,
    /// The chunk that is being consumed, and the heads of the others.
    front: usize,
    others: BinaryHeap<Reverse<(RunKey, usize)>>,
    /// Records that are in state `InRun`.
    live: usize,
    sorter: Sorter,
    /// Keys held at a time.
    peak: Peak,
}

#[derive(Debug, Default)]
struct Chunk {
    keys: Vec<RunKey>,
    next: usize,
}

impl Run {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Run {
            start_ns: 0,
            tick: 0,
            chunks: Vec::new(),
            used: 0,
            front: 0,
            others: BinaryHeap::new(),
            live: 0,
            sorter: Sorter::default(),
            peak: Peak::default(),
        }
    }

    /// Timers in here.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// The last tick whose timers these are.
    #[inline]
    pub(super) fn tick(&self) -> u64 {
        self.tick
    }

    /// Takes up to `limit` records from the front of a list of `tick` into one more chunk and returns
    /// how many it visited and the record behind them.
    ///
    /// Records that were re-armed to a later tick are not taken; they come out in `strays`, linked by
    /// `next`.
    pub(super) fn gather<T>(
        &mut self,
        records: &mut Records<T>,
        tick: u64,
        head: u32,
        limit: usize,
    ) -> Gathered {
        if self.live == 0 {
            self.clear();
        }
        assert!(
            self.used == 0 || self.tick == tick,
            "a run is gathered for one tick at a time"
        );
        if self.used == 0 {
            self.start_ns = tick << TICK_BITS;
        }
        self.tick = tick;
        if self.used == self.chunks.len() {
            self.chunks.push(Chunk::default());
        }
        if self.chunks[self.used].keys.capacity() < limit {
            self.find_room();
        }
        let keys = &mut self.chunks[self.used].keys;
        debug_assert!(keys.is_empty());
        // At once, instead of by and by.
        keys.reserve(limit);
        let (gathered, is_ascending) = take_list(records, self.start_ns, tick, head, limit, keys);
        if !is_ascending {
            self.sorter.sort(keys);
        }
        self.live += keys.len();
        self.open_chunk();
        gathered
    }

    /// Whether the timers of one more tick can follow in the same chunk.
    #[inline]
    pub(super) fn can_extend(&self) -> bool {
        self.used == 1 && self.chunks[0].keys.len() < EXTEND_MAX
    }

    /// Takes a whole list of a later tick behind what was just gathered.
    pub(super) fn extend<T>(
        &mut self,
        records: &mut Records<T>,
        tick: u64,
        head: u32,
        len: usize,
    ) -> Gathered {
        debug_assert!(self.can_extend() && tick > self.tick);
        self.tick = tick;
        let keys = &mut self.chunks[0].keys;
        let held = keys.len();
        keys.reserve(len);
        let (gathered, is_ascending) = take_list(records, self.start_ns, tick, head, len, keys);
        if !is_ascending {
            keys[held..].sort_unstable();
        }
        self.live += keys.len() - held;
        self.peak.note(keys.len());
        gathered
    }

    /// The first key whose timer still stands.
    #[inline]
    pub(super) fn peek<T>(&mut self, records: &Records<T>) -> Option<Key> {
        while self.live > 0 {
            let key = self.head();
            if records.is_current(key.index(), key.seq(), State::InRun) {
                return Some(Key {
                    deadline_ns: self.start_ns + u64::from(key.offset_ns()),
                    seq: key.seq(),
                    index: key.index(),
                });
            }
            self.advance();
        }
        None
    }

    /// Releases up to `budget` timers in order that are due at `now_ns` and come before `end`, and
    /// pushes their payloads. Returns how many.
    pub(super) fn fire<T>(
        &mut self,
        records: &mut Records<T>,
        end: Option<Key>,
        now_ns: u64,
        budget: usize,
        expired: &mut Vec<T>,
    ) -> usize {
        if self.live == 0 || now_ns < self.start_ns {
            return 0;
        }
        let last_ns = (self.tick << TICK_BITS | ((1 << TICK_BITS) - 1)) - self.start_ns;
        let due_ns = (now_ns - self.start_ns).min(last_ns);
        // The first key not to fire: behind all that are due, or that of `end`.
        let mut end_key = RunKey::after(due_ns as u32);
        if let Some(end) = end {
            let Some(offset_ns) = end.deadline_ns.checked_sub(self.start_ns) else {
                return 0;
            };
            if offset_ns <= due_ns {
                end_key = RunKey::new(offset_ns as u32, end.seq, end.index);
            }
        }
        let mut fired = 0;
        while self.live > 0 && fired < budget {
            let head = self.head();
            if head >= end_key {
                break;
            }
            // As long as the other chunks' heads are behind.
            let chunk_end = match self.others.peek() {
                Some(&Reverse((other, _))) => other.min(end_key),
                None => end_key,
            };
            let chunk = &mut self.chunks[self.front];
            for &key in &chunk.keys[chunk.next..] {
                if key >= chunk_end || fired == budget {
                    break;
                }
                chunk.next += 1;
                if records.is_current(key.index(), key.seq(), State::InRun) {
                    expired.push(records.release_fired(key.index()));
                    self.live -= 1;
                    fired += 1;
                }
            }
        }
        fired
    }

    /// A record with a key in here was cancelled or re-armed.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.live -= 1;
    }

    /// Forgets all keys and keeps the memory.
    pub(super) fn clear(&mut self) {
        debug_assert_eq!(self.live, 0);
        for chunk in &mut self.chunks[..self.used] {
            chunk.keys.clear();
            chunk.next = 0;
        }
        self.used = 0;
        self.front = 0;
        self.others.clear();
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        let held = self.chunks[..self.used]
            .iter()
            .map(|chunk| chunk.keys.len())
            .sum();
        let keep = self.peak.roll(held);
        let capacity: usize = self.chunks.iter().map(|chunk| chunk.keys.capacity()).sum();
        if capacity <= 2 * keep + SPARE_KEYS {
            return;
        }
        let mut left = keep + SPARE_KEYS;
        for chunk in &mut self.chunks {
            chunk.keys.shrink_to(left);
            left = left.saturating_sub(chunk.keys.capacity());
        }
        self.sorter.shrink_to(keep + SPARE_KEYS);
    }

    /// Takes the roomiest of the spare chunks: growing another one can take long where the allocator has
    /// much to tidy up, as after a burst.
    #[cold]
    fn find_room(&mut self) {
        let spare = self.used..self.chunks.len();
        if let Some(roomiest) = spare.max_by_key(|&at| self.chunks[at].keys.capacity()) {
            self.chunks.swap(self.used, roomiest);
        }
    }

    /// Makes the chunk just filled part of the run.
    fn open_chunk(&mut self) {
        let filled = self.used;
        let Some(&first) = self.chunks[filled].keys.first() else {
            return;
        };
        self.used += 1;
        let held = self.chunks[..self.used]
            .iter()
            .map(|chunk| chunk.keys.len())
            .sum();
        self.peak.note(held);
        if filled == 0 {
            self.front = 0;
        } else {
            self.others.push(Reverse((first, filled)));
        }
    }

    /// The smallest key of all chunks, of which there is at least one.
    #[inline]
    fn head(&mut self) -> RunKey {
        if !self.others.is_empty() {
            self.change_front();
        }
        let front = &self.chunks[self.front];
        front.keys[front.next]
    }

    #[inline]
    fn advance(&mut self) {
        self.chunks[self.front].next += 1;
    }

    /// Puts the chunk with the smallest head in front.
    fn change_front(&mut self) {
        let front = &self.chunks[self.front];
        let head = front.keys.get(front.next).copied();
        let Some(mut best) = self.others.peek_mut() else {
            return;
        };
        let Reverse((key, chunk)) = *best;
        match head {
            Some(head) if head < key => {}
            Some(head) => {
                *best = Reverse((head, self.front));
                self.front = chunk;
            }
            None => {
                std::collections::binary_heap::PeekMut::pop(best);
                self.front = chunk;
            }
        }
    }

    /// Asserts the invariants and returns the live keys.
    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants<T>(&self, records: &Records<T>) -> usize {
        let mut live = Vec::new();
        for chunk in &self.chunks[..self.used] {
            assert!(chunk.keys.is_sorted());
            for key in &chunk.keys[chunk.next..] {
                if records.is_current(key.index(), key.seq(), State::InRun) {
                    let deadline_ns = self.start_ns + u64::from(key.offset_ns());
                    assert_eq!(records.link(key.index()).deadline_ns, deadline_ns);
                    live.push(key.index());
                }
            }
        }
        for chunk in &self.chunks[self.used..] {
            assert!(chunk.keys.is_empty() && chunk.next == 0);
        }
        assert_eq!(live.len(), self.live);
        live.sort_unstable();
        assert!(
            live.windows(2).all(|pair| pair[0] != pair[1]),
            "two keys for a record"
        );
        live.len()
    }
}

/// Takes up to `limit` records from the front of a list: a key for each that is due in `tick`, the others are
/// strays. Also tells whether the keys ascend.
fn take_list<T>(
    records: &mut Records<T>,
    start_ns: u64,
    tick: u64,
    head: u32,
    limit: usize,
    keys: &mut Vec<RunKey>,
) -> (Gathered, bool) {
    let mut strays = NIL;
    let mut visited = 0;
    let mut index = head;
    let mut is_ascending = true;
    let mut last = RunKey::default();
    while index != NIL && visited < limit {
        let Link {
            deadline_ns, next, ..
        } = *records.link(index);
        if tick_of(deadline_ns) == tick {
            let record = records.at_mut(index);
            let key = RunKey::new((deadline_ns - start_ns) as u32, record.seq, index);
            record.state = State::InRun;
            is_ascending &= last < key;
            last = key;
            keys.push(key);
        } else {
            records.link_mut(index).next = strays;
            strays = index;
        }
        visited += 1;
        index = next;
    }
    let gathered = Gathered {
        visited,
        rest: index,
        strays,
    };
    (gathered, is_ascending)
}

/// What became of the front of a list.
pub(super) struct Gathered {
    pub(super) visited: usize,
    /// The first record that was left.
    pub(super) rest: u32,
    /// Records that belong to a later tick, linked by `next`.
    pub(super) strays: u32,
}

/// With so many keys a run is not extended by another tick: as many as the reactor fires at once.
const EXTEND_MAX: usize = 256;
/// Memory that is not worth giving back.
const SPARE_KEYS: usize = 256;
