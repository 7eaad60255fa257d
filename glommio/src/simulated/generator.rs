//! Generators of random numbers.

use fastrand::Rng;

/// The generator of what `of` says, with a seed that has nothing in common with those next to it: the first numbers
/// of a generator whose seed is not mixed are nearly the same for seeds that follow each other.
pub(crate) fn generator(seed: u64, of: u64) -> Rng {
    // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ of;
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Rng::with_seed(mixed ^ (mixed >> 31))
}
