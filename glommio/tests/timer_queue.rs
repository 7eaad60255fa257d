//! The timer queues from outside, and what they ask of the allocator.

use std::time::{Duration, Instant};

use glommio::timer_queue::{ClassicQueue, StagedWheel, TimerHandle, TimingWheel};

#[path = "timer_queue/counting.rs"]
mod counting;

use counting::Allocations;

const PAGE_BYTES: usize = 48 * 1024;
const TABLES_BYTES: usize = 16 * 1024;

/// As large as a waker, and like one no larger inside an `Option`.
type Payload = &'static str;
const PAYLOAD: Payload = "waker";

/// The calls below, for any of the queues.
macro_rules! exercise {
    ($queue:ident) => {{
        let epoch = Instant::now();
        let at = |ms| epoch + Duration::from_millis(ms);
        let mut queue = $queue::new(epoch);
        assert!(queue.is_empty());
        assert_eq!(queue.next_expiry(), None);

        let late = queue.insert(at(300), "late");
        let soon = queue.insert(at(100), "soon");
        let tied = queue.insert(at(100), "tied");
        let gone = queue.insert(at(50), "gone");
        assert_eq!(queue.len(), 4);
        assert_eq!(queue.next_expiry(), Some(at(50)));
        assert_eq!(queue.cancel(gone), Some("gone"));
        assert_eq!(queue.cancel(gone), None);
        assert!(!queue.rearm(gone, at(1)));
        assert_eq!(queue.get_mut(gone), None);

        *queue.get_mut(late).expect("armed") = "later";
        assert!(queue.rearm(soon, at(100)));
        assert!(queue.rearm(late, at(100)));
        let mut expired = Vec::new();
        assert!(!queue.expire(at(100) - Duration::from_nanos(1), 256, &mut expired));
        assert!(expired.is_empty());
        assert!(queue.expire(at(100), 1, &mut expired));
        assert!(!queue.expire(at(100), 256, &mut expired));
        assert_eq!(expired, ["tied", "soon", "later"]);
        assert_eq!(queue.cancel(tied), None);
        assert_eq!((queue.len(), queue.next_expiry()), (0, None));
    }};
}

#[test]
fn the_three_queues_answer_alike() {
    exercise!(ClassicQueue);
    exercise!(TimingWheel);
    exercise!(StagedWheel);
}

#[test]
fn a_handle_is_eight_bytes_inside_an_option_too() {
    assert_eq!(size_of::<TimerHandle>(), 8);
    assert_eq!(size_of::<Option<TimerHandle>>(), 8);
}

#[test]
fn nothing_is_allocated_before_the_first_arm() {
    let before = Allocations::of_this_thread();
    let epoch = Instant::now();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    assert_eq!(queue.next_expiry(), None);
    assert!(!queue.expire(epoch, 256, &mut Vec::new()));
    assert_eq!(Allocations::of_this_thread().since(before).calls, 0);
    queue.insert(epoch, PAYLOAD);
    let first = Allocations::of_this_thread().since(before);
    // The inline stage and a page, the wheel's tables not yet.
    assert!(first.bytes < PAGE_BYTES + 5 * 1024, "{first:?}");
}

#[test]
fn a_steady_state_never_calls_the_allocator() {
    let epoch = Instant::now();
    let mut load = Load::new(epoch);
    // Twice the population that follows, all of it in one tick, then as much in the past.
    load.burst(40_000, |n| n % 1_000_000);
    load.burst(40_000, |_| 0);
    load.run(200_000);
    let before = Allocations::of_this_thread();
    load.run(1_000_000);
    let used = Allocations::of_this_thread().since(before);
    assert_eq!(used.calls, 0, "{used:?}");
    assert!(load.fired > 10_000 && load.cancelled > 100_000);
}

