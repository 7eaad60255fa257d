//! Items with deadlines: `glommio::timer::DelayQueue`, and with the feature `peers` beside it
//! `tokio_util::time::DelayQueue`, each on its own runtime and the real clock.
//!
//! ```text
//! cargo bench -p benches --features peers --bench delay_queue -- [--rounds 11] [--write-docs]
//! cargo bench -p benches --features peers,glommio/timing-wheel --bench delay_queue
//! ```
//!
//! Beside 1,000 and beside 100,000 items, 1,000 of them are inserted, reset and removed, and inserted once more where the
//! first were; then all that there are expire within one millisecond and are taken out. Figures are nanoseconds of
//! processor time for an item. The page has a block for each timer queue.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use benches::bench::{Bench, Column, case, figures};
use benches::row::{Aim, row};
use glommio::LocalExecutor;
use glommio::timer::{DelayQueue, delay_queue};
use support::generator::{Draw, Rng};
use support::process::thread_time;

fn main() -> ExitCode {
    let has_wheel = glommio::BUILD.contains("timing-wheel");
    let (preface, block) = if has_wheel {
        ("Our timers are in the timing wheel.", "delay-queue-wheel")
    } else {
        ("Our timers are in the ordered map.", "delay-queue-map")
    };
    let rows = POPULATIONS.iter().flat_map(|items| {
        let operations = ["insert", "reset", "remove", "insert again", "expire"];
        operations.map(|operation| {
            let (name, title) = (
                format!("{items}-{operation}"),
                format!("{operation}, {items} items"),
            );
            row(name, items.to_string(), title, "ns", Aim::Open)
        })
    });
    Bench {
        name: "delay_queue",
        file: block,
        block,
        preface,
        yardstick: "tokio-util",
        ours: &["glommio"],
        rounds: 11,
        ..Bench::DEFAULT
    }
    .main(rows.collect(), |options| {
        // Without optimisation tokio-util's queue looks for each item that it removes.
        let populations = if options.bench {
            &POPULATIONS[..]
        } else {
            &POPULATIONS[..1]
        };
        Ok(vec![
            column("glommio", ours, populations),
            #[cfg(feature = "peers")]
            column("tokio-util", theirs::run, populations),
        ])
    })
}

const POPULATIONS: [usize; 1] = [100_000];

/// Items that are inserted, reset and removed beside the others.
const BATCH: usize = 1_000;

/// Longer than a queue rounds deadlines up by.
const ROUNDING: Duration = Duration::from_millis(2);

/// Nanoseconds for an item, by operation.
type Figures = [(&'static str, f64); 5];

fn column(name: &str, run: fn(usize) -> Figures, populations: &[usize]) -> Column {
    let cases = populations.iter().map(|&items| {
        let name = items.to_string();
        case(name.clone(), move || Ok(figures(&name, run(items))))
    });
    Column {
        name: name.to_owned(),
        cases: cases.collect(),
    }
}

/// A queue of numbers.
trait Delays {
    type Key;

    fn insert(&mut self, item: usize, deadline: Instant) -> Self::Key;
    fn reset(&mut self, key: &Self::Key, deadline: Instant);
    fn remove(&mut self, key: &Self::Key) -> usize;
    /// Waits for the next item that expires.
    async fn next(&mut self) -> usize;
}

/// Measures an empty queue, on its runtime.
async fn measure(mut queue: impl Delays, items: usize) -> Figures {
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
    [
        ("insert", insert),
        ("reset", reset),
        ("remove", remove),
        ("insert again", again),
        ("expire", expire),
    ]
}

fn time(items: usize, operations: impl FnOnce()) -> f64 {
    let started = thread_time();
    operations();
    per_item(thread_time() - started, items)
}

fn per_item(took: Duration, items: usize) -> f64 {
    took.as_secs_f64() * 1e9 / items as f64
}

fn ours(items: usize) -> Figures {
    LocalExecutor::default().run(async { measure(DelayQueue::new(), items).await })
}

impl Delays for DelayQueue<usize> {
    type Key = delay_queue::Key;

    fn insert(&mut self, item: usize, deadline: Instant) -> Self::Key {
        self.insert_at(item, deadline)
    }

    fn reset(&mut self, key: &Self::Key, deadline: Instant) {
        assert!(self.reset_at(*key, deadline));
    }

    fn remove(&mut self, key: &Self::Key) -> usize {
        DelayQueue::remove(self, *key).expect("it is in the queue")
    }

    async fn next(&mut self) -> usize {
        self.next_expired().await.into_inner()
    }
}

#[cfg(feature = "peers")]
mod theirs {
    use std::future::poll_fn;
    use std::time::Instant;

    use tokio_util::time::DelayQueue;
    use tokio_util::time::delay_queue::Key;

    pub fn run(items: usize) -> super::Figures {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build();
        let runtime = runtime.expect("a runtime without I/O asks the system for nothing");
        runtime.block_on(async { super::measure(DelayQueue::new(), items).await })
    }

    impl super::Delays for DelayQueue<usize> {
        type Key = Key;

        fn insert(&mut self, item: usize, deadline: Instant) -> Key {
            self.insert_at(item, deadline.into())
        }

        fn reset(&mut self, key: &Key, deadline: Instant) {
            self.reset_at(key, deadline.into());
        }

        fn remove(&mut self, key: &Key) -> usize {
            DelayQueue::remove(self, key).into_inner()
        }

        async fn next(&mut self) -> usize {
            let expired = poll_fn(|cx| self.poll_expired(cx)).await;
            expired.expect("an item is left").into_inner()
        }
    }
}
