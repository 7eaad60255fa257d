//! One interface over the queues, and the sorted map they must be indistinguishable from.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::classic::{ClassicHandle, ClassicQueue};
use crate::wheel::{INLINE_MAX, LEVELS, MOVES_PER_POLL, StagedWheel, TimerHandle};

/// What the tests ask of a queue. The payload is the number of the arm.
pub(super) trait Queue {
    type Handle: Copy + Eq + Debug;
    /// Empty wakes that one arm may cost at most.
    const LEVELS: usize;

    /// With so many timers in an inline stage at most, if the queue has one.
    fn new(epoch: Instant, inline_max: usize) -> Self;
    fn insert(&mut self, deadline: Instant, id: usize) -> Self::Handle;
    fn cancel(&mut self, handle: Self::Handle) -> Option<usize>;
    fn rearm(&mut self, handle: Self::Handle, deadline: Instant) -> bool;
    fn compact(&mut self, handle: Self::Handle) -> Option<Self::Handle>;
    fn get_mut(&mut self, handle: Self::Handle) -> Option<&mut usize>;
    fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<usize>) -> bool;
    fn next_expiry(&mut self) -> Option<Instant>;
    fn next_upkeep(&mut self) -> Option<Instant>;
    fn disarm_all(&mut self) -> Vec<usize>;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;

    /// Asserts the queue's own invariants.
    fn check(&self);
    /// Whether the next expiry must be exact with so many timers armed.
    fn is_exact(&self) -> bool;
    /// Bounds the moves of a poll, if the queue has such a bound.
    fn set_moves_per_poll(&mut self, moves: usize);
    /// Keys that cancelled and re-armed timers have left behind; each costs a move.
    fn dead_keys(&self) -> usize;
    /// Brings the records that are free up to `generation`, if the queue has such.
    fn age(&mut self, generation: u32);
    /// Counts so many timers that were armed and are gone.
    fn skip_arms(&mut self, arms: u64);
}

