//! A timer is not late because others are due with it or after it. Time is moved by hand, and
//! counted in polls.

use super::every_wheel;
use super::model::{Pair, Queue};
use crate::tuning::MOVES_PER_POLL;
use crate::wheel::StagedWheel;

const TICK: u64 = 1 << 20;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const DAY: u64 = 86_400 * SECOND;

/// More than a poll of an idle executor takes, wherever it runs.
const POLL_NS: u64 = 60_000;
/// What a turn of the reactor fires.
const BUDGET: usize = 256;

/// What came of polling.
#[derive(Debug, Default, PartialEq, Eq)]
struct Polls {
    /// Something was due, and nothing fired.
    late: usize,
    /// Timers were armed, and none was due.
    early: usize,
}

/// An executor with nothing else to do: sleeps until the queue wants a poll, as long as one is to
/// fire.
fn sleep_and_fire<Q: Queue>(pair: &mut Pair<Q>) -> Polls {
    let mut polls = Polls::default();
    let mut now_ns = pair.now_ns;
    while let Some(wake_ns) = pair.wake_ns() {
        now_ns = now_ns.max(wake_ns);
        polls.note(pair, now_ns);
        now_ns += POLL_NS;
    }
    polls
}

impl Polls {
    /// Polls once.
    fn note<Q: Queue>(&mut self, pair: &mut Pair<Q>, now_ns: u64) {
        let next_ns = pair.true_next_ns();
        let (fired, _) = pair.poll(now_ns, BUDGET);
        self.late += usize::from(next_ns <= Some(now_ns) && next_ns.is_some() && fired == 0);
        self.early += usize::from(next_ns > Some(now_ns));
    }
}

/// The first of a crowd waited until the whole coarse slot was moved down, on each level anew.
#[test]
fn the_first_of_a_crowd_fires_in_the_first_poll() {
    fn law<Q: Queue>(silence_ns: u64, spread_ns: u64) {
        const CROWD: u64 = 30_000;
        let mut pair = Pair::<Q>::wheel();
        // In no order, as they lie in memory.
        for n in 0..CROWD {
            pair.arm(silence_ns + n * 7_919 % CROWD * spread_ns / CROWD);
        }
        let what = format!("{silence_ns} ns ahead over {spread_ns} ns");
        let mut polls = Polls::default();
        while pair.queue.len() == CROWD as usize {
            let wake_ns = pair.wake_ns().expect("timers are armed");
            let now_ns = wake_ns.max(pair.now_ns + POLL_NS).min(silence_ns);
            polls.note(&mut pair, now_ns);
        }
        assert_eq!((polls.late, pair.now_ns), (0, silence_ns), "{what}");
        // Those behind it wait for no more than that all have moved.
        let polls_of_all = CROWD as usize / MOVES_PER_POLL + 2;
        let rest = sleep_and_fire(&mut pair);
        let is_spread = spread_ns > TICK;
        let most = if is_spread { 0 } else { polls_of_all };
        assert!(rest.late <= most, "{rest:?}, {what}");
        let most = polls_of_all * (Q::LEVELS + 1);
        assert!(polls.early + rest.early <= most, "{polls:?}, {rest:?}");
    }
    for silence_ns in [100 * MS, SECOND, 60 * SECOND, 3600 * SECOND, DAY] {
        for spread_ns in [1, TICK, SECOND] {
            law::<StagedWheel<usize>>(silence_ns, spread_ns);
        }
    }
}

/// Each poll fires a timer, so long after the one before as if there had been a sleep.
#[test]
fn a_crowd_is_ready_where_each_poll_fires() {
    const CROWD: u64 = 30_000;
    const FIRST: u64 = 1_040;
    for polls_per_tick in [2, 5, 10] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        for step in 1..FIRST * polls_per_tick {
            pair.arm(step * TICK / polls_per_tick);
        }
        for n in 0..CROWD {
            pair.arm(FIRST * TICK + n * 7_919 % CROWD * 10_000);
        }
        let mut polls = Polls::default();
        let mut step = 0;
        while !pair.queue.is_empty() {
            step += 1;
            polls.note(&mut pair, step * TICK / polls_per_tick);
        }
        assert_eq!(polls, Polls::default(), "{polls_per_tick} polls a tick");
    }
}

/// A crowd in one tick, with a few timers in each of the ticks before it.
#[test]
fn a_crowded_tick_behind_others_is_ready_in_time() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    for tick in 1..100 {
        pair.arm(tick * TICK);
    }
    for n in 0..20_000 {
        pair.arm(99 * TICK + n * 7_919 % 20_000);
    }
    assert_eq!(sleep_and_fire(&mut pair).late, 0);
    // And seen by a reactor that is awake.
    let start_ns = pair.now_ns / TICK * TICK;
    for n in 0..20_000 {
        pair.arm(start_ns + 99 * TICK + n * 7_919 % 20_000);
    }
    let mut polls = Polls::default();
    for step in 0..99 * 16 {
        polls.note(&mut pair, start_ns + step * TICK / 16 + 1);
    }
    assert_eq!(polls.late, 0);
    assert!(!pair.queue.is_empty());
}

/// The last nanosecond of a coarse slot has a timer, and the next slot is crowded.
#[test]
fn a_crowded_slot_behind_another_fires_in_the_first_poll() {
    for slot_bits in [20, 25, 30, 35] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        let border_ns = 5 << slot_bits;
        pair.arm(border_ns - 1);
        for n in 0..30_000 {
            pair.arm(border_ns + n * 7_919 % 30_000 * 100);
        }
        for wake_ns in [border_ns - 1, border_ns] {
            assert_eq!(pair.wake_ns(), Some(wake_ns));
            assert_eq!(pair.poll(wake_ns, BUDGET).0, 1);
        }
    }
}

