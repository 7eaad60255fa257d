//! A timer is not late because others are due with it or after it. Time is moved by hand, and
//! counted in polls.

use super::every_wheel;
use super::model::{Pair, Queue};
use crate::wheel::{MOVES_PER_POLL, StagedWheel, TICK_BITS};

const TICK: u64 = 1 << TICK_BITS;
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
    /// Nothing was due.
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
        let is_due = pair.true_next_ns().is_some_and(|next_ns| next_ns <= now_ns);
        let (fired, _) = pair.poll(now_ns, BUDGET);
        self.late += usize::from(is_due && fired == 0);
        self.early += usize::from(!is_due);
    }
}

/// The first of a burst waited until the whole coarse slot was moved down, on each level anew.
#[test]
#[cfg_attr(
    small_wheel,
    ignore = "it counts polls, some of which give pages of the usual size back"
)]
fn the_first_of_a_burst_fires_in_the_first_poll() {
    fn law<Q: Queue>(idle_ns: u64, spread_ns: u64) {
        const BURST: u64 = 30_000;
        let mut pair = Pair::<Q>::wheel();
        // In no order, as they lie in memory.
        for n in 0..BURST {
            pair.arm(idle_ns + n * 7_919 % BURST * spread_ns / BURST);
        }
        let polls = sleep_and_fire(&mut pair);
        assert_eq!(polls.late, 0, "{idle_ns} ns ahead over {spread_ns} ns");
        // Each level once, and the run.
        let most = (BURST as usize / MOVES_PER_POLL + 2) * (Q::LEVELS + 1);
        assert!(polls.early <= most, "{polls:?} of {most}");
    }
    for idle_ns in [100 * MS, SECOND, 60 * SECOND, 3600 * SECOND, DAY] {
        for spread_ns in [1, TICK, SECOND] {
            law::<StagedWheel<usize>>(idle_ns, spread_ns);
        }
    }
}

/// Timeouts that were set together do not go through the levels, except for those that are due later.
#[test]
#[cfg_attr(small_wheel, ignore = "it counts moves of pages of the usual size")]
fn a_burst_is_moved_once() {
    const BURST: u64 = 30_000;
    const FIRST: u64 = SECOND + 10 * MS;
    for others in [0, 1_000] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        for n in 0..BURST {
            pair.arm(FIRST + n * 7_919 % BURST * MS / BURST);
            if n % 2 == 1 && n > 100 && n / 2 < others {
                pair.arm(FIRST + 5 * MS + n * 20_000);
            }
        }
        let (mut now_ns, mut moves) = (0, 0);
        while now_ns < FIRST {
            pair.poll(now_ns, BUDGET);
            moves += pair.queue.moves_of_last_poll();
            now_ns = pair
                .wake_ns()
                .expect("a burst is armed")
                .max(now_ns + POLL_NS);
        }
        let (all, others) = ((BURST + others) as usize, others as usize);
        assert!(moves >= all, "{moves} moves of {all} timers");
        assert!(
            moves <= all + all / 4 + others,
            "{moves} moves of {all} timers"
        );
        assert_eq!(sleep_and_fire(&mut pair).late, 0);
    }
}

/// Where timers come due one after the other, a poll that fires one keeps the next waiting for little.
#[test]
#[cfg_attr(small_wheel, ignore = "it counts moves of pages of the usual size")]
fn what_is_not_due_moves_after_what_is() {
    const BURST: u64 = 100_000;
    const FIRST: u64 = 943 * TICK + 4 * TICK / 9;
    const GAP: u64 = 10_000;
    for is_busy in [true, false] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        for n in 0..BURST {
            pair.arm(FIRST + n * 7_919 % BURST * GAP);
        }
        let mut now_ns = 0;
        while now_ns < FIRST {
            now_ns = pair.wake_ns().expect("a burst is armed").max(now_ns);
            pair.poll(now_ns, BUDGET);
        }
        // The tasks that waited for the end of the sleep run before anything else is done.
        assert_eq!(pair.queue.moves_of_last_poll(), 0);
        // And those of what comes due meanwhile, if that is not for long.
        for (step, due) in [(1, 1), (4, 3), (25, 21)] {
            assert_eq!(pair.poll(FIRST + step * GAP, BUDGET), (due, false));
            assert_eq!(pair.queue.moves_of_last_poll(), 0);
        }
        let (step, due) = if is_busy { (27, 2) } else { (25, 0) };
        now_ns = FIRST + step * GAP;
        assert_eq!(pair.poll(now_ns, BUDGET), (due, false));
        assert!(pair.queue.moves_of_last_poll() > 0);
        while now_ns < FIRST + 5 * MS {
            now_ns = pair.wake_ns().expect("a burst is armed").max(now_ns) + GAP / 5;
            assert!(!pair.poll(now_ns, BUDGET).1);
            let moves = pair.queue.moves_of_last_poll();
            assert!(moves <= MOVES_PER_POLL / 8, "{moves} moves");
        }
    }
}

