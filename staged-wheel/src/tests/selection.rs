//! A crowd that nothing has made ready: the first of it fires soon, all of it in order, whatever
//! happens meanwhile. Time is moved by hand, and counted in polls.

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{Pair, Queue, SmallStagedWheel, SmallWheel};
use crate::wheel::{StagedWheel, TICK_BITS};

const TICK: u64 = 1 << TICK_BITS;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const DAY: u64 = 86_400 * SECOND;

/// What a turn of the reactor fires.
const BUDGET: usize = 256;

/// A queue with a crowd, armed in no order, and no poll since.
fn silent_crowd<Q: Queue>(count: u64, silence_ns: u64, spread_ns: u64) -> Pair<Q> {
    let mut pair = Pair::<Q>::wheel();
    for n in 0..count {
        pair.arm(silence_ns + n * 7_919 % count * spread_ns / count);
    }
    pair
}

/// It waited for all of them to be moved, down each level: 500 polls.
#[test]
fn the_first_of_a_crowd_fires_within_ten_polls_of_a_long_silence() {
    const CROWD: u64 = 30_000;
    for silence_ns in [50 * MS, SECOND, 60 * SECOND, DAY, 10_000 * DAY] {
        for spread_ns in [0, MS, SECOND, 3600 * SECOND] {
            let mut pair = silent_crowd::<StagedWheel<usize>>(CROWD, silence_ns, spread_ns);
            let now_ns = silence_ns + spread_ns;
            let polls = (1..).find(|_| pair.poll(now_ns, BUDGET).0 > 0);
            let polls = polls.expect("a poll that fires");
            let what = format!("{silence_ns} ns ahead over {spread_ns} ns");
            assert!(polls <= 10, "{polls} polls, {what}");
            // Nor do those behind it wait much: each poll makes ready twice as many as fire.
            let polls = (1..).find(|_| !pair.poll(now_ns, BUDGET).1);
            let polls = polls.expect("a last poll") as u64;
            assert!(polls <= CROWD / BUDGET as u64 + 60, "{polls} polls, {what}");
            assert!(pair.queue.is_empty());
            pair.check();
        }
    }
}

/// It waited for a sample of all pages, and for a pass through all of them.
#[test]
#[cfg_attr(
    small_pages,
    ignore = "it counts polls, which pages of the usual size need few of"
)]
fn the_first_of_a_crowd_is_found_without_a_look_at_all_of_it() {
    for silence_ns in [60 * SECOND, DAY] {
        let mut pair = silent_crowd::<StagedWheel<usize>>(60_000, silence_ns, MS);
        // The first has spent its moves on the list before it saw how long that is.
        let fired = [(); 2].map(|()| pair.poll(silence_ns + MS, BUDGET).0);
        assert!(fired[1] > 0, "{fired:?}");
        pair.check();
    }
}

/// Each of them is that of thousands of timers, on every page.
#[test]
#[cfg_attr(
    small_pages,
    ignore = "it counts polls, which pages of the usual size need few of"
)]
fn of_few_deadlines_the_first_fires_as_soon() {
    for deadlines in [2, 10, 100] {
        for silence_ns in [60 * SECOND, DAY] {
            let mut pair = Pair::<StagedWheel<usize>>::wheel();
            for n in 0..120_000 {
                pair.arm(silence_ns + n * 7_919 % deadlines);
            }
            let polls = (1..).find(|_| pair.poll(silence_ns + MS, BUDGET).0 > 0);
            assert!(
                polls <= Some(3),
                "{polls:?} polls for {deadlines} deadlines"
            );
            pair.check();
            // Nor do those behind it wait for more than a sample and a pass through all pages.
            let (mut idle, mut longest) = (0, 0);
            while !pair.queue.is_empty() {
                let (fired, _) = pair.poll(silence_ns + MS, BUDGET);
                idle = if fired > 0 { 0 } else { idle + 1 };
                longest = longest.max(idle);
            }
            assert!(longest <= 35, "{longest} polls for {deadlines} deadlines");
        }
    }
}

