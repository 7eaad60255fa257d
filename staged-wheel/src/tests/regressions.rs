//! What timer queues have got wrong before, here or elsewhere, each under its own name.

use super::history::{Op, When};
use super::model::{Pair, Queue};
use super::{every_queue, every_wheel};
use crate::wheel::{StagedWheel, TICK_BITS};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const DAY: u64 = 86_400 * SECOND;
const TICK: u64 = 1 << TICK_BITS;

/// Of 300 ms and 400 ms the second was reported, the first waiting on a coarser level.
#[test]
fn a_timer_on_a_coarse_level_is_not_slept_past() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.arm(300 * MS);
        pair.poll(250 * MS, usize::MAX);
        pair.arm(400 * MS);
        assert_eq!(pair.next_ns(), Some(300 * MS));
        assert_eq!(pair.poll(300 * MS, usize::MAX), (1, false));
        assert_eq!(pair.next_ns(), Some(400 * MS));
        pair.check();
    }
    every_queue!(law);
}

/// A deadline between two milliseconds fired half of one too early or too late.
#[test]
fn a_fraction_of_a_millisecond_counts() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.arm(255_500_000);
        for ms in 0..=255 {
            assert_eq!(pair.poll(ms * MS, usize::MAX), (0, false));
            assert_eq!(pair.next_ns(), Some(255_500_000));
        }
        assert_eq!(pair.poll(255_499_999, usize::MAX), (0, false));
        assert_eq!(pair.poll(255_500_000, usize::MAX), (1, false));
    }
    every_queue!(law);
}

/// The slot of the cursor was searched first, though what it held was a whole revolution away.
#[test]
fn the_cursors_slot_holds_nothing_after_a_revolution() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        for bits in TICK_BITS..57 {
            let slot_ns = 1 << bits;
            let now_ns = (pair.now_ns / slot_ns + 5) * slot_ns + slot_ns / 3;
            pair.poll_all(now_ns, usize::MAX);
            for slots in [1, 2, 3, 4, 31, 32, 33, 62, 63, 64, 65] {
                pair.arm(now_ns + slots * slot_ns);
                pair.arm((now_ns / slot_ns + slots) * slot_ns);
                pair.check();
            }
            let mut wakes = 0;
            while let Some(next_ns) = pair.next_ns() {
                assert_eq!(Some(next_ns), pair.true_next_ns());
                assert!(pair.poll_all(next_ns, usize::MAX) > 0);
                wakes += 1;
            }
            assert!(wakes <= 22);
        }
    }
    every_queue!(law);
}

/// Sleeping to the next expiry and nothing else: it must end, without waking in vain too often.
#[test]
fn sleeping_to_the_next_expiry_fires_everything() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        let mut random = Random(7);
        let mut arms = 0;
        for _ in 0..1500 {
            let bits = random.below(36) + 6;
            pair.arm(random.below(1 << bits));
            arms += 1;
        }
        // Asleep, nothing cancelled: every wake fires.
        for _ in 0..300 {
            let next_ns = pair.next_ns().expect("most are still armed");
            assert!(pair.poll_all(next_ns, usize::MAX) > 0);
        }
        let armed: Vec<usize> = pair.armed().collect();
        for id in armed {
            match random.below(4) {
                0 | 1 => pair.cancel(id),
                2 => {
                    pair.rearm(id, pair.now_ns + random.below(100 * SECOND));
                    arms += 1;
                }
                _ => {}
            }
        }
        let mut empty_wakes = 0;
        let mut last_ns = None;
        while let Some(next_ns) = pair.next_ns() {
            let fired = pair.poll_all(next_ns, usize::MAX);
            assert!(last_ns.is_none_or(|last_ns| last_ns < next_ns));
            last_ns = Some(next_ns);
            empty_wakes += usize::from(fired == 0);
        }
        assert!(empty_wakes <= arms * Q::LEVELS);
        assert_eq!(pair.armed().count(), pair.queue.len());
        pair.check();
    }
    every_queue!(law);
}

/// Wheels that were right at first failed when their clock had grown a bit.
#[test]
fn the_clock_may_stand_at_any_power_of_two() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        for bits in 0..64 {
            for now_ns in [(1u64 << bits) - 1, 1 << bits] {
                pair.poll_all(now_ns, usize::MAX);
                for span_ns in [0, 1, TICK - 1, TICK, 63 * TICK, 64 * TICK, SECOND, DAY] {
                    pair.arm(now_ns.saturating_add(span_ns));
                }
                pair.check();
                assert_eq!(pair.poll(now_ns, usize::MAX).0, 1);
                assert_eq!(pair.poll(now_ns + 1, usize::MAX).0, 1);
                let later_ns = now_ns.saturating_add(SECOND);
                assert_eq!(pair.next_ns(), Some(now_ns + TICK - 1));
                assert_eq!(pair.poll_all(later_ns, usize::MAX), 5);
                let left: Vec<usize> = pair.armed().collect();
                for id in left {
                    if !pair.is_never(id) {
                        pair.cancel(id);
                    }
                }
            }
        }
    }
    every_queue!(law);
}

