//! Seeded random numbers: fastrand's generator, and draws that it does not have.
//!
//! A bench has one generator, `Rng::with_seed`, and does the same each time. The soak has many, by
//! seed and identity, for two uses. A *stream* is drawn from by one executor in the order things
//! happen there. A *script* is a generator made from the seed and an identity (a message, say), so
//! that its fate is the same in every run with that seed, however the threads interleave.
//!
//! ```
//! use std::time::Duration;
//! use support::generator::{Draw, Rng, stream};
//!
//! let mut rng = Rng::with_seed(7);
//! let (low, high) = (Duration::from_millis(1), Duration::from_secs(30));
//! assert!((low..=high).contains(&rng.uniform(low, high)));
//! assert_eq!(stream(3, 9).u64(..), stream(3, 9).u64(..));
//! ```

use std::time::Duration;

pub use fastrand::Rng;

/// The generator for `identity` in a run seeded with `seed`.
pub fn stream(seed: u64, identity: u64) -> Rng {
    // Mixed twice, so that neighbouring seeds and identities share no visible structure.
    let mixed = |seed| Rng::with_seed(seed).u64(..);
    Rng::with_seed(mixed(mixed(seed) ^ identity))
}

/// Draws that fastrand does not have.
pub trait Draw {
    /// True `parts` times in `whole`.
    fn chance(&mut self, parts: u64, whole: u64) -> bool;

    /// A duration in `low..high`, every one as likely.
    fn uniform(&mut self, low: Duration, high: Duration) -> Duration;

    /// A duration in `low..high`, every order of magnitude as likely: it visits all levels of a
    /// wheel.
    fn log_uniform(&mut self, low: Duration, high: Duration) -> Duration;

    /// A part of `whole` between `low` and `high` hundredths.
    fn percent_of(&mut self, whole: Duration, low: u64, high: u64) -> Duration;
}

impl Draw for Rng {
    fn chance(&mut self, parts: u64, whole: u64) -> bool {
        self.u64(..whole) < parts
    }

    fn uniform(&mut self, low: Duration, high: Duration) -> Duration {
        low + high.saturating_sub(low).mul_f64(self.f64())
    }

    fn log_uniform(&mut self, low: Duration, high: Duration) -> Duration {
        low.mul_f64(high.div_duration_f64(low).powf(self.f64()))
    }

    fn percent_of(&mut self, whole: Duration, low: u64, high: u64) -> Duration {
        whole.mul_f64(self.u64(low..=high) as f64 / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seed_and_identity_give_equal_draws() {
        let draw = |seed, identity| stream(seed, identity).u64(..);
        assert_eq!(draw(3, 9), draw(3, 9));
        assert_ne!(draw(3, 9), draw(3, 10));
        assert_ne!(draw(3, 9), draw(4, 9));
        assert_ne!(draw(0, 1), draw(1, 0));
    }

    /// Also of the first draws of neighbouring identities, which is what scripts are.
    #[test]
    fn chance_is_about_right() {
        let mut rng = stream(5, 5);
        let hits = (0..100_000).filter(|_| rng.chance(1, 10)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
        let hits = (0..100_000).filter(|&identity| stream(5, identity).chance(1, 10));
        let hits = hits.count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
    }

    #[test]
    fn log_uniform_spreads_over_the_magnitudes() {
        let (low, high) = (Duration::from_millis(50), Duration::from_secs(50));
        let mut rng = stream(2, 2);
        let mut decades = [0; 3];
        for _ in 0..30_000 {
            let drawn = rng.log_uniform(low, high);
            assert!(drawn >= low && drawn <= high, "{drawn:?}");
            decades[((drawn.as_secs_f64() / 0.05).log10() as usize).min(2)] += 1;
        }
        let is_even = |count| (9_000..11_000).contains(&count);
        assert!(decades.into_iter().all(is_even), "{decades:?}");
    }
}
