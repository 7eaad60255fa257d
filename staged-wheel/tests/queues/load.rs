//! A queue under arms, cancels, re-arms and polls in even measure, with a burst now and then.

use std::time::{Duration, Instant};

use staged_wheel::{StagedWheel, TimerHandle};

/// As large as a waker, and like one no larger inside an `Option`.
pub type Payload = &'static str;
pub const PAYLOAD: Payload = "waker";

/// What a poll may fire.
const BUDGET: usize = 256;

/// The wheel's tick, and thus the width of its finest slots.
const TICK_NS: u64 = 1 << 20;

/// What was done to the queue so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    pub armed: usize,
    pub cancelled: usize,
    pub rearmed: usize,
    pub fired: usize,
    pub polls: usize,
    pub bursts: usize,
}

/// The queue and its users. A thousand operations take 16 ms of their time.
pub struct Load {
    wheel: StagedWheel<Payload>,
    epoch: Instant,
    now: Instant,
    handles: Vec<TimerHandle>,
    expired: Vec<Payload>,
    random: u64,
    pub done: Done,
}

impl Load {
    const POPULATION: usize = 10_000;
    /// More than one poll gathers, for one tick and for the past.
    const BURST: u64 = 5_000;

    pub fn new(epoch: Instant) -> Self {
        Load {
            wheel: StagedWheel::new(epoch),
            epoch,
            now: epoch,
            handles: Vec::with_capacity(Self::POPULATION),
            expired: Vec::with_capacity(256),
            random: 7,
            done: Done::default(),
        }
    }

    pub fn run(&mut self, ops: usize) {
        for op in 0..ops {
            let random = self.next_random();
            // From the current tick to two minutes ahead, and now and then the past or never.
            let deadline = match random % 64 {
                0 => self.now - Duration::from_millis(random % 50),
                1 => self.now + Duration::from_secs(1 << 36),
                _ => self.now + Duration::from_nanos((random >> 8) % (1 << (16 + random % 21))),
            };
            let at = (random >> 20) as usize % Self::POPULATION;
            if at >= self.handles.len() {
                self.handles.push(self.wheel.insert(deadline, PAYLOAD));
                self.done.armed += 1;
            } else if random.is_multiple_of(5) {
                let is_armed = self.wheel.rearm(self.handles[at], deadline);
                self.done.rearmed += usize::from(is_armed);
            } else {
                self.done.cancelled += usize::from(self.wheel.cancel(self.handles[at]).is_some());
                self.handles[at] = self.wheel.insert(deadline, PAYLOAD);
                self.done.armed += 1;
            }
            if op.is_multiple_of(16) {
                self.now += Duration::from_micros(256);
                self.poll();
            }
            if op.is_multiple_of(50_000) {
                self.burst(3 * TICK_NS, TICK_NS);
                self.burst(0, 1);
            }
        }
    }

    /// Arms a crowd so far ahead and in no order, and polls until all have fired.
    fn burst(&mut self, ahead_ns: u64, spread_ns: u64) {
        // All bursts are alike: the crowd falls into one tick, or into none.
        let since_ns = self.now.duration_since(self.epoch).as_nanos() as u64;
        self.now = self.epoch + Duration::from_nanos(since_ns.next_multiple_of(TICK_NS));
        for n in 0..Self::BURST {
            let wait_ns = ahead_ns + n * 7_919 % spread_ns;
            self.wheel
                .insert(self.now + Duration::from_nanos(wait_ns), PAYLOAD);
        }
        self.done.armed += Self::BURST as usize;
        self.done.bursts += 1;
        self.now += Duration::from_nanos(ahead_ns + spread_ns);
        while self.poll() {}
    }

    /// Fires what a poll may and asks for the next expiry. Is more due?
    fn poll(&mut self) -> bool {
        let has_more = self.wheel.expire(self.now, BUDGET, &mut self.expired);
        self.done.fired += self.expired.len();
        self.done.polls += 1;
        self.expired.clear();
        let next = self.wheel.next_expiry();
        assert!(next.is_none_or(|next| has_more || next > self.now));
        has_more
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
