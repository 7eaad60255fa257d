use timelog::{Every, Ts};

use crate::{in_every_state, log};

#[test]
fn windows_hold_the_whole_domain() {
    assert!(Every::ticks(0).is_err());
    let whole = Every::ticks(u64::MAX).unwrap().origin(Ts::MIN);
    assert_eq!(whole.window_of(0), (Ts::MIN, Ts::MAX - 1));
    assert_eq!(whole.window_of(Ts::MAX), (Ts::MAX, Ts::MAX));
    let seven = Every::ticks(7).unwrap().origin(3);
    assert_eq!(
        [2, 3, 9, 10].map(|ts| seven.window_of(ts).0),
        [-4, 3, 3, 10]
    );
    assert_eq!(seven.window_of(Ts::MIN).0, Ts::MIN);
    assert_eq!(seven.window_of(Ts::MAX).1, Ts::MAX);
    let ones = Every::ticks(1).unwrap().origin(Ts::MAX);
    assert_eq!(ones.window_of(Ts::MIN), (Ts::MIN, Ts::MIN));
}

/// Against each row by itself, in all states, under deletes.
#[test]
fn windows_sum_up_their_rows() {
    let mut log = log();
    for round in 0..4 {
        log.extend((0..200).map(|row| (row * 31 % 257 - 40, row as u64 * 7 % 100 + round)))
            .unwrap();
        log.delete(round as Ts * 50..round as Ts * 50 + 9).unwrap();
    }
    in_every_state(&mut log, |log| {
        let snapshot = log.snapshot();
        for ticks in [1, 10, 64, 10_000] {
            let every = Every::ticks(ticks).unwrap().origin(5);
            let mut windows = snapshot.fold(-30..150, every, |value| *value);
            let mut rows = snapshot.range(-30..150).peekable();
            while let Some((ts, value)) = rows.next() {
                let window = windows.next().unwrap();
                assert_eq!((window.first, window.end), every.window_of(ts));
                let (mut count, mut sum, mut last) = (1, u128::from(*value), *value);
                let (mut min, mut max) = (*value, *value);
                while let Some((_, value)) = rows.next_if(|row| row.0 <= window.end) {
                    count += 1;
                    sum += u128::from(*value);
                    (min, max, last) = (min.min(*value), max.max(*value), *value);
                }
                assert_eq!((window.count, window.sum), (count, sum));
                assert_eq!((window.min, window.max, window.last), (min, max, last));
            }
            assert!(
                windows.next().is_none() && windows.next().is_none(),
                "fused"
            );
        }
        assert!(
            snapshot
                .fold(5..5, Every::ticks(1).unwrap(), |value| *value)
                .next()
                .is_none()
        );
    });
}

#[test]
fn sums_do_not_overflow_and_pass_over_nan() {
    let mut log = log();
    log.extend((0..3).map(|ts| (ts, u64::MAX))).unwrap();
    let all = Every::ticks(10).unwrap();
    let snapshot = log.snapshot();
    let window = snapshot.fold(.., all, |value| *value).next().unwrap();
    assert_eq!(window.sum, 3 * u128::from(u64::MAX));
    let numbers = [f64::NAN, 2.0, 1.0];
    let mut at = 0..3;
    let window = snapshot
        .fold(.., all, |_| numbers[at.next().unwrap_or(0)])
        .next()
        .unwrap();
    assert_eq!((window.min, window.max), (1.0, 2.0));
}

/// What the function is called for is what is summed up, also where it gives other numbers each time.
#[test]
fn each_row_of_a_window_is_asked_for_its_number_once() {
    let mut log = crate::log();
    log.extend((0..100).map(|ts| (ts, 0))).unwrap();
    crate::in_every_state(&mut log, |log| {
        let mut calls = 0u64;
        let every = timelog::Every::ticks(7).unwrap();
        let snapshot = log.snapshot();
        let windows = snapshot.fold(.., every, |_| {
            calls += 1;
            calls
        });
        let sums: Vec<_> = windows.map(|it| (it.min, it.last, it.sum)).collect();
        assert_eq!(calls, 100);
        assert_eq!(sums[1], (8, 14, (8..=14).sum()));
    });
}