/// A wheel whose top level wrapped round lost its sleeps after 12 days, another after 2^36 ms.
#[test]
fn days_and_years_of_uptime_change_nothing() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        for now_ns in [
            12 * DAY,
            50 * DAY,
            (1 << 36) * MS,
            (1 << 40) * MS,
            500 * 365 * DAY,
        ] {
            for before_ns in [3 * SECOND, 3 * MS, 1] {
                pair.poll_all(now_ns - before_ns, usize::MAX);
                let spans_ns = [MS, 4 * MS, 70 * MS, 5 * SECOND, 3600 * SECOND, 13 * DAY];
                for span_ns in spans_ns {
                    pair.arm(now_ns - before_ns + span_ns);
                }
                for span_ns in &spans_ns[..4] {
                    let next_ns = now_ns - before_ns + span_ns;
                    if pair.is_armed_for(next_ns) {
                        assert_eq!(pair.next_ns(), Some(next_ns));
                        assert_eq!(pair.poll(next_ns - 1, usize::MAX).0, 0);
                        assert_eq!(pair.poll(next_ns, usize::MAX).0, 1);
                    }
                    if next_ns > now_ns {
                        break;
                    }
                }
                pair.check();
            }
        }
    }
    every_queue!(law);
}

/// "Never" came round after all, or was reported as the next expiry.
#[test]
fn a_timer_for_never_stays_out_of_the_way_for_years() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        let forever = pair.arm(u64::MAX);
        let pushed_back = pair.arm(3 * SECOND);
        pair.rearm(pushed_back, u64::MAX);
        assert_eq!(pair.next_ns(), None);
        for step in 1..400 {
            let now_ns = step * 17 * DAY + step * 7_654_321;
            assert_eq!(pair.poll(now_ns, usize::MAX), (0, false));
            pair.arm(now_ns + 50 * MS);
            assert_eq!(pair.next_ns(), Some(now_ns + 50 * MS));
            assert_eq!(pair.poll(now_ns + 50 * MS, usize::MAX), (1, false));
            assert_eq!(pair.next_ns(), None);
        }
        assert_eq!(pair.poll(u64::MAX, usize::MAX), (0, false));
        pair.check();
        pair.look_up(forever);
        pair.cancel(forever);
        pair.rearm(pushed_back, 400 * 365 * DAY);
        assert_eq!(pair.poll(u64::MAX, usize::MAX), (1, false));
    }
    every_queue!(law);
}

/// The minimum of a slot outlived its timer: the queue woke at that time again and again.
#[test]
fn a_poll_at_the_minimum_of_a_cancelled_timer_brings_the_queue_on() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        let start_ns = 40 * SECOND;
        let ids: Vec<usize> = (0..50).map(|n| pair.arm(start_ns + n * 9 * MS)).collect();
        for &id in &ids[..20] {
            pair.cancel(id);
        }
        pair.check();
        let true_next_ns = start_ns + 20 * 9 * MS;
        let mut wakes = 0;
        loop {
            let next_ns = pair.next_ns().expect("thirty are armed");
            assert!(next_ns <= true_next_ns);
            if pair.poll(next_ns, usize::MAX).0 > 0 {
                assert_eq!(next_ns, true_next_ns);
                break;
            }
            wakes += 1;
            assert!(wakes <= Q::LEVELS);
        }
    }
    every_queue!(law);
}

/// The keys of more cancelled timers than were dropped at a time hid that of the last one.
#[test]
fn the_next_expiry_is_exact_where_many_of_this_tick_were_cancelled() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.poll(TICK, usize::MAX);
        let cancelled: Vec<_> = (1..=66).map(|n| pair.arm(TICK + n)).collect();
        pair.arm(TICK + 67);
        for id in cancelled {
            pair.cancel(id);
        }
        pair.check_next();
    }
    every_wheel!(law);
}

/// The same where they stayed behind while others of their tick fired.
#[test]
fn the_next_expiry_is_exact_where_the_cancelled_were_many_for_those_that_fired() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    let at = 50 * TICK;
    // In no order, so that they are gathered before the tick begins.
    pair.arm(at + 2_000);
    let cancelled: Vec<_> = (0..199).map(|n| pair.arm(at + 1_000 + n)).collect();
    for n in 0..100 {
        pair.arm(at + n);
    }
    for step in 1..16 {
        pair.poll_all(49 * TICK + step * TICK / 16, usize::MAX);
    }
    for id in cancelled {
        pair.cancel(id);
    }
    let other = pair.arm(at + 500);
    assert_eq!(pair.poll(at + 200, usize::MAX), (100, false));
    pair.cancel(other);
    pair.check_next();
}