/// Timers that are not due lie in the same slot, and do not keep the poll from its end.
#[test]
#[cfg_attr(
    small_pages,
    ignore = "it counts polls, which pages of the usual size need few of"
)]
fn what_is_due_of_a_slot_fires_before_the_rest_is_moved() {
    let mut pair = silent_crowd::<StagedWheel<usize>>(50_000, 60 * SECOND, 4 * SECOND);
    let now_ns = 60 * SECOND + 4 * MS;
    let due = (0..pair.armed_so_far())
        .filter(|&id| pair.deadline_of(id) <= Some(now_ns))
        .count();
    let mut fired = 0;
    let polls = (1..).find(|_| {
        fired += pair.poll(now_ns, BUDGET).0;
        fired == due
    });
    assert!(polls <= Some(10), "{polls:?}");
    pair.check();
    // A timer that comes due while they are moved waits for no more than that.
    assert!(pair.poll(now_ns, BUDGET).1);
    let first = pair.armed().next().expect("more are armed");
    let next_ns = pair.deadline_of(first).expect("it is armed");
    let polls = (1..).find(|_| pair.poll(next_ns, BUDGET).0 > 0);
    assert!(polls <= Some(40), "{polls:?}");
    pair.poll_all(65 * SECOND, BUDGET);
    assert!(pair.queue.is_empty());
}

/// Selecting anew again and again would keep the poll from moving what it must.
#[test]
fn a_selection_is_no_longer_than_the_moves_after_it() {
    // All in one slot, of which little is due.
    let mut pair = silent_crowd::<StagedWheel<usize>>(60_000, 60 * SECOND, 4 * SECOND);
    let mut selecting = 0;
    let mut polls = 0;
    while pair.poll(60 * SECOND + MS, BUDGET).1 {
        selecting += usize::from(pair.queue.is_selecting());
        polls += 1;
    }
    assert!(selecting > 0, "nothing was selected");
    assert!(selecting <= polls / 2 + 10, "{selecting} of {polls}");
    pair.check();
}

