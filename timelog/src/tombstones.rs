//! Deletes, as a skyline: for each timestamp the newest delete that covers it.
//!
//! Older deletes under a newer one can be forgotten, since a row that one of them hides is older
//! than it, and so older than the newer one as well. So the pieces are disjoint, and one comparison
//! tells whether a row is hidden: the piece over its timestamp is newer than the watermark of its
//! segment.

use std::ops::Range;

use crate::{Broken, Seq, Ts};

/// A stretch of time, both ends inside, and the newest delete that covers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub first: Ts,
    pub last: Ts,
    pub seq: Seq,
}

/// Disjoint pieces in time order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skyline {
    pieces: Vec<Piece>,
}

impl Skyline {
    pub const fn new() -> Self {
        Self { pieces: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Lays a delete over the others. It must be the newest.
    pub fn insert(&mut self, piece: Piece) {
        debug_assert!(
            piece.first <= piece.last,
            "an empty range is refused before"
        );
        debug_assert!(
            self.pieces.iter().all(|old| old.seq < piece.seq),
            "deletes come in order"
        );
        let start = self.pieces.partition_point(|old| old.last < piece.first);
        let end = self.pieces.partition_point(|old| old.first <= piece.last);
        let covered = &self.pieces[start..end];
        let left = covered.first().filter(|old| old.first < piece.first);
        let left = left.map(|old| Piece {
            last: piece.first - 1,
            ..*old
        });
        let right = covered.last().filter(|old| old.last > piece.last);
        let right = right.map(|old| Piece {
            first: piece.last + 1,
            ..*old
        });
        self.pieces
            .splice(start..end, left.into_iter().chain([piece]).chain(right));
    }

    pub fn retain(&mut self, keep: impl FnMut(&Piece) -> bool) {
        self.pieces.retain(keep);
    }

    /// The pieces that share a timestamp with the range, both ends inside.
    pub fn between(&self, first: Ts, last: Ts) -> &[Piece] {
        let start = self.pieces.partition_point(|piece| piece.last < first);
        let count = self.pieces[start..].partition_point(|piece| piece.first <= last);
        &self.pieces[start..start + count]
    }

    /// The piece that hides rows of `watermark` at `ts`.
    pub fn hiding(&self, ts: Ts, watermark: Seq) -> Option<&Piece> {
        self.between(ts, ts)
            .first()
            .filter(|piece| piece.seq > watermark)
    }

    /// The first run of visible rows in sorted timestamps, not empty unless all are hidden.
    pub fn first_visible(&self, ts: &[Ts], watermark: Seq) -> Range<usize> {
        if self.pieces.is_empty() {
            return 0..ts.len();
        }
        let mut start = 0;
        for piece in self
            .between(ts[0], ts[ts.len() - 1])
            .iter()
            .filter(|piece| piece.seq > watermark)
        {
            let Some(next) = ts.get(start) else { break };
            if *next < piece.first {
                return start..start + ts[start..].partition_point(|ts| *ts < piece.first);
            }
            start += ts[start..].partition_point(|ts| *ts <= piece.last);
        }
        start..ts.len()
    }

    /// The last run of visible rows in sorted timestamps, not empty unless all are hidden.
    pub fn last_visible(&self, ts: &[Ts], watermark: Seq) -> Range<usize> {
        if self.pieces.is_empty() {
            return 0..ts.len();
        }
        let mut end = ts.len();
        for piece in self
            .between(ts[0], ts[ts.len() - 1])
            .iter()
            .rev()
            .filter(|piece| piece.seq > watermark)
        {
            let Some(previous) = ts[..end].last() else {
                break;
            };
            if *previous > piece.last {
                return ts[..end].partition_point(|ts| *ts <= piece.last)..end;
            }
            end = ts[..end].partition_point(|ts| *ts < piece.first);
        }
        0..end
    }

    pub fn check(&self, last: Seq) -> Result<(), Broken> {
        Broken::unless(
            self.pieces
                .iter()
                .all(|piece| piece.first <= piece.last && piece.seq <= last),
            || "delete interval reversed or from the future".into(),
        )?;
        Broken::unless(
            self.pieces
                .is_sorted_by(|left, right| left.last < right.first),
            || "delete intervals overlap".into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first: Ts, last: Ts, seq: u64) -> Piece {
        Piece {
            first,
            last,
            seq: Seq(seq),
        }
    }

    #[test]
    fn newer_deletes_cover_older_ones() {
        let mut skyline = Skyline::new();
        skyline.insert(piece(0, 10, 1));
        skyline.insert(piece(20, 30, 2));
        skyline.insert(piece(5, 24, 3));
        assert_eq!(
            skyline.pieces,
            [piece(0, 4, 1), piece(5, 24, 3), piece(25, 30, 2)]
        );
        skyline.insert(piece(7, 7, 4));
        assert_eq!(skyline.len(), 5);
        skyline.insert(piece(Ts::MIN, Ts::MAX, 5));
        assert_eq!(skyline.pieces, [piece(Ts::MIN, Ts::MAX, 5)]);
        skyline.check(Seq(5)).unwrap();
        assert!(skyline.check(Seq(4)).is_err());
    }

    #[test]
    fn visible_runs_stop_at_newer_pieces_alone() {
        let mut skyline = Skyline::new();
        skyline.insert(piece(4, 4, 1));
        skyline.insert(piece(0, 2, 5));
        skyline.insert(piece(6, 9, 6));
        let ts = [1, 2, 3, 4, 5, 6, 9, 10];
        assert_eq!(skyline.first_visible(&ts, Seq(1)), 2..5);
        assert_eq!(skyline.last_visible(&ts, Seq(1)), 7..8);
        assert_eq!(skyline.last_visible(&ts[..7], Seq(1)), 2..5);
        assert_eq!(skyline.first_visible(&ts, Seq(6)), 0..8);
        assert!(skyline.first_visible(&ts[..2], Seq(0)).is_empty());
        assert!(skyline.last_visible(&ts[..2], Seq(0)).is_empty());
    }
}