/// A timer of a coarser slot, which begins with the tick, hid that the burst of this tick had not come: the next
/// expiry stayed at the one of it that had fired.
#[test]
fn a_burst_is_not_waited_for_whose_first_has_fired() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    pair.bound_moves(2);
    let at = When::Border {
        level_bits: 28,
        slots: 15,
        offset_ns: 0,
    };
    pair.apply(&Op::ArmMany(44, When::BeforeEpoch, 2_358_145_587));
    pair.apply(&Op::ArmMany(333, at, 2_821_199_626));
    pair.apply(&Op::Sleep(6));
    pair.check();
}

/// A bound was kept although the slot had become short enough to say better.
#[test]
fn the_next_expiry_is_exact_again_when_few_are_left() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        let start_ns = 40 * SECOND;
        let ids: Vec<usize> = (0..20).map(|n| pair.arm(start_ns + n * MS)).collect();
        pair.cancel(ids[0]);
        assert!(pair.next_ns() <= Some(start_ns + MS));
        for &id in &ids[8..] {
            pair.cancel(id);
            pair.check();
        }
        assert_eq!(pair.next_ns(), Some(start_ns + MS));
        for &id in &ids[1..4] {
            pair.cancel(id);
        }
        assert_eq!(pair.next_ns(), Some(start_ns + 4 * MS));
    }
    every_queue!(law);
}

/// Timers pushed back to never left the deadlines they had before as the next expiry.
#[test]
fn what_is_put_off_for_ever_leaves_no_next_expiry() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        let ids: Vec<usize> = (0..30).map(|n| pair.arm(40 * SECOND + n * MS)).collect();
        for &id in &ids {
            pair.rearm(id, u64::MAX);
            pair.check();
        }
        assert_eq!(pair.next_ns(), None);
        for &id in &ids {
            pair.rearm(id, 50 * SECOND - id as u64);
            pair.check();
        }
        assert_eq!(pair.poll_all(50 * SECOND, usize::MAX), 30);
    }
    every_queue!(law);
}

/// A task that arms and cancels timers of less than a tick, and never lets a poll happen.
#[test]
fn cancelled_timers_of_the_current_tick_do_not_pile_up() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    pair.poll(5 * SECOND, usize::MAX);
    let kept: Vec<usize> = (0..10).map(|n| pair.arm(5 * SECOND - n)).collect();
    for n in 0..2_000 {
        let id = pair.arm(5 * SECOND + n % 1000);
        if n % 2 == 0 {
            pair.rearm(id, 4 * SECOND);
        }
        pair.cancel(id);
        assert!(pair.queue.dead_keys() <= 2 * (kept.len() + 1) + 65);
    }
    pair.check();
    assert_eq!(pair.poll(5 * SECOND, usize::MAX), (10, false));
    assert_eq!(pair.queue.dead_keys(), 0);
}

/// A poll stopped by its budget goes on where it stopped, and what was armed meanwhile goes first
/// if it is due first.
#[test]
fn order_holds_across_polls() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        for n in 0..600u64 {
            pair.arm(SECOND + n * 7_919 % 601 * 5_000);
        }
        // The bound of this test is the budget.
        pair.bound_moves(usize::MAX);
        let now_ns = 2 * SECOND;
        for n in 0..50 {
            assert_eq!(pair.poll(now_ns, 7), (7, true));
            pair.arm(SECOND + n);
            pair.arm(3 * SECOND - n * 40 * MS);
            let soon = pair.armed().nth(3).expect("hundreds are armed");
            pair.rearm(soon, SECOND + n);
            let later = pair.armed().nth(9).expect("hundreds are armed");
            pair.rearm(later, now_ns);
            pair.check();
        }
        pair.poll_all(3 * SECOND, 256);
        assert_eq!(pair.armed().filter(|&id| !pair.is_never(id)).count(), 0);
    }
    every_queue!(law);
}

/// The last of a slot is cancelled while the slot is being gathered over several polls: the part
/// that was gathered was passed over.
#[test]
fn a_slot_whose_rest_is_cancelled_still_fires() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.bound_moves(3);
        // Cancelled after so many polls: some of them find the slot half gathered.
        for polls in 0..40 {
            let start_ns = pair.now_ns / TICK * TICK + 5 * TICK;
            let ids: Vec<usize> = (0..9).map(|n| pair.arm(start_ns + n)).collect();
            pair.arm(start_ns + 4 * TICK);
            for _ in 0..polls {
                pair.poll(start_ns + 20 * TICK, 0);
            }
            for &id in &ids[3..] {
                pair.cancel(id);
            }
            pair.check();
            assert_eq!(pair.poll_all(start_ns + 20 * TICK, 2), 4);
        }
    }
    every_wheel!(law);
}

