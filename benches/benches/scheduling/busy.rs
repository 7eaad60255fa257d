//! Tasks that compute.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::quantiles::{Durations, histogram};

/// A few microseconds of arithmetic: what a task does between two looks at `yield_if_needed`.
pub fn compute() {
    let mut sum = 0_u64;
    for number in 0..4000 {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(number));
    }
}

/// How long `compute` takes: the middle of many.
pub fn loop_length() -> Duration {
    let mut lengths = histogram();
    for _ in 0..2001 {
        let begin = Instant::now();
        compute();
        lengths.enter(begin.elapsed());
    }
    lengths.at(0.5)
}

/// A deterministic pause of one to three milliseconds, different from one `turn` to the next, so
/// that the neighbour is met anywhere in its slice.
pub fn pause(turn: usize) -> Duration {
    Duration::from_micros(1000 + (turn as u64 * 7919) % 2000)
}
