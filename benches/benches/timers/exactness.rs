//! When a queue fires what: how early, how late, in which order, and what it says about the next
//! expiry.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use crate::queues::TimerQueue;
use crate::workload::waker;

/// What was observed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Exactness {
    /// Timers that had not fired a minute after the last deadline.
    pub never_fired: usize,
    /// How long before its deadline a timer fired.
    pub early_us_max: f64,
    /// How long after a poll that could have fired it.
    pub missed_us_max: f64,
    /// Timers that fired after one that was due later, or at the same time and armed later.
    pub inversions: usize,
    /// How long before the earliest deadline the next expiry was said to be. `None` if it cannot
    /// be asked.
    pub next_early_us_max: Option<f64>,
    /// How long after it.
    pub next_late_us_max: Option<f64>,
}

/// How many timers are observed.
pub const TIMERS: usize = 20_000;

/// Arms 20,000 timers over 15 s, due 0.2 ms to 5 s later, and polls every 100 to 200 µs.
pub fn observe<Q: TimerQueue>() -> Exactness {
    let epoch = Q::epoch();
    let mut observer = Observer::new(Q::new(epoch), epoch);
    let mut random = Rng::with_seed(8);
    let (low, high) = (Duration::from_micros(200), Duration::from_secs(5));
    let mut armings: Vec<(Instant, Duration)> = (0..TIMERS)
        .map(|_| {
            let at = epoch + random.uniform(Duration::ZERO, Duration::from_secs(15));
            (at, random.uniform(low, high))
        })
        .collect();
    armings.sort_unstable();
    let mut armings = armings.into_iter().peekable();
    let mut now = epoch;
    // 5 s for the last timer, a minute of grace.
    while now < epoch + Duration::from_secs(80) {
        now += random.uniform(Duration::from_micros(100), Duration::from_micros(200));
        while let Some((at, timeout)) = armings.next_if(|(at, _)| *at <= now) {
            observer.arm(at + timeout);
        }
        observer.poll(now);
    }
    observer.exactness.never_fired = observer.armed.len();
    observer.exactness
}

struct Observer<Q: TimerQueue> {
    queue: Q,
    handles: Vec<Q::Handle>,
    /// By the address of the waker: which timer it belongs to.
    timers: HashMap<*const (), Timer>,
    /// What has not fired.
    armed: BTreeSet<Timer>,
    last_fired: Option<Timer>,
    /// When the polls were.
    polls: Vec<Instant>,
    exactness: Exactness,
}

/// Compares as timers are to fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    deadline: Instant,
    /// How many were armed before.
    number: usize,
}

impl<Q: TimerQueue> Observer<Q> {
    fn new(queue: Q, epoch: Instant) -> Self {
        Observer {
            queue,
            handles: Vec::new(),
            timers: HashMap::new(),
            armed: BTreeSet::new(),
            last_fired: None,
            polls: vec![epoch],
            exactness: Exactness {
                next_early_us_max: Q::TELLS_NEXT.then_some(0.0),
                next_late_us_max: Q::TELLS_NEXT.then_some(0.0),
                ..Exactness::default()
            },
        }
    }

    fn arm(&mut self, deadline: Instant) {
        let number = self.handles.len();
        let timer = Timer { deadline, number };
        let waker = waker();
        self.timers.insert(waker.data(), timer);
        self.armed.insert(timer);
        self.handles.push(self.queue.insert(deadline, waker));
    }

    fn poll(&mut self, now: Instant) {
        self.polls.push(now);
        self.queue.advance(now);
        let mut expired = Vec::new();
        super::measure::expire_all(&mut self.queue, now, &mut expired);
        for waker in &expired {
            let timer = self.timers.remove(&waker.data()).expect("fires once");
            assert!(self.armed.remove(&timer));
            self.judge(timer, now);
        }
        if let Some(earliest) = self.armed.first() {
            let deadline = earliest.deadline;
            self.judge_next(deadline);
        }
    }

    fn judge(&mut self, timer: Timer, now: Instant) {
        let exactness = &mut self.exactness;
        exactness.early_us_max = exactness.early_us_max.max(us(now, timer.deadline));
        let could = self.polls.partition_point(|&poll| poll < timer.deadline);
        if let Some(&poll) = self.polls.get(could) {
            exactness.missed_us_max = exactness.missed_us_max.max(us(poll, now));
        }
        if self.last_fired.is_some_and(|last| timer < last) {
            exactness.inversions += 1;
        }
        self.last_fired = self.last_fired.max(Some(timer));
    }

    fn judge_next(&mut self, deadline: Instant) {
        let Some(early) = &mut self.exactness.next_early_us_max else {
            return;
        };
        let next = self.queue.next_expiry().expect("timers are armed");
        *early = early.max(us(next, deadline));
        let late = self.exactness.next_late_us_max.get_or_insert(0.0);
        *late = late.max(us(deadline, next));
    }
}

/// Microseconds from `begin` to `end`; none if the end comes first.
fn us(begin: Instant, end: Instant) -> f64 {
    end.saturating_duration_since(begin).as_nanos() as f64 / 1e3
}