/// However many of a tick's polls fire, a burst has the moves of a few.
#[test]
#[cfg_attr(small_wheel, ignore = "it counts moves of pages of the usual size")]
fn polls_that_fire_leave_a_burst_to_one_in_a_step() {
    const BURST: u64 = 30_000;
    const FIRST: u64 = 1_040 * TICK;
    const GAP: u64 = 10_000;
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    for n in 0..BURST {
        pair.arm(FIRST + n * 7_919 % BURST * 10);
    }
    let begin_ns = pair.wake_ns().expect("a burst is armed");
    for n in 0..(FIRST - begin_ns) / GAP {
        pair.arm(begin_ns + n * GAP);
    }
    let (mut now_ns, mut polls) = (begin_ns, Polls::default());
    // In the first tick they all come down, armed as they were after a sleep.
    while now_ns < begin_ns + TICK {
        pair.poll(now_ns, BUDGET);
        now_ns += GAP;
    }
    while now_ns < FIRST - TICK {
        let mut moves = 0;
        for _ in 0..TICK / GAP {
            polls.note(&mut pair, now_ns);
            moves += pair.queue.moves_of_last_poll();
            now_ns += GAP;
        }
        assert!(moves <= 8 * MOVES_PER_POLL, "{moves} moves in a tick");
    }
    while !pair.queue.is_empty() {
        polls.note(&mut pair, now_ns);
        now_ns += GAP;
    }
    assert_eq!(polls.late, 0);
}

/// The same where polls come once a tick, since a task takes its time between them.
#[test]
fn a_burst_is_ready_where_polls_are_rare() {
    fn law<Q: Queue>(mut pair: Pair<Q>, start_ns: u64, spread_ns: u64) {
        const BURST: u64 = 30_000;
        for n in 0..BURST {
            pair.arm(start_ns + n * 7_919 % BURST * spread_ns / BURST);
        }
        // Asleep until the queue first wants a poll.
        let mut now_ns = pair.wake_ns().expect("a burst is armed");
        let mut polls = Polls::default();
        while !pair.queue.is_empty() {
            polls.note(&mut pair, now_ns);
            now_ns += TICK;
        }
        assert_eq!(polls.late, 0);
    }
    law(Pair::<StagedWheel<usize>>::wheel(), 60 * SECOND, SECOND);
    // Where a coarse slot begins, so that there is the least time to gather it.
    law(Pair::<StagedWheel<usize>>::wheel(), 4 * (TICK << 14), TICK);
}

/// Each poll fires a timer, so long after the one before as if there had been a sleep.
#[test]
fn a_burst_is_ready_where_each_poll_fires() {
    const BURST: u64 = 30_000;
    const FIRST: u64 = 1_040;
    for polls_per_tick in [2, 5, 10] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        for step in 1..FIRST * polls_per_tick {
            pair.arm(step * TICK / polls_per_tick);
        }
        for n in 0..BURST {
            pair.arm(FIRST * TICK + n * 7_919 % BURST * 10_000);
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

/// A burst in one tick, with a few timers in each of the ticks before it.
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

/// The last tick of a coarse slot has a timer, and the first of the next one is crowded.
#[test]
#[cfg_attr(small_wheel, ignore = "it is about levels of the usual size")]
fn a_crowded_slot_behind_another_is_ready_in_time() {
    for slot_bits in [5, 10, 15] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        let border_ns = 5 * (TICK << slot_bits);
        pair.arm(border_ns - 1);
        for n in 0..30_000 {
            pair.arm(border_ns + n * 7_919 % 30_000 * 100);
        }
        assert_eq!(sleep_and_fire(&mut pair).late, 0);
    }
}

/// What is known of bursts was found while another timer was first, and that one is gone.
#[test]
fn a_burst_behind_a_cancelled_timer_is_ready_in_time() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    pair.arm(MS);
    let first = pair.arm(SECOND);
    for n in 0..30_000 {
        pair.arm(3 * SECOND + n * 7_919 % 30_000 * 100);
    }
    // The second goes on with what the first has put off.
    pair.poll(MS, BUDGET);
    pair.poll(MS, BUDGET);
    assert_eq!(pair.wake_ns(), Some(SECOND));
    pair.cancel(first);
    assert_eq!(sleep_and_fire(&mut pair).late, 0);
}

