//! The classic queue: an ordered map by deadline, a hash map by handle.
//!
//! What a reactor does without further thought, and what the wheels must be indistinguishable from
//! but for the time they take. Arm, cancel and re-arm cost a hash and a descent of the tree
//! each, O(log n) in the timers armed.
//!
//! The tree grows and shrinks node by node. The hash map is split (`classic/keys.rs`), so that it
//! does so a part at a time, and gives back what a peak has left.

mod keys;

use std::collections::BTreeMap;
use std::time::Instant;

pub use keys::ClassicHandle;
use keys::{Key, Keys};

use super::epoch::{Epoch, NEVER};
use crate::fired::Fired;

/// A timer queue on an ordered map.
#[derive(Debug)]
pub struct ClassicQueue<T> {
    epoch: Epoch,
    /// Timers so far.
    next_id: u64,
    /// Arms so far, those of [`rearm`](Self::rearm) included.
    seq: u64,
    /// Where in `timers` a handle's timer is.
    keys: Keys,
    timers: BTreeMap<Key, (ClassicHandle, T)>,
}

impl<T> ClassicQueue<T> {
    /// An empty queue. Deadlines before `epoch` count as `epoch`.
    pub fn new(epoch: Instant) -> Self {
        ClassicQueue {
            epoch: Epoch::new(epoch),
            next_id: 0,
            seq: 0,
            keys: Keys::new(),
            timers: BTreeMap::new(),
        }
    }

    /// Arms a timer.
    pub fn insert(&mut self, deadline: Instant, payload: T) -> ClassicHandle {
        let handle = ClassicHandle(self.next_id);
        self.next_id += 1;
        let key = self.key(deadline);
        self.keys.insert(handle, key);
        self.timers.insert(key, (handle, payload));
        handle
    }

    /// Disarms a timer and returns its payload; `None` if it has fired or was cancelled.
    pub fn cancel(&mut self, handle: ClassicHandle) -> Option<T> {
        let key = self.keys.remove(handle)?;
        let (_, payload) = self.timers.remove(&key).expect(BOTH);
        Some(payload)
    }

    /// Gives an armed timer another deadline in place. Among equal deadlines it counts as armed
    /// now. False if it has fired or was cancelled.
    pub fn rearm(&mut self, handle: ClassicHandle, deadline: Instant) -> bool {
        let key = self.key(deadline);
        let Some(place) = self.keys.get_mut(handle) else {
            return false;
        };
        let old = std::mem::replace(place, key);
        let timer = self.timers.remove(&old).expect(BOTH);
        self.timers.insert(key, timer);
        true
    }

    /// Nothing to be done: a node of the tree goes back with its last timer.
    pub fn compact(&mut self, _handle: ClassicHandle) -> Option<ClassicHandle> {
        None
    }

    /// The payload of an armed timer.
    pub fn get_mut(&mut self, handle: ClassicHandle) -> Option<&mut T> {
        let key = self.keys.get(handle)?;
        self.timers.get_mut(key).map(|(_, payload)| payload)
    }

    /// When an armed timer is due; the epoch if that was before it, and `None` if it is never or no timer.
    pub fn deadline(&self, handle: ClassicHandle) -> Option<Instant> {
        self.epoch.instant(self.keys.get(handle)?.deadline_ns)
    }

    /// Moves the payloads of up to `budget` timers due at `now` to `expired`, in order of deadline
    /// and then of arming. True if more are due.
    pub fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<T>) -> bool {
        self.expire_each(now, budget, |_, _, _, payload| expired.push(payload))
    }

    /// As [`expire`](Self::expire), with the handle and the deadline of each timer.
    pub fn expire_fired(
        &mut self,
        now: Instant,
        budget: usize,
        expired: &mut Vec<Fired<ClassicHandle, T>>,
    ) -> bool {
        self.expire_each(now, budget, |epoch, deadline_ns, handle, payload| {
            expired.push(Fired {
                handle,
                deadline: epoch.fired_at(deadline_ns),
                payload,
            });
        })
    }

    fn expire_each(
        &mut self,
        now: Instant,
        budget: usize,
        mut hand_out: impl FnMut(&Epoch, u64, ClassicHandle, T),
    ) -> bool {
        let now_ns = self.epoch.now_ns(now);
        if now_ns >= self.keys.next_review_ns() {
            self.keys.review(now_ns);
        }
        let mut fired = 0;
        while let Some(first) = self.timers.first_entry()
            && first.key().deadline_ns <= now_ns
        {
            if fired == budget {
                return true;
            }
            let (key, (handle, payload)) = first.remove_entry();
            self.keys.remove(handle);
            hand_out(&self.epoch, key.deadline_ns, handle, payload);
            fired += 1;
        }
        false
    }

    /// When to poll even if nothing is due: memory is to go back that a peak has left. `None` if
    /// there is no need to; a sleeping owner need not wake.
    pub fn next_upkeep(&mut self) -> Option<Instant> {
        let shrink_ns = self.keys.next_shrink_ns();
        self.epoch.instant(shrink_ns)
    }

    /// The earliest deadline. `None` if nothing will be due.
    pub fn next_expiry(&mut self) -> Option<Instant> {
        let first_ns = self
            .timers
            .keys()
            .next()
            .map_or(NEVER, |key| key.deadline_ns);
        self.epoch.instant(first_ns)
    }

    /// Armed timers.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Disarms all timers and returns their payloads, in no particular order: far cheaper than to
    /// cancel each.
    pub fn disarm_all(&mut self) -> Vec<T> {
        // The counts go on, so that no handle names a timer to come.
        self.keys = Keys::new();
        let timers = std::mem::take(&mut self.timers);
        timers.into_values().map(|(_, payload)| payload).collect()
    }

    /// There is no such bound here: a poll moves nothing.
    #[cfg(any(test, fuzzing))]
    pub(super) fn set_moves_per_poll(&mut self, _moves: usize) {}

    /// The keys of a timer leave with it.
    #[cfg(any(test, fuzzing))]
    pub(super) fn dead_keys(&self) -> usize {
        0
    }

    /// Nor are there records: no handle is given out twice.
    #[cfg(any(test, fuzzing))]
    pub(super) fn age(&mut self, _generation: u32) {}

    /// Counts so many timers that were armed and are gone.
    #[cfg(any(test, fuzzing))]
    pub(super) fn skip_arms(&mut self, arms: u64) {
        self.seq += arms;
    }

    #[cfg(any(test, fuzzing))]
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.keys.count(), self.timers.len());
        for (key, (handle, _)) in &self.timers {
            assert_eq!(self.keys.get(*handle), Some(key));
        }
    }

    fn key(&mut self, deadline: Instant) -> Key {
        let seq = self.seq;
        self.seq += 1;
        Key {
            deadline_ns: self.epoch.deadline_ns(deadline),
            seq,
        }
    }
}

const BOTH: &str = "both maps hold the same timers";
