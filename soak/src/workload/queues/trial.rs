//! A timer queue and a sorted map, asked the same in turn.
//!
//! The map is ordered by deadline, then by arming. The queue may not disagree with it in anything:
//!
//! ```text
//!   expire(now)    the first of the map, due at now, one after the other; false: none of it is due now
//!   next_expiry    not later than the first of the map
//!   stale handle   none, false
//!   len, payloads  as many as in the map
//! ```
//!
//! After a disagreement both begin anew.

use std::collections::{BTreeMap, HashMap, VecDeque};

use staged_wheel::{ClassicHandle, ClassicQueue, StagedWheel, TimerHandle};

use crate::workload::prelude::*;

/// A queue beside its map.
pub(super) struct Trial<Q: BareQueue> {
    name: &'static str,
    stats: Arc<ExecutorStats>,
    rng: Rng,
    queue: Q,
    /// The time, as far as the queue can know.
    now: Instant,
    epoch: Instant,
    /// By deadline and count of arming: those that will be due.
    due: BTreeMap<(Instant, u64), u64>,
    armed: HashMap<u64, Armed<Q::Handle>>,
    /// In no order, to draw from.
    ids: Vec<u64>,
    /// Of timers that have fired or were cancelled.
    stale: VecDeque<Q::Handle>,
    /// Ids and counts of arming so far.
    count: u64,
    live: Rc<Cell<usize>>,
    expired: Vec<Payload>,
    /// How many timers there are to be, and for how many steps more.
    wanted: usize,
    steps_left: u64,
    /// How far the clock goes from poll to poll, at most.
    stride: Duration,
    lives_left: u64,
    /// Polls in a row that handed out nothing and said that there was more.
    empty_polls: u64,
    is_broken: bool,
}

#[derive(Clone, Copy, Debug)]
struct Armed<H> {
    handle: H,
    key: (Instant, u64),
    /// Its place in `ids`.
    at: usize,
}

impl<Q: BareQueue> Trial<Q> {
    pub(super) fn new(name: &'static str, stats: Arc<ExecutorStats>, rng: Rng) -> Self {
        let epoch = Instant::now();
        Trial {
            name,
            stats,
            rng,
            queue: Q::new(epoch),
            now: epoch + PAST_MAX,
            epoch,
            due: BTreeMap::new(),
            armed: HashMap::new(),
            ids: Vec::new(),
            stale: VecDeque::new(),
            count: 0,
            live: Rc::default(),
            expired: Vec::new(),
            wanted: 0,
            steps_left: 0,
            stride: STRIDES[0],
            lives_left: LIVES,
            empty_polls: 0,
            is_broken: false,
        }
    }

    /// Asks one thing.
    pub(super) fn step(&mut self) {
        if self.steps_left == 0 {
            self.begin_phase();
        }
        self.steps_left -= 1;
        match self.rng.u64(..16) {
            0..9 if self.ids.len() < self.wanted => self.arm(),
            0..10 => self.cancel(),
            10..12 => self.rearm(),
            12 => self.use_stale(),
            13 => self.look_up(),
            _ => self.poll(),
        }
        if self.is_broken {
            self.begin_anew();
        }
    }

    fn begin_phase(&mut self) {
        self.steps_left = PHASE_STEPS;
        self.wanted = POPULATIONS[self.rng.usize(..POPULATIONS.len())];
        self.stride = STRIDES[self.rng.usize(..STRIDES.len())];
        self.lives_left -= 1;
        if self.lives_left == 0 {
            self.begin_anew();
        }
    }

    fn begin_anew(&mut self) {
        let fresh = Trial::new(self.name, Arc::clone(&self.stats), self.rng.fork());
        let before = std::mem::replace(self, fresh);
        self.wanted = before.wanted;
        self.steps_left = before.steps_left;
        self.stride = before.stride;
    }

    fn first(&self) -> Option<(Instant, u64)> {
        self.due.first_key_value().map(|(&key, _)| key)
    }

    fn arm(&mut self) {
        let (id, deadline) = (self.count, self.draw());
        let payload = Payload::new(id, &self.live);
        let handle = self.queue.insert(deadline, payload);
        let key = (deadline, self.count);
        self.count += 1;
        self.enter_due(key, id);
        let at = self.ids.len();
        self.ids.push(id);
        self.armed.insert(id, Armed { handle, key, at });
    }

    fn cancel(&mut self) {
        let Some((id, armed)) = self.pick() else {
            return;
        };
        let payload = self.queue.cancel(armed.handle);
        let is_it = payload.as_ref().is_some_and(|payload| payload.id == id);
        drop(payload);
        self.holds(Invariant::CancelsHold, is_it, || {
            format!("timer {id} was armed and could not be cancelled")
        });
        self.remove(id);
    }

