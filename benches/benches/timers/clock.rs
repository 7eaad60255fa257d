//! Cycles of the time stamp counter, and how they are spread.

use std::sync::OnceLock;

use quanta::Clock;
use support::quantiles::{Histogram, Samples, histogram};

/// The counter, with a fence on either side: what came before has finished, what comes after has
/// not begun.
#[inline]
pub fn cycles() -> u64 {
    fence();
    let cycles = clock().raw();
    fence();
    cycles
}

/// What has passed from one reading to the next, without what reading takes.
#[inline]
pub fn between(begin: u64, end: u64) -> u64 {
    (end - begin).saturating_sub(overhead())
}

/// So many cycles in nanoseconds.
pub fn ns(cycles: u64) -> f64 {
    const MANY: u64 = 1 << 40;
    cycles as f64 * (clock().delta_as_nanos(0, MANY) as f64 / MANY as f64)
}

/// Cycles by percentile.
#[derive(Debug)]
pub struct Cycles(Histogram<u64>);

impl Cycles {
    /// None yet.
    pub fn new() -> Self {
        Cycles(histogram())
    }

    /// Counts what has passed from one reading to the next.
    pub fn record(&mut self, begin: u64, end: u64) {
        self.0.saturating_record(between(begin, end));
    }

    /// The cycles that this part of the measurements did not exceed.
    pub fn quantile(&self, part: f64) -> u64 {
        self.0.value_at_quantile(part)
    }
}

/// The distance of two readings with nothing between them: of several medians the smallest, which
/// no neighbour on the machine has disturbed.
fn overhead() -> u64 {
    static OVERHEAD: OnceLock<u64> = OnceLock::new();
    *OVERHEAD.get_or_init(|| {
        let median = |_| {
            let distances = (0..1001).map(|_| {
                let begin = cycles();
                (cycles() - begin) as f64
            });
            let median = distances.collect::<Samples>().median();
            median.expect("a thousand distances") as u64
        };
        (0..100).map(median).min().expect("a hundred medians")
    })
}

fn clock() -> &'static Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    CLOCK.get_or_init(Clock::new)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn fence() {
    // SAFETY: all that it asks for is SSE2, which every x86-64 has.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn fence() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}
