use std::time::Duration;

use super::*;

fn at(base: Instant, ms: u64) -> Instant {
    base + Duration::from_millis(ms)
}

/// A model with these timers, armed at `base`.
fn armed(base: Instant, timers: &[(u64, u64)]) -> DeadlineModel {
    let mut model = DeadlineModel::default();
    for &(key, ms) in timers {
        model.arm(Key(key), at(base, ms), base);
    }
    model
}

fn place(model: &mut DeadlineModel, key: u64, now: Instant) -> Place {
    match model.fire(Key(key), now) {
        Firing::Expected { place, .. } => place,
        other => panic!("{key}: {other:?}"),
    }
}

#[test]
fn a_lane_is_in_order_of_deadline_then_of_arming() {
    let base = Instant::now();
    let mut model = armed(base, &[(1, 20), (2, 10), (3, 20), (4, 20)]);
    for key in 1..=4 {
        model.join_lane(Key(key), Lane(0), base);
    }
    let now = at(base, 30);
    assert_eq!(place(&mut model, 2, now), Place::First);
    assert_eq!(place(&mut model, 3, now), Place::Behind(Key(1)));
    assert_eq!(place(&mut model, 1, now), Place::First);
    assert_eq!(place(&mut model, 4, now), Place::First);
}

/// What is armed, or moved, when another timer is due already cannot be overtaken by it.
#[test]
fn latecomers_are_not_overtaken() {
    let base = Instant::now();
    let mut model = armed(base, &[(1, 10), (2, 5), (3, 6)]);
    model.join_lane(Key(1), Lane(0), base);
    model.join_lane(Key(2), Lane(0), at(base, 11));
    model.join_lane(Key(3), Lane(0), base);
    assert!(model.rearm(Key(3), at(base, 7), base));
    assert_eq!(place(&mut model, 1, at(base, 12)), Place::First);
    assert_eq!(place(&mut model, 3, at(base, 12)), Place::NoLane);
}

/// Nor does it overtake: it may have gone off without being in the queue.
#[test]
fn latecomers_do_not_overtake() {
    let base = Instant::now();
    let mut model = armed(base, &[(1, 10), (2, 10)]);
    model.join_lane(Key(1), Lane(0), base);
    model.join_lane(Key(2), Lane(0), at(base, 10));
    assert_eq!(place(&mut model, 2, at(base, 11)), Place::NoLane);
    assert_eq!(place(&mut model, 1, at(base, 11)), Place::First);
}
