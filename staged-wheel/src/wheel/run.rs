//! The run: what becomes due with the next ticks, in firing order.
//!
//! The timers of a slot are dealt into *buckets*, equal parts of the slot's time, as in a bucket sort. A
//! bucket is sorted when its first timer may be the next to fire, so a poll sorts no more than it needs, and
//! buckets need no merge. Most slots have so few timers that they are one bucket:
//!
//! ```text
//!   bucket    ├── 0 ──┼── 1 ──┼── 2 ──┼── 3 ──┤    the same length of time each
//!   chunks      ▪▪▪▪    ▪ ▪▪    ▪▪▪▪    ▪▪▪        in no order; sorted when full, or when the first is to fire
//!                               ▪▪                 one more where a chunk is full
//! ```
//!
//! Until a chunk is sorted, its head is where its bucket begins. Where timers come for a bucket whose
//! chunk is sorted already they begin another chunk. The smallest head fires next.
//!
//! A key is the deadline, the record's arming count and its index: the exact order of firing. Since
//! no two arms share a count, it also tells whether the record is still the one the key was made for.
//! A cancelled timer leaves its key behind (its payload is gone). Such a key is dropped when it
//! surfaces, which costs a move as a record's way through the levels does; and a chunk of which two
//! thirds are gone is rebuilt without them, so that a burst that is cancelled after it was gathered
//! leaves nothing to walk over.
//!
//! Invariants: each chunk ascends, but for those of buckets of which more may come; `heads` has one
//! entry for each chunk with keys, no later than its first one; every record in state `InRun` has
//! exactly one key that matches its arming count, in the chunk that its link names in `next`. Costs:
//! appending is the sort's share, popping is O(1) inside a chunk and O(log chunks) when another chunk
//! takes over, cancelling is O(1) amortised and one chunk at most.

mod buckets;
#[cfg(any(test, fuzzing))]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use self::buckets::{Buckets, CHUNK};
use super::entry::{FiredRecord, Key, NIL, RecordState};
use super::slab::Slab;
use crate::peak::Peak;

#[derive(Debug, Default)]
pub(super) struct Run {
    chunks: Vec<Chunk>,
    /// Chunks without keys.
    free: Vec<u32>,
    /// Those of the slot that was gathered last, and of the last one with more than [`CHUNK`] timers.
    buckets: [Buckets; 2],
    /// The first key of each chunk, or one before it that has been dropped, with the chunk.
    heads: BinaryHeap<Reverse<(Key, u32)>>,
    /// Records that are in state `InRun`.
    live: usize,
    /// Chunks that have memory.
    held: usize,
    /// Of chunks with keys.
    peak: Peak,
}

#[derive(Debug, Default)]
struct Chunk {
    /// Ascending, and consumed up to `next`.
    keys: Vec<Key>,
    next: usize,
    /// Keys whose timers still stand.
    live: usize,
    /// Where the bucket begins of which more may come: the keys are not sorted yet.
    bucket_ns: Option<u64>,
}

impl Run {
    /// Timers in here.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Takes records from a list of `len`, from `head` to `tail`, whose deadlines begin with `begin_ns`, until the
    /// moves are spent.
    ///
    /// Records that were re-armed to a deadline after `last_ns` are strays.
    pub(super) fn gather<T>(
        &mut self,
        slab: &mut Slab<T>,
        (begin_ns, last_ns): (u64, u64),
        (mut head, mut tail): (u32, u32),
        len: usize,
        moves_left: &mut usize,
    ) -> Gathered {
        if self.live == 0 {
            self.clear();
        }
        let kind = usize::from(len > CHUNK || self.buckets[1].begin_with(begin_ns));
        if !self.buckets[kind].begin_with(begin_ns) {
            self.buckets[kind].cut(begin_ns, last_ns, len);
        }
        let mut visited = 0;
        let mut strays = NIL;
        while visited < len && *moves_left > 0 {
            *moves_left -= 1;
            // From both ends: each step waits for the link before it, which no cache may hold, and two chains
            // wait at the same time.
            let index = if visited % 2 == 0 { head } else { tail };
            let link = *slab.link(index);
            if visited % 2 == 0 {
                head = link.next;
            } else {
                tail = link.prev;
            }
            visited += 1;
            if link.deadline_ns > last_ns {
                slab.link_mut(index).next = std::mem::replace(&mut strays, index);
            } else {
                self.deal(slab, index, (kind, link.deadline_ns), moves_left);
            }
        }
        Gathered {
            visited,
            rest: (head, tail),
            strays,
        }
    }

