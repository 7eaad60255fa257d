//! Deletes, as a skyline: for each timestamp the newest delete that covers it.
//!
//! Older deletes under a newer one can be forgotten, since a row that one of them hides is older
//! than it, and so older than the newer one as well. So the pieces are disjoint, and one comparison
//! tells whether a row is hidden: the piece over its timestamp is newer than the watermark of its
//! segment.
//!
//! Pieces lie in blocks that snapshots share, so a delete copies one block whatever their number.

use std::ops::Range;
use std::sync::Arc;

use crate::search::{Marked, count_while};
use crate::work::{self, Work};
use crate::{Broken, Seq, Ts};

/// The most pieces of a block.
const BLOCK: usize = 256;

/// A stretch of time, both ends inside, and the newest delete that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub first: Ts,
    pub last: Ts,
    pub seq: Seq,
    /// The rows that it hides in segments, as of the last time that they were counted.
    pub hidden: usize,
}

/// Disjoint pieces in time order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skyline {
    /// None is empty.
    blocks: Vec<Arc<Vec<Piece>>>,
    /// The last timestamp of each block.
    lasts: Vec<Ts>,
    /// What the pieces of each block hide in segments.
    sums: Vec<usize>,
    len: usize,
    /// The sum over all pieces, and the number of those that hide any row in a segment.
    hidden: usize,
    hiding: usize,
}

/// A piece by its block and its place there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    block: usize,
    piece: usize,
}

