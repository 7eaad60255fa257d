//! What once went wrong when bursts are cancelled, and when a queue changes from one stage to the
//! other.

use super::model::Pair;
use crate::wheel::{StagedWheel, TICK_BITS};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;
const TICK: u64 = 1 << TICK_BITS;

/// A burst for one tick, gathered to the last, of which one in so many is not cancelled.
fn gathered_and_cancelled(survivors: usize) -> Pair<StagedWheel<usize>> {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    let ids: Vec<usize> = (0..20_000)
        .map(|n| pair.arm(50 * TICK + n * 7_919 % 10_007 * 100))
        .collect();
    while let Some(wake_ns) = pair.wake_ns().filter(|&ns| ns < 50 * TICK) {
        pair.poll(wake_ns, 1);
    }
    assert_eq!(pair.poll(51 * TICK, 1), (1, true));
    for id in ids {
        if !id.is_multiple_of(survivors) && pair.deadline_of(id).is_some() {
            pair.cancel(id);
        }
    }
    pair
}

/// A million connections closed at once left a million keys behind, and the next poll walked over
/// them.
#[test]
fn a_burst_cancelled_after_it_was_gathered_leaves_no_keys_behind() {
    for survivors in [100, 20_001] {
        let mut pair = gathered_and_cancelled(survivors);
        pair.check();
        assert!(pair.queue.dead_keys() <= 2 * pair.queue.len());
        let left = pair.queue.len();
        assert_eq!(pair.poll(51 * TICK, usize::MAX), (left, false));
        assert_eq!(pair.queue.dead_keys(), 0);
    }
}

/// What is left of the keys is walked over in pieces.
#[test]
fn a_poll_passes_no_more_keys_of_cancelled_timers_than_it_may_move_records() {
    let mut pair = gathered_and_cancelled(2);
    let dead = pair.queue.dead_keys();
    assert!(dead > 5_000);
    pair.bound_moves(10);
    let mut polls = 0;
    while pair.poll(51 * TICK, usize::MAX).1 {
        polls += 1;
    }
    // A chunk's last ones cost nothing.
    assert!(polls > dead / 20, "{polls} polls for {dead} keys");
    assert_eq!(pair.queue.len(), 0);
    pair.check();
}

/// Nor more of the chunks that they have left empty.
#[test]
fn a_poll_drops_no_more_chunks_than_it_may_move_records() {
    // The last of all is left.
    let mut pair = gathered_and_cancelled(11_047);
    assert_eq!(pair.queue.len(), 1);
    pair.bound_moves(10);
    let polls = (1..).find(|_| pair.poll(51 * TICK, usize::MAX).0 > 0);
    assert!(polls > Some(20_000 / 512 / 10), "{polls:?} polls");
    pair.check();
}

/// The 256th timer arrives while a poll stopped by its budget has left due ones behind.
#[test]
fn promotion_in_the_middle_of_an_expiry_keeps_order_and_handles() {
    let mut pair = Pair::<StagedWheel<usize>>::new();
    for n in 0..255 {
        // Descending, with ties.
        pair.arm(10 * SECOND - n / 2 * 300_000);
    }
    assert!(pair.queue.is_inline());
    assert_eq!(pair.poll(10 * SECOND, 100), (100, true));
    for n in 0..200 {
        pair.arm(9 * SECOND + n * 20_000_000);
        pair.check();
        assert_eq!(pair.queue.is_inline(), n < 100);
    }
    for id in 0..pair.armed_so_far() {
        pair.look_up(id);
    }
    let fired = pair.poll_all(10 * SECOND, 30);
    assert_eq!(fired, 155 + 51);
    for id in (0..pair.armed_so_far()).step_by(2) {
        pair.cancel(id);
        pair.check();
    }
    pair.poll_all(20 * SECOND, 7);
    assert!(pair.queue.is_empty() && !pair.queue.is_inline());
    assert_eq!(pair.next_ns(), None);
    pair.rest();
    assert!(pair.queue.is_inline());
    pair.check();
}

/// The wheel is left while a run is half consumed and a slot half gathered, and comes back with the
/// next burst, at a later time or, the clock having run backwards, at an earlier one.
#[test]
fn a_second_promotion_finds_nothing_of_the_first() {
    let mut pair = Pair::<StagedWheel<usize>>::new();
    for round in 1..=12 {
        let start_ns = pair.now_ns / TICK * TICK + 70 * TICK;
        for n in 0..600 {
            // A crowded tick, its neighbours and what lies far beyond.
            let ahead_ns = if n % 3 == 0 { n * TICK / 9 } else { n * 700 };
            pair.arm(start_ns + ahead_ns);
        }
        assert!(!pair.queue.is_inline());
        pair.bound_moves(if round % 2 == 0 { 150 } else { usize::MAX });
        for _ in 0..round {
            pair.poll(start_ns + TICK / 2, 7);
        }
        for n in 0..20 {
            pair.arm(start_ns + n);
        }
        pair.check_shape();
        let armed: Vec<usize> = pair.armed().collect();
        for id in armed {
            pair.cancel(id);
        }
        pair.check();
        if round % 2 == 0 {
            pair.rest();
        }
        assert_eq!(pair.queue.is_inline(), round % 2 == 0);
        if round % 3 == 0 {
            pair.arm(start_ns + 3 * DAY);
            pair.poll(start_ns + 3 * DAY, 1);
        }
        if round % 4 == 0 {
            assert_eq!(pair.poll(start_ns / 2, usize::MAX), (0, false));
        }
    }
}

/// The wheel was left long ago and comes back: what is due is not carried down from the levels that
/// were far away then.
#[test]
fn a_second_promotion_starts_where_the_clock_is() {
    let mut pair = Pair::<StagedWheel<usize>>::new();
    for day in 1..4 {
        let due: Vec<usize> = (0..300).map(|n| pair.arm(day * DAY - n)).collect();
        pair.bound_moves(1);
        assert_eq!(
            pair.poll(day * DAY - 150, usize::MAX).0,
            if day == 1 { 0 } else { 150 }
        );
        for id in due {
            pair.cancel(id);
        }
        pair.rest();
        assert!(pair.queue.is_inline());
        assert_eq!(pair.poll((day + 1) * DAY, usize::MAX), (0, false));
    }
}
