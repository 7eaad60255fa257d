//! The run: what becomes due with the next ticks, in firing order.
//!
//! The keys of a slot of level 0 are gathered into the run, piece by piece before the cursor arrives or
//! all at once, and sorted when the last piece has come. A slot may hold any number of timers while a
//! poll may not; so a large slot is gathered in sorted chunks, and consumed by merging the chunks as it
//! fires:
//!
//! ```text
//!   chunk 0   · · · · ▪ ▪ ▪ ▪ ▪      · consumed
//!   chunk 1   · · ▪ ▪ ▪ ▪            ▪ waiting, ascending
//!   chunk 2   · · · ▪ ▪ ▪ ▪ ▪ ▪
//!                     the smallest head fires next
//! ```
//!
//! Small slots that follow each other share a chunk. A crowd comes in buckets, whose chunks are disjoint
//! and not merged (`run/deal.rs`).
//!
//! A key is 16 bytes: the deadline, the record's arming count less that of a base, its index. That is
//! the exact order of firing, and since no two arms share a count, it also tells whether the record
//! is still the one the key was made for. A timer whose count is out of reach of the base, two
//! thousand million arms away, is left to the heap, whose keys are larger. A cancelled timer leaves
//! its key behind (its payload is gone). Such a key is dropped when it surfaces, which costs a move
//! as a record's way through the levels does; and a chunk of which two thirds are gone is rebuilt
//! without them, so that a crowd that is cancelled after it was gathered leaves nothing to walk
//! over.
//!
//! Invariants: each chunk ascends, but for what is `open` at the end of the last one, and those of
//! buckets of which more may come; `heads` has one
//! entry for each chunk with keys, no later than its first one; every record in state `InRun` has
//! exactly one key that matches its arming count, in the chunk that its link names in `next`. Costs:
//! appending is the sort's share, popping is O(1) inside a chunk and O(log chunks) when another chunk
//! takes over, cancelling is O(1) amortised and one chunk at most.

mod buckets;
mod deal;
mod keys;
mod list;
#[cfg(any(test, fuzzing))]
mod tests;

use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use self::buckets::Buckets;
use self::keys::{Head, RunKey, Sieve};
pub(super) use self::list::{Gathered, List};
use super::entry::{FiredRecord, Key, NIL, Order};
use super::slab::Slab;
use crate::peak::Peak;

#[derive(Debug)]
pub(super) struct Run {
    /// What the arming counts of the keys are counted from.
    base_seq: u64,
    chunks: Vec<Chunk>,
    /// Chunks without keys.
    free: Vec<u32>,
    /// The chunk that was filled last.
    last: usize,
    /// What it has of a slot of which more is to come.
    open: Option<Open>,
    /// Those of the slot that was dealt last.
    dealt: Option<Box<Buckets>>,
    /// The first key of each chunk, or one before it that has been dropped.
    heads: BinaryHeap<Head>,
    /// Records that are in state `InRun`.
    live: usize,
    /// Keys that all chunks have memory for, and those that have keys.
    capacity: usize,
    in_use: usize,
    peak: Peak,
}

#[derive(Debug, Default)]
struct Chunk {
    /// Ascending, and consumed up to `next`.
    keys: Vec<RunKey>,
    next: usize,
    /// Keys whose timers still stand.
    live: usize,
    /// Where the bucket begins of which more may come: the keys are not sorted yet.
    bucket_ns: Option<u64>,
}

/// Keys of a slot at the end of a chunk that are not sorted yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    from: u32,
    /// They are no earlier than this.
    begin_ns: u64,
}

impl Run {
    /// Allocates nothing.
    pub(super) fn new() -> Self {
        Run {
            base_seq: 0,
            chunks: Vec::new(),
            free: Vec::new(),
            last: 0,
            open: None,
            dealt: None,
            heads: BinaryHeap::new(),
            live: 0,
            capacity: 0,
            in_use: 0,
            peak: Peak::default(),
        }
    }

