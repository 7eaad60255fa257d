//! Skylines beside lists that are kept the slow way.

use super::*;
use crate::search::MARK_ROWS;

fn piece(first: Ts, last: Ts, seq: u64) -> Piece {
    Piece {
        first,
        last,
        seq: Seq(seq),
        hidden: 0,
    }
}

fn insert(skyline: &mut Skyline, piece: Piece) {
    skyline.insert(piece, |_| Some(0));
}

fn pieces(skyline: &Skyline) -> Vec<Piece> {
    skyline.from(At::default()).copied().collect()
}

/// A read that goes forward passes pieces by for good, but none that a later, older part of the
/// log may still lie under.
#[test]
fn pieces_are_passed_when_they_end() {
    let mut skyline = Skyline::new();
    for number in 0..40 {
        insert(
            &mut skyline,
            piece(10 * number, 10 * number + 4, number as u64 + 1),
        );
    }
    let ts: Vec<Ts> = (0..400).collect();
    let marks: Vec<Ts> = ts.iter().copied().step_by(MARK_ROWS).collect();
    let page = Marked {
        ts: &ts,
        marks: &marks,
    };
    let mut passed = At::default();
    let (mut row, mut visible) = (0, Vec::new());
    while row < ts.len() {
        let (run, next) = skyline.first_visible(page, row..ts.len(), Seq(0), &mut passed);
        visible.extend_from_slice(&ts[run]);
        assert!(row < next);
        row = next;
        let ended = |piece: &&Piece| ts.get(row).is_none_or(|ts| piece.last < *ts);
        assert!(passed.piece <= pieces(&skyline).iter().filter(ended).count());
    }
    let expected: Vec<Ts> = ts.iter().copied().filter(|ts| ts % 10 > 4).collect();
    assert_eq!(visible, expected);

    // The newer part is not hidden, the older one is.
    let mut passed = At::default();
    let mut first_visible = |rows, seq| {
        let (visible, _) = skyline.first_visible(page, rows, Seq(seq), &mut passed);
        visible
    };
    assert_eq!(first_visible(300..302, 31), 300..302);
    assert!(first_visible(302..305, 30).is_empty());
    assert_eq!(passed.piece, 30);
    let pieces = pieces(&skyline);
    for number in 0..=41 {
        let expected = pieces.iter().filter(|piece| piece.last < 10 * number);
        assert_eq!(ended(&pieces, 10 * number), expected.count());
    }
}

/// Over many blocks, beside a list that is kept the slow way, with a snapshot held before each.
#[test]
fn blocks_agree_with_a_list() {
    let mut skyline = Skyline::new();
    let mut list: Vec<Piece> = Vec::new();
    let mut random = 7u64;
    for seq in 1..1_500 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let first = (random >> 40) as Ts % 20_000;
        let length = if seq % 97 == 0 {
            3_000
        } else {
            (random >> 20) as Ts % 4
        };
        let new = piece(first, first + length, seq);
        let held = skyline.clone();
        let before = pieces(&held);
        insert(&mut skyline, new);
        assert!(pieces(&held) == before);
        let mut next = Vec::new();
        for old in &list {
            if old.last < new.first || old.first > new.last {
                next.push(*old);
                continue;
            }
            let old = &Piece { hidden: 0, ..*old };
            let left = Piece {
                last: old.last.min(new.first - 1),
                ..*old
            };
            let right = Piece {
                first: old.first.max(new.last + 1),
                ..*old
            };
            next.extend(
                [left, right]
                    .into_iter()
                    .filter(|piece| piece.first <= piece.last),
            );
        }
        next.push(new);
        next.sort_by_key(|piece| piece.first);
        list = next;
        if seq % 50 == 0 {
            skyline.check(Seq(seq)).unwrap();
            assert!(pieces(&skyline) == list, "after {seq}");
            for from in [0, first, first + 7] {
                let expected = list
                    .iter()
                    .filter(|piece| piece.last >= from && piece.first <= from + 90);
                assert!(skyline.between(from, from + 90).eq(expected));
                let mut expected: Vec<_> =
                    list.iter().filter(|piece| piece.first <= from).collect();
                expected.reverse();
                assert!(skyline.back_from(from).eq(expected));
            }
            let mut next = Some(first);
            while let Some(from) = next {
                (next, _) = skyline.recount(from, first + 200, |piece| {
                    (piece.first % 3 != 0).then_some(5)
                });
            }
            for piece in &mut list {
                if piece.last >= first && piece.first <= first + 200 {
                    piece.hidden = 5;
                }
            }
            list.retain(|piece| {
                piece.hidden == 0
                    || piece.first % 3 != 0
                    || piece.last < first
                    || piece.first > first + 200
            });
        }
    }
    assert!(skyline.blocks.len() > 3);
}

/// With a snapshot held each time, and so with everything that is shared copied.
#[test]
fn a_delete_copies_one_block() {
    for pieces in [1_000, 128_000] {
        let mut skyline = Skyline::new();
        for number in 0..pieces {
            insert(
                &mut skyline,
                piece(4 * number, 4 * number + 1, number as u64 + 1),
            );
        }
        let held = skyline.clone();
        let (_, copied) = work::of(Work::CopiedIntervals, || {
            insert(&mut skyline, piece(1_002, 1_002, pieces as u64 + 1));
        });
        drop(held);
        assert!(
            copied < 4 * BLOCK + pieces as usize / (BLOCK / 2),
            "{copied} of {pieces}"
        );
    }
}