impl Skyline {
    pub const fn new() -> Self {
        Self {
            blocks: Vec::new(),
            lasts: Vec::new(),
            sums: Vec::new(),
            len: 0,
            hidden: 0,
            hiding: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rows in segments that are hidden.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The pieces that hide rows in segments.
    pub fn hiding(&self) -> usize {
        self.hiding
    }

    /// Lays a delete over the others. It must be the newest, and hide rows. `count` counts the rows
    /// that a piece which is cut by it still hides in segments; `None` if it hides none anywhere,
    /// and is to be forgotten.
    pub fn insert(&mut self, piece: Piece, count: impl Fn(&Piece) -> Option<usize>) {
        debug_assert!(
            piece.first <= piece.last,
            "an empty range is refused before"
        );
        let counted = |piece: Piece| count(&piece).map(|hidden| Piece { hidden, ..piece });
        let start = self.seek(At::default(), piece.first);
        let first_block = start.block.min(self.blocks.len().saturating_sub(1));
        // The block of the first piece that the new one does not reach.
        let end_block = self.blocks_before(piece.last).max(first_block);
        let end = (end_block + 1).min(self.blocks.len());
        if end - first_block == 1 && self.insert_into(first_block, piece) {
            return;
        }
        let old: Vec<Piece> = self.blocks[first_block..end]
            .iter()
            .flat_map(|block| block.iter().copied())
            .collect();
        let from = old.partition_point(|old| old.last < piece.first);
        let to = old.partition_point(|old| old.first <= piece.last);
        let covered = &old[from..to];
        let left = covered.first().filter(|old| old.first < piece.first);
        let left = left.and_then(|old| {
            counted(Piece {
                last: piece.first - 1,
                ..*old
            })
        });
        let right = covered.last().filter(|old| old.last > piece.last);
        let right = right.and_then(|old| {
            counted(Piece {
                first: piece.last + 1,
                ..*old
            })
        });
        let laid = left.into_iter().chain([piece]).chain(right);
        let before = old[..from].iter().copied();
        let new = before.chain(laid).chain(old[to..].iter().copied());
        self.replace(first_block..end, new.collect());
    }

    /// Puts a piece into a block that has space, if it meets no other.
    fn insert_into(&mut self, block: usize, piece: Piece) -> bool {
        let pieces = &self.blocks[block];
        let at = pieces.partition_point(|old| old.last < piece.first);
        let is_free = pieces.get(at).is_none_or(|next| piece.last < next.first);
        if !is_free || pieces.len() == BLOCK {
            return false;
        }
        work::count(Work::CopiedIntervals, pieces.len());
        Arc::make_mut(&mut self.blocks[block]).insert(at, piece);
        self.lasts[block] = self.lasts[block].max(piece.last);
        self.sums[block] += piece.hidden;
        self.len += 1;
        self.hidden += piece.hidden;
        self.hiding += usize::from(piece.hidden > 0);
        true
    }

    /// What the pieces that share a timestamp with the range hide in segments. `count` counts it for
    /// a part of a piece: those at the ends may reach beyond.
    pub fn hidden_between(&self, first: Ts, last: Ts, count: impl Fn(&Piece) -> usize) -> usize {
        let mut hidden = 0;
        let start = self.seek(At::default(), first);
        for block in start.block..self.blocks.len() {
            let pieces = &self.blocks[block];
            work::count(Work::Visited, 1);
            if block > start.block && self.lasts[block] <= last {
                hidden += self.sums[block];
                continue;
            }
            let from = if block == start.block { start.piece } else { 0 };
            for piece in pieces[from..]
                .iter()
                .take_while(|piece| piece.first <= last)
            {
                work::count(Work::Visited, 1);
                hidden += if first <= piece.first && piece.last <= last {
                    piece.hidden
                } else {
                    count(&Piece {
                        first: piece.first.max(first),
                        last: piece.last.min(last),
                        ..*piece
                    })
                };
            }
            if self.lasts[block] >= last {
                break;
            }
        }
        hidden
    }

    /// Lets `count` count again what pieces hide, or forget them (`None`), from the first one that
    /// ends at or after `from`, for one block; gives where to go on, and how many pieces were
    /// visited.
    pub fn recount(
        &mut self,
        from: Ts,
        last: Ts,
        mut count: impl FnMut(&Piece) -> Option<usize>,
    ) -> (Option<Ts>, usize) {
        let block = self.blocks_before(from);
        let Some(pieces) = self.blocks.get(block) else {
            return (None, 0);
        };
        let mut visited = 0;
        let mut is_changed = false;
        let mut kept = Vec::with_capacity(pieces.len());
        for piece in pieces.iter() {
            if piece.last < from || piece.first > last {
                kept.push(*piece);
                continue;
            }
            visited += 1;
            let hidden = count(piece);
            is_changed |= hidden != Some(piece.hidden);
            kept.extend(hidden.map(|hidden| Piece { hidden, ..*piece }));
        }
        work::count(Work::Visited, visited);
        let end = self.lasts[block];
        if is_changed {
            let mut start = block;
            // Blocks must not become ever smaller.
            if let Some(before) = block.checked_sub(1).map(|before| &self.blocks[before])
                && before.len() + kept.len() <= BLOCK / 2
            {
                kept.splice(..0, before.iter().copied());
                start = block - 1;
            }
            self.replace(start..block + 1, kept);
        }
        let next = end.checked_add(1).filter(|next| *next <= last);
        (next, visited)
    }

    /// Puts pieces in the place of whole blocks.
    fn replace(&mut self, blocks: Range<usize>, pieces: Vec<Piece>) {
        let sums = |blocks: &[Arc<Vec<Piece>>]| {
            let pieces = blocks.iter().flat_map(|block| block.iter());
            pieces.fold((0, 0, 0), |(len, hidden, hiding), piece| {
                let is_hiding = usize::from(piece.hidden > 0);
                (len + 1, hidden + piece.hidden, hiding + is_hiding)
            })
        };
        let old = sums(&self.blocks[blocks.clone()]);
        let count = pieces.len().div_ceil(BLOCK);
        let size = pieces.len().div_ceil(count.max(1)).max(1);
        let new: Vec<_> = pieces
            .chunks(size)
            .map(|block| Arc::new(block.to_vec()))
            .collect();
        let sum = sums(&new);
        work::count(Work::CopiedIntervals, old.0 + sum.0 + self.blocks.len());
        self.len = self.len - old.0 + sum.0;
        self.hidden = self.hidden - old.1 + sum.1;
        self.hiding = self.hiding - old.2 + sum.2;
        let lasts: Vec<_> = new
            .iter()
            .map(|block| block[block.len() - 1].last)
            .collect();
        self.lasts.splice(blocks.clone(), lasts);
        let block_sums = new.iter().map(|block| sums(std::slice::from_ref(block)).1);
        self.sums.splice(blocks.clone(), block_sums);
        self.blocks.splice(blocks, new);
    }

    /// How many blocks end before `ts`.
    fn blocks_before(&self, ts: Ts) -> usize {
        count_while(&self.lasts, |last| last < ts)
    }

    /// The first piece that ends at or after `ts`, sought from one on that is not after it, by
    /// doubling steps and then binary search: most are near.
    fn seek(&self, mut from: At, ts: Ts) -> At {
        if self.lasts.get(from.block).is_some_and(|last| *last < ts) {
            let rest = &self.lasts[from.block..];
            from = At {
                block: from.block + count_while(rest, |last| last < ts),
                piece: 0,
            };
        }
        if let Some(block) = self.blocks.get(from.block) {
            from.piece += ended(&block[from.piece..], ts);
        }
        from
    }

    /// The pieces from one on.
    fn from(&self, at: At) -> impl Iterator<Item = &Piece> {
        let (block, rest) = match self.blocks.get(at.block) {
            Some(block) => (&block[at.piece..], &self.blocks[at.block + 1..]),
            None => (&[][..], &[][..]),
        };
        block
            .iter()
            .chain(rest.iter().flat_map(|block| block.iter()))
    }

    /// The pieces that begin at or before `ts`, the last one first.
    fn back_from(&self, ts: Ts) -> impl Iterator<Item = &Piece> {
        let at = self.seek(At::default(), ts);
        let (rest, block) = match self.blocks.get(at.block) {
            Some(block) => {
                let begins = block[at.piece].first <= ts;
                (
                    &self.blocks[..at.block],
                    &block[..at.piece + usize::from(begins)],
                )
            }
            None => (&self.blocks[..], &[][..]),
        };
        let rest = rest.iter().rev().flat_map(|block| block.iter().rev());
        block.iter().rev().chain(rest)
    }

    /// The pieces that share a timestamp with the range, both ends inside.
    pub fn between(&self, first: Ts, last: Ts) -> impl Iterator<Item = &Piece> {
        let at = self.seek(At::default(), first);
        self.from(at).take_while(move |piece| {
            work::count(Work::Visited, 1);
            piece.first <= last
        })
    }

    /// The piece that hides rows of `watermark` at `ts`.
    pub fn hiding_at(&self, ts: Ts, watermark: Seq) -> Option<&Piece> {
        self.between(ts, ts)
            .next()
            .filter(|piece| piece.seq > watermark)
    }

    /// The first visible ones of some rows of a page, not empty unless all are hidden, and the row
    /// where to go on.
    ///
    /// `passed` is the first piece that does not end before these rows, or one before it; it is
    /// brought up to date, so that a read that goes forward does not search them all each time.
    pub fn first_visible(
        &self,
        page: Marked<'_>,
        rows: Range<usize>,
        watermark: Seq,
        passed: &mut At,
    ) -> (Range<usize>, usize) {
        let end = rows.end;
        if self.is_empty() {
            return (rows, end);
        }
        let (first, last) = (page.ts[rows.start], page.ts[end - 1]);
        *passed = self.seek(*passed, first);
        let (mut start, mut at) = (rows.start, *passed);
        while start < end
            && let Some(piece) = self.get(at).filter(|piece| piece.first <= last)
        {
            if piece.seq > watermark {
                let (visible, hidden) =
                    page.ends_of(start..end, |ts| ts < piece.first, |ts| ts <= piece.last);
                if start < visible {
                    if hidden < end {
                        *passed = self.after(at);
                    }
                    return (start..visible, hidden);
                }
                start = hidden;
            }
            at = self.after(at);
        }
        (start..end, end)
    }

    fn get(&self, at: At) -> Option<&Piece> {
        self.blocks.get(at.block)?.get(at.piece)
    }

    /// The place after one that has a piece.
    fn after(&self, at: At) -> At {
        let piece = at.piece + 1;
        if piece < self.blocks[at.block].len() {
            At { piece, ..at }
        } else {
            At {
                block: at.block + 1,
                piece: 0,
            }
        }
    }

    /// The last visible ones of some rows of a page, not empty unless all are hidden.
    pub fn last_visible(
        &self,
        page: Marked<'_>,
        rows: Range<usize>,
        watermark: Seq,
    ) -> Range<usize> {
        if self.is_empty() {
            return rows;
        }
        let (first, last) = (page.ts[rows.start], page.ts[rows.end - 1]);
        let mut end = rows.end;
        let reached = self
            .back_from(last)
            .take_while(|piece| piece.last >= first)
            .filter(|piece| piece.seq > watermark);
        for piece in reached {
            let Some(previous) = page.ts[rows.start..end].last() else {
                break;
            };
            if *previous > piece.last {
                return page.start_of(rows.start..end, |ts| ts > piece.last)..end;
            }
            end = page.start_of(rows.start..end, |ts| ts >= piece.first);
        }
        rows.start..end
    }

    pub fn check(&self, last: Seq) -> Result<(), Broken> {
        let pieces = || self.from(At::default());
        Broken::unless(
            pieces().all(|piece| piece.first <= piece.last && piece.seq <= last),
            || "delete interval reversed or from the future".into(),
        )?;
        Broken::unless(
            pieces().is_sorted_by(|left, right| left.last < right.first),
            || "delete intervals overlap".into(),
        )?;
        let lasts = self
            .blocks
            .iter()
            .map(|block| block.last().map(|piece| piece.last));
        Broken::unless(lasts.eq(self.lasts.iter().copied().map(Some)), || {
            "ends of blocks of delete intervals".into()
        })?;
        let block_sum =
            |block: &Arc<Vec<Piece>>| block.iter().map(|piece| piece.hidden).sum::<usize>();
        let block_sums = self.blocks.iter().map(block_sum);
        Broken::unless(block_sums.eq(self.sums.iter().copied()), || {
            "sums of blocks of delete intervals".into()
        })?;
        let hidden = pieces().map(|piece| piece.hidden).sum::<usize>();
        let hiding = pieces().filter(|piece| piece.hidden > 0).count();
        let sums = (pieces().count(), hidden, hiding);
        Broken::unless(sums == (self.len, self.hidden, self.hiding), || {
            "sums of delete intervals".into()
        })
    }
}

/// How many pieces end before `ts`, by doubling steps and then binary search.
fn ended(pieces: &[Piece], ts: Ts) -> usize {
    let mut step = 1;
    while pieces.get(step - 1).is_some_and(|piece| piece.last < ts) {
        step *= 2;
    }
    let known = step / 2;
    known + pieces[known..pieces.len().min(step)].partition_point(|piece| piece.last < ts)
}

#[cfg(test)]
mod tests;