    /// Timers in here.
    #[inline]
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Takes records from a list whose deadlines begin with `begin_ns`, which has `limit` at least: so
    /// many, and no more than a chunk holds. They are sorted when one of them may be the first to fire,
    /// or when the list [ends](Self::close).
    ///
    /// Records that were re-armed to a deadline after `last_ns` are not taken, nor are those whose
    /// arming count is out of reach.
    pub(super) fn gather<T>(
        &mut self,
        slab: &mut Slab<T>,
        (begin_ns, last_ns): (u64, u64),
        list: List,
        limit: usize,
    ) -> Gathered {
        if list.is_crowd() || self.is_dealt(begin_ns) {
            return self.deal_list(slab, (begin_ns, last_ns), list, limit);
        }
        if self.live == 0 {
            self.clear();
            self.base_seq = slab.at(list.head).seq.saturating_sub(REACH);
        }
        let visited = limit.min(CHUNK);
        let begin = RunKey::before(begin_ns, 0);
        let at = self.chunk_with_room(begin, visited);
        let chunk = &mut self.chunks[at];
        let held = chunk.keys.len();
        let mut sieve = Sieve {
            keys: &mut chunk.keys,
            base_seq: self.base_seq,
            chunk: at as u32,
            last_ns,
            strays: NIL,
            misfits: NIL,
        };
        let (visited, rest) = list.walk(slab, visited, |slab, index| {
            sieve.take(slab, index);
            true
        });
        let Sieve {
            strays, misfits, ..
        } = sieve;
        let added = chunk.keys.len() - held;
        self.live += added;
        chunk.live += added;
        if held == 0 {
            if added == 0 {
                self.release(at);
            } else {
                self.heads.push(Head {
                    key: begin,
                    chunk: at as u32,
                });
            }
        }
        if added > 0 && self.open.is_none() {
            self.open = Some(Open {
                from: held as u32,
                begin_ns,
            });
        }
        self.last = at;
        Gathered {
            visited,
            moves: visited,
            rest,
            strays,
            misfits,
        }
    }

    /// The list that was gathered from has ended: sorts what was gathered last, and what is to fire first.
    #[inline]
    pub(super) fn end_list<T>(&mut self, slab: &Slab<T>) {
        self.close();
        if self.live > 0 {
            self.front(slab);
        }
    }

    /// Sorts what was gathered last.
    #[inline]
    fn close(&mut self) {
        if let Some(Open { from, .. }) = self.open.take() {
            self.chunks[self.last].keys[from as usize..].sort_unstable();
        }
    }

    /// Whether the first timer is in a bucket that is not sorted, for more may come: then
    /// [`peek`](Self::peek) tells where the bucket begins.
    #[inline]
    pub(super) fn begins_with_bucket(&self) -> bool {
        let first = self.heads.peek();
        first.is_some_and(|head| self.chunks[head.chunk as usize].bucket_ns.is_some())
    }

    /// Whether some of the slot that begins at `begin_ns` was gathered and more goes there, too.
    #[inline]
    pub(super) fn is_open(&self, begin_ns: u64) -> bool {
        self.is_dealt(begin_ns) || self.open.is_some_and(|open| open.begin_ns == begin_ns)
    }

