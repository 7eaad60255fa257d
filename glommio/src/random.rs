//! Seeds for random number generators.

#![forbid(unsafe_code)]

use std::hash::{BuildHasher, RandomState};

use crate::sys::door::draw_seed;

/// A seed for a random number generator, another one at each call.
///
/// It comes from the random keys that the standard library gives its hash maps. In a simulation
/// (feature `simulation`) it is drawn from the seed of the simulation, so that a run can be
/// repeated. Do not use it for keys or passwords.
///
/// # Examples
///
/// ```
/// let mut rng = fastrand::Rng::with_seed(glommio::rng_seed());
/// assert!(rng.u32(..10) < 10);
/// assert_ne!(glommio::rng_seed(), glommio::rng_seed());
/// ```
pub fn rng_seed() -> u64 {
    draw_seed().unwrap_or_else(|| RandomState::new().hash_one(0))
}
