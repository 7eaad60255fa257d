//! The independent model: which timers ought to be armed, and for when, in a sorted map.
//!
//! It shares nothing with the library's timer queue, neither code nor layout: one hash map from key
//! to what is known of a timer, one ordered set of deadlines, one per lane, and the last
//! [`RETIRED_MAX`] keys that left, so that a firing that should not be can be told apart: a second
//! one, or one after a cancellation. Keys are never used twice. Time comes in as an argument.
//!
//! ```text
//!               armed ─────────── fire, cancel, write off ───────────▶ retired
//!   deadline, lane, holds its future?                holds it still: among the unreturned
//! ```
//!
//! A *lane* is a task queue whose timers are waited for in one and the same way, so that the order
//! in which they go off is promised: by deadline, then by arming. A timer joins its lane once it is
//! in the library's queue for certain, and leaves it when it is re-armed.
//!
//! Cost per operation: `O(log n)`, about a microsecond at 100,000 timers.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use crate::map::HashMap;

/// Names one arming of one timer in one executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(pub(crate) u64);

/// Timers of one executor among which the order is promised. Small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(pub(crate) usize);

/// What the model has to say about a timer that fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Firing {
    /// It was armed.
    Expected { deadline: Instant, place: Place },
    /// It has fired before.
    Again,
    /// It was cancelled before.
    Cancelled,
    /// It was given up as lost, and reported as such.
    WrittenOff,
    /// It was not armed, or it left so long ago that the model has forgotten how.
    Unknown,
}

/// Where in its lane a timer stood when it fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It was in none.
    NoLane,
    First,
    /// This one should have fired before it.
    Behind(Key),
}

/// The timers that ought to be armed in one executor.
#[derive(Debug, Default)]
pub(crate) struct DeadlineModel {
    armed: HashMap<Key, Armed>,
    /// By when each is due: its deadline, or its arming if that was later.
    by_due: BTreeSet<(Instant, Key)>,
    /// By deadline and turn of arming.
    lanes: Vec<BTreeSet<(Instant, u64, Key)>>,
    next_turn: u64,
    retired: HashMap<Key, Firing>,
    retired_order: VecDeque<Key>,
    /// Retired timers whose future has not been dropped, with the time of their retirement.
    unreturned: HashMap<Key, Instant>,
    unreturned_order: VecDeque<(Instant, Key)>,
}

#[derive(Debug)]
struct Armed {
    deadline: Instant,
    due: Instant,
    seat: Option<Seat>,
    /// Its future has not been dropped.
    is_held: bool,
}

/// A place in a lane.
#[derive(Clone, Copy, Debug)]
struct Seat {
    lane: Lane,
    turn: u64,
    since: Instant,
}

impl DeadlineModel {
    pub(crate) fn arm(&mut self, key: Key, deadline: Instant, now: Instant) {
        let due = deadline.max(now);
        let armed = Armed {
            deadline,
            due,
            seat: None,
            is_held: true,
        };
        let before = self.armed.insert(key, armed);
        assert!(before.is_none(), "keys are never used twice");
        self.by_due.insert((due, key));
    }

    /// The timer is in the library's queue from `now` on at the latest. One that is due by then may
    /// have gone off without ever being in the queue, so nothing is promised of its turn.
    pub(crate) fn join_lane(&mut self, key: Key, lane: Lane, now: Instant) {
        let Some(armed) = self.armed.get_mut(&key) else {
            return;
        };
        if armed.deadline <= now {
            return;
        }
        let turn = self.next_turn;
        self.next_turn += 1;
        armed.seat = Some(Seat {
            lane,
            turn,
            since: now,
        });
        if self.lanes.len() <= lane.0 {
            self.lanes.resize_with(lane.0 + 1, BTreeSet::new);
        }
        self.lanes[lane.0].insert((armed.deadline, turn, key));
    }

    /// Moves an armed timer, out of its lane. `false`: it is not armed, and nothing should happen.
    pub(crate) fn rearm(&mut self, key: Key, deadline: Instant, now: Instant) -> bool {
        let Some(armed) = self.armed.get_mut(&key) else {
            return false;
        };
        self.by_due.remove(&(armed.due, key));
        if let Some(seat) = armed.seat.take() {
            self.lanes[seat.lane.0].remove(&(armed.deadline, seat.turn, key));
        }
        armed.deadline = deadline;
        armed.due = deadline.max(now);
        self.by_due.insert((armed.due, key));
        true
    }

    /// Takes an armed timer out and says when it was due. `None`: it is not armed, and nothing
    /// should happen.
    pub(crate) fn cancel(&mut self, key: Key, now: Instant) -> Option<Instant> {
        let armed = self.remove(key, Firing::Cancelled, now)?;
        Some(armed.due)
    }