    /// Drops the keys of cancelled timers in front of the first one that stands, each for a move.
    /// False if the moves are spent before that.
    #[inline]
    pub(super) fn clean<T>(&mut self, slab: &Slab<T>, moves_left: &mut usize) -> bool {
        let base_seq = self.base_seq;
        while self.live > 0 {
            let chunk = self.front(slab);
            if chunk.keys[chunk.next].is_current(slab, base_seq) {
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
        let key = self.heads.peek()?.key;
        Some(Key {
            deadline_ns: key.deadline_ns(),
            seq: key.seq(self.base_seq),
            index: key.index(),
        })
    }

    /// Releases up to `budget` timers in order, as far as `last`, and hands them out. Returns how many.
    /// Stops when the moves are spent on keys of cancelled ones.
    pub(super) fn fire<T>(
        &mut self,
        slab: &mut Slab<T>,
        last: Order,
        budget: usize,
        moves_left: &mut usize,
        hand_out: &mut impl FnMut(FiredRecord<T>),
    ) -> usize {
        // The first key not to fire.
        let end_key = match last.seq.checked_sub(self.base_seq) {
            Some(arm) => {
                let arm = u32::try_from(arm).unwrap_or(u32::MAX);
                RunKey::behind(last.deadline_ns, arm)
            }
            None => RunKey::before(last.deadline_ns, 0),
        };
        let base_seq = self.base_seq;
        let (mut fired, mut is_stuck) = (0, false);
        while self.live > 0 && fired < budget && !is_stuck {
            if self.heads.peek().is_some_and(|head| head.key >= end_key) {
                break;
            }
            self.front(slab);
            // As long as the other chunks' keys are behind: of all but the heap's first entry, its
            // second or third is the smallest.
            let heads = self.heads.as_slice();
            let others = heads[1..].iter().take(2);
            let chunk_end = others.fold(end_key, |end, head| end.min(head.key));
            let first = heads[0];
            if first.key >= end_key {
                break;
            }
            let chunk = &mut self.chunks[first.chunk as usize];
            let keys = &chunk.keys[chunk.next..];
            for (position, &key) in keys.iter().enumerate() {
                if key >= chunk_end || fired == budget {
                    break;
                }
                if let Some(soon) = keys.get(position + RECORDS_AHEAD) {
                    slab.prefetch(soon.index());
                }
                if key.is_current(slab, base_seq) {
                    hand_out(slab.fire(key.index(), key.deadline_ns()));
                    chunk.live -= 1;
                    self.live -= 1;
                    fired += 1;
                } else if *moves_left > 0 {
                    *moves_left -= 1;
                } else {
                    is_stuck = true;
                    break;
                }
                chunk.next += 1;
            }
        }
        fired
    }

    /// The record at `index`, which has a key in here, was cancelled or re-armed, and shows it.
    #[inline]
    pub(super) fn forget<T>(&mut self, slab: &Slab<T>, index: u32) {
        let base_seq = self.base_seq;
        let at = slab.link(index).next as usize;
        let chunk = &mut self.chunks[at];
        self.live -= 1;
        chunk.live -= 1;
        let waiting = chunk.keys.len() - chunk.next;
        if waiting > 3 * chunk.live {
            if self.open.is_some() && at == self.last {
                self.close();
            }
            self.close_bucket(at);
            let chunk = &mut self.chunks[at];
            chunk.keys.drain(..chunk.next);
            chunk.next = 0;
            chunk.keys.retain(|key| key.is_current(slab, base_seq));
        }
    }

    /// Forgets all keys, whose timers are long gone, and keeps the memory.
    fn clear(&mut self) {
        debug_assert_eq!(self.live, 0);
        self.open = None;
        while let Some(head) = self.heads.pop() {
            self.release(head.chunk as usize);
        }
    }

    /// A chunk has no keys any more. Keeps its memory.
    fn release(&mut self, at: usize) {
        let chunk = &mut self.chunks[at];
        chunk.clear();
        self.in_use -= chunk.keys.capacity();
        self.free.push(at as u32);
    }

    /// Gives a chunk memory for so many keys.
    fn reserve(&mut self, at: usize, count: usize) {
        let keys = &mut self.chunks[at].keys;
        let held = keys.capacity();
        keys.reserve_exact(count - keys.len());
        let added = keys.capacity() - held;
        self.capacity += added;
        self.in_use += added;
        self.peak.note(self.in_use);
    }

    #[inline]
    pub(super) fn has_excess(&self) -> bool {
        // Chunks of cancelled timers are in use until the next poll that looks at them.
        let in_use = if self.live > 0 { self.in_use } else { 0 };
        self.capacity > 2 * in_use + SPARE_KEYS
    }

    /// Gives back memory that two windows have not used.
    pub(super) fn shrink(&mut self) {
        if self.live == 0 {
            self.clear();
        }
        let keep = self.peak.roll(self.in_use);
        let most = 2 * keep + SPARE_KEYS;
        if self.live == 0 && self.capacity > most {
            // The tables of the chunks as well.
            self.chunks = Vec::new();
            self.free = Vec::new();
            self.heads = BinaryHeap::new();
            self.open = None;
            self.dealt = None;
            self.capacity = 0;
        }
        for &at in &self.free {
            if self.capacity <= most {
                break;
            }
            let keys = std::mem::take(&mut self.chunks[at as usize].keys);
            self.capacity -= keys.capacity();
        }
    }

    /// The chunk with the smallest key, while a timer stands.
    #[inline]
    fn front<T>(&mut self, slab: &Slab<T>) -> &mut Chunk {
        loop {
            let mut head = self.heads.peek_mut().expect("a chunk with keys has a head");
            let at = head.chunk;
            if self.open.is_some() && at as usize == self.last {
                drop(head);
                self.close();
                continue;
            }
            let chunk = &self.chunks[at as usize];
            if chunk.bucket_ns.is_some() {
                drop(head);
                // They fire next, and their records come while the keys are sorted.
                chunk.keys.iter().for_each(|key| slab.prefetch(key.index()));
                self.close_bucket(at as usize);
                continue;
            }
            let waiting = chunk.keys.get(chunk.next);
            match waiting.filter(|_| chunk.live > 0) {
                Some(&first) if first == head.key => {
                    drop(head);
                    return &mut self.chunks[at as usize];
                }
                Some(&first) => head.key = first,
                None => {
                    PeekMut::pop(head);
                    self.release(at as usize);
                }
            }
        }
    }

    /// A chunk that takes `count` keys of which none lies before `first`: the one filled last, if
    /// more of the same slot goes there or they ascend together, or an empty one.
    fn chunk_with_room(&mut self, first: RunKey, count: usize) -> usize {
        let goes_on =
            self.is_open(first.deadline_ns()) && self.chunks[self.last].keys.len() + count <= CHUNK;
        if !goes_on {
            self.close();
        }
        let is_before = |chunk: &&Chunk| {
            let last = chunk.keys.last();
            let is_behind = |&last: &RunKey| goes_on || (chunk.bucket_ns.is_none() && last < first);
            last.is_some_and(is_behind) && chunk.keys.len() + count <= CHUNK
        };
        let at = match self.chunks.get(self.last).filter(is_before) {
            Some(_) => self.last,
            None => self.empty_chunk(),
        };
        let wanted = self.chunks[at].keys.len() + count;
        self.reserve(at, wanted.next_power_of_two());
        at
    }

    fn empty_chunk(&mut self) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.in_use += self.chunks[at as usize].keys.capacity();
                at as usize
            }
            None => {
                self.chunks.push(Chunk::default());
                self.chunks.len() - 1
            }
        }
    }
}

impl Chunk {
    /// Keeps the memory.
    fn clear(&mut self) {
        self.keys.clear();
        self.next = 0;
        self.bucket_ns = None;
    }
}

/// Keys of a chunk at most: what a poll that has other things to do gathers, and what sorting and
/// rebuilding may take at a time.
const CHUNK: usize = 512;
/// How many arms before the first that was gathered a timer may have been armed, and nearly how many
/// after it.
const REACH: u64 = 1 << 31;
/// Memory that is not worth giving back.
const SPARE_KEYS: usize = 512;
/// How many keys ahead of the one that fires a record is asked for: it may be long since it was
/// gathered. Expiring 100,000 timers at once takes 10 to 19 % more processor time without.
const RECORDS_AHEAD: usize = 8;
