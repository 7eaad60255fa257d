//! Bursts that were armed in the order in which they fire, as equal timeouts are: what comes in between
//! keeps its place.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{Pair, Queue};
use crate::wheel::StagedWheel;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What a turn of the reactor fires.
const BUDGET: usize = 256;

/// A timer that moves to another page goes to the end of its list, where others wait that were armed
/// after it for the same time.
#[test]
#[cfg_attr(small_wheel, ignore = "it empties pages of the usual size")]
fn a_timer_that_moves_to_another_page_keeps_its_turn() {
    let epoch = Instant::now();
    let due = epoch + Duration::from_secs(3600);
    let mut queue: StagedWheel<u32> = StagedWheel::new(epoch);
    let handles: Vec<_> = (0..20_000).map(|n| queue.insert(due, n)).collect();
    let is_left = |n: u32| n.is_multiple_of(40);
    let gone = (0..).zip(&handles).filter(|&(n, _)| !is_left(n));
    gone.for_each(|(_, &handle)| _ = queue.cancel(handle));
    // Until pages are given back, a few in each poll.
    let polls = (1..).take_while(|&n| {
        queue.expire(epoch + Duration::from_secs(n), BUDGET, &mut Vec::new());
        queue.insert(due, u32::MAX);
        let moved = handles.iter().filter(|&&it| queue.compact(it).is_some());
        moved.count() == 0
    });
    assert!(polls.count() < 30, "none has moved");
    queue.check_invariants();
    let mut expired = Vec::new();
    while queue.expire(due, BUDGET, &mut expired) {}
    let survivors = (0..20_000).filter(|&n| is_left(n));
    let last = expired.split_off(500);
    assert!(expired.into_iter().eq(survivors) && last.iter().all(|&n| n == u32::MAX));
}

#[derive(Clone, Debug)]
enum Event {
    /// So many, so far ahead and so far apart.
    Burst(u16, u64, u64),
    Arm(u64),
    /// For the time of another, or a little before or after it.
    Beside(usize, i8),
    Cancel(usize),
    Rearm(usize, u64),
    RearmBeside(usize, usize, i8),
    /// To the deadline of one of those that come next.
    Poll(usize, usize),
    Pass(u64),
    Sleep,
}

fn ahead() -> impl Strategy<Value = u64> {
    prop_oneof![0..3 * MS, 0..SECOND, 0..100 * SECOND]
}

fn event() -> impl Strategy<Value = Event> {
    let apart = prop_oneof![Just(0), 1..100u64, 0..MS];
    prop_oneof![
        3 => (1u16..300, ahead(), apart).prop_map(|(n, ahead, apart)| Event::Burst(n, ahead, apart)),
        2 => ahead().prop_map(Event::Arm),
        4 => (any::<usize>(), -2i8..3).prop_map(|(n, by)| Event::Beside(n, by)),
        3 => (0usize..40).prop_map(Event::Cancel),
        2 => (0usize..40, ahead()).prop_map(|(n, ahead)| Event::Rearm(n, ahead)),
        2 => (0usize..40, any::<usize>(), -2i8..3).prop_map(|(n, other, by)| Event::RearmBeside(n, other, by)),
        8 => (0usize..200, 0usize..100).prop_map(|(n, budget)| Event::Poll(n, budget)),
        1 => ahead().prop_map(Event::Pass),
        3 => Just(Event::Sleep),
    ]
}

fn follow<Q: Queue>(events: &[Event], moves: usize) {
    let mut pair = Pair::<Q>::wheel();
    pair.bound_moves(moves);
    for event in events {
        let len = pair.queue.len();
        let nth = |pair: &Pair<Q>, n: usize| (len > 0).then(|| pair.armed().nth(n % len)).flatten();
        let beside = |pair: &Pair<Q>, n: usize, by: i8| {
            let other = nth(pair, n).and_then(|id| pair.deadline_of(id));
            other
                .unwrap_or(pair.now_ns)
                .saturating_add_signed(by.into())
        };
        match *event {
            Event::Burst(count, ahead_ns, apart_ns) => {
                let first_ns = pair.now_ns + ahead_ns;
                (0..u64::from(count)).for_each(|n| _ = pair.arm(first_ns + n * apart_ns));
            }
            Event::Arm(ahead_ns) => _ = pair.arm(pair.now_ns + ahead_ns),
            Event::Beside(n, by) => _ = pair.arm(beside(&pair, n, by)),
            Event::Cancel(n) => nth(&pair, n).into_iter().for_each(|id| pair.cancel(id)),
            Event::Rearm(n, ahead_ns) => {
                let deadline_ns = pair.now_ns + ahead_ns;
                let id = nth(&pair, n);
                id.into_iter().for_each(|id| pair.rearm(id, deadline_ns));
            }
            Event::RearmBeside(n, other, by) => {
                let deadline_ns = beside(&pair, other, by);
                let id = nth(&pair, n);
                id.into_iter().for_each(|id| pair.rearm(id, deadline_ns));
            }
            Event::Poll(n, budget) => {
                let to_ns = beside(&pair, n, 0).max(pair.now_ns);
                pair.poll(to_ns, budget);
            }
            Event::Pass(ahead_ns) => _ = pair.poll_all(pair.now_ns + ahead_ns, BUDGET),
            Event::Sleep => {
                if let Some(next_ns) = pair.next_ns() {
                    pair.poll_all(next_ns.max(pair.now_ns), BUDGET);
                }
            }
        }
        pair.check();
    }
    pair.poll_all(pair.now_ns + 1_000 * SECOND, BUDGET);
    assert!(pair.queue.is_empty());
}

proptest! {
    #![proptest_config(super::cases())]

    #[test]
    fn whatever_comes_in_between_keeps_its_place(events in vec(event(), 1..60), moves in 1usize..80) {
        follow::<StagedWheel<usize>>(&events, moves);
    }
}