    pub(crate) fn fire(&mut self, key: Key, now: Instant) -> Firing {
        let place = self.place(key);
        match self.remove(key, Firing::Again, now) {
            Some(Armed { deadline, .. }) => Firing::Expected { deadline, place },
            None => self.retired.get(&key).copied().unwrap_or(Firing::Unknown),
        }
    }

    pub(crate) fn is_armed(&self, key: Key) -> bool {
        self.armed.contains_key(&key)
    }

    /// Takes out one timer that was due before `limit`, the earliest first.
    pub(crate) fn write_off(&mut self, limit: Instant, now: Instant) -> Option<(Key, Instant)> {
        let &(due, key) = self.by_due.first()?;
        if due >= limit {
            return None;
        }
        self.remove(key, Firing::WrittenOff, now);
        Some((key, due))
    }

    /// The future of a timer has been dropped.
    pub(crate) fn returned(&mut self, key: Key) {
        match self.armed.get_mut(&key) {
            Some(armed) => armed.is_held = false,
            None => {
                self.unreturned.remove(&key);
            }
        }
    }

    /// Takes out one timer that was retired before `limit` and whose future has not been dropped.
    pub(crate) fn overdue_return(&mut self, limit: Instant) -> Option<(Key, Instant)> {
        while let Some(&(retired, key)) = self.unreturned_order.front() {
            let is_held = self.unreturned.contains_key(&key);
            if is_held && retired >= limit {
                return None;
            }
            self.unreturned_order.pop_front();
            if is_held {
                self.unreturned.remove(&key);
                return Some((key, retired));
            }
        }
        None
    }

    pub(crate) fn len(&self) -> usize {
        self.armed.len()
    }

    /// Gives back the memory of a peak.
    pub(crate) fn shrink(&mut self) {
        self.armed.shrink_to_fit();
        self.unreturned.shrink_to_fit();
        self.unreturned_order.shrink_to_fit();
    }

    /// How many futures the library should hold now: of timers that are armed, and of those whose
    /// callback has not ended.
    pub(crate) fn held(&self) -> usize {
        self.armed.len() + self.unreturned.len()
    }

    /// Who in the timer's lane should have fired before it. A neighbour counts if it was in the
    /// queue before the timer was due: later ones may find it on its way out already.
    fn place(&self, key: Key) -> Place {
        let Some(&Armed {
            deadline,
            seat: Some(seat),
            ..
        }) = self.armed.get(&key)
        else {
            return Place::NoLane;
        };
        let own = (deadline, seat.turn, key);
        self.lanes[seat.lane.0]
            .iter()
            .take_while(|&&other| other < own)
            .take(NEIGHBOURS_MAX)
            .find(|(_, _, other)| {
                let seat = self.armed.get(other).and_then(|other| other.seat);
                seat.is_some_and(|seat| seat.since < deadline)
            })
            .map_or(Place::First, |&(_, _, other)| Place::Behind(other))
    }

    fn remove(&mut self, key: Key, retired_as: Firing, now: Instant) -> Option<Armed> {
        let armed = self.armed.remove(&key)?;
        self.by_due.remove(&(armed.due, key));
        if let Some(seat) = armed.seat {
            self.lanes[seat.lane.0].remove(&(armed.deadline, seat.turn, key));
        }
        if armed.is_held {
            self.unreturned.insert(key, now);
            self.unreturned_order.push_back((now, key));
        }
        self.retired.insert(key, retired_as);
        self.retired_order.push_back(key);
        if self.retired_order.len() > RETIRED_MAX
            && let Some(forgotten) = self.retired_order.pop_front()
        {
            self.retired.remove(&forgotten);
        }
        Some(armed)
    }
}

/// How many keys are remembered after they fired or were cancelled.
const RETIRED_MAX: usize = 1 << 15;

/// Those in front of a timer that may be there are few: armed after it was due, or overtaken.
const NEIGHBOURS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lane_is_in_order_of_deadline_then_of_arming() {
        let base = Instant::now();
        let at = |ms| base + Duration::from_millis(ms);
        let mut model = DeadlineModel::default();
        for (key, ms) in [(1, 20), (2, 10), (3, 20), (4, 20)] {
            model.arm(Key(key), at(ms), base);
            model.join_lane(Key(key), Lane(0), base);
        }
        let places = [2, 3, 1, 4].map(|key| match model.fire(Key(key), at(30)) {
            Firing::Expected { place, .. } => place,
            other => panic!("{key}: {other:?}"),
        });
        use Place::{Behind, First};
        assert_eq!(places, [First, Behind(Key(1)), First, First]);
    }
}
