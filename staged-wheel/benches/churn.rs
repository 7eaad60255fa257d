//! What a timer costs next to a thousand to a million others: armed and cancelled at once, any cancelled
//! and another armed, fired and armed again. In a minute and a half:
//!
//! ```text
//! cargo bench -p staged-wheel --bench churn
//! ```
//!
//! | name | queue |
//! |---|---|
//! | `wheel` | [`StagedWheel`] |
//! | `map-hash` | [`ClassicQueue`]: an ordered map, and a hash map for its handles |
//! | `map` | an ordered map alone, whose handles are its keys |
//! | `slab` | no queue: what it takes to keep something under a handle |
//!
//! Deadlines are from 1 ms to 30 s ahead, as those of time limits are. Time is an argument, so nothing waits.

#![allow(missing_docs, reason = "`criterion_group` makes a function")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use fastrand::Rng;
use slab::Slab;
use staged_wheel::{ClassicHandle, ClassicQueue, StagedWheel, TimerHandle};

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(700));
    targets = arm_and_cancel, replace_any, fire
}
criterion_main!(benches);

const LIVE: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// So many fire in a poll.
const FIRED: usize = 100;

/// A queue of timers, whose payload is a number.
trait Queue {
    type Handle: Copy;

    fn new(epoch: Instant) -> Self;
    fn insert(&mut self, deadline: Instant, payload: u32) -> Self::Handle;
    fn cancel(&mut self, handle: Self::Handle) -> Option<u32>;
}

/// One that fires.
trait Fires: Queue {
    fn expire(&mut self, now: Instant, expired: &mut Vec<u32>);
}

macro_rules! own_queue {
    ($queue:ty, $handle:ty) => {
        impl Queue for $queue {
            type Handle = $handle;

            fn new(epoch: Instant) -> Self {
                <$queue>::new(epoch)
            }

            fn insert(&mut self, deadline: Instant, payload: u32) -> $handle {
                <$queue>::insert(self, deadline, payload)
            }

            fn cancel(&mut self, handle: $handle) -> Option<u32> {
                <$queue>::cancel(self, handle)
            }
        }

        impl Fires for $queue {
            fn expire(&mut self, now: Instant, expired: &mut Vec<u32>) {
                while <$queue>::expire(self, now, usize::MAX, expired) {}
            }
        }
    };
}

own_queue!(StagedWheel<u32>, TimerHandle);
own_queue!(ClassicQueue<u32>, ClassicHandle);

/// An ordered map by deadline, and by the order of arming.
#[derive(Default)]
struct OrderedMap {
    timers: BTreeMap<(Instant, u64), u32>,
    armed: u64,
}

impl Queue for OrderedMap {
    type Handle = (Instant, u64);

    fn new(_: Instant) -> Self {
        OrderedMap::default()
    }

    fn insert(&mut self, deadline: Instant, payload: u32) -> Self::Handle {
        self.armed += 1;
        self.timers.insert((deadline, self.armed), payload);
        (deadline, self.armed)
    }

    fn cancel(&mut self, handle: Self::Handle) -> Option<u32> {
        self.timers.remove(&handle)
    }
}

impl Fires for OrderedMap {
    fn expire(&mut self, now: Instant, expired: &mut Vec<u32>) {
        while let Some(first) = self.timers.first_entry()
            && first.key().0 <= now
        {
            expired.push(first.remove());
        }
    }
}

impl Queue for Slab<(Instant, u32)> {
    type Handle = usize;

    fn new(_: Instant) -> Self {
        Slab::new()
    }

    fn insert(&mut self, deadline: Instant, payload: u32) -> usize {
        self.insert((deadline, payload))
    }

    fn cancel(&mut self, handle: usize) -> Option<u32> {
        self.try_remove(handle).map(|(_, payload)| payload)
    }
}