macro_rules! queue {
    ($queue:ty, $handle:ty, $levels:expr, $new:expr, |$this:ident| $is_exact:expr) => {
        impl Queue for $queue {
            type Handle = $handle;
            const LEVELS: usize = $levels;

            fn new(epoch: Instant, inline_max: usize) -> Self {
                $new(epoch, inline_max)
            }
            fn insert(&mut self, deadline: Instant, id: usize) -> Self::Handle {
                self.insert(deadline, id)
            }
            fn cancel(&mut self, handle: Self::Handle) -> Option<usize> {
                self.cancel(handle)
            }
            fn rearm(&mut self, handle: Self::Handle, deadline: Instant) -> bool {
                self.rearm(handle, deadline)
            }
            fn compact(&mut self, handle: Self::Handle) -> Option<Self::Handle> {
                self.compact(handle)
            }
            fn get_mut(&mut self, handle: Self::Handle) -> Option<&mut usize> {
                self.get_mut(handle)
            }
            fn expire(&mut self, now: Instant, budget: usize, expired: &mut Vec<usize>) -> bool {
                self.expire(now, budget, expired)
            }
            fn next_expiry(&mut self) -> Option<Instant> {
                self.next_expiry()
            }
            fn next_upkeep(&mut self) -> Option<Instant> {
                self.next_upkeep()
            }
            fn disarm_all(&mut self) -> Vec<usize> {
                self.disarm_all()
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn is_empty(&self) -> bool {
                self.is_empty()
            }
            fn check(&self) {
                self.check_invariants();
            }
            fn is_exact(&self) -> bool {
                let $this = self;
                $is_exact
            }
            fn set_moves_per_poll(&mut self, moves: usize) {
                self.set_moves_per_poll(moves);
            }
            fn dead_keys(&self) -> usize {
                self.dead_keys()
            }
            fn age(&mut self, generation: u32) {
                self.age(generation);
            }
            fn skip_arms(&mut self, arms: u64) {
                self.skip_arms(arms);
            }
        }
    };
}

queue!(
    ClassicQueue<usize>,
    ClassicHandle,
    0,
    |epoch, _| Self::new(epoch),
    |_this| true
);
queue!(
    StagedWheel<usize>,
    TimerHandle,
    LEVELS,
    Self::with_inline_max,
    |this| this.len() <= 8 || this.is_inline()
);

/// A queue beside the sorted map, with all handles ever handed out.
pub(super) struct Pair<Q: Queue> {
    pub(super) epoch: Instant,
    pub(super) queue: Q,
    /// The latest `now` of a poll, in nanoseconds since the epoch.
    pub(super) now_ns: u64,
    /// By deadline and arming count.
    model: BTreeMap<(u64, usize), usize>,
    /// By number of the arm.
    timers: Vec<Timer<Q::Handle>>,
    seq: usize,
    pub(super) moves_per_poll: usize,
}

#[derive(Clone, Copy)]
struct Timer<H> {
    handle: H,
    /// Its place in the model, while it is armed.
    key: Option<(u64, usize)>,
}

impl<Q: Queue> Pair<Q> {
    pub(super) fn new() -> Self {
        Self::with_inline_max(INLINE_MAX)
    }

    /// The same without an inline stage.
    pub(super) fn wheel() -> Self {
        Self::with_inline_max(0)
    }

    fn with_inline_max(inline_max: usize) -> Self {
        // Any instant will do: the queues never look at a clock.
        let epoch = Instant::now() + Duration::from_secs(1000);
        Pair {
            epoch,
            queue: Q::new(epoch, inline_max),
            now_ns: 0,
            model: BTreeMap::new(),
            timers: Vec::new(),
            seq: 0,
            moves_per_poll: MOVES_PER_POLL,
        }
    }

    /// The same with timers for never, so many that a staged queue has left its inline stage.
    #[cfg(test)]
    pub(super) fn crowded() -> Self {
        let mut pair = Self::new();
        for _ in 0..256 {
            pair.arm(u64::MAX);
        }
        pair
    }

    /// Timers there ever were.
    pub(super) fn armed_so_far(&self) -> usize {
        self.timers.len()
    }

    /// The deadline of the timer, while it is armed.
    pub(super) fn deadline_of(&self, id: usize) -> Option<u64> {
        self.timers[id].key.map(|(deadline_ns, _)| deadline_ns)
    }

    #[cfg(test)]
    pub(super) fn is_never(&self, id: usize) -> bool {
        self.deadline_of(id) == Some(u64::MAX)
    }

    #[cfg(test)]
    pub(super) fn is_armed_for(&self, deadline_ns: u64) -> bool {
        let at_that_time = (deadline_ns, 0)..=(deadline_ns, usize::MAX);
        self.model.range(at_that_time).next().is_some()
    }

    pub(super) fn bound_moves(&mut self, moves: usize) {
        self.moves_per_poll = moves;
    }

    /// Polls for so long that an empty queue gives back what it has not used.
    #[cfg(test)]
    pub(super) fn rest(&mut self) {
        for _ in 0..4 {
            self.poll_all(self.now_ns + 5_000_000_000, usize::MAX);
        }
    }

    pub(super) fn instant(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }

    /// Arms a timer and returns its number.
    pub(super) fn arm(&mut self, deadline_ns: u64) -> usize {
        self.arm_at(self.instant(deadline_ns), deadline_ns)
    }

    /// The same for an instant that the queue should take for `deadline_ns`.
    pub(super) fn arm_at(&mut self, deadline: Instant, deadline_ns: u64) -> usize {
        let id = self.timers.len();
        let handle = self.queue.insert(deadline, id);
        let key = (deadline_ns, self.seq);
        self.seq += 1;
        self.model.insert(key, id);
        self.timers.push(Timer {
            handle,
            key: Some(key),
        });
        id
    }

    pub(super) fn cancel(&mut self, id: usize) {
        let Timer { handle, key } = self.timers[id];
        assert_eq!(self.queue.cancel(handle), key.map(|_| id));
        self.forget(id);
    }

    /// Whose handles name nothing from then on, whatever is armed after them.
    pub(super) fn disarm_all(&mut self) {
        let mut ids = self.queue.disarm_all();
        ids.sort_unstable();
        let mut armed: Vec<usize> = self.armed().collect();
        armed.sort_unstable();
        assert_eq!(ids, armed);
        for id in ids {
            self.forget(id);
        }
    }

    #[cfg(test)]
    pub(super) fn rearm(&mut self, id: usize, deadline_ns: u64) {
        self.rearm_at(id, self.instant(deadline_ns), deadline_ns);
    }

    /// The same for an instant that the queue should take for `deadline_ns`.
    pub(super) fn rearm_at(&mut self, id: usize, deadline: Instant, deadline_ns: u64) {
        let Timer { handle, key } = self.timers[id];
        assert_eq!(self.queue.rearm(handle, deadline), key.is_some());
        if let Some(moved) = self.queue.compact(handle) {
            assert!(key.is_some() && moved != handle);
            assert_eq!(self.queue.get_mut(handle), None);
            self.timers[id].handle = moved;
        }
        if self.forget(id) {
            let key = (deadline_ns, self.seq);
            self.seq += 1;
            self.model.insert(key, id);
            self.timers[id].key = Some(key);
        }
    }

    pub(super) fn look_up(&mut self, id: usize) {
        let Timer { handle, key } = self.timers[id];
        assert_eq!(self.queue.get_mut(handle).copied(), key.map(|_| id));
    }

    /// Polls both; how many fired, and whether the queue asks for another poll.
    pub(super) fn poll(&mut self, now_ns: u64, budget: usize) -> (usize, bool) {
        // What is never due is not due at the end of time either.
        let due_ns = now_ns.min(u64::MAX - 1);
        self.now_ns = self.now_ns.max(due_ns);
        let due: Vec<usize> = self
            .model
            .range(..=(due_ns, usize::MAX))
            .map(|(_, &id)| id)
            .collect();
        self.queue.set_moves_per_poll(self.moves_per_poll);
        let moves = self.moves_at_most();
        let mut expired = Vec::new();
        let has_more = self
            .queue
            .expire(self.instant(now_ns), budget, &mut expired);
        assert!(expired.len() <= budget);
        assert!(
            due.starts_with(&expired),
            "fired {expired:?} where {due:?} were due",
        );
        if moves <= self.moves_per_poll {
            assert_eq!(expired.len(), due.len().min(budget));
            assert_eq!(has_more, due.len() > budget);
        } else {
            assert!(
                has_more || expired.len() == due.len(),
                "said to be done early"
            );
        }
        for &id in &expired {
            assert!(self.forget(id));
        }
        (expired.len(), has_more)
    }

    /// Polls until the queue says that nothing more is due. How many fired?
    pub(super) fn poll_all(&mut self, now_ns: u64, budget: usize) -> usize {
        assert!(budget > 0);
        // A poll that fires nothing spends its moves.
        let mut empty_polls_left = self.moves_at_most() / self.moves_per_poll + 1;
        let mut fired = 0;
        loop {
            let (fired_now, has_more) = self.poll(now_ns, budget);
            fired += fired_now;
            if !has_more {
                return fired;
            }
            if fired_now == 0 {
                assert!(empty_polls_left > 0, "polls without end");
                empty_polls_left -= 1;
            }
        }
    }

    /// No timer moves more than once a level, and into the run.
    pub(super) fn moves_at_most(&self) -> usize {
        self.queue.len() * (Q::LEVELS + 1) + self.queue.dead_keys()
    }

    /// The earliest deadline that will ever be due.
    pub(super) fn true_next_ns(&self) -> Option<u64> {
        let (&(deadline_ns, _), _) = self.model.first_key_value()?;
        (deadline_ns != u64::MAX).then_some(deadline_ns)
    }

    pub(super) fn next_ns(&mut self) -> Option<u64> {
        let next = self.queue.next_expiry()?;
        Some(self.ns(next))
    }

    /// When the queue wants a poll for its own sake.
    pub(super) fn upkeep_ns(&mut self) -> Option<u64> {
        let upkeep = self.queue.next_upkeep()?;
        Some(self.ns(upkeep))
    }

    /// When a sleeping reactor is to wake.
    pub(super) fn wake_ns(&mut self) -> Option<u64> {
        let next_ns = self.next_ns();
        next_ns.into_iter().chain(self.upkeep_ns()).min()
    }

    fn ns(&self, instant: Instant) -> u64 {
        let ns = instant.duration_since(self.epoch).as_nanos();
        u64::try_from(ns).expect("within 584 years")
    }

    /// Compares all that can be asked.
    pub(super) fn check(&mut self) {
        self.check_shape();
        self.check_next();
        self.check_shape();
    }

    /// Compares what can be asked without the queue learning anything by it.
    pub(super) fn check_shape(&self) {
        self.queue.check();
        assert_eq!(self.queue.len(), self.model.len());
        assert_eq!(self.queue.is_empty(), self.model.is_empty());
    }

    /// The next expiry is the earliest deadline or a bound of it, and exact where it must be.
    pub(super) fn check_next(&mut self) {
        let next_ns = self.next_ns();
        let true_next_ns = self.true_next_ns();
        assert_eq!(next_ns.is_none(), true_next_ns.is_none());
        assert!(
            next_ns <= true_next_ns,
            "{next_ns:?} is later than {true_next_ns:?}"
        );
        if self.queue.is_exact() {
            assert_eq!(next_ns, true_next_ns);
        }
    }

    /// Numbers of the armed timers, in firing order.
    pub(super) fn armed(&self) -> impl Iterator<Item = usize> + '_ {
        self.model.values().copied()
    }

    fn forget(&mut self, id: usize) -> bool {
        match self.timers[id].key.take() {
            Some(key) => self.model.remove(&key).is_some(),
            None => false,
        }
    }
}
