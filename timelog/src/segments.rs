//! Lists of segments in blocks.
//!
//! A version is copied when it changes while a snapshot holds it. A list in blocks shares all of
//! them but the one that changes: with a block for each 64 segments, sixteen thousand segments cost
//! 250 entries and a block of 64. What a search and a count need lies side by side in both levels,
//! since the segments themselves lie all over the memory.

use std::ops::Range;
use std::sync::Arc;

use crate::search::count_while;
use crate::segment::Segment;
use crate::work::{self, Work};
use crate::{Broken, Seq, Ts};

/// The most segments of a block.
pub(crate) const BLOCK: usize = 64;

/// The number of a segment in its list: that of its block, and its place there. Numbers rise along
/// the list and have gaps, as blocks need not be full.
pub(crate) type Slot = usize;

fn slot(block: usize, offset: usize) -> Slot {
    block * BLOCK + offset
}

/// Segments in time order (a lane, L1), or by age (L0).
#[derive(Debug)]
pub(crate) struct Segments<V> {
    /// None is empty.
    blocks: Vec<Arc<Block<V>>>,
    /// The greatest timestamp in each block.
    maxes: Vec<Ts>,
    /// Rows before each block, and at the end all.
    starts: Vec<usize>,
}

#[derive(Debug)]
struct Block<V> {
    segments: Vec<Arc<Segment<V>>>,
    mins: Vec<Ts>,
    maxes: Vec<Ts>,
    /// Rows before each segment, and at the end all.
    starts: Vec<usize>,
    min: Ts,
    max: Ts,
    /// The least and the greatest.
    watermarks: (Seq, Seq),
}

impl<V> Clone for Segments<V> {
    fn clone(&self) -> Self {
        work::count(Work::Copied, self.blocks.len());
        Self {
            blocks: self.blocks.clone(),
            maxes: self.maxes.clone(),
            starts: self.starts.clone(),
        }
    }
}

impl<V> Clone for Block<V> {
    fn clone(&self) -> Self {
        work::count(Work::Copied, self.segments.len());
        Self {
            segments: self.segments.clone(),
            mins: self.mins.clone(),
            maxes: self.maxes.clone(),
            starts: self.starts.clone(),
            ..*self
        }
    }
}

impl<V> Default for Segments<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Block<V> {
    fn new() -> Self {
        Self {
            segments: Vec::new(),
            mins: Vec::new(),
            maxes: Vec::new(),
            starts: vec![0],
            min: Ts::MAX,
            max: Ts::MIN,
            watermarks: (Seq(u64::MAX), Seq(0)),
        }
    }

    fn push(&mut self, segment: Arc<Segment<V>>) {
        self.mins.push(segment.min());
        self.maxes.push(segment.max());
        self.starts.push(self.rows() + segment.rows());
        self.min = self.min.min(segment.min());
        self.max = self.max.max(segment.max());
        let watermark = segment.watermark();
        self.watermarks.0 = self.watermarks.0.min(watermark);
        self.watermarks.1 = self.watermarks.1.max(watermark);
        self.segments.push(segment);
    }

    fn rows(&self) -> usize {
        self.starts[self.segments.len()]
    }
}

impl<V> Segments<V> {
    pub const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            maxes: Vec::new(),
            starts: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.segments.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The slot past the last.
    pub fn end(&self) -> Slot {
        slot(self.blocks.len(), 0)
    }

    pub fn get(&self, at: Slot) -> Option<&Arc<Segment<V>>> {
        self.blocks.get(at / BLOCK)?.segments.get(at % BLOCK)
    }

    pub fn last(&self) -> Option<&Arc<Segment<V>>> {
        self.blocks.last()?.segments.last()
    }

    /// The slot after one that has a segment.
    pub fn after(&self, at: Slot) -> Slot {
        let block = at / BLOCK;
        if at % BLOCK + 1 < self.blocks[block].segments.len() {
            at + 1
        } else {
            slot(block + 1, 0)
        }
    }

