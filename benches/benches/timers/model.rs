//! Ten million random operations on our queues and on a sorted map, side by side.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use staged_wheel::{ClassicQueue, StagedWheel};
use support::generator::Rng;

use crate::queues::TimerQueue;

/// What came of it. The run panics at the first difference.
#[derive(Debug, Clone, Copy, Default)]
pub struct Agreement {
    operations: u64,
    armed: u64,
    cancelled: u64,
    rearmed: u64,
    fired: u64,
    polls: u64,
    /// Polls at the time that a queue had named, and those of them that fired nothing.
    sleeps: u64,
    empty_sleeps: u64,
    most_live: usize,
}

impl fmt::Display for Agreement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Agreement {
            operations,
            armed,
            cancelled,
            rearmed,
            fired,
            polls,
            sleeps,
            empty_sleeps,
            most_live,
        } = self;
        write!(
            formatter,
            "{operations} random operations on classic, staged and a sorted map: {armed} armed, {cancelled} \
             cancelled, {rearmed} re-armed, {fired} fired in {polls} polls, {most_live} live at most. All three fired the \
             same sequence, none early; no next expiry was late; {sleeps} polls were at a next expiry of the staged \
             wheel, {empty_sleeps} of them fired nothing."
        )
    }
}

/// Runs so many operations.
///
/// # Panics
/// If a queue and the map disagree.
pub fn run(operations: u64) -> Agreement {
    let mut history = History::new();
    while history.agreement.operations < operations {
        history.agreement.operations += 1;
        history.step();
    }
    history.agreement
}

type Id = u64;

/// A queue with the handles of all timers that a history may still name.
struct Named<Q: TimerQueue<Id>> {
    queue: Q,
    handles: Vec<Q::Handle>,
    expired: Vec<Id>,
}

impl<Q: TimerQueue<Id>> Named<Q> {
    fn new(queue: Q) -> Self {
        Named {
            queue,
            handles: Vec::new(),
            expired: Vec::new(),
        }
    }

    fn arm(&mut self, slot: usize, deadline: Instant, id: Id) {
        let handle = self.queue.insert(deadline, id);
        match self.handles.get_mut(slot) {
            Some(place) => *place = handle,
            None => self.handles.push(handle),
        }
    }

    /// Polls until `due` timers have fired, which must be these.
    fn poll(&mut self, now: Instant, budget: usize, due: &[Id], has_more: bool) {
        self.expired.clear();
        // A poll may stop for the sake of bounded work before it has used up its budget.
        loop {
            let left = budget - self.expired.len();
            let says_more = self.queue.expire(now, left, &mut self.expired);
            if !says_more || self.expired.len() == budget {
                assert!(
                    says_more || !has_more,
                    "a poll left timers and did not say so"
                );
                break;
            }
        }
        assert_eq!(self.expired, due, "another sequence than the map's");
    }
}

/// The sorted map, both queues and their common past.
struct History {
    epoch: Instant,
    now_ns: u64,
    random: Rng,
    /// By deadline and arming.
    map: BTreeMap<(u64, u64), usize>,
    /// Of each slot: number of the timer that had it last, and its place in the map while it is
    /// armed.
    slots: Vec<(Id, Option<(u64, u64)>)>,
    free: Vec<usize>,
    arms: u64,
    last_deadline_ns: u64,
    classic: Named<ClassicQueue<Id>>,
    staged: Named<StagedWheel<Id>>,
    agreement: Agreement,
}

impl History {
    fn new() -> Self {
        let epoch = Instant::now();
        History {
            epoch,
            now_ns: 0,
            random: Rng::with_seed(9),
            map: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            arms: 0,
            last_deadline_ns: 0,
            classic: Named::new(ClassicQueue::new(epoch)),
            staged: Named::new(StagedWheel::new(epoch)),
            agreement: Agreement::default(),
        }
    }

    fn step(&mut self) {
        // The population breathes, so that the staged wheel changes its stage again and again.
        let phase = self.agreement.operations >> 17;
        let aim = [100, 5_000, 300, 15_000][(phase % 4) as usize];
        let is_short = self.map.len() < aim;
        match self.random.u64(..100) {
            // Mostly arms while the population grows, else mostly cancels.
            0..=24 => self.arm(),
            25..=64 if is_short => self.arm(),
            25..=74 => self.cancel(),
            75..=84 => self.rearm(),
            85..=94 if is_short && self.random.u64(..4) > 0 => self.arm(),
            85..=89 => self.poll_soon(),
            90..=94 => self.sleep(),
            95 if self.random.u64(..50) == 0 => self.stall(),
            _ => self.ask(),
        }
    }

