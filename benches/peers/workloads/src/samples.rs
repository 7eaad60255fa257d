//! Samples of one measurement and what is read off them.

use std::time::{Duration, Instant};

use fastrand::Rng;

/// Figures of one kind, in any unit.
#[derive(Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// No samples yet, and space for `capacity` of them, so that recording does not allocate.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Adds one.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops the first `count`: the warm-up.
    pub fn forget_first(&mut self, count: usize) {
        self.0.drain(..count.min(self.0.len()));
    }

    /// The value below which `fraction` of the samples lie (nearest rank).
    pub fn quantile(&mut self, fraction: f64) -> f64 {
        assert!(!self.0.is_empty(), "a quantile needs at least one sample");
        self.0.sort_unstable_by(f64::total_cmp);
        let rank = (self.0.len() as f64 * fraction).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// The value in the middle.
    pub fn median(&mut self) -> f64 {
        self.quantile(0.5)
    }
}

/// Times batches of equal operations; the median batch speaks for all.
///
/// Batches are short against a time slice, so that most of them run undisturbed on a busy machine, and the
/// median ignores the others. The first fifth warms caches, allocator and branch predictors and is dropped.
pub struct Batches {
    operations_per_batch: usize,
    batches: usize,
    samples: Samples,
}

impl Batches {
    /// `batches` batches of `operations_per_batch` each.
    pub fn new(batches: usize, operations_per_batch: usize) -> Self {
        Self {
            operations_per_batch,
            batches,
            samples: Samples::with_capacity(batches),
        }
    }

    /// Runs `batch` over and over.
    pub async fn run(mut self, mut batch: impl AsyncFnMut(usize)) -> f64 {
        for _ in 0..self.batches {
            let begin = Instant::now();
            batch(self.operations_per_batch).await;
            self.samples
                .push(nanoseconds(begin.elapsed()) / self.operations_per_batch as f64);
        }
        self.samples.forget_first(self.batches / 5);
        self.samples.median()
    }
}

/// Takes a step over and over; the middle of `count` of them in ns, after `warm_up` others.
pub async fn middle(count: usize, warm_up: usize, mut step: impl AsyncFnMut()) -> f64 {
    let mut samples = Samples::with_capacity(count + warm_up);
    for _ in 0..count + warm_up {
        let begin = Instant::now();
        step().await;
        samples.push(nanoseconds(begin.elapsed()));
    }
    samples.forget_first(warm_up);
    samples.median()
}

/// A duration in ns.
pub fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// A duration in µs.
pub fn microseconds(duration: Duration) -> f64 {
    nanoseconds(duration) / 1e3
}

/// A duration from `shortest` up to `longest`.
pub fn between(random: &mut Rng, shortest: Duration, longest: Duration) -> Duration {
    let span_ns = (longest - shortest).as_nanos() as u64;
    shortest + Duration::from_nanos(random.u64(..span_ns))
}
