//! A batch is put in order as far as that is cheap, before the memtable takes it.
//!
//! A slightly late row costs one short move here. In a lane it costs two, as there are two columns;
//! and at the edge of a chunk, where the rows that it precedes are frozen, it takes another lane,
//! so that the flush has to merge and copy the whole chunk.

use super::lane::NEAR_ROWS;
use crate::Ts;

/// How many moves a batch may cost, and how many more for each row. Past that it is in no order,
/// and lanes and late runs are cheaper.
const MOVES: usize = 1_024;
const MOVES_PER_ROW: usize = 4;
/// Rows that are looked at together. Where more than a tenth of a block is late, the late rows of the
/// next one are marked without a branch before any is moved: whether a row is late cannot be
/// predicted then.
const BLOCK: usize = 256;
const MARKED_SHARE: usize = 10;
/// What counts for a row that is late by more than is for here.
const FAR_ROW_MOVES: usize = 32;

/// Moves rows that are late by a few back to their places, and tells whether all rows are in order
/// then.
///
/// Only neighbours in strictly wrong order change places, so equals stay in the order of arrival,
/// and rows that are left where they are do no harm. Drops and clones nothing.
pub(crate) fn order_near<V>(rows: &mut [(Ts, V)]) -> bool {
    let mut order = Order {
        is_sorted: true,
        moves: 0,
    };
    let mut latest = rows.first().map_or(Ts::MIN, |row| row.0);
    let mut is_marked = false;
    let mut marks = [0u16; BLOCK];
    for start in (0..rows.len()).step_by(BLOCK) {
        let end = rows.len().min(start + BLOCK);
        let mut late = 0;
        if is_marked {
            for (offset, row) in rows[start..end].iter().enumerate() {
                marks[late] = offset as u16;
                late += usize::from(row.0 < latest);
                latest = latest.max(row.0);
            }
            for mark in &marks[..late] {
                order.place(rows, start + usize::from(*mark));
            }
        } else {
            for index in start.max(1)..end {
                latest = latest.max(rows[index].0);
                if rows[index].0 < rows[index - 1].0 {
                    order.place(rows, index);
                    late += 1;
                }
            }
        }
        if order.moves > MOVES + end * MOVES_PER_ROW {
            return false;
        }
        is_marked = late * MARKED_SHARE > BLOCK;
    }
    order.is_sorted
}

struct Order {
    is_sorted: bool,
    moves: usize,
}

impl Order {
    /// Moves a row back to its place, if that is near.
    #[inline]
    fn place<V>(&mut self, rows: &mut [(Ts, V)], index: usize) {
        let ts = rows[index].0;
        if index > NEAR_ROWS && rows[index - NEAR_ROWS].0 > ts {
            self.is_sorted = false;
            self.moves += FAR_ROW_MOVES;
            return;
        }
        let mut place = index;
        while place > 0 && belongs_before(ts, rows[place - 1].0) {
            rows.swap(place - 1, place);
            place -= 1;
        }
        self.moves += index - place;
    }
}

#[inline]
fn belongs_before(ts: Ts, other: Ts) -> bool {
    ts < other
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether rows with these timestamps are in order then. What is not is left to a stable sort, which
    /// must find equals in the order of their arrival.
    fn is_ordered(rows: Ts, ts: impl Fn(Ts) -> Ts) -> bool {
        let mut batch: Vec<(Ts, Ts)> = (0..rows).map(|row| (ts(row), row)).collect();
        let mut expected = batch.clone();
        expected.sort_by_key(|row| row.0);
        let is_sorted = order_near(&mut batch);
        assert_eq!(is_sorted, batch.is_sorted_by_key(|row| row.0));
        batch.sort_by_key(|row| row.0);
        assert_eq!(batch, expected);
        is_sorted
    }

    #[test]
    fn slightly_late_rows_find_their_places() {
        let late = |row: Ts, every, width| row - Ts::from(row % every == 0) * (row * 7919 % width);
        for width in [1, 2, 7, 40, 60] {
            assert!(is_ordered(1_000, |row| late(row, 5, width)), "by {width}");
        }
        // Marked and not: the share of late rows rises and falls from block to block.
        let every = |row: Ts| [2, 3, 5, 50][row as usize / (2 * BLOCK) % 4];
        let rows = 20 * BLOCK as Ts;
        assert!(is_ordered(rows, |row| late(row, every(row), 10)));
        assert!(order_near::<()>(&mut []));
    }

    #[test]
    fn rows_from_far_are_left_alone() {
        let late = |row: Ts| if row % 100 == 99 { 90 } else { row * 7919 % 5 };
        assert!(!is_ordered(1_000, |row| row - late(row)));
        assert!(!is_ordered(1_000, |row| row - row * 7919 % 1_000));
        // From far ahead: each later one would pass them.
        let ahead = |row| if row < 60 { 1_000_000 } else { 0 };
        assert!(!is_ordered(10_000, |row| row + ahead(row)));
    }
}
