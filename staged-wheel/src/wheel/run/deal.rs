//! Dealing: how a crowd comes into a [`Run`] in parts that need not be merged.
//!
//! A crowd that is taken from a long list comes in no order. Sorted in chunks as it
//! comes, each chunk would span all of it, and each timer that fires would be of another chunk than the
//! one before: a step of the heap and two cache misses for each. So it is dealt by deadline instead, as in
//! a bucket sort:
//!
//! ```text
//!   bucket    ├── 0 ──┼── 1 ──┼── 2 ──┼── 3 ──┤    the same length of time each
//!   chunks      ▪▪▪▪    ▪ ▪▪    ▪▪▪▪    ▪▪▪        in no order; sorted when full, or when the first is to fire
//!                               ▪▪                 one more where a chunk is full
//! ```
//!
//! Until a chunk is sorted, its head is where its bucket begins. Where timers come for a bucket whose
//! chunk is sorted already they begin another chunk, which is merged.

use super::buckets::Bucket;
use super::keys::{Head, RunKey};
use super::list::{CROWD, Gathered, List};
use super::{CHUNK, Chunk, REACH, Run};
use crate::wheel::entry::{NIL, RecordState};
use crate::wheel::slab::Slab;

impl Run {
    /// Takes a record, which is in no list, into a bucket. What that takes beyond one move is taken off
    /// those that are left. False if its arming count is out of reach.
    #[inline]
    fn deal<T>(
        &mut self,
        slab: &mut Slab<T>,
        index: u32,
        bucket: &mut Bucket,
        moves_left: &mut usize,
    ) -> bool {
        let record = slab.at_mut(index);
        if self.live == 0 {
            self.clear();
            self.base_seq = record.seq.saturating_sub(REACH);
        }
        let Ok(arm) = u32::try_from(record.seq.wrapping_sub(self.base_seq)) else {
            return false;
        };
        record.state = RecordState::InRun;
        let is_open = |chunk: &Chunk| chunk.bucket_ns == Some(bucket.begin_ns);
        if !self.chunks.get(bucket.chunk).is_some_and(is_open) {
            bucket.chunk = self.open_bucket(bucket.begin_ns);
            *moves_left = moves_left.saturating_sub(MOVES_TO_OPEN);
        }
        let link = slab.link_mut(index);
        link.next = bucket.chunk as u32;
        let chunk = &mut self.chunks[bucket.chunk];
        chunk.keys.push(RunKey::new(link.deadline_ns, arm, index));
        chunk.live += 1;
        self.live += 1;
        if chunk.keys.len() == CHUNK {
            // Now: a poll would have to sort all that begin alike before it fired the first.
            self.close_bucket(bucket.chunk);
            *moves_left = moves_left.saturating_sub(MOVES_TO_SORT);
        }
        true
    }

    /// Takes records from a list as [`gather`](Self::gather) does, into buckets: those of a crowd, and what comes to
    /// its slot later.
    pub(super) fn deal_list<T>(
        &mut self,
        slab: &mut Slab<T>,
        (begin_ns, last_ns): (u64, u64),
        list: List,
        limit: usize,
    ) -> Gathered {
        let is_dealt = self.is_dealt(begin_ns);
        let mut buckets = self.dealt.take().unwrap_or_default();
        if !is_dealt {
            buckets.cut(begin_ns, last_ns, list.len);
        }
        let (mut strays, mut misfits) = (NIL, NIL);
        let mut moves_left = limit;
        let (visited, rest) = list.walk(slab, limit, |slab, index| {
            moves_left = moves_left.saturating_sub(1);
            let deadline_ns = slab.link(index).deadline_ns;
            let others = if deadline_ns > last_ns {
                &mut strays
            } else if self.deal(slab, index, buckets.bucket(deadline_ns), &mut moves_left) {
                return moves_left > 0;
            } else {
                &mut misfits
            };
            slab.link_mut(index).next = std::mem::replace(others, index);
            moves_left > 0
        });
        self.dealt = Some(buckets);
        Gathered {
            visited,
            moves: limit - moves_left,
            rest,
            strays,
            misfits,
        }
    }

    /// Whether the slot that begins with `begin_ns` was dealt last.
    #[inline]
    pub(super) fn is_dealt(&self, begin_ns: u64) -> bool {
        let dealt = self.dealt.as_ref();
        dealt.is_some_and(|buckets| buckets.begin_with(begin_ns))
    }