    fn rearm(&mut self) {
        let Some((id, armed)) = self.pick() else {
            return;
        };
        let deadline = self.draw();
        let is_moved = self.queue.rearm(armed.handle, deadline);
        self.holds(Invariant::CancelsHold, is_moved, || {
            format!("timer {id} was armed and could not be re-armed")
        });
        self.due.remove(&armed.key);
        let key = (deadline, self.count);
        self.count += 1;
        self.enter_due(key, id);
        self.armed.insert(id, Armed { key, ..armed });
    }

    /// What is done with a handle whose timer is gone changes nothing.
    fn use_stale(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        let handle = self.stale[self.rng.usize(..self.stale.len())];
        let deadline = self.draw();
        let hit = match self.rng.u64(..3) {
            0 => self.queue.cancel(handle).is_some(),
            1 => self.queue.rearm(handle, deadline),
            _ => self.queue.get_mut(handle).is_some(),
        };
        self.holds(Invariant::StaleCancels, !hit, || {
            "the handle of a timer that is gone names another".to_owned()
        });
    }

    fn look_up(&mut self) {
        let Some((id, armed)) = self.pick() else {
            return;
        };
        let found = self.queue.get_mut(armed.handle).map(|payload| payload.id);
        self.holds(Invariant::StaleCancels, found == Some(id), || {
            format!("the handle of timer {id} names {found:?}")
        });
    }

    fn poll(&mut self) {
        let next = self.queue.next_expiry();
        if let Some((first, _)) = self.first() {
            let late = next.map(|next| nanos(next.saturating_duration_since(first)));
            let late = late.unwrap_or(u64::MAX);
            self.check(Invariant::NextExpiry, late, || {
                format!("a timer is due {late} ns before the next expiry")
            });
        }
        let now = self.draw_now(next);
        let budget = self.rng.usize(..BUDGET_MAX);
        let mut expired = std::mem::take(&mut self.expired);
        let has_more = self.queue.expire(now, budget, &mut expired);
        let is_empty = has_more && expired.is_empty() && budget > 0;
        self.empty_polls = (self.empty_polls + 1) * u64::from(is_empty);
        for payload in expired.drain(..) {
            self.fired(payload, now);
        }
        self.expired = expired;
        self.judge_rest(now, has_more);
    }

    fn fired(&mut self, payload: Payload, now: Instant) {
        let id = payload.id;
        drop(payload);
        let Some(armed) = self.armed.get(&id).copied() else {
            return self.holds(Invariant::NothingTwice, false, || {
                format!("timer {id} is gone, and fired")
            });
        };
        self.stats.ledger.passed(Invariant::NothingTwice);
        let early = nanos(armed.key.0.saturating_duration_since(now));
        self.check(Invariant::Expiries, early, || {
            format!("timer {id} was handed out {early} ns before its deadline")
        });
        self.holds(Invariant::InOrder, self.first() == Some(armed.key), || {
            format!("timer {id} was handed out before one that comes first")
        });
        self.remove(id);
    }

    fn judge_rest(&mut self, now: Instant, has_more: bool) {
        let overdue = match self.first() {
            Some((due, _)) if !has_more && due <= now => nanos(now - due).max(1),
            _ => 0,
        };
        self.check(Invariant::NothingLost, overdue, || {
            format!("a timer is due since {overdue} ns, and the queue says that nothing is")
        });
        let is_stuck = self.empty_polls > EMPTY_POLLS_MAX;
        self.holds(Invariant::NothingLost, !is_stuck, || {
            format!("{EMPTY_POLLS_MAX} polls have handed out nothing of what is due")
        });
        let counts = (self.queue.len(), self.live.get());
        let count = self.ids.len();
        self.holds(Invariant::LiveTimers, counts == (count, count), || {
            let (timers, payloads) = counts;
            format!("{timers} timers and {payloads} payloads instead of {count}")
        });
    }

    /// The time of the next poll.
    fn draw_now(&mut self, next: Option<Instant>) -> Instant {
        let ahead = match self.rng.u64(..256) {
            0..32 => Duration::ZERO,
            32..48 => {
                // A clock that runs backwards: this poll must not fire what is due at the time it
                // was.
                let back = self.rng.uniform(Duration::ZERO, Duration::from_millis(5));
                return self.now - back;
            }
            48..128 => {
                let reach = self.now + self.stride;
                let bound = next.filter(|&next| next <= reach).unwrap_or(self.now);
                bound.saturating_duration_since(self.now)
            }
            255 if self.stride == STRIDES[0] => self.rng.uniform(Duration::ZERO, FAR / 4),
            _ => self.rng.log_uniform(Duration::from_nanos(100), self.stride),
        };
        self.now += ahead;
        self.now
    }