/// A clock that repeats itself or runs backwards does no harm.
#[test]
fn the_clock_may_run_backwards() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.arm(100 * SECOND);
        pair.arm(100 * SECOND + 5);
        assert_eq!(pair.poll(100 * SECOND, usize::MAX), (1, false));
        assert_eq!(pair.poll(100 * SECOND, usize::MAX), (0, false));
        assert_eq!(pair.poll(10 * SECOND, usize::MAX), (0, false));
        pair.arm(50 * SECOND);
        pair.arm(20 * SECOND);
        assert_eq!(pair.next_ns(), Some(20 * SECOND));
        assert_eq!(pair.poll(20 * SECOND - 1, usize::MAX), (0, false));
        assert_eq!(pair.poll(20 * SECOND, usize::MAX), (1, false));
        assert_eq!(pair.poll(0, usize::MAX), (0, false));
        assert_eq!(pair.next_ns(), Some(50 * SECOND));
        assert_eq!(pair.poll(100 * SECOND + 4, usize::MAX), (1, false));
        assert_eq!(pair.poll(100 * SECOND + 5, usize::MAX), (1, false));
    }
    every_queue!(law);
}

/// What a poll had brought down and its budget left behind was forgotten by an earlier poll that
/// followed: the next ones were told that there is nothing to do.
#[test]
fn the_clock_may_run_backwards_behind_a_budget() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        // All in one slot of a coarse level.
        let start_ns = 12_288 * 128 * TICK;
        let deadlines_ns = [1, 2, 3].map(|ms| start_ns + ms * MS);
        for deadline_ns in deadlines_ns {
            pair.arm(deadline_ns);
        }
        assert_eq!(pair.poll(2 * start_ns, 1), (1, true));
        assert_eq!(pair.poll(deadlines_ns[1], usize::MAX), (1, false));
        assert_eq!(pair.poll(deadlines_ns[2], usize::MAX), (1, false));
    }
    every_queue!(law);
}

/// A re-arm counts as an arm: the timer goes behind those of its deadline, also its own old one.
#[test]
fn a_rearmed_timer_goes_behind_its_equals() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        for deadline_ns in [SECOND, 3 * SECOND, 3 * SECOND + 1, 40 * SECOND] {
            let first = pair.arm(deadline_ns);
            pair.arm(deadline_ns);
            let third = pair.arm(deadline_ns + 50 * SECOND);
            pair.rearm(first, deadline_ns);
            pair.rearm(third, deadline_ns);
            pair.rearm(first, deadline_ns + SECOND);
            pair.rearm(first, deadline_ns);
            pair.check();
            // In and out of the current tick as well.
            pair.poll(deadline_ns - 1, usize::MAX);
            pair.rearm(third, deadline_ns - 5);
            pair.rearm(third, deadline_ns);
            pair.check();
            assert_eq!(pair.poll_all(deadline_ns, 1), 3);
        }
    }
    every_queue!(law);
}

/// A timeout that is pushed back time and again, and at last not.
#[test]
fn a_timeout_pushed_back_fires_at_its_last_deadline() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        let id = pair.arm(30 * SECOND);
        let other = pair.arm(31 * SECOND);
        for n in 1..4000 {
            let now_ns = n * 10 * MS;
            pair.poll(now_ns, usize::MAX);
            pair.rearm(id, now_ns + 30 * SECOND);
            if n % 100 == 0 {
                pair.check();
            }
        }
        pair.look_up(other);
        let deadline_ns = 3999 * 10 * MS + 30 * SECOND;
        assert_eq!(pair.poll(deadline_ns - 1, usize::MAX).0, 0);
        assert_eq!(pair.poll(deadline_ns, usize::MAX), (1, false));
    }
    every_queue!(law);
}

/// The slot of a burst took more moves than it has timers, and the cursor passed what was left of it.
#[test]
fn a_burst_that_takes_all_moves_is_not_left_behind() {
    const SMALL: u64 = 9;
    const BURST: u64 = 300;
    for moves in BURST..BURST + 20 {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        pair.bound_moves((SMALL + moves) as usize);
        for (tick, timers) in [(10, SMALL), (11, BURST)] {
            for n in (0..timers).rev() {
                pair.arm(tick * TICK + n);
            }
        }
        pair.poll(13 * TICK, 256);
        pair.check();
        pair.poll_all(13 * TICK, 256);
        assert!(pair.queue.is_empty());
    }
}

/// Small and even, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
