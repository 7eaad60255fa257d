//! Deletes, as a skyline: for each timestamp the newest delete that covers it.
//!
//! Older deletes under a newer one can be forgotten, since a row that one of them hides is older
//! than it, and so older than the newer one as well. So the pieces are disjoint, and one comparison
//! tells whether a row is hidden: the piece over its timestamp is newer than the watermark of its
//! segment.

use std::ops::Range;

use crate::search::Marked;
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

    /// The first visible ones of some rows of a page, not empty unless all are hidden, and the row
    /// where to go on.
    ///
    /// `passed` is how many pieces end before these rows, or fewer; it is brought up to date, so
    /// that a read that goes forward does not search them all each time.
    pub fn first_visible(
        &self,
        page: Marked<'_>,
        rows: Range<usize>,
        watermark: Seq,
        passed: &mut usize,
    ) -> (Range<usize>, usize) {
        let end = rows.end;
        if self.pieces.is_empty() {
            return (rows, end);
        }
        let (first, last) = (page.ts[rows.start], page.ts[end - 1]);
        *passed += ended(&self.pieces[*passed..], first);
        let mut start = rows.start;
        let reached = self.pieces[*passed..]
            .iter()
            .take_while(|piece| piece.first <= last)
            .filter(|piece| piece.seq > watermark);
        for piece in reached {
            let Some(next) = page.ts[..end].get(start) else {
                break;
            };
            // The second search does not wait for the first: both meet rows that are not in the
            // cache.
            let visible = page.end_of(start..end, |ts| ts < piece.first);
            let hidden = page.end_of(start..end, |ts| ts <= piece.last);
            if *next < piece.first {
                return (start..visible, hidden);
            }
            start = hidden;
        }
        (start..end, end)
    }

    /// The last visible ones of some rows of a page, not empty unless all are hidden.
    pub fn last_visible(
        &self,
        page: Marked<'_>,
        rows: Range<usize>,
        watermark: Seq,
    ) -> Range<usize> {
        if self.pieces.is_empty() {
            return rows;
        }
        let (first, last) = (page.ts[rows.start], page.ts[rows.end - 1]);
        let mut end = rows.end;
        let reached = self.pieces.partition_point(|piece| piece.first <= last);
        let reached = self.pieces[..reached]
            .iter()
            .rev()
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
mod tests {
    use super::*;
    use crate::search::MARK_ROWS;

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
        let page = Marked {
            ts: &ts,
            marks: &[],
        };
        let first_visible = |rows, seq| skyline.first_visible(page, rows, Seq(seq), &mut 0);
        let last_visible = |rows, seq| skyline.last_visible(page, rows, Seq(seq));
        assert_eq!(first_visible(0..8, 1), (2..5, 7));
        assert_eq!(first_visible(7..8, 1), (7..8, 8));
        assert_eq!(last_visible(0..8, 1), 7..8);
        assert_eq!(last_visible(0..7, 1), 2..5);
        assert_eq!(last_visible(3..7, 1), 3..5);
        assert_eq!(first_visible(0..8, 6), (0..8, 8));
        assert!(first_visible(0..2, 0).0.is_empty());
        assert!(last_visible(0..2, 0).is_empty());
    }

    /// A read that goes forward passes pieces by for good, but none that a later, older part of the
    /// log may still lie under.
    #[test]
    fn pieces_are_passed_when_they_end() {
        let mut skyline = Skyline::new();
        for number in 0..40 {
            skyline.insert(piece(10 * number, 10 * number + 4, number as u64 + 1));
        }
        let ts: Vec<Ts> = (0..400).collect();
        let marks: Vec<Ts> = ts.iter().copied().step_by(MARK_ROWS).collect();
        let page = Marked {
            ts: &ts,
            marks: &marks,
        };
        let mut passed = 0;
        let (mut row, mut visible) = (0, Vec::new());
        while row < ts.len() {
            let (run, next) = skyline.first_visible(page, row..ts.len(), Seq(0), &mut passed);
            visible.extend_from_slice(&ts[run]);
            assert!(row < next);
            row = next;
            let ended = |piece: &&Piece| ts.get(row - 1).is_some_and(|ts| piece.last < *ts);
            assert!(passed <= skyline.pieces.iter().filter(ended).count());
        }
        let expected: Vec<Ts> = ts.iter().copied().filter(|ts| ts % 10 > 4).collect();
        assert_eq!(visible, expected);

        // The newer part is not hidden, the older one is.
        let mut passed = 0;
        let mut first_visible = |rows, seq| {
            let (visible, _) = skyline.first_visible(page, rows, Seq(seq), &mut passed);
            visible
        };
        assert_eq!(first_visible(300..302, 31), 300..302);
        assert!(first_visible(302..305, 30).is_empty());
        assert_eq!(passed, 30);
        for number in 0..=41 {
            let expected = skyline
                .pieces
                .iter()
                .filter(|piece| piece.last < 10 * number);
            assert_eq!(ended(&skyline.pieces, 10 * number), expected.count());
        }
    }
}