/// Timers that were armed again long ago come to one slot from two, neither of which was crowded.
#[test]
fn a_burst_of_timers_armed_again_is_ready_in_time() {
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
fn a_burst_that_has_just_been_armed_is_ready_in_time() {
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

/// Timers that come down from the level above join others in one slot, neither of them a burst.
#[test]
fn a_burst_of_two_levels_is_ready_in_time() {
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

/// Its timers were cancelled, and those before it are not a reason to look again.
#[test]
fn a_burst_that_is_gone_wakes_no_one() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    pair.arm(39 * TICK);
    let burst: Vec<usize> = (0..5_000)
        .map(|n| pair.arm(40 * TICK + n * 7_919 % 5_000))
        .collect();
    pair.poll(TICK, BUDGET);
    let wake_ns = pair.wake_ns().expect("there are timers");
    assert!(wake_ns < 39 * TICK, "it takes more than one poll");
    for id in burst {
        pair.cancel(id);
    }
    assert_eq!(pair.wake_ns(), Some(39 * TICK));
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
#[cfg_attr(
    small_wheel,
    ignore = "it counts polls, some of which give pages of the usual size back"
)]
fn far_bursts_leave_an_executor_asleep() {
    const BURST: u64 = 30_000;
    let lead_ns = (BURST / MOVES_PER_POLL as u64 + 1) * 10 * TICK;
    for idle_ns in [60 * SECOND, 3600 * SECOND, DAY] {
        let mut pair = Pair::<StagedWheel<usize>>::wheel();
        let ids: Vec<usize> = (0..BURST).map(|n| pair.arm(idle_ns + n * 10_000)).collect();
        let upkeep_ns = pair.upkeep_ns().expect("a burst");
        assert!(upkeep_ns >= idle_ns - lead_ns && upkeep_ns < idle_ns);
        // The usual fate of timeouts: what is left to do is to give memory back.
        for &id in &ids[100..] {
            pair.cancel(id);
        }
        assert!(polls_until_settled(&mut pair) <= SHRINKING_POLLS);
        assert!(pair.now_ns < 20 * SECOND);
        assert_eq!(pair.next_ns(), Some(idle_ns));
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

/// A burst that is cancelled while it is made ready, and others armed in its place.
#[test]
fn a_burst_may_be_cancelled_while_it_is_made_ready() {
    fn law<Q: Queue>(mut pair: Pair<Q>) {
        pair.bound_moves(20);
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

/// Each tick is crowded, and made ready before the one in front has fired: the run never ends, and
/// its keys reach over four seconds only.
#[test]
fn bursts_without_end_do_not_outgrow_the_run() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    pair.bound_moves(4);
    for tick in 0..9_000 {
        for n in 0..6 {
            pair.arm((tick + 60) * TICK + (n * 5 + 2) % 6);
        }
        for step in 0..4 {
            pair.poll(tick * TICK + step * TICK / 4, BUDGET);
        }
    }
    pair.check();
    sleep_and_fire(&mut pair);
    assert!(pair.queue.is_empty());
}

/// The poll in which a tick began read the records of all of its timers, which no cache held.
#[test]
#[cfg_attr(
    small_wheel,
    ignore = "it counts what a poll takes of pages of the usual size"
)]
fn the_next_tick_is_gathered_while_this_one_lasts() {
    const TIMERS: u64 = 200;
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    for n in 0..TIMERS {
        pair.arm(50 * TICK + n * 7_919 % TIMERS * TICK / TIMERS);
    }
    let mut gathered = Vec::new();
    for step in 1..16 {
        // It is not asked for: an executor that sleeps gathers them at once.
        assert!(pair.queue.next_upkeep().is_none());
        assert_eq!(pair.poll(49 * TICK + step * TICK / 16, BUDGET), (0, false));
        gathered.push(pair.queue.gathered());
        pair.check();
    }
    let pieces = gathered.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(pieces.max() < Some(TIMERS as usize / 4), "{gathered:?}");
    assert_eq!(gathered.last(), Some(&(TIMERS as usize)));
    // One that is armed meanwhile comes in its turn.
    let late = pair.arm(50 * TICK + 1);
    assert_eq!(pair.poll(50 * TICK + 1, BUDGET), (2, false));
    assert_eq!(pair.deadline_of(late), None);
    assert_eq!(pair.poll(51 * TICK, BUDGET).0, TIMERS as usize - 1);
}

/// Timers of a tick that is gathered may leave it, and others come.
#[test]
fn a_tick_changes_while_it_is_gathered() {
    let mut pair = Pair::<StagedWheel<usize>>::wheel();
    let timers: Vec<usize> = (0..300)
        .map(|n| pair.arm(50 * TICK + n * 7_919 % 300 * 3_000))
        .collect();
    for step in 1..16 {
        let polled = 49 * TICK + step * TICK / 16;
        pair.poll_all(polled, BUDGET);
        for n in 0..6 {
            let id = timers[(step * 17 + n * 41) as usize % 300];
            if pair.deadline_of(id).is_none() {
                continue;
            }
            match n % 3 {
                0 => pair.cancel(id),
                // Into the same tick, and out of it.
                1 => pair.rearm(id, 50 * TICK + step),
                _ => pair.rearm(id, polled + 1),
            }
        }
        pair.arm(50 * TICK);
        pair.check();
    }
    pair.poll_all(52 * TICK, BUDGET);
    assert!(pair.queue.is_empty());
}
