//! Buckets: how a crowd comes into a [`Run`] in parts that need not be merged.
//!
//! A crowd that is taken page by page comes in no order. Sorted in chunks as it comes, each chunk would span all
//! of it, and each timer that fires would be of another chunk than the one before: a step of the heap and two
//! cache misses for each. So it is dealt by deadline instead, as in a bucket sort:
//!
//! ```text
//!   bucket    ├── 0 ──┼── 1 ──┼── 2 ──┼── 3 ──┤    the same length of time each
//!   chunks      ▪▪▪▪    ▪ ▪▪    ▪▪▪▪    ▪▪▪        in no order; sorted when full, or when the first is to fire
//!                               ▪▪                 one more where a chunk is full
//! ```
//!
//! Until a chunk is sorted, its head is where its bucket begins. Where timers come for a bucket whose
//! chunk is sorted already they begin another chunk, which is merged.

use super::keys::{Head, RunKey};
use super::{CHUNK, Chunk, REACH, Run};
use crate::wheel::entry::RecordState;
use crate::wheel::slab::Slab;

/// A part of a crowd that is dealt: timers from a deadline on up to the next bucket's.
#[derive(Debug)]
pub(in crate::wheel) struct Bucket {
    begin_ns: u64,
    /// The chunk that was filled last, which may hold something else by now.
    chunk: usize,
}

impl Bucket {
    /// One that begins with this deadline.
    pub(in crate::wheel) fn from(begin_ns: u64) -> Self {
        Bucket {
            begin_ns,
            chunk: usize::MAX,
        }
    }
}

impl Run {
    /// Takes a record, which is in no list, into a bucket. What that takes beyond one move is taken off
    /// those that are left. False if its arming count is out of reach.
    #[inline]
    pub(in crate::wheel) fn deal<T>(
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
        self.peak.note(self.live);
        if chunk.keys.len() == CHUNK {
            // Now: a poll would have to sort all that begin alike before it fired the first.
            self.close_bucket(bucket.chunk);
            *moves_left = moves_left.saturating_sub(MOVES_TO_SORT);
        }
        true
    }

    /// A chunk for a bucket.
    #[cold]
    fn open_bucket(&mut self, begin_ns: u64) -> usize {
        let at = self.empty_chunk();
        let chunk = &mut self.chunks[at];
        chunk.bucket_ns = Some(begin_ns);
        let held = chunk.keys.capacity();
        chunk.keys.reserve_exact(CHUNK);
        self.capacity += chunk.keys.capacity() - held;
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

/// What another chunk takes, whose memory may be new to the process.
const MOVES_TO_OPEN: usize = 8;
/// What sorting a full chunk takes.
const MOVES_TO_SORT: usize = CHUNK / 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::entry::{Link, NIL};

    /// A poll fires as soon as it has sorted what may come first.
    #[test]
    fn of_a_bucket_one_chunk_is_left_to_sort_and_the_others_were_paid_for() {
        const CHUNKS: usize = 5;
        let (mut run, mut slab) = (Run::new(), Slab::new());
        let mut bucket = Bucket::from(7);
        let mut moves_left = usize::MAX;
        for seq in 0..(CHUNKS * CHUNK - 1) as u64 {
            let link = Link {
                deadline_ns: 7 + seq % 3,
                next: NIL,
                prev: NIL,
            };
            let index = slab.take(seq, (), 0, RecordState::Parked, link).index;
            assert!(run.deal(&mut slab, index, &mut bucket, &mut moves_left));
        }
        let open = |chunk: &&Chunk| chunk.bucket_ns.is_some();
        assert_eq!(run.chunks.iter().filter(open).count(), 1);
        assert_eq!(run.chunks.len(), CHUNKS);
        let paid = CHUNKS * MOVES_TO_OPEN + (CHUNKS - 1) * MOVES_TO_SORT;
        assert_eq!(moves_left, usize::MAX - paid);
    }
}