/// Timers that were armed again long ago come to one slot from two, neither of which was crowded.
#[test]
fn a_crowd_of_timers_armed_again_is_ready_in_time() {
    const TIMERS: u64 = 1_000;
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    let ids: Vec<usize> = (0..TIMERS)
        .map(|n| pair.arm((100 + n % 2) * TICK + n * 7_919 % TIMERS))
        .collect();
    for &id in &ids {
        pair.rearm(id, 3 * SECOND + id as u64 * 7_919 % TIMERS);
    }
    assert_eq!(sleep_and_fire(&mut pair).late, 0);
}

/// A reactor that is awake does not ask, and was told of none the tick before.
#[test]
fn a_crowd_that_has_just_been_armed_is_ready_in_time() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    pair.arm(DAY);
    for tick in 0..3 {
        pair.poll(tick * TICK, BUDGET);
    }
    for n in 0..5_000 {
        pair.arm(40 * TICK + n * 7_919 % 5_000);
    }
    let mut polls = Polls::default();
    for step in 3 * 8..=50 * 8 {
        polls.note(&mut pair, step * TICK / 8);
    }
    assert_eq!(polls.late, 0);
}

/// Timers that come down from the level above join others in one slot, neither of them a crowd.
#[test]
fn a_crowd_of_two_levels_is_ready_in_time() {
    const TIMERS: u64 = 400;
    for lead in [24, 250] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        let due = 1_030;
        let arm = |pair: &mut Pair<StagedWheel<usize>>| {
            for n in 0..TIMERS {
                pair.arm(due * TICK + n * 7_919 % TIMERS);
            }
        };
        arm(&mut pair);
        let mut polls = Polls::default();
        for step in 1..=(due + 10) * 8 {
            if step == (due - lead) * 8 {
                arm(&mut pair);
            }
            polls.note(&mut pair, step * TICK / 8);
        }
        assert_eq!(polls.late, 0, "armed {lead} ticks ahead");
        assert!(pair.queue.is_empty());
    }
}

/// One that was armed again to a later tick is alone in the slot of its first deadline, and comes after another.
#[test]
fn a_timer_armed_again_where_it_is_waits_for_those_before_it() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    let again = pair.arm(5 * TICK + 1);
    pair.arm(6 * TICK + 1);
    pair.rearm(again, 6 * TICK + 3);
    assert_eq!(pair.poll(6 * TICK + 3, BUDGET), (2, false));
}

/// Timeouts far off wake an executor when there is something to be done, and that is shortly before
/// the first.
#[test]
fn far_crowds_leave_an_executor_asleep() {
    const CROWD: u64 = 30_000;
    for silence_ns in [60 * SECOND, 3600 * SECOND, DAY] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        let ids: Vec<usize> = (0..CROWD)
            .map(|n| pair.arm(silence_ns + n * 7_919 % CROWD * 10_000))
            .collect();
        let upkeep_ns = pair.upkeep_ns().expect("a crowd");
        assert!(upkeep_ns >= silence_ns - 10 * MS && upkeep_ns < silence_ns);
        // The usual fate of timeouts: what is left to do is to give memory back.
        for &id in &ids[100..] {
            pair.cancel(id);
        }
        assert!(polls_until_settled(&mut pair) <= SHRINKING_POLLS);
        assert!(pair.now_ns < silence_ns);
        assert_eq!(pair.next_ns(), Some(silence_ns));
        for &id in &ids[..100] {
            pair.cancel(id);
        }
        assert!(polls_until_settled(&mut pair) <= SHRINKING_POLLS);
        assert_eq!(pair.next_ns(), None);
    }
}

/// Three windows, two of them with a sweep.
const SHRINKING_POLLS: usize = 3 + 2 * 30;

/// Sleeps until the queue wants no more polls.
fn polls_until_settled<Q: Queue>(pair: &mut Pair<Q>) -> usize {
    let mut polls = 0;
    while let Some(upkeep_ns) = pair.upkeep_ns() {
        assert_eq!(pair.poll(pair.now_ns.max(upkeep_ns), BUDGET), (0, false));
        polls += 1;
    }
    polls
}

/// A crowd that is cancelled while it is made ready, and others armed in its place.
#[test]
fn a_crowd_may_be_cancelled_while_it_is_made_ready() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        for round in 0..20 {
            let start_ns = pair.now_ns / TICK * TICK + 700 * TICK;
            let ids: Vec<usize> = (0..200)
                .map(|n| pair.arm(start_ns + n * 7_919 % 200))
                .collect();
            for _ in 0..round {
                let Some(wake_ns) = pair.wake_ns().filter(|&ns| ns < start_ns) else {
                    break;
                };
                pair.poll(pair.now_ns.max(wake_ns), BUDGET);
                pair.check();
            }
            for &id in &ids[round..] {
                if pair.deadline_of(id).is_some() {
                    pair.cancel(id);
                }
            }
            pair.check();
            pair.arm(start_ns + 50);
            pair.arm(pair.now_ns + TICK);
            pair.rearm(ids[0], start_ns + 3 * TICK);
            pair.poll_all(start_ns + 4 * TICK, 3);
            pair.check();
            assert!(pair.armed().all(|id| pair.is_never(id)));
        }
    }
    every_wheel!(law);
}