    fn arm(&mut self) {
        let key = self.key();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() - 1
        });
        let id = self.arms;
        self.slots[slot] = (id, Some(key));
        self.map.insert(key, slot);
        let deadline = self.at(key.0);
        self.classic.arm(slot, deadline, id);
        self.staged.arm(slot, deadline, id);
        self.agreement.armed += 1;
        self.agreement.most_live = self.agreement.most_live.max(self.map.len());
    }

    /// Cancels any timer, the earliest, or one that has fired or was cancelled.
    fn cancel(&mut self) {
        let Some(slot) = self.victim() else { return };
        let (id, key) = self.slots[slot];
        let expected = key.map(|_| id);
        let classic = self.classic.queue.cancel(self.classic.handles[slot]);
        let staged = self.staged.queue.cancel(self.staged.handles[slot]);
        assert_eq!([classic, staged], [expected; 2]);
        if let Some(key) = key {
            self.map.remove(&key);
            self.slots[slot].1 = None;
            self.free.push(slot);
            self.agreement.cancelled += 1;
        }
    }

    fn rearm(&mut self) {
        let Some(slot) = self.victim() else { return };
        let key = self.key();
        let deadline = self.at(key.0);
        let classic = self
            .classic
            .queue
            .rearm(self.classic.handles[slot], deadline);
        let staged = self.staged.queue.rearm(self.staged.handles[slot], deadline);
        assert_eq!([classic, staged], [self.slots[slot].1.is_some(); 2]);
        if let Some(old) = self.slots[slot].1.replace(key).filter(|_| classic) {
            self.map.remove(&old);
            self.map.insert(key, slot);
            self.agreement.rearmed += 1;
        } else {
            self.slots[slot].1 = None;
        }
    }

    /// Some microseconds or milliseconds later, or at a deadline, or just before it.
    fn poll_soon(&mut self) {
        let first_ns = self.first_ns().unwrap_or(self.now_ns);
        let later_ns = match self.random.u64(..4) {
            0 => self.now_ns + self.random.u64(..100_000),
            1 => self.now_ns + self.random.u64(..3_000_000),
            2 => first_ns,
            _ => first_ns.saturating_sub(1),
        };
        // A clock that jumps back does nothing.
        let back_ns = if self.random.u64(..50) == 0 {
            1_000_000
        } else {
            0
        };
        let budget = [0, 1, 7, 256, usize::MAX][self.random.u64(..5) as usize];
        self.poll(later_ns.max(self.now_ns).saturating_sub(back_ns), budget);
    }

    /// To the next expiry that the staged wheel names.
    fn sleep(&mut self) {
        let Some(next) = self.staged.queue.next_expiry() else {
            return;
        };
        let next_ns = u64::try_from((next - self.epoch).as_nanos()).expect("less than 584 years");
        // To the few far timers that are left the clock need not run.
        if next_ns > self.now_ns + 1_000_000_000 {
            return;
        }
        let fired = self.agreement.fired;
        self.poll(next_ns.max(self.now_ns), usize::MAX);
        self.agreement.sleeps += 1;
        self.agreement.empty_sleeps += u64::from(self.agreement.fired == fired);
    }

    /// Up to half a minute without a poll.
    fn stall(&mut self) {
        let stall_ns = self.random.u64(..30_000_000_000);
        self.poll(self.now_ns + stall_ns, usize::MAX);
    }

    fn poll(&mut self, now_ns: u64, budget: usize) {
        self.now_ns = self.now_ns.max(now_ns);
        let mut due = Vec::new();
        while let Some(first) = self.map.first_entry()
            && first.key().0 <= now_ns
            && due.len() < budget
        {
            let slot = first.remove();
            due.push(self.slots[slot].0);
            self.slots[slot].1 = None;
            self.free.push(slot);
        }
        let has_more = self.first_ns().is_some_and(|first_ns| first_ns <= now_ns);
        let now = self.at(now_ns);
        self.classic.poll(now, budget, &due, has_more);
        self.staged.poll(now, budget, &due, has_more);
        self.agreement.fired += due.len() as u64;
        self.agreement.polls += 1;
    }

    /// The next expiry is that of the map or before it, and the length is the map's.
    fn ask(&mut self) {
        let first = self.first_ns().map(|first_ns| self.at(first_ns));
        assert_eq!(self.classic.queue.next_expiry(), first);
        let next = self.staged.queue.next_expiry();
        assert_eq!(next.is_some(), first.is_some());
        assert!(next <= first, "a next expiry too late");
        let live = [self.classic.queue.len(), self.staged.queue.len()];
        assert_eq!(live, [self.map.len(); 2]);
    }

    /// A deadline of one of many kinds, and the count of arms.
    fn key(&mut self) -> (u64, u64) {
        let now_ns = self.now_ns;
        let deadline_ns = match self.random.u64(..10) {
            // Tied, past, this tick, milliseconds, the edge of a slot, half a minute, a day.
            0 => self.last_deadline_ns,
            1 => now_ns.saturating_sub(self.random.u64(..1_000_000)),
            2 => now_ns + self.random.u64(..(1 << 20)),
            3 | 4 => now_ns + self.random.u64(..100_000_000),
            5 => {
                let slot = 1_u64 << (20 + 5 * self.random.u64(..3));
                (now_ns / slot + 1 + self.random.u64(..64)) * slot - self.random.u64(..2)
            }
            6..=8 => now_ns + self.random.u64(..30_000_000_000),
            _ => now_ns + self.random.u64(..86_400_000_000_000),
        };
        self.last_deadline_ns = deadline_ns;
        self.arms += 1;
        (deadline_ns, self.arms)
    }

    fn victim(&mut self) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let any = self.random.u64(..self.slots.len() as u64) as usize;
        match self.random.u64(..5) {
            0 => self.map.values().next().copied(),
            _ => Some(any),
        }
    }

    fn first_ns(&self) -> Option<u64> {
        Some(self.map.keys().next()?.0)
    }

    fn at(&self, ns: u64) -> Instant {
        self.epoch + Duration::from_nanos(ns)
    }
}
