//! What is done with a queue.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use support::generator::{Draw, Rng};
use support::process::thread_time;

/// In the order in which they are done.
pub const OPERATIONS: [&str; 5] = ["insert", "reset", "remove", "insert again", "expire"];

/// Nanoseconds for an item, by operation.
pub type Figures = [f64; OPERATIONS.len()];

/// Items that are inserted, reset and removed beside the others.
const BATCH: usize = 1_000;

/// Longer than a queue rounds deadlines up by.
const ROUNDING: Duration = Duration::from_millis(2);

/// A queue of numbers.
pub trait Delays {
    type Key;

    fn insert(&mut self, item: usize, deadline: Instant) -> Self::Key;
    fn reset(&mut self, key: &Self::Key, deadline: Instant);
    fn remove(&mut self, key: &Self::Key) -> usize;
    /// Waits for the next item that expires.
    async fn next(&mut self) -> usize;
}

/// Measures an empty queue, on its runtime.
pub async fn run(mut queue: impl Delays, items: usize) -> Figures {
    let mut random = Rng::with_seed(7);
    let mut far = {
        let now = Instant::now();
        move || now + random.uniform(Duration::from_secs(60), Duration::from_secs(3_660))
    };
    let others: Vec<_> = (0..items).map(|item| queue.insert(item, far())).collect();
    let mut deadlines = || -> Vec<_> { (0..BATCH).map(|_| far()).collect() };
    let (first, second) = (deadlines(), deadlines());

    let mut keys = Vec::with_capacity(BATCH);
    let insert = time(BATCH, || {
        keys.extend((first.iter()).map(|&deadline| queue.insert(items, deadline)));
    });
    // Not in the order in which they were inserted.
    Rng::with_seed(8).shuffle(&mut keys);
    let reset = time(BATCH, || {
        for (key, &deadline) in keys.iter().zip(&second) {
            queue.reset(key, deadline);
        }
    });
    let remove = time(BATCH, || {
        for key in &keys {
            assert_eq!(black_box(queue.remove(key)), items);
        }
    });

    // Where others were: a queue that has had as many items does not grow.
    keys.clear();
    let again = time(BATCH, || {
        keys.extend((first.iter()).map(|&deadline| queue.insert(items, deadline)));
    });
    for key in &keys {
        assert_eq!(queue.remove(key), items);
    }

    // All are due within a millisecond, which begins when all have been told so.
    let lead = Duration::from_millis(5) + Duration::from_micros(2) * items as u32;
    let begin = Instant::now() + lead;
    let mut random = Rng::with_seed(9);
    for key in &others {
        let delay = random.uniform(Duration::ZERO, Duration::from_millis(1));
        queue.reset(key, begin + delay);
    }
    let end = begin + Duration::from_millis(1) + ROUNDING;
    thread::sleep(end.saturating_duration_since(Instant::now()));
    let mut has_expired = vec![false; items];
    let started = thread_time();
    for _ in 0..items {
        has_expired[queue.next().await] = true;
    }
    let expire = per_item(thread_time() - started, items);
    assert!(has_expired.iter().all(|&it| it), "each expires once");
    [insert, reset, remove, again, expire]
}

fn time(items: usize, operations: impl FnOnce()) -> f64 {
    let started = thread_time();
    operations();
    per_item(thread_time() - started, items)
}

fn per_item(took: Duration, items: usize) -> f64 {
    took.as_secs_f64() * 1e9 / items as f64
}