    /// A chunk for a bucket.
    #[cold]
    fn open_bucket(&mut self, begin_ns: u64) -> usize {
        let at = self.empty_chunk();
        self.chunks[at].bucket_ns = Some(begin_ns);
        self.reserve(at, CHUNK);
        self.heads.push(Head {
            key: RunKey::before(begin_ns, 0),
            chunk: at as u32,
        });
        at
    }

    /// Sorts a bucket of which no more comes to this chunk, if it is one.
    #[inline]
    pub(super) fn close_bucket(&mut self, at: usize) {
        let chunk = &mut self.chunks[at];
        if chunk.bucket_ns.take().is_some() {
            chunk.keys.sort_unstable();
        }
    }
}

/// What another chunk takes, whose memory may be new to the process: a small part of what a crowd takes, also
/// where small ones are dealt.
const MOVES_TO_OPEN: usize = CROWD / 256;
/// What sorting a full chunk takes.
const MOVES_TO_SORT: usize = CHUNK / 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::entry::Link;
    use crate::wheel::run::Buckets;

    /// A poll fires as soon as it has sorted what may come first.
    #[test]
    fn of_a_bucket_one_chunk_is_left_to_sort_and_the_others_were_paid_for() {
        const CHUNKS: usize = 5;
        let (mut run, mut slab) = (Run::new(), Slab::new());
        let mut buckets = Buckets::default();
        buckets.cut(7, 9, 1);
        let bucket = buckets.bucket(7);
        let mut moves_left = usize::MAX;
        for seq in 0..(CHUNKS * CHUNK - 1) as u64 {
            let link = Link {
                deadline_ns: 7 + seq % 3,
                next: NIL,
                prev: NIL,
            };
            let index = slab.take(seq, (), 0, RecordState::Parked, link).index;
            assert!(run.deal(&mut slab, index, bucket, &mut moves_left));
        }
        let open = |chunk: &&Chunk| chunk.bucket_ns.is_some();
        assert_eq!(run.chunks.iter().filter(open).count(), 1);
        assert_eq!(run.chunks.len(), CHUNKS);
        let paid = CHUNKS * MOVES_TO_OPEN + (CHUNKS - 1) * MOVES_TO_SORT;
        assert_eq!(moves_left, usize::MAX - paid);
    }

    /// Each timer is behind all that lie in the chunks before its own: none is merged.
    #[test]
    fn the_crowd_of_a_slot_is_dealt_into_chunks_that_do_not_overlap() {
        const TIMERS: u32 = 10_000;
        const BEGIN_NS: u64 = 1 << 20;
        const MOVES: usize = 512;
        let (mut run, mut slab) = (Run::new(), Slab::new());
        for seq in 0..TIMERS {
            let link = Link {
                deadline_ns: BEGIN_NS + u64::from(seq) * 7_919 % u64::from(TIMERS) * 100,
                next: seq + 1,
                prev: seq.wrapping_sub(1),
            };
            let handle = slab.take(seq.into(), (), 0, RecordState::Parked, link);
            assert_eq!(handle.index, seq);
        }
        let mut list = List {
            head: 0,
            tail: TIMERS - 1,
            len: TIMERS as usize,
        };
        // The last ones do not look like a crowd any more.
        while list.len > 0 {
            let limit = list.len.min(MOVES);
            let interval = (BEGIN_NS, 2 * BEGIN_NS - 1);
            let gathered = run.gather(&mut slab, interval, list, limit);
            assert!(gathered.visited > 0 && gathered.moves <= MOVES);
            assert_eq!((gathered.strays, gathered.misfits), (NIL, NIL));
            (list.head, list.tail) = gathered.rest;
            list.len -= gathered.visited;
        }
        assert_eq!(run.live(), TIMERS as usize);
        let mut ends: Vec<_> = run
            .chunks
            .iter()
            .map(|chunk| {
                let first = chunk.keys.iter().min();
                (first, chunk.keys.iter().max())
            })
            .collect();
        ends.sort_unstable();
        assert!(ends.len() > 20 && ends.windows(2).all(|pair| pair[0].1 < pair[1].0));
        run.check_invariants(&slab);
    }
}