    /// The slot before one that is not the first.
    pub fn before(&self, at: Slot) -> Slot {
        if at.is_multiple_of(BLOCK) {
            let block = at / BLOCK - 1;
            slot(block, self.blocks[block].segments.len() - 1)
        } else {
            at - 1
        }
    }

    /// Rows before a slot.
    pub fn rank(&self, at: Slot) -> usize {
        let block = at / BLOCK;
        match self.blocks.get(block) {
            Some(inside) => self.starts[block] + inside.starts[at % BLOCK],
            None => self.rows(),
        }
    }

    /// The first slot whose greatest timestamp does not hold. None holds after one that does not.
    #[inline]
    pub fn partition_point(&self, holds: impl Fn(Ts) -> bool) -> Slot {
        let block = count_while(&self.maxes, &holds);
        match self.blocks.get(block) {
            Some(inside) => slot(block, count_while(&inside.maxes, &holds)),
            None => self.end(),
        }
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Segment<V>>> {
        self.blocks.iter().flat_map(|block| &block.segments)
    }

    /// With their slots, those that may have rows from one timestamp to another, both inside; the
    /// list need not be in time order.
    pub fn overlapping(
        &self,
        first: Ts,
        last: Ts,
    ) -> impl Iterator<Item = (Slot, &Arc<Segment<V>>)> {
        let blocks = self.blocks.iter().enumerate();
        let blocks = blocks.filter(move |(_, block)| block.min <= last && first <= block.max);
        blocks.flat_map(move |(number, block)| {
            work::count(Work::Visited, block.segments.len());
            let bounds = block.mins.iter().zip(&block.maxes).enumerate();
            bounds
                .filter(move |(_, (min, max))| **min <= last && first <= **max)
                .map(move |(offset, _)| (slot(number, offset), &block.segments[offset]))
        })
    }

    /// The first and the last timestamp of each, with its slot.
    pub fn bounds(&self) -> impl Iterator<Item = (Slot, Ts, Ts)> {
        let blocks = self.blocks.iter().enumerate();
        blocks.flat_map(|(number, block)| {
            let bounds = block.mins.iter().zip(&block.maxes).enumerate();
            bounds.map(move |(offset, (min, max))| (slot(number, offset), *min, *max))
        })
    }

    /// The slot of this very segment; the list need not be in time order.
    pub fn find(&self, wanted: &Arc<Segment<V>>) -> Option<Slot> {
        let mut among = self.overlapping(wanted.min(), wanted.max());
        let found = among.find(|(_, segment)| Arc::ptr_eq(segment, wanted));
        found.map(|(at, _)| at)
    }

    /// The rows of segments with a lower watermark than `seq`, in a stretch of slots.
    pub fn rows_older_than(&self, seq: Seq, range: Range<Slot>) -> usize {
        let mut rows = 0;
        let mut at = range.start;
        while at < range.end {
            let (block, offset) = (at / BLOCK, at % BLOCK);
            let inside = &self.blocks[block];
            let end = inside.segments.len().min(range.end - slot(block, 0));
            work::count(Work::Visited, 1);
            if inside.watermarks.1 < seq {
                rows += inside.starts[end] - inside.starts[offset];
            } else if inside.watermarks.0 < seq {
                work::count(Work::Visited, end - offset);
                let older = inside.segments[offset..end]
                    .iter()
                    .filter(|segment| segment.watermark() < seq);
                rows += older.map(|segment| segment.rows()).sum::<usize>();
            }
            at = slot(block + 1, 0);
        }
        rows
    }

    /// Adds a segment at the end.
    pub fn push(&mut self, segment: Arc<Segment<V>>) {
        let is_full = |block: &Arc<Block<V>>| block.segments.len() == BLOCK;
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        if self.blocks.last().is_none_or(is_full) {
            self.blocks.push(Arc::new(Block::new()));
            self.maxes.push(Ts::MIN);
            self.starts.push(self.rows());
        }
        let last = self.blocks.len() - 1;
        let block = Arc::make_mut(&mut self.blocks[last]);
        block.push(segment);
        self.maxes[last] = block.max;
        self.starts[last + 1] = self.starts[last] + block.rows();
    }

    /// Puts other segments in the place of a stretch of slots.
    pub fn replace(&mut self, range: Range<Slot>, with: impl IntoIterator<Item = Arc<Segment<V>>>) {
        let first = range.start / BLOCK;
        // Whole blocks that are to be made anew: those of the range, and a neighbour, so that the
        // blocks do not become ever smaller.
        let end = (range.end.div_ceil(BLOCK).max(first) + 1).min(self.blocks.len());
        let first = first.min(end.saturating_sub(1));
        let slots = (first..).zip(&self.blocks[first..end]);
        let slots = slots.flat_map(|(number, block)| (slot(number, 0)..).zip(&block.segments));
        let (before, rest): (Vec<_>, Vec<_>) = slots.partition(|(at, _)| *at < range.start);
        let after = rest.into_iter().filter(|(at, _)| *at >= range.end);
        let kept = before.into_iter().map(|it| Arc::clone(it.1));
        let kept = kept.chain(with).chain(after.map(|it| Arc::clone(it.1)));
        let kept: Vec<_> = kept.collect();
        work::count(Work::Copied, kept.len() + self.blocks.len());
        let size = kept.len().div_ceil(kept.len().div_ceil(BLOCK).max(1));
        let inside = kept.chunks(size.max(1)).map(|segments| {
            let mut block = Block::new();
            segments.iter().cloned().for_each(|it| block.push(it));
            Arc::new(block)
        });
        self.blocks.splice(first..end, inside);
        self.maxes = self.blocks.iter().map(|block| block.max).collect();
        let ends = self.blocks.iter().scan(0, |rows, block| {
            *rows += block.rows();
            Some(*rows)
        });
        self.starts = [0].into_iter().chain(ends).collect();
    }

    /// Puts others in the place of this very segment, if it is there.
    pub fn swap(&mut self, old: &Arc<Segment<V>>, with: impl IntoIterator<Item = Arc<Segment<V>>>) {
        if let Some(at) = self.find(old) {
            self.replace(at..self.after(at), with);
        }
    }

    /// Takes all segments out whose blocks are this list's alone.
    pub fn into_segments(self) -> impl Iterator<Item = Arc<Segment<V>>> {
        let blocks = self.blocks.into_iter();
        blocks.flat_map(|block| match Arc::try_unwrap(block) {
            Ok(block) => block.segments,
            Err(shared) => shared.segments.clone(),
        })
    }

    pub fn check(&self, name: &str, last: Seq) -> Result<(), Broken> {
        let mut rows = 0;
        for (number, block) in self.blocks.iter().enumerate() {
            let mut expected = Block::new();
            for (offset, segment) in block.segments.iter().enumerate() {
                segment.check(&format!("{name} segment {}", slot(number, offset)), last)?;
                expected.push(Arc::clone(segment));
            }
            let is_same = !block.segments.is_empty()
                && block.segments.len() <= BLOCK
                && (&block.mins, &block.maxes, &block.starts)
                    == (&expected.mins, &expected.maxes, &expected.starts)
                && (block.min, block.max, block.watermarks)
                    == (expected.min, expected.max, expected.watermarks);
            Broken::unless(is_same, || format!("{name}: block {number}"))?;
            Broken::unless(
                self.starts[number] == rows && self.maxes[number] == block.max,
                || format!("{name}: entry of block {number}"),
            )?;
            rows += block.rows();
        }
        Broken::unless(self.rows() == rows, || {
            format!("{name}: sums of its blocks")
        })
    }

    /// Whether each segment begins where the one before it ends, or later.
    pub fn is_in_order(&self) -> bool {
        self.iter()
            .collect::<Vec<_>>()
            .is_sorted_by(|left, right| left.max() <= right.min())
    }
}
