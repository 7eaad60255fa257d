//! Skylines beside lists that are kept the slow way.

use fastrand::Rng;

use super::*;

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

/// Over many blocks, beside a list that is kept the slow way, with a snapshot held before each.
#[test]
fn blocks_agree_with_a_list() {
    let mut skyline = Skyline::new();
    let mut list: Vec<Piece> = Vec::new();
    let mut random = Rng::with_seed(7);
    for seq in 1..1_500 {
        let first = random.i64(0..20_000);
        let length = if seq % 97 == 0 {
            3_000
        } else {
            random.i64(0..4)
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