/// From 1 ms to 30 s, each power of two as likely as the others.
fn ahead(rng: &mut Rng) -> Duration {
    let least = 1 << rng.u32(..15);
    Duration::from_micros(1_000 * least + rng.u64(..1_000 * least)).min(Duration::from_secs(30))
}

struct Full<Q: Queue> {
    queue: Q,
    handles: Vec<Q::Handle>,
    now: Instant,
    rng: Rng,
}

fn full<Q: Queue>(live: usize) -> Full<Q> {
    let mut rng = Rng::with_seed(7);
    let now = Instant::now();
    let mut queue = Q::new(now);
    let handles = (0..live)
        .map(|number| queue.insert(now + ahead(&mut rng), number as u32))
        .collect();
    Full {
        queue,
        handles,
        now,
        rng,
    }
}

/// A timeout that is not needed: the answer comes at once.
fn arm_and_cancel(criterion: &mut Criterion) {
    fn measure<Q: Queue>(criterion: &mut Criterion, name: &str) {
        let mut group = criterion.benchmark_group("arm and cancel at once");
        for live in LIVE {
            let mut it = full::<Q>(live);
            group.bench_function(BenchmarkId::new(name, live), |bencher| {
                bencher.iter(|| {
                    let deadline = it.now + ahead(&mut it.rng);
                    let handle = it.queue.insert(black_box(deadline), 0);
                    it.queue.cancel(black_box(handle))
                });
            });
        }
        group.finish();
    }
    measure::<StagedWheel<u32>>(criterion, "wheel");
    measure::<ClassicQueue<u32>>(criterion, "map-hash");
    measure::<OrderedMap>(criterion, "map");
    measure::<Slab<(Instant, u32)>>(criterion, "slab");
}

/// An answer to any of those in flight, and a next request.
fn replace_any(criterion: &mut Criterion) {
    fn measure<Q: Queue>(criterion: &mut Criterion, name: &str) {
        let mut group = criterion.benchmark_group("cancel any, arm another");
        for live in LIVE {
            let mut it = full::<Q>(live);
            group.bench_function(BenchmarkId::new(name, live), |bencher| {
                bencher.iter(|| {
                    let place = it.rng.usize(..live);
                    let cancelled = it.queue.cancel(it.handles[place]);
                    let deadline = it.now + ahead(&mut it.rng);
                    it.handles[place] = it.queue.insert(deadline, place as u32);
                    cancelled
                });
            });
        }
        group.finish();
    }
    measure::<StagedWheel<u32>>(criterion, "wheel");
    measure::<ClassicQueue<u32>>(criterion, "map-hash");
    measure::<OrderedMap>(criterion, "map");
    measure::<Slab<(Instant, u32)>>(criterion, "slab");
}

/// Timers of one period, a second: a hundred are due in each poll.
fn fire(criterion: &mut Criterion) {
    fn measure<Q: Fires>(criterion: &mut Criterion, name: &str) {
        let mut group = criterion.benchmark_group("fire 100, arm them again");
        for live in LIVE {
            const PERIOD: Duration = Duration::from_secs(1);
            let step = PERIOD / live as u32;
            let mut now = Instant::now();
            let mut queue = Q::new(now);
            for number in 1..=live as u32 {
                queue.insert(now + step * number, number);
            }
            let mut expired = Vec::with_capacity(2 * FIRED);
            group.bench_function(BenchmarkId::new(name, live), |bencher| {
                bencher.iter(|| {
                    now += step * FIRED as u32;
                    queue.expire(now, &mut expired);
                    assert!(!expired.is_empty(), "the next are due");
                    let due = (0..).map(|nth| now + PERIOD - step * nth);
                    for (payload, deadline) in expired.drain(..).rev().zip(due) {
                        queue.insert(deadline, payload);
                    }
                });
            });
        }
        group.finish();
    }
    measure::<StagedWheel<u32>>(criterion, "wheel");
    measure::<ClassicQueue<u32>>(criterion, "map-hash");
    measure::<OrderedMap>(criterion, "map");
}
