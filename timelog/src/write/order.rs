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
/// What counts for a row that is late by more than is for here.
const FAR_ROW_MOVES: usize = 32;

/// Moves rows that are late by a few back to their places, and tells whether all rows are in order
/// then.
///
/// Only neighbours in strictly wrong order change places, so equals stay in the order of arrival,
/// and rows that are left where they are do no harm. Drops and clones nothing.
pub(crate) fn order_near<V>(rows: &mut [(Ts, V)]) -> bool {
    let mut is_sorted = true;
    let mut moves = 0;
    for index in 1..rows.len() {
        let ts = rows[index].0;
        if rows[index - 1].0 <= ts {
            continue;
        }
        if index > NEAR_ROWS && rows[index - NEAR_ROWS].0 > ts {
            is_sorted = false;
            moves += FAR_ROW_MOVES;
        } else {
            let mut place = index;
            while place > 0 && belongs_before(ts, rows[place - 1].0) {
                rows.swap(place - 1, place);
                place -= 1;
            }
            moves += index - place;
        }
        if moves > MOVES + index * MOVES_PER_ROW {
            return false;
        }
    }
    is_sorted
}

#[inline]
fn belongs_before(ts: Ts, other: Ts) -> bool {
    ts < other
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with their numbers, late by up to so many.
    fn rows(late: impl Fn(Ts) -> Ts) -> Vec<(Ts, usize)> {
        (0..)
            .zip(0..1_000)
            .map(|(ts, row)| (ts - late(ts), row))
            .collect()
    }

    #[test]
    fn slightly_late_rows_find_their_places() {
        for width in [1, 2, 7, 40, 60] {
            let mut batch = rows(|ts| if ts % 5 == 0 { ts * 7919 % width } else { 0 });
            let mut expected = batch.clone();
            expected.sort_by_key(|row| row.0);
            assert!(order_near(&mut batch), "late by {width}");
            assert_eq!(batch, expected);
        }
        assert!(order_near::<()>(&mut []));
    }

    #[test]
    fn equals_keep_their_order() {
        let mut batch: Vec<_> = (0..)
            .zip([5, 5, 3, 5, 3, 4, 3])
            .map(|(row, ts)| (ts, row))
            .collect();
        assert!(order_near(&mut batch));
        assert_eq!(
            batch,
            [(3, 2), (3, 4), (3, 6), (4, 5), (5, 0), (5, 1), (5, 3)]
        );
    }

    /// Rows from far back stay where they are, the others are put in order around them; of any two
    /// equals the first stays first.
    #[test]
    fn rows_from_far_back_are_left_alone() {
        let mut batch = rows(|ts| if ts % 100 == 99 { 90 } else { ts * 7919 % 5 });
        assert!(!order_near(&mut batch));
        for (place, row) in batch.iter().enumerate() {
            assert!(
                batch[..place]
                    .iter()
                    .all(|other| other.0 != row.0 || other.1 < row.1)
            );
        }
        let mut batch = rows(|ts| ts * 7919 % 1_000);
        assert!(!order_near(&mut batch));
        let mut numbers: Vec<usize> = batch.iter().map(|row| row.1).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..1_000));
    }

    /// Rows from far ahead would be passed by each later one.
    #[test]
    fn a_batch_in_no_order_is_given_up() {
        let ahead = (0..60).map(|row| (1_000_000 + row, 0));
        let mut batch: Vec<(Ts, usize)> = ahead.chain((0..10_000).map(|ts| (ts, 1))).collect();
        let mut expected = batch.clone();
        assert!(!order_near(&mut batch));
        batch.sort_by_key(|row| row.0);
        expected.sort_by_key(|row| row.0);
        assert_eq!(batch, expected);
    }
}