/// A payload is a waker, whose destructor may come back to the queue.
#[test]
fn payloads_are_handed_out_in_the_middle_of_a_selection() {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::{Duration, Instant};

    /// Counts itself while it lives.
    struct Payload(Rc<Cell<usize>>);
    impl Drop for Payload {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    const CROWD: usize = 20_000;
    let live = Rc::new(Cell::new(CROWD));
    let epoch = Instant::now();
    let mut queue: StagedWheel<Payload> = StagedWheel::new(epoch);
    let due = epoch + Duration::from_secs(60);
    // The last to be armed are the first to be due: a list in order needs no selection.
    let mut handles: Vec<_> = (0..CROWD as u64)
        .map(|n| queue.insert(due - Duration::from_nanos(n), Payload(Rc::clone(&live))))
        .collect();
    handles.reverse();
    let mut expired = Vec::new();
    while expired.is_empty() {
        assert!(queue.expire(due, 7, &mut expired));
    }
    assert!(queue.is_selecting());
    assert_eq!(live.get(), CROWD);
    for (n, &handle) in handles.iter().enumerate() {
        assert_eq!(queue.get_mut(handle).is_some(), n >= 7);
    }
    let rest = queue.disarm_all();
    assert_eq!((expired.len(), rest.len()), (7, CROWD - 7));
    assert_eq!(live.get(), CROWD);
    drop(rest);
    drop(expired);
    assert_eq!(live.get(), 0);
}

/// What happens between two polls, to a timer by its place among those armed.
#[derive(Clone, Debug)]
enum Event {
    Cancel(usize),
    /// Of so many, the first in order.
    CancelFirst(usize),
    /// To the deadline of another, or so much before or after it.
    Rearm(usize, usize, i64),
    Arm(usize, i64),
    LookUp(usize),
    Ask,
    SkipArms,
    /// So much on, or back.
    Poll(i64, usize),
}

fn event() -> impl Strategy<Value = Event> {
    let place = || prop_oneof![2 => any::<usize>(), 1 => 0..20usize];
    let offset = || prop_oneof![2 => Just(0), 2 => -2i64..=2, 1 => -3_000_000i64..3_000_000];
    let jump = prop_oneof![
        6 => Just(0),
        2 => 0..3_000_000i64,
        1 => 0..100_000_000_000i64,
        1 => -3_000_000..0i64,
    ];
    prop_oneof![
        3 => place().prop_map(Event::Cancel),
        1 => (1..30usize).prop_map(Event::CancelFirst),
        4 => (place(), place(), offset()).prop_map(|(id, to, by)| Event::Rearm(id, to, by)),
        4 => (place(), offset()).prop_map(|(to, by)| Event::Arm(to, by)),
        1 => place().prop_map(Event::LookUp),
        1 => Just(Event::Ask),
        1 => Just(Event::SkipArms),
        12 => (jump, prop_oneof![0..9usize, Just(BUDGET)]).prop_map(|(by, budget)| Event::Poll(by, budget)),
    ]
}

/// Runs the events from when the first of the crowd is due. How many polls were in the middle of a
/// selection, if the queue can tell?
fn follow<Q: Queue>(mut pair: Pair<Q>, events: &[Event], moves: usize, due_ns: u64) {
    pair.bound_moves(moves);
    let mut now_ns = due_ns;
    for event in events {
        let armed: Vec<usize> = pair.armed().collect();
        let pick = |place: usize| (!armed.is_empty()).then(|| armed[place % armed.len()]);
        let beside = |to: usize, by: i64| {
            let deadline_ns = pick(to).and_then(|id| pair.deadline_of(id));
            deadline_ns.unwrap_or(now_ns).saturating_add_signed(by)
        };
        match *event {
            Event::Cancel(place) => {
                if let Some(id) = pick(place) {
                    pair.cancel(id);
                }
            }
            Event::CancelFirst(count) => {
                for &id in armed.iter().take(count) {
                    pair.cancel(id);
                }
            }
            Event::Rearm(place, to, by) => {
                let deadline_ns = beside(to, by);
                if let Some(id) = pick(place) {
                    pair.rearm(id, deadline_ns);
                }
            }
            Event::Arm(to, by) => {
                pair.arm(beside(to, by));
            }
            Event::LookUp(place) => {
                // Also one that has fired.
                pair.look_up(place % pair.armed_so_far());
            }
            Event::Ask => pair.check_next(),
            Event::SkipArms => pair.queue.skip_arms(1 << 31),
            Event::Poll(by, budget) => {
                now_ns = now_ns.saturating_add_signed(by);
                pair.poll(now_ns, budget);
                pair.check_shape();
            }
        }
    }
    let last_ns = now_ns.max(pair.now_ns) + 100 * SECOND;
    pair.poll_all(last_ns, BUDGET);
    pair.check();
}

proptest! {
    #![proptest_config(super::cases())]

    /// Few moves to a poll, so that a selection is under way for long.
    #[test]
    fn anything_may_happen_in_the_middle_of_a_selection(
        count in prop_oneof![4 => 30u64..300, 1 => 300u64..1500],
        silence_ns in prop_oneof![Just(50 * MS), Just(60 * SECOND), Just(DAY), 0..DAY],
        spread_ns in prop_oneof![Just(1), 1..TICK, 1..100 * MS, 1..100 * SECOND],
        moves in 1usize..40,
        events in vec(event(), 1..80),
    ) {
        let due_ns = silence_ns + spread_ns / 2;
        let crowd = silent_crowd::<StagedWheel<usize>>(count, silence_ns, spread_ns);
        follow(crowd, &events, moves, due_ns);
        let crowd = silent_crowd::<SmallWheel>(count, silence_ns, spread_ns);
        follow(crowd, &events, moves, due_ns);
        let crowd = silent_crowd::<SmallStagedWheel>(count, silence_ns, spread_ns);
        follow(crowd, &events, moves, due_ns);
    }
}

/// The law above is one about selections: most of its histories have some.
#[test]
fn a_small_crowd_is_selected_where_a_poll_has_few_moves() {
    for moves in [1, 7, 39] {
        let mut pair = silent_crowd::<StagedWheel<usize>>(400, 60 * SECOND, TICK);
        pair.bound_moves(moves);
        let was_selecting = (0..5).any(|_| {
            pair.poll(60 * SECOND + TICK, 3);
            pair.queue.is_selecting()
        });
        assert!(was_selecting, "{moves}");
    }
}
