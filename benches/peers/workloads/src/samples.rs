//! Samples of one measurement and what is read off them.

use std::time::{Duration, Instant};

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

/// A duration in ns.
pub fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// A duration in µs.
pub fn microseconds(duration: Duration) -> f64 {
    nanoseconds(duration) / 1e3
}

/// A small generator of pseudo-random numbers (xorshift64*, Vigna 2016), the same sequence in every run.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = u128::from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D));
        ((high * u128::from(bound)) >> 64) as u64
    }

    /// A duration from `shortest` up to `longest`.
    pub fn between(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let span_ns = (longest - shortest).as_nanos() as u64;
        shortest + Duration::from_nanos(self.below(span_ns))
    }

    /// Puts `items` into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