    /// Takes a record, which is in no list, into its bucket. What that takes beyond one move is taken off those that are
    /// left.
    #[inline]
    fn deal<T>(
        &mut self,
        slab: &mut Slab<T>,
        index: u32,
        (kind, deadline_ns): (usize, u64),
        moves_left: &mut usize,
    ) {
        let record = slab.at_mut(index);
        record.state = RecordState::InRun;
        let seq = record.seq;
        let bucket = self.buckets[kind].bucket(deadline_ns);
        let is_open = |chunk: &Chunk| chunk.bucket_ns == Some(bucket.begin_ns);
        let mut at = bucket.chunk;
        if !self.chunks.get(at).is_some_and(is_open) {
            let begin_ns = bucket.begin_ns;
            at = self.open_bucket(begin_ns, moves_left);
            self.buckets[kind].bucket(deadline_ns).chunk = at;
        }
        slab.link_mut(index).next = at as u32;
        let chunk = &mut self.chunks[at];
        chunk.keys.push(Key {
            deadline_ns,
            seq,
            index,
        });
        chunk.live += 1;
        self.live += 1;
        if chunk.keys.len() == chunk.keys.capacity() {
            // Now: a poll would have to sort all that begin alike before it fired the first.
            *moves_left = moves_left.saturating_sub(CHUNK / 4);
            chunk.close();
        }
    }

