//! No poll does more than its share, and no time that passes is paid for.

use super::every_wheel;
use super::model::{Pair, Queue};
use crate::wheel::{MOVES_PER_POLL, StagedWheel, TICK_BITS};

const TICK: u64 = 1 << TICK_BITS;

/// A thousand timers for one millisecond: the slot is gathered over several
/// polls, each fires its budget at most, and the order is that of a sorted map.
#[test]
#[cfg_attr(small_wheel, ignore = "it is about levels of the usual size")]
fn a_crowded_tick_is_gathered_piece_by_piece() {
    const BURST: usize = 1_100;
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    for n in 0..BURST as u64 {
        // In no order, with many ties.
        pair.arm(50 * TICK + n * 7_919 % 1_007);
    }
    let mut empty_polls = 0;
    let mut fired = 0;
    while fired == 0 {
        let (now_fired, has_more) = pair.poll(51 * TICK, 256);
        assert!(has_more);
        fired = now_fired;
        empty_polls += usize::from(now_fired == 0);
    }
    assert_eq!(empty_polls, BURST / MOVES_PER_POLL);
    for _ in 1..BURST / 256 {
        assert_eq!(pair.poll(51 * TICK, 256), (256, true));
    }
    assert_eq!(pair.poll(51 * TICK, 256), (BURST % 256, false));
    assert!(pair.queue.is_empty());
    pair.check();
}

/// A coarse slot with more timers than one poll may move is empty by the time the cursor enters it:
/// no poll asks for another one.
#[test]
#[cfg_attr(small_wheel, ignore = "it is about levels of the usual size")]
fn coarse_slots_are_moved_down_ahead_of_the_cursor() {
    // Far more than are moved in any case, so that it is the share that counts.
    const PER_TICK: u64 = 40;
    const TICKS: u64 = 2000;
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    // A slot of level 1 holds 32 ticks' worth, one of level 2 a thousand.
    pair.bound_moves(12 * PER_TICK as usize);
    for n in 0..PER_TICK * TICKS {
        pair.arm((1500 + n / PER_TICK) * TICK + n % PER_TICK);
    }
    for tick in 0..1500 + TICKS {
        let (fired, has_more) = pair.poll(tick * TICK + PER_TICK, usize::MAX);
        assert!(!has_more, "at tick {tick}");
        assert_eq!(fired as u64, if tick < 1500 { 0 } else { PER_TICK });
    }
    assert!(pair.queue.is_empty());
}

/// A poll after a long stall pays for the timers that are due and for no tick in between.
#[test]
fn one_poll_ends_a_stall_of_any_length() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.bound_moves(MOVES_PER_POLL);
        for stall_bits in [32, 42, 50, 62] {
            let start_ns = pair.now_ns;
            for n in 1..=20 {
                pair.arm(start_ns + (1 << stall_bits) / 20 * n);
            }
            // A poll may not move more than this, so that one is enough proves how little it moved.
            let now_ns = start_ns + (1 << stall_bits);
            assert_eq!(pair.poll(now_ns, usize::MAX), (20, false));
            pair.check();
        }
    }
    every_wheel!(law);
}

/// After a sleep, few timers of many slots make one bucket.
#[test]
#[cfg_attr(small_wheel, ignore = "it is about levels of the usual size")]
fn few_timers_of_any_slots_take_a_move_each() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    (1..=50).for_each(|n| _ = pair.arm(n * 600 * TICK));
    assert_eq!(pair.poll(50 * 600 * TICK, usize::MAX), (50, false));
    // And the memory of a chunk to each bucket, which would be 248 if each slot had one.
    assert!(pair.queue.moves_of_last_poll() < 50 + 150);
}

/// A burst that nothing has made ready does not go through the levels when it is due.
#[test]
#[cfg_attr(small_wheel, ignore = "it is about levels of the usual size")]
fn a_burst_is_moved_once_after_an_idle_period() {
    const BURST: u64 = 30_000;
    for idle_bits in [10, 16, 26] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        let now_ns = (TICK << idle_bits) + 2 * TICK;
        (0..BURST).for_each(|n| _ = pair.arm(now_ns - n * 7_919 % BURST * 40));
        let polls = (1..).find(|_| pair.poll(now_ns, 256).0 > 0);
        // A quarter for the buckets and their memory.
        assert!(polls <= Some(BURST as usize / MOVES_PER_POLL * 5 / 4));
        pair.poll_all(now_ns, 256);
        assert!(pair.queue.is_empty());
    }
}

/// With nothing but the moves of a single record to a poll, everything still fires, in order.
#[test]
fn one_move_a_poll_is_enough() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.bound_moves(1);
        for n in 0..40 {
            pair.arm(n * n * n * n * 10_007);
            pair.arm(n * 3 * TICK / 2);
        }
        let mut now_ns = 0;
        while pair.armed().any(|id| !pair.is_never(id)) {
            pair.poll_all(now_ns, 3);
            pair.check();
            now_ns = now_ns * 2 + TICK / 3;
        }
    }
    every_wheel!(law);
}

/// A budget of nothing asks whether something is due.
#[test]
fn a_budget_of_zero_only_looks() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        assert_eq!(pair.poll(0, 0), (0, false));
        pair.arm(10 * TICK);
        assert_eq!(pair.poll(10 * TICK - 1, 0), (0, false));
        assert_eq!(pair.poll(10 * TICK, 0), (0, true));
        assert_eq!(pair.poll(10 * TICK, 0), (0, true));
        assert_eq!(pair.poll(10 * TICK, 1), (1, false));
    }
    every_wheel!(law);
}
