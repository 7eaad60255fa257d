use timelog::{Every, Ts};

use crate::log;

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
    let mut log = log();
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
