//! A message queue in simulated time: each message arms a timeout, most are acknowledged soon
//! after.

use std::hint::black_box;
use std::mem;
use std::task::Waker;
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};

use super::Figures;
use super::burst::BUDGET;
use crate::clock::{Cycles, between, cycles, ns};
use crate::queues::TimerQueue;
use crate::workload::waker;

/// What lies between two turns of the reactor.
const STEP: Duration = Duration::from_micros(100);
const STEPS_PER_MS: usize = 10;
/// Timeouts begin to expire after half a second; when the last second is measured, as many come as
/// go.
const WARM_UP_STEPS: usize = 2_000 * STEPS_PER_MS;
const STEPS: usize = 3_000 * STEPS_PER_MS;
const TIMEOUT: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(2000));
/// An acknowledgement takes 1 to 20 ms.
const ACK_STEPS: (usize, usize) = (STEPS_PER_MS, 20 * STEPS_PER_MS);
/// A handle is given back this long after its deadline: some queues fire late.
const RELEASE_STEPS: usize = 100 * STEPS_PER_MS;

/// Nanoseconds to a message in all operations, and microseconds of a poll with the question for the
/// next expiry: p999 and longest.
pub fn run<Q: TimerQueue>(messages_per_ms: usize) -> Figures {
    let mut traffic = Traffic::<Q>::new();
    for step in 0..STEPS {
        if step == WARM_UP_STEPS {
            traffic.operations = 0;
            traffic.polls = Cycles::new();
        }
        traffic.arm(step, messages_per_ms / STEPS_PER_MS);
        traffic.cancel(step);
        traffic.poll(step);
    }
    let (operations, polls) = (
        traffic.operations,
        mem::replace(&mut traffic.polls, Cycles::new()),
    );
    let messages = (STEPS - WARM_UP_STEPS) * messages_per_ms / STEPS_PER_MS;
    // What is still armed is acknowledged, or must fire once its time has come.
    for step in STEPS..traffic.acknowledged.len() {
        traffic.cancel(step);
        traffic.poll(step);
    }
    let figures = [
        ns(operations) / messages as f64,
        ns(polls.quantile(0.999)) / 1e3,
        ns(polls.quantile(1.0)) / 1e3,
    ];
    Figures::of_polls::<Q>(&figures, traffic.fired, traffic.unacknowledged)
}

struct Traffic<Q: TimerQueue> {
    epoch: Instant,
    queue: Q,
    random: Rng,
    /// By the step in which the acknowledgement comes.
    acknowledged: Vec<Vec<Q::Handle>>,
    /// By the step in which the handle is given back.
    expiring: Vec<Vec<Q::Handle>>,
    unacknowledged: usize,
    fired: usize,
    expired: Vec<Waker>,
    armed: Vec<Q::Handle>,
    spare: Vec<Waker>,
    waker: Waker,
    /// Cycles in the queue since warm-up.
    operations: u64,
    polls: Cycles,
}

impl<Q: TimerQueue> Traffic<Q> {
    fn new() -> Self {
        let epoch = Q::epoch();
        let steps = STEPS + RELEASE_STEPS + 2_000 * STEPS_PER_MS;
        Traffic {
            epoch,
            queue: Q::new(epoch),
            random: Rng::with_seed(7),
            acknowledged: (0..steps).map(|_| Vec::new()).collect(),
            expiring: (0..steps).map(|_| Vec::new()).collect(),
            unacknowledged: 0,
            fired: 0,
            expired: Vec::new(),
            armed: Vec::new(),
            spare: Vec::new(),
            waker: waker(),
            operations: 0,
            polls: Cycles::new(),
        }
    }

    fn arm(&mut self, step: usize, messages: usize) {
        self.spare
            .resize_with(self.spare.len().max(messages), || self.waker.clone());
        let now = self.epoch + STEP * step as u32;
        let timeouts: Vec<Duration> = (0..messages)
            .map(|_| self.random.uniform(TIMEOUT.0, TIMEOUT.1))
            .collect();
        let begin = cycles();
        for &timeout in &timeouts {
            let waker = self.spare.pop().expect("laid in above");
            self.armed.push(self.queue.insert(now + timeout, waker));
        }
        self.operations += between(begin, cycles());
        for (handle, timeout) in self.armed.drain(..).zip(timeouts) {
            if self.random.u64(..10) == 0 {
                let steps = timeout.as_nanos().div_ceil(STEP.as_nanos()) as usize;
                self.expiring[step + steps + RELEASE_STEPS].push(handle);
                self.unacknowledged += 1;
            } else {
                let steps =
                    ACK_STEPS.0 as u64 + self.random.u64(..(ACK_STEPS.1 - ACK_STEPS.0) as u64);
                self.acknowledged[step + steps as usize].push(handle);
            }
        }
    }

    fn cancel(&mut self, step: usize) {
        let acknowledged = mem::take(&mut self.acknowledged[step]);
        let expired = mem::take(&mut self.expiring[step]);
        self.queue.lay_in(acknowledged.len());
        let begin = cycles();
        for handle in acknowledged {
            let waker = self.queue.cancel(black_box(handle));
            self.spare
                .push(waker.expect("cancelled long before it is due"));
        }
        for handle in expired {
            self.queue.release(black_box(handle));
        }
        self.operations += between(begin, cycles());
    }

    fn poll(&mut self, step: usize) {
        let now = self.epoch + STEP * step as u32;
        self.queue.advance(now);
        let mut has_more = true;
        while has_more {
            let begin = cycles();
            has_more = self.queue.expire(now, BUDGET, &mut self.expired);
            black_box(self.queue.next_expiry());
            let end = cycles();
            self.polls.record(begin, end);
            self.operations += between(begin, end);
        }
        self.fired += self.expired.len();
        self.spare.append(&mut self.expired);
    }
}