    /// Finds a bucket a chunk without keys.
    #[cold]
    fn open_bucket(&mut self, begin_ns: u64, moves_left: &mut usize) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        self.heads.push(Reverse((Key::first_at(begin_ns), at)));
        self.peak.note(self.heads.len());
        let chunk = &mut self.chunks[at as usize];
        chunk.bucket_ns = Some(begin_ns);
        if chunk.keys.capacity() == 0 {
            chunk.keys.reserve_exact(CHUNK);
            self.held += 1;
            *moves_left = moves_left.saturating_sub(MEMORY_MOVES);
        }
        at as usize
    }

    /// Whether the first timer is in a bucket that is not sorted, for more may come: then
    /// [`peek`](Self::peek) tells where the bucket begins.
    #[inline]
    pub(super) fn begins_with_bucket(&self) -> bool {
        let first = self.heads.peek();
        first.is_some_and(|&Reverse((_, at))| self.chunks[at as usize].bucket_ns.is_some())
    }

    /// Whether the slot that begins at `begin_ns` was gathered last.
    #[inline]
    pub(super) fn is_open(&self, begin_ns: u64) -> bool {
        self.buckets.iter().any(|it| it.begin_with(begin_ns))
    }

    /// Drops the keys of cancelled timers in front of the first one that stands, each for a move.
    /// False if the moves are spent before that.
    #[inline]
    pub(super) fn clean<T>(&mut self, slab: &Slab<T>, moves_left: &mut usize) -> bool {
        while self.live > 0 {
            let Some(chunk) = self.front(slab, moves_left) else {
                return false;
            };
            if is_current(slab, &chunk.keys[chunk.next]) {
                return true;
            }
            if *moves_left == 0 {
                return false;
            }
            *moves_left -= 1;
            chunk.next += 1;
        }
        true
    }

    /// The first key; its timer still stands if [`clean`](Self::clean) says so.
    #[inline]
    pub(super) fn peek(&self) -> Option<Key> {
        if self.live == 0 {
            return None;
        }
        self.heads.peek().map(|&Reverse((key, _))| key)
    }

    /// Releases up to `budget` timers in order, as far as `last`, and hands them out. Returns how many.
    /// Stops when the moves are spent on keys of cancelled ones.
    pub(super) fn fire<T>(
        &mut self,
        slab: &mut Slab<T>,
        last: Key,
        budget: usize,
        moves_left: &mut usize,
        hand_out: &mut impl FnMut(FiredRecord<T>),
    ) -> usize {
        let mut fired = 0;
        while fired < budget && self.peek().is_some_and(|first| first <= last) {
            if self.front(slab, moves_left).is_none() {
                return fired;
            }
            // As long as the other chunks' keys are behind: of all but the heap's first entry, its
            // second or third is the smallest.
            let heads = self.heads.as_slice();
            let others = heads[1..].iter().take(2);
            let chunk_end = others.fold(last, |end, head| end.min(head.0.0));
            let Reverse((_, at)) = heads[0];
            let chunk = &mut self.chunks[at as usize];
            let keys = &chunk.keys[chunk.next..];
            for (position, &key) in keys.iter().enumerate() {
                if key > chunk_end || fired == budget {
                    break;
                }
                if let Some(soon) = keys.get(position + RECORDS_AHEAD) {
                    slab.prefetch(soon.index);
                }
                if is_current(slab, &key) {
                    hand_out(slab.fire(key.index, key.deadline_ns));
                    chunk.live -= 1;
                    self.live -= 1;
                    fired += 1;
                } else if *moves_left > 0 {
                    *moves_left -= 1;
                } else {
                    return fired;
                }
                chunk.next += 1;
            }
        }
        fired
    }

    /// The record at `index`, which has a key in here, was cancelled or re-armed, and shows it.
    #[inline]
    pub(super) fn forget<T>(&mut self, slab: &Slab<T>, index: u32) {
        let at = slab.link(index).next as usize;
        let chunk = &mut self.chunks[at];
        self.live -= 1;
        chunk.live -= 1;
        let waiting = chunk.keys.len() - chunk.next;
        if waiting > 3 * chunk.live {
            chunk.keys.drain(..chunk.next);
            chunk.next = 0;
            chunk.keys.retain(|key| is_current(slab, key));
        }
    }

    /// Forgets all keys, whose timers are long gone, and keeps the memory.
    fn clear(&mut self) {
        debug_assert_eq!(self.live, 0);
        let mut heads = std::mem::take(&mut self.heads).into_vec();
        for Reverse((_, at)) in heads.drain(..) {
            self.release(at);
        }
        self.heads = heads.into();
    }

    /// A chunk has no keys any more. Keeps its memory.
    fn release(&mut self, at: u32) {
        let chunk = &mut self.chunks[at as usize];
        let mut keys = std::mem::take(&mut chunk.keys);
        keys.clear();
        *chunk = Chunk::default();
        chunk.keys = keys;
        self.free.push(at);
    }

    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        // Chunks of cancelled timers have keys until the next poll that looks at them.
        let in_use = if self.live > 0 { self.heads.len() } else { 0 };
        self.held > 2 * in_use + SPARE_CHUNKS
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        if self.live == 0 {
            self.clear();
        }
        let most = 2 * self.peak.roll(self.heads.len()) + SPARE_CHUNKS;
        if self.live == 0 && self.held > most {
            // The tables of the chunks as well.
            let peak = self.peak;
            *self = Run::default();
            self.peak = peak;
        }
        for &at in &self.free {
            if self.held <= most {
                break;
            }
            let keys = std::mem::take(&mut self.chunks[at as usize].keys);
            self.held -= usize::from(keys.capacity() > 0);
        }
    }

    /// The chunk with the smallest key, while a timer stands. To drop one before it, of which none does, takes a
    /// move; `None` if they are spent before that.
    #[inline]
    fn front<T>(&mut self, slab: &Slab<T>, moves_left: &mut usize) -> Option<&mut Chunk> {
        loop {
            let mut head = self.heads.peek_mut().expect("a chunk with keys has a head");
            let Reverse((key, number)) = *head;
            let at = number as usize;
            let chunk = &mut self.chunks[at];
            if chunk.bucket_ns.is_some() {
                // They fire next, and their records come while the keys are sorted.
                chunk.keys.iter().for_each(|key| slab.prefetch(key.index));
                chunk.close();
            }
            let waiting = chunk.keys.get(chunk.next);
            match waiting.filter(|_| chunk.live > 0) {
                Some(&first) if first == key => {
                    drop(head);
                    return Some(&mut self.chunks[at]);
                }
                Some(&first) => *head = Reverse((first, number)),
                None => {
                    *moves_left = moves_left.checked_sub(1)?;
                    PeekMut::pop(head);
                    self.release(number);
                }
            }
        }
    }
}

impl Chunk {
    /// No more comes to its bucket, if it has one.
    fn close(&mut self) {
        if self.bucket_ns.take().is_some() {
            self.keys.sort_unstable();
        }
    }
}

/// What became of a part of a list.
pub(super) struct Gathered {
    pub(super) visited: usize,
    /// The first and the last record that were left.
    pub(super) rest: (u32, u32),
    /// Records that belong to a later slot, linked by `next`.
    pub(super) strays: u32,
}

/// Whether the timer that a key was made for is still armed and in the run.
#[inline]
fn is_current<T>(slab: &Slab<T>, key: &Key) -> bool {
    slab.is_current(key.index, key.seq, RecordState::InRun)
}

/// Memory that is not worth giving back.
const SPARE_CHUNKS: usize = 2;
/// The memory of a chunk, which may be new to the process, takes as long as so many moves.
const MEMORY_MOVES: usize = CHUNK / 64;
/// How many keys ahead of the one that fires a record is asked for: it may be long since it was
/// gathered. Expiring 100,000 timers at once takes 10 to 19 % more processor time without.
const RECORDS_AHEAD: usize = 8;
