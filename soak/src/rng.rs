//! A small seeded random number generator: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
//!
//! Two uses. A *stream* is drawn from by one executor in the order things happen there. A *script* is
//! a generator made from the seed and an identity (a message, say), so that its fate is the same in
//! every run with that seed, however the threads interleave.

use std::time::Duration;

use crate::check::control::nanos;

/// The generator. Eight bytes of state; a draw is some five instructions.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
}

impl Rng {
    /// The generator for `identity` in a run seeded with `seed`.
    pub(crate) fn new(seed: u64, identity: u64) -> Self {
        // Mixed twice, so that neighbouring seeds and identities share no visible structure.
        Rng {
            state: mix(mix(seed.wrapping_add(GOLDEN_GAMMA)) ^ identity.wrapping_mul(GOLDEN_GAMMA)),
        }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix(self.state)
    }

    /// A number in `0..bound`, by multiplication (Lemire 2019); the bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "nothing is below zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something of length `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True `parts` times in `whole`.
    pub(crate) fn chance(&mut self, parts: u64, whole: u64) -> bool {
        self.below(whole) < parts
    }

    /// A duration in `low..high`, every one as likely.
    pub(crate) fn uniform(&mut self, low: Duration, high: Duration) -> Duration {
        let span_ns = nanos(high).saturating_sub(nanos(low)).max(1);
        low + Duration::from_nanos(self.below(span_ns))
    }

    /// A duration in `low..high`, every order of magnitude as likely: it visits all levels of a wheel.
    pub(crate) fn log_uniform(&mut self, low: Duration, high: Duration) -> Duration {
        let ratio = high.as_secs_f64() / low.as_secs_f64();
        let fraction = (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        low.mul_f64(ratio.powf(fraction))
    }

    /// A part of `whole` between `low` and `high` hundredths.
    pub(crate) fn percent_of(&mut self, whole: Duration, low: u64, high: u64) -> Duration {
        whole.mul_f64((low + self.below(high - low + 1)) as f64 / 100.0)
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests {
    use super::*;

    /// The published sequence of SplitMix64 for seed 1234567, reached by setting the state directly.
    #[test]
    fn agrees_with_the_published_sequence() {
        let mut rng = Rng { state: 1_234_567 };
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn equal_seed_and_identity_give_equal_draws() {
        let draw = |seed, identity| Rng::new(seed, identity).next_u64();
        assert_eq!(draw(3, 9), draw(3, 9));
        assert_ne!(draw(3, 9), draw(3, 10));
        assert_ne!(draw(3, 9), draw(4, 9));
        assert_ne!(draw(0, 1), draw(1, 0));
    }

    #[test]
    fn draws_stay_in_range_and_reach_every_value() {
        let mut rng = Rng::new(1, 1);
        let mut seen = [false; 7];
        for _ in 0..1_000 {
            seen[rng.index(7)] = true;
        }
        assert!(seen.iter().all(|&seen| seen), "{seen:?}");
    }

    #[test]
    fn chance_is_about_right() {
        let mut rng = Rng::new(5, 5);
        let hits = (0..100_000).filter(|_| rng.chance(1, 10)).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
    }

    #[test]
    fn log_uniform_spreads_over_the_magnitudes() {
        let (low, high) = (Duration::from_millis(50), Duration::from_secs(50));
        let mut rng = Rng::new(2, 2);
        let mut decades = [0; 3];
        for _ in 0..30_000 {
            let drawn = rng.log_uniform(low, high);
            assert!(drawn >= low && drawn <= high, "{drawn:?}");
            decades[((drawn.as_secs_f64() / 0.05).log10() as usize).min(2)] += 1;
        }
        assert!(
            decades
                .iter()
                .all(|&count| (9_000..11_000).contains(&count)),
            "{decades:?}"
        );
    }

    #[test]
    fn fill_covers_odd_lengths() {
        let mut bytes = [0; 13];
        Rng::new(8, 8).fill(&mut bytes);
        assert_ne!(bytes[8..], [0; 5]);
    }
}