    fn draw(&mut self) -> Instant {
        let (now, rng) = (self.now, &mut self.rng);
        match rng.u64(..64) {
            0 => self.epoch + Duration::from_nanos(u64::MAX),
            1..4 => now - rng.uniform(Duration::ZERO, PAST_MAX / 2),
            4..8 => now,
            // Equal deadlines, however they come about.
            8..24 => {
                let next = self.due.range((now, 0)..).next();
                next.map_or(now, |(&(deadline, _), _)| deadline)
            }
            24..40 => now + rng.uniform(Duration::ZERO, Duration::from_millis(2)),
            40..60 => now + rng.log_uniform(Duration::from_micros(1), Duration::from_secs(40)),
            _ => now + rng.log_uniform(Duration::from_secs(1), FAR),
        }
    }

    fn enter_due(&mut self, key: (Instant, u64), id: u64) {
        // What is never due has no turn.
        if key.0 < self.epoch + Duration::from_nanos(u64::MAX) {
            self.due.insert(key, id);
        }
    }

    fn pick(&mut self) -> Option<(u64, Armed<Q::Handle>)> {
        if self.ids.is_empty() {
            return None;
        }
        let id = self.ids[self.rng.usize(..self.ids.len())];
        Some((id, self.armed[&id]))
    }

    fn remove(&mut self, id: u64) {
        let Some(Armed { handle, key, at }) = self.armed.remove(&id) else {
            return;
        };
        self.due.remove(&key);
        self.ids.swap_remove(at);
        if let Some(moved) = self.ids.get(at) {
            self.armed.get_mut(moved).expect("it is armed").at = at;
        }
        self.stale.push_back(handle);
        if self.stale.len() > STALE_MAX {
            self.stale.pop_front();
        }
    }

    fn holds(&mut self, invariant: Invariant, holds: bool, detail: impl FnOnce() -> String) {
        self.check(invariant, u64::from(!holds), detail);
    }

    fn check(&mut self, invariant: Invariant, badness: u64, detail: impl FnOnce() -> String) {
        self.is_broken |= badness > 0;
        let name = self.name;
        self.stats
            .ledger
            .check(invariant, badness, || format!("bare {name}: {}", detail()));
    }
}

/// Around the number at which the staged wheel goes from its first stage to the wheel, and far from
/// it.
const POPULATIONS: [usize; 8] = [0, 1, 40, 254, 257, 300, 1_000, 6_000];

/// Where the clock hardly moves, timers gather.
const STRIDES: [Duration; 4] = [
    Duration::from_secs(10),
    Duration::from_millis(20),
    Duration::from_micros(500),
    Duration::from_micros(5),
];

const PHASE_STEPS: u64 = 10_000;

/// Phases until queue and map begin anew.
const LIVES: u64 = 12;

const BUDGET_MAX: usize = 600;

/// A poll that hands out nothing has moved some hundred timers.
const EMPTY_POLLS_MAX: u64 = 1_000;

const STALE_MAX: usize = 1_024;

/// How far before the first poll the queue's epoch is.
const PAST_MAX: Duration = Duration::from_secs(10);
const FAR: Duration = Duration::from_secs(48 * 3_600);

macro_rules! bare_queues {
    ($($name:ident($($argument:ident: $of:ty),*) -> $answer:ty;)*) => {
        /// A timer queue as the trial sees it.
        pub(super) trait BareQueue {
            type Handle: Copy;

            fn new(epoch: Instant) -> Self;
            $(fn $name(&mut self, $($argument: $of),*) -> $answer;)*
        }

        impl BareQueue for ClassicQueue<Payload> {
            type Handle = ClassicHandle;

            fn new(epoch: Instant) -> Self { ClassicQueue::new(epoch) }
            $(fn $name(&mut self, $($argument: $of),*) -> $answer { ClassicQueue::$name(self, $($argument),*) })*
        }

        impl BareQueue for StagedWheel<Payload> {
            type Handle = TimerHandle;

            fn new(epoch: Instant) -> Self { StagedWheel::new(epoch) }
            $(fn $name(&mut self, $($argument: $of),*) -> $answer { StagedWheel::$name(self, $($argument),*) })*
        }
    };
}

bare_queues! {
    insert(deadline: Instant, payload: Payload) -> Self::Handle;
    cancel(handle: Self::Handle) -> Option<Payload>;
    rearm(handle: Self::Handle, deadline: Instant) -> bool;
    get_mut(handle: Self::Handle) -> Option<&mut Payload>;
    expire(now: Instant, budget: usize, expired: &mut Vec<Payload>) -> bool;
    next_expiry() -> Option<Instant>;
    len() -> usize;
}

/// What a queue holds for a timer. It is counted as long as it lives.
#[derive(Debug)]
pub(super) struct Payload {
    pub(super) id: u64,
    live: Rc<Cell<usize>>,
}

impl Payload {
    pub(super) fn new(id: u64, live: &Rc<Cell<usize>>) -> Self {
        live.set(live.get() + 1);
        Payload {
            id,
            live: Rc::clone(live),
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}