#[test]
fn a_timer_costs_48_bytes_and_a_peak_is_given_back() {
    let epoch = Instant::now();
    let before = Allocations::of_this_thread();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    let used = || Allocations::of_this_thread().since(before).bytes;
    let mut handles = Vec::with_capacity(100_000);
    let handle_bytes = handles.capacity() * size_of::<TimerHandle>();
    for count in [1_025, 10_000, 100_000] {
        while handles.len() < count {
            let ms = handles.len() as u64 * 7 % 30_000;
            handles.push(queue.insert(epoch + Duration::from_millis(ms + 1), PAYLOAD));
        }
        let queue_bytes = used() - handle_bytes;
        assert!(
            queue_bytes <= 48 * count + PAGE_BYTES + TABLES_BYTES,
            "{queue_bytes} bytes for {count} timers"
        );
    }
    for handle in handles {
        queue.cancel(handle);
    }
    assert!(used() > 90 * PAGE_BYTES, "no page leaves but from a poll");
    let mut expired = Vec::new();
    for second in 0..60 {
        queue.expire(epoch + Duration::from_secs(second), 256, &mut expired);
    }
    assert!(
        used() <= PAGE_BYTES + TABLES_BYTES,
        "{} bytes are kept",
        used()
    );
}

#[test]
fn a_population_that_swings_calls_the_allocator_rarely() {
    let epoch = Instant::now();
    let mut queue = StagedWheel::<Payload>::new(epoch);
    let mut expired = Vec::with_capacity(20_000);
    let mut before = Allocations::of_this_thread();
    for second in 0..100 {
        let now = epoch + Duration::from_secs(second);
        for n in 0..20_000 {
            queue.insert(now + Duration::from_micros(n * 40), PAYLOAD);
        }
        for step in 0..=40 {
            let now = now + Duration::from_millis(step * 20);
            while queue.expire(now, 256, &mut expired) {}
            expired.clear();
        }
        assert!(queue.is_empty());
        if second == 10 {
            before = Allocations::of_this_thread();
        }
    }
    let used = Allocations::of_this_thread().since(before);
    assert!(used.calls <= 10, "{used:?}");
}

/// A queue under arms, cancels, re-arms and polls in even measure.
struct Load {
    queue: StagedWheel<Payload>,
    now: Instant,
    handles: Vec<TimerHandle>,
    expired: Vec<Payload>,
    random: u64,
    fired: usize,
    cancelled: usize,
}

impl Load {
    const POPULATION: usize = 10_000;

    fn new(epoch: Instant) -> Self {
        Load {
            queue: StagedWheel::new(epoch),
            now: epoch,
            handles: Vec::with_capacity(Self::POPULATION),
            expired: Vec::with_capacity(50_000),
            random: 7,
            fired: 0,
            cancelled: 0,
        }
    }

    /// Arms `count` timers so many nanoseconds ahead, polls once in between, and fires them all.
    fn burst(&mut self, count: u64, ahead_ns: impl Fn(u64) -> u64) {
        for n in 0..count {
            let deadline = self.now + Duration::from_nanos(ahead_ns(n * 7_919));
            self.queue.insert(deadline, PAYLOAD);
        }
        self.now += Duration::from_millis(5);
        while self.queue.expire(self.now, 256, &mut self.expired) {}
        self.expired.clear();
        assert!(self.queue.is_empty());
    }

    fn run(&mut self, ops: usize) {
        for op in 0..ops {
            let random = self.next_random();
            // From the current tick to a minute ahead, and now and then the past or never.
            let deadline = match random % 64 {
                0 => self.now - Duration::from_millis(random % 50),
                1 => self.now + Duration::from_secs(1 << 36),
                _ => self.now + Duration::from_nanos((random >> 8) % (1 << (16 + random % 21))),
            };
            let at = (random >> 20) as usize % Self::POPULATION;
            if at >= self.handles.len() {
                self.handles.push(self.queue.insert(deadline, PAYLOAD));
            } else if random.is_multiple_of(5) {
                self.queue.rearm(self.handles[at], deadline);
            } else {
                self.cancelled += usize::from(self.queue.cancel(self.handles[at]).is_some());
                self.handles[at] = self.queue.insert(deadline, PAYLOAD);
            }
            if op.is_multiple_of(16) {
                self.now += Duration::from_micros(16);
                self.queue.expire(self.now, 256, &mut self.expired);
                self.fired += self.expired.len();
                self.expired.clear();
                self.queue.next_expiry();
            }
        }
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
